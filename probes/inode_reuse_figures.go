package probes

import (
	"fmt"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

// noteReuse records, for each tuple that the filesystem tells, the share of files that looked like an earlier one, how
// many files later that was at the least, and the same of files made with pauses.
func noteReuse(f *result.Finding, many, apart []identity) {
	for _, t := range tuples {
		soon, late := recur(t, many), recur(t, apart)
		if !soon.told || !late.told {
			continue
		}
		most(f, t.name+"_again_share", shareOf(soon.again, len(many)))
		most(f, t.name+"_again_after_pause_share", shareOf(late.again, len(apart)))
		most(f, t.name+"_changed_share", shareOf(soon.changed+late.changed, len(many)+len(apart)))
		if soon.again > 0 {
			least(f, t.name+"_again_after_files", float64(soon.soonest))
		}
	}
	f.Figures["files_count"] += float64(len(many) + len(apart))
}

// shareOf is a share of the files that had a predecessor.
func shareOf(n, files int) float64 { return float64(n) / float64(max(1, files-1)) }

// tellReuse names what identifies a file, and the class. Of files that could not be made, with pauses or without, it is
// not known.
func tellReuse(f *result.Finding, total *evidence) {
	partial(f, total)
	if f.Figures["inode_again_share"]+f.Figures["inode_again_after_pause_share"] > 0 && f.Verdict != result.Unproven {
		f.Class = reused
	}
	if f.Verdict != result.Holds {
		return
	}
	f.Reason = "the inode number identifies a file as far as was seen: none came back"
	if f.Class == reused {
		f.Reason = fmt.Sprintf("the inode number alone identifies no file, it came back %s; %s", howSoon(f), identifying(f))
	}
	f.Reason += fmt.Sprintf(" (%.0f files)", f.Figures["files_count"])
}

func howSoon(f *result.Finding) string {
	if n := f.Figures["inode_again_after_files"]; n != 1 {
		return fmt.Sprintf("for file %.0f after it", n)
	}
	return "for the next file, at once"
}

// identifying says by what a file is known, at once and from a tick later on.
func identifying(f *result.Finding) string {
	later := ""
	for _, t := range tuples {
		soon, told := f.Figures[t.name+"_again_share"]
		if !told || f.Figures[t.name+"_changed_share"] > 0 || f.Figures[t.name+"_again_after_pause_share"] > 0 {
			continue
		}
		if later == "" {
			later = t.words()
		}
		switch {
		case soon == 0 && later == t.words():
			return "the " + later + " does"
		case soon == 0:
			return fmt.Sprintf("the %s does, and from %v later on the %s", t.words(), apartPause, later)
		}
	}
	return fmt.Sprintf("the %s does from %v later on, and before that nothing but the content", later, apartPause)
}

// rawFiles is the record of two files.
func (b *Bench) rawFiles(who int, ids ...identity) result.Round {
	r := result.Round{Operation: "succession", Number: int(b.Line.Name()), Phase: race.Step.String()}
	for i := range ids {
		id := &ids[i]
		ev := b.event(who, &race.Event{Invoke: id.Invoke, Return: id.Return, Inode: id.First.Ino, Saw: id.First.Handle})
		ev.Did = fmt.Sprintf("make, look twice: inode %d, then %d; size %d; ctime %s; birth %s; handle %x",
			id.First.Ino, id.Again.Ino, id.First.Size, epochSeconds(int64(id.First.Ctime)), epochSeconds(int64(id.First.Btime)), id.First.Handle)
		r.Events = append(r.Events, ev)
	}
	return r
}
