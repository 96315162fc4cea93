package probes
import ("testing";"os";"strings"; "time"; S "github.com/claimbench/claimbench/internal/sloppyfs")
var _ = os.Args
func TestExplore(t *testing.T) {
	rows := []struct{name string; mounts int; probes string; plant func(*S.Share)}{
		{"none1",1,"all",func(s *S.Share){}},
		{"none2",2,"all",func(s *S.Share){}},
		{"excl dropped 1",1,"excl-create",func(s *S.Share){s.Plant(S.ExclDropped,1)}},
		{"excl dropped 2",2,"excl-create",func(s *S.Share){s.Plant(S.ExclDropped,1)}},
		{"excl dropped neg 2",2,"excl-create",func(s *S.Share){s.Plant(S.ExclDropped,1);s.Plant(S.NegativeCached,1)}},
		{"mkdir existing 1",1,"mkdir",func(s *S.Share){s.Plant(S.MkdirTakesExisting,1)}},
		{"mkdir existing 2",2,"mkdir",func(s *S.Share){s.Plant(S.MkdirTakesExisting,1)}},
		{"symlink 2",2,"symlink",func(s *S.Share){s.Plant(S.SymlinkNotAtomic,1)}},
		{"link 2",2,"link",func(s *S.Share){s.Plant(S.LinkNotAtomic,1)}},
		{"noreplace 2",2,"rename-noreplace",func(s *S.Share){s.Plant(S.NoreplaceNotAtomic,1)}},
		{"occupied 1",1,"rename-dir-occupied",func(s *S.Share){s.Plant(S.RenameOntoOccupied,1)}},
		{"occupied 2",2,"rename-dir-occupied",func(s *S.Share){s.Plant(S.RenameOntoOccupied,1)}},
		{"loses source",1,"rename-dir-occupied rename-noreplace",func(s *S.Share){s.Plant(S.RenameLosesSource,1)}},
		{"gap 1",1,"rename-replace",func(s *S.Share){s.Plant(S.RenameWithGap,1)}},
		{"gap 2",2,"rename-replace publish",func(s *S.Share){s.Plant(S.RenameWithGap,1)}},
		{"winner told",2,"excl-create",func(s *S.Share){s.Plant(S.WinnerToldEEXIST,1,S.Create)}},
		{"winner told 1",1,"excl-create",func(s *S.Share){s.Plant(S.WinnerToldEEXIST,1,S.Create)}},
		{"winner told 7",2,"excl-create",func(s *S.Share){s.Plant(S.WinnerToldEEXIST,7,S.Create)}},
		{"winner told mkdir",2,"mkdir",func(s *S.Share){s.Plant(S.WinnerToldEEXIST,1,S.Mkdir)}},
		{"winner told symlink",2,"symlink",func(s *S.Share){s.Plant(S.WinnerToldEEXIST,1,S.Symlink)}},
		{"winner told link",2,"link",func(s *S.Share){s.Plant(S.WinnerToldEEXIST,1,S.Link)}},
		{"winner told rename",2,"rename-noreplace rename-dir-occupied",func(s *S.Share){s.Plant(S.WinnerToldEEXIST,1,S.Rename)}},
		{"taken absent",1,"excl-create",func(s *S.Share){s.Plant(S.TakenThoughAbsent,1,S.Create)}},
		{"taken absent mk",1,"mkdir",func(s *S.Share){s.Plant(S.TakenThoughAbsent,1,S.Mkdir)}},
		{"taken absent sl",1,"symlink",func(s *S.Share){s.Plant(S.TakenThoughAbsent,1,S.Symlink)}},
		{"taken absent l",1,"link",func(s *S.Share){s.Plant(S.TakenThoughAbsent,1,S.Link)}},
		{"vanish",1,"excl-create",func(s *S.Share){s.Plant(S.CreatedVanishes,1,S.Create)}},
		{"vanish mk",1,"mkdir",func(s *S.Share){s.Plant(S.CreatedVanishes,1,S.Mkdir)}},
		{"vanish sl",1,"symlink",func(s *S.Share){s.Plant(S.CreatedVanishes,1,S.Symlink)}},
		{"vanish link",1,"link",func(s *S.Share){s.Plant(S.CreatedVanishes,1,S.Link)}},
		{"vanish rename",1,"rename-noreplace rename-dir-occupied",func(s *S.Share){s.Plant(S.CreatedVanishes,1,S.Rename)}},
		{"loser truncates",2,"excl-create",func(s *S.Share){s.Plant(S.LoserTruncates,1)}},
		{"neg cache",2,"all",func(s *S.Share){s.Plant(S.NegativeCached,1)}},
		{"pos cache",2,"all",func(s *S.Share){s.Plant(S.PositiveCached,1)}},
		{"content cache",2,"all",func(s *S.Share){s.Plant(S.ContentCached,1)}},
		{"content cache 1",1,"lock-coherence publish",func(s *S.Share){s.Plant(S.ContentCached,1)}},
		{"writes delayed",1,"all",func(s *S.Share){s.Plant(S.WritesDelayed,1)}},
		{"writes delayed 2",2,"all",func(s *S.Share){s.Plant(S.WritesDelayed,1)}},
		{"link copies",2,"link publish",func(s *S.Share){s.Plant(S.LinkCopies,1)}},
		{"modes",2,"all",func(s *S.Share){s.Plant(S.ModesFixed,1)}},
		{"link refused",2,"link publish",func(s *S.Share){s.Plant(S.LinkRefused,1)}},
		{"symlink refused",2,"symlink",func(s *S.Share){s.Plant(S.SymlinkRefused,1)}},
		{"flags refused",2,"rename-noreplace",func(s *S.Share){s.Plant(S.RenameFlagsRefused,1)}},
		{"nospace",2,"all",func(s *S.Share){s.Plant(S.NoSpace,1)}},
		{"nospace 3",2,"all",func(s *S.Share){s.Plant(S.NoSpace,3)}},
		{"local1",1,"flock posix-lock ofd-lock lock-release lock-coherence",func(s *S.Share){s.Plant(S.LocksLocal,1)}},
		{"local2",2,"flock posix-lock ofd-lock lock-release lock-coherence",func(s *S.Share){s.Plant(S.LocksLocal,1)}},
		{"granted1",1,"flock posix-lock ofd-lock lock-release lock-coherence",func(s *S.Share){s.Plant(S.LocksGranted,1)}},
		{"granted2",2,"flock posix-lock ofd-lock lock-release lock-coherence",func(s *S.Share){s.Plant(S.LocksGranted,1)}},
		{"enolck",1,"flock posix-lock ofd-lock lock-release lock-coherence",func(s *S.Share){s.Plant(S.LocksENOLCK,1)}},
		{"enosys",1,"flock posix-lock ofd-lock lock-release lock-coherence",func(s *S.Share){s.Plant(S.LocksENOSYS,1)}},
		{"eopnotsupp",1,"flock posix-lock ofd-lock lock-release lock-coherence",func(s *S.Share){s.Plant(S.LocksEOPNOTSUPP,1)}},
		{"outlive",2,"flock posix-lock ofd-lock lock-release lock-coherence",func(s *S.Share){s.Plant(S.LocksOutliveHolder,1)}},
		{"sleep",2,"flock posix-lock ofd-lock lock-release lock-coherence",func(s *S.Share){s.Plant(S.LockWaitersSleep,1)}},
		{"sharedexcl",2,"flock posix-lock ofd-lock lock-release lock-coherence",func(s *S.Share){s.Plant(S.LocksSharedAreExclusive,1)}},
		{"slow",2,"excl-create mkdir",func(s *S.Share){s.Plant(S.Slow,1)}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T){
			dirs, backing := newSloppy(t, r.mounts, r.plant)
			b := smallBench(t, 4, dirs...)
			for _, p := range All {
				if r.probes != "all" && !strings.Contains(" "+r.probes+" ", " "+p.Name+" ") { continue }
				began := time.Now()
				f := Run(t.Context(), p, b)
				t.Logf("%.1fs %s", time.Since(began).Seconds(), describe(&f))
			}
			if l := leftovers(t, backing); len(l) > 0 { t.Log("LEFT", len(l), l[:min(4,len(l))]) }
		})
	}
}
