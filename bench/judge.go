package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/result"
)

// An attempted is what one contender did about one key, with what the result file does not keep.
type attempted struct {
	result.Attempt
	tries       int64
	firstInvoke int64
	firstReturn int64
	left        int64
	sink        int64
	errno       unix.Errno
	clock       int   // whose the times are
	unsure      int64 // by how much they may be wrong, beside those of another clock, ns
}

// doubt is by how much the times of two may be apart from how they are recorded: what that could explain is none.
func doubt(a, b *attempted) int64 {
	if a.clock == b.clock {
		return 0
	}
	return a.unsure + b.unsure
}

// never is later than any instant.
const never = int64(math.MaxInt64)

// soonest is the earliest of the instants that did come. 0 is one that did not.
func soonest(instants ...int64) int64 {
	earliest := never
	for _, at := range instants {
		if at != 0 {
			earliest = min(earliest, at)
		}
	}
	return earliest
}

// possession is until when nobody else may begin: the end of the lease, or its owner's death or giving up.
func (a *attempted) possession() int64 { return min(a.Expires, soonest(a.Died, a.left)) }

// running says that the execution, which had begun, was still under way at an instant.
func (a *attempted) running(at int64) bool { return at < soonest(a.Ended, a.Died, a.left) }

// A verdict is what the judge counts in one trial.
type verdict struct {
	attempts, executed, duplicates, missed, overlaps, refused, accepted int

	contested bool
	kind      string // of the first violation
	sentence  string
}

// judge is pure: it sees nothing but the records of one trial, over so many routes, and the keys that should have been
// executed.
func judge(routes int, keys []int, all []attempted) verdict {
	var v verdict
	of := map[int][]attempted{}
	for _, a := range all {
		v.attempts += int(a.tries)
		of[a.Key] = append(of[a.Key], a)
	}
	for _, key := range keys {
		v.key(routes, key, of[key])
	}
	return v
}

func (v *verdict) key(routes, key int, all []attempted) {
	execs := slices.DeleteFunc(slices.Clone(all), func(a attempted) bool { return a.Began == 0 })
	slices.SortFunc(execs, func(a, b attempted) int { return cmp.Compare(a.Began, b.Began) })
	v.executed += len(execs)
	heard := heardDone(all)
	for j := range execs {
		v.execution(key, execs[:j], &execs[j], heard)
	}
	if !finished(all) {
		v.missed++
		v.note("missed", fmt.Sprintf("key %d was finished by nobody", key))
	}
	v.contested = v.contested || contested(routes, execs, all)
}

// heardDone is the first who was told that the key is done.
func heardDone(all []attempted) *attempted {
	var heard *attempted
	for i := range all {
		if a := &all[i]; a.Outcome == outcomes[outcomeDone] && (heard == nil || a.Return < heard.Return) {
			heard = a
		}
	}
	return heard
}

// execution judges one that began after some others.
func (v *verdict) execution(key int, before []attempted, b, heard *attempted) {
	late := false
	for i := range before {
		a := &before[i]
		unsure := doubt(a, b)
		switch {
		case a.Done != 0 && a.Done+unsure <= b.Began:
			v.duplicate(fmt.Sprintf("contender %d executes key %d, %v after contender %d recorded it as done", b.Contender, key, ago(b.Began-a.Done), a.Contender))
			return
		case b.Began+unsure < a.possession():
			v.duplicate(fmt.Sprintf("contender %d executes key %d, %v after contender %d began, whose lease is good", b.Contender, key, ago(b.Began-a.Began), a.Contender))
			return
		case a.running(b.Began):
			late = true
			v.late(a)
		}
	}
	switch {
	case heard != nil && heard.Return+doubt(heard, b) <= b.Began:
		v.duplicate(fmt.Sprintf("contender %d executes key %d, %v after contender %d was told that it is done", b.Contender, key, ago(b.Began-heard.Return), heard.Contender))
	case late:
		v.overlaps++
	}
}

// late is for an owner that went on beside its successor.
func (v *verdict) late(a *attempted) {
	switch a.sink {
	case sinkAccepted:
		v.accepted++
	case sinkRefused:
		v.refused++
	}
}

func (v *verdict) duplicate(sentence string) {
	v.duplicates++
	v.note("duplicate", sentence)
}

func (v *verdict) note(kind, sentence string) {
	if v.kind == "" || v.kind == "missed" && kind == "duplicate" {
		v.kind, v.sentence = kind, sentence
	}
}

// finished says that somebody came to the end of the work, and that it counts as done.
func finished(all []attempted) bool {
	ended, done := false, false
	for i := range all {
		ended = ended || all[i].Ended != 0
		done = done || all[i].Done != 0 || all[i].Outcome == outcomes[outcomeDone]
	}
	return ended && done
}

// contested says that the claim of the first to execute overlapped somebody else's. With several routes that one has to
// be on another: an overlap within one route says nothing about the distance between routes.
func contested(routes int, execs, all []attempted) bool {
	if len(execs) == 0 {
		return false
	}
	w := &execs[0]
	return slices.ContainsFunc(all, func(a attempted) bool {
		apart := a.Contender != w.Contender && (routes < 2 || a.Route != w.Route)
		unsure := doubt(w, &a)
		return apart && (meet(w, a.Invoke, soonest(a.Return, a.Died), unsure) || meet(w, a.firstInvoke, soonest(a.firstReturn, a.Died), unsure))
	})
}

// meet compares with the try that won. An overlap that the clocks could explain is none.
func meet(w *attempted, invoke, back, unsure int64) bool {
	return invoke <= w.Return-unsure && back-unsure >= w.Invoke
}

func ago(ns int64) time.Duration { return time.Duration(ns).Round(time.Microsecond) }
