package calibrate

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/probes"
)

// A maker makes a filesystem that is good as far as anybody knows.
type maker struct {
	name string
	make func(*run, *ground) (dir string, err error)
}

func makers() []maker {
	return []maker{
		{"tmpfs", func(r *run, g *ground) (string, error) { return r.mount(g, "tmpfs", "mode=0755,size=256m") }},
		{"overlay", (*run).overlay},
		{"ext4", func(r *run, g *ground) (string, error) { return r.loop(g, "ext4", "-q", "-F") }},
		{"xfs", func(r *run, g *ground) (string, error) { return r.loop(g, "xfs", "-q") }},
		{"btrfs", func(r *run, g *ground) (string, error) { return r.loop(g, "btrfs", "-q") }},
	}
}

// goodOnes runs every probe that does no harm on filesystems that keep their promises.
func (r *run) goodOnes() error {
	for i, m := range makers() {
		if r.ctx.Err() != nil {
			return nil
		}
		g := new(ground)
		dir, err := m.make(r, g)
		if err != nil {
			r.lack(m.name, err.Error())
		} else {
			err = r.good(i, m.name, dir)
		}
		if failed := r.close(g); failed != nil {
			return failed
		}
		if dir != "" && err != nil && r.ctx.Err() == nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

// good runs the probes on one of them.
func (r *run) good(nth int, name, dir string) error {
	alarms := 0
	for i, p := range probes.All {
		if p.Disposable || p.Hosts || (i+nth)%r.size.GoodEvery != 0 {
			continue
		}
		g := Good{Filesystem: name, Probe: p.Name}
		for range r.size.GoodRuns {
			err := r.inside(p.Name, []string{dir}, func() {
				b := smallBench(8)
				b.Line, b.Routes, b.Contenders, b.Rounds = r.line, 1, []int{2, 8}, 20000
				b.Time = 200 * time.Millisecond
				f := probes.Run(r.ctx, p, b)
				if r.ctx.Err() == nil {
					g.judge(&f)
				}
			})
			if err != nil || r.ctx.Err() != nil {
				r.keep(g)
				return err
			}
		}
		alarms += g.Alarms
		r.keep(g)
	}
	r.say("good: %s: %d false alarms", name, alarms)
	return nil
}

// keep is for probes that were run.
func (r *run) keep(g Good) {
	if g.Runs > 0 {
		r.file.Good = append(r.file.Good, g)
	}
}

// judge counts one finding.
func (g *Good) judge(f *result.Finding) {
	g.Runs++
	g.Rounds += f.Rounds
	switch {
	case f.Verdict == result.Holds:
		return
	case accuses(f.Verdict):
		g.Alarms++
	case f.Verdict == result.Unproven:
		g.Unproven++
	}
	if said := fmt.Sprintf("%s: %s", f.Verdict, f.Reason); len(g.Said) < 4 && !slices.Contains(g.Said, said) {
		g.Said = append(g.Said, said)
	}
}

// overlay has both its layers on a tmpfs.
func (r *run) overlay(g *ground) (string, error) {
	base, err := r.mount(g, "tmpfs", "mode=0755,size=256m")
	if err != nil {
		return "", err
	}
	var options []string
	for _, d := range []string{"lower", "upper", "work"} {
		at := filepath.Join(base, d)
		if err := os.Mkdir(at, 0o755); err != nil {
			return "", err
		}
		options = append(options, d+"dir="+at)
	}
	return r.mount(g, "overlay", strings.Join(options, ","))
}

const loopBytes = 512 << 20

// loop makes a filesystem in a file in memory.
func (r *run) loop(g *ground, fstype string, options ...string) (string, error) {
	mkfs, err := exec.LookPath("mkfs." + fstype)
	if err != nil {
		return "", fmt.Errorf("mkfs.%s is not installed", fstype)
	}
	base, err := r.mount(g, "tmpfs", "mode=0700,size=600m")
	if err != nil {
		return "", err
	}
	image := filepath.Join(base, "image")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, loopBytes)); err != nil {
		return "", err
	}
	if err := r.command(mkfs, append(options, image)...); err != nil {
		return "", err
	}
	dir, err := r.dir(g)
	if err != nil {
		return "", err
	}
	if err := r.command("mount", "-o", "loop", "-t", fstype, image, dir); err != nil {
		return "", err
	}
	g.undo = append(g.undo, func() error { return unmount(dir) })
	return dir, nil
}

func firstLine(s string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return first
}
