package probes

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

var pathAgreement = Probe{
	Name: "path-agreement",
	Promise: "Every contender derives the same path from the same key and reaches the same file by it, over every route; different keys reach " +
		"different files.",
	Why: "Two paths for one key, and the work is done twice; one path for two keys, and work is refused because of other work, or never done. " +
		"Programs that clean a key into a file name have mapped all keys in another script to one file.",
	How: "Each contender derives the paths of keys that differ in case, normalisation, length, a last dot or space, or only in where one part " +
		"ends, with the code that claims use. A contender over each route in turn writes a nonce to the file of each key, and every contender " +
		"reads them all: it must have derived the writer's path, and must read that key's nonce. Each read is a round.",
	Control: "paths made of the letters and digits of a key, and paths with the contender's number in them",
	Broken: "The routes do not lead to one directory with faithful names: compare what is mounted, and options that change names (case folding, " +
		"normalisation, encryption, a limit on their length). No claim is safe over these routes.",
	Refused: "Nothing can be written here: see excl-create.",
	Ops:     pathOps,
	Run:     runAgreement,
}

// The kinds of violation.
const (
	pathsDiffer    = "paths-differ"
	keysMerged     = "keys-merged"
	pathNotReached = "path-not-reached"
)

// A reached is what one contender found of one key's file, raw.
type reached struct {
	number, key    int
	writer, reader int
	written, by    reach // as the writer recorded it, and as the reader did
}

// judge rules on one read.
func (r *reached) judge() ruling {
	who := fmt.Sprintf("contender %d", r.reader)
	switch {
	case r.written.Look.Errno != 0 || r.by.Look.Invoke == 0:
		return ruling{failed: true}
	case r.by.Digest != r.written.Digest:
		return ruling{kind: pathsDiffer, sentence: fmt.Sprintf("%s derived another path from key %d than contender %d", who, r.key, r.writer)}
	case r.by.Nonce == nonceOf(int64(r.number), r.key):
		return ruling{}
	case r.by.Nonce>>16 == uint64(r.number):
		return ruling{kind: keysMerged, sentence: fmt.Sprintf("%s looked for key %d and reached the file of key %d", who, r.key, int(r.by.Nonce&0xffff)-1)}
	case r.by.Nonce != 0 || absentOr(failing, unix.Errno(r.by.Look.Errno)) == absent:
		return ruling{kind: pathNotReached, sentence: fmt.Sprintf("%s did not reach the file of key %d that contender %d had written", who, r.key, r.writer)}
	}
	return ruling{failed: true} // an error, or content that is not there yet: another promise's matter
}

func runAgreement(ctx context.Context, b *Bench, f *result.Finding) {
	total, control := newEvidence("path-agreement"), newEvidence("path-agreement")
	err := b.agreeOn(ctx, control, byCleaning, 0, 0)
	cleaning := control.kinds[keysMerged]
	if err == nil {
		err = b.agreeOn(ctx, control, byContender, 0, 0)
	}
	routes := max(1, b.Routes)
	for until, pass := time.Now().Add(b.Time/20), 0; err == nil && total.wantsMore(pass, routes, until); pass++ {
		err = b.agreeOn(ctx, total, bySignature, pass%routes, b.wait())
	}
	decide(f, total, control, enoughLooks, err)
	switch {
	case f.Verdict != result.Holds:
	case cleaning == 0 || control.kinds[pathsDiffer] == 0:
		f.Verdict, f.Reason = result.Unproven, "a positive control did not fire: keys were to be merged, or paths to differ, and that was not seen"
	case total.failed > 0:
		f.Verdict, f.Reason = result.Unproven, fmt.Sprintf("%d of %d reads failed, errnos seen: %s", total.failed, total.rounds, countsOf(total.errnos))
	default:
		f.Reason = fmt.Sprintf("every contender reached the right file of each of %d keys (%d reads)", len(keyParts), total.contested)
	}
}

// wantsMore says of passes, of which each route has one, that more would add something. Where all begins to fail they end.
func (e *evidence) wantsMore(pass, routes int, until time.Time) bool {
	switch {
	case pass < routes:
		return true
	case e.violations > 0 || e.contested == 0 || e.failed+e.refused >= enoughFailed:
		return false
	}
	return e.contested < enoughLooks || time.Now().Before(until)
}

// agreeOn lets one contender write the files of all keys, and all read them.
func (b *Bench) agreeOn(ctx context.Context, e *evidence, d derivation, writer int, wait time.Duration) (err error) {
	name := b.Line.Name()
	defer func() {
		if err == nil {
			_, err = b.Line.Do(context.WithoutCancel(ctx), writer, "path-agreement:clean", name, uint64(d))
		}
	}()
	wrote, err := b.Line.Do(ctx, writer, "path-agreement:write", name, uint64(d))
	if err != nil {
		return err
	}
	written := slices.Clone(reachesOf(b.Line.Words(writer)))
	until := time.Now().Add(wait)
	for reader := range slices.Max(b.Contenders) {
		clear(reachesOf(b.Line.Words(reader)))
		if wrote.Errno == 0 { // or else some would be waited for in vain
			if err := b.readAll(ctx, reader, name, d, until); err != nil {
				return err
			}
		}
		for key, by := range reachesOf(b.Line.Words(reader)) {
			r := reached{number: int(name), key: key, writer: writer, reader: reader, written: written[key], by: by}
			e.read(b, &r)
		}
	}
	return nil
}

// readAll lets a contender read until it has found every file, or no longer waits for it.
func (b *Bench) readAll(ctx context.Context, who int, name int64, d derivation, until time.Time) error {
	for arg := uint64(d); ; arg |= again {
		ev, err := b.Line.Do(ctx, who, "path-agreement:read", name, arg)
		if err != nil || ev.Errno == 0 || time.Now().After(until) {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// read counts one read: it began when the writing was over.
func (e *evidence) read(b *Bench, r *reached) {
	v := r.judge()
	e.rounds++
	if v.failed {
		e.failed++
	} else {
		e.contested++
	}
	for _, errno := range []uint32{r.written.Look.Errno, r.by.Look.Errno} {
		if errno != 0 {
			e.errnos[errnoName(errno)]++
		}
	}
	e.accuse(v, func() result.Round {
		out := result.Round{Operation: e.op, Number: r.number, Phase: race.Step.String()}
		for i, g := range []glance{r.written.Look, r.by.Look} {
			who, did := []int{r.writer, r.reader}[i], []string{"write", "read"}[i]
			ev := b.event(who, &race.Event{Invoke: g.Invoke, Return: g.Return, Errno: g.Errno})
			ev.Did, ev.Saw = did, []uint64{r.written.Nonce, r.by.Nonce}[i]
			out.Events = append(out.Events, ev)
		}
		return out
	})
}
