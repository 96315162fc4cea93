package survey

import (
	"path/filepath"
	"slices"

	"github.com/claimbench/claimbench/internal/result"
	"github.com/claimbench/claimbench/probes"
)

// chosen are the probes to run: those named, or all that do the target no harm and have something to say there.
func (o *Options) chosen(t *result.Target) []probes.Probe {
	if o.BenchOnly {
		return nil
	}
	if len(o.Config.Probes) == 0 {
		disposable := o.disposable(t)
		return slices.DeleteFunc(slices.Clone(probes.All), func(p probes.Probe) bool { return !p.Suits(t.Scope, disposable) })
	}
	var chosen []probes.Probe
	for _, p := range probes.All {
		if slices.Contains(o.Config.Probes, p.Name) {
			chosen = append(chosen, p)
		}
	}
	return chosen
}

// disposable says that every route to the target is, or lies in, a directory that the configuration gives up.
func (o *Options) disposable(t *result.Target) bool {
	return len(t.Routes) > 0 && !slices.ContainsFunc(t.Routes, func(r result.Route) bool {
		return !slices.ContainsFunc(o.Config.Disposable, func(dir string) bool {
			rel, err := filepath.Rel(dir, r.Path)
			return err == nil && filepath.IsLocal(rel)
		})
	})
}
