package probes

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/result"
)

// Some promises need no race: what is asked happens once, in one order, and the answer is right or wrong. The probes of
// these play scripts. There is no contention to wait for, and no rate to bound.

// troubles is what says nothing about a rule: the filesystem is full, read-only, out of reach, or was interrupted.
var troubles = []unix.Errno{
	unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.EIO, unix.ESTALE, unix.EINTR, unix.ENOMEM, unix.EMFILE, unix.ENFILE,
	unix.ETIMEDOUT, unix.EREMOTEIO, unix.ENOTCONN, unix.ECONNRESET, unix.EBUSY,
}

func trouble(errno uint32) bool { return slices.Contains(troubles, unix.Errno(errno)) }

// answer decides the finding of scripted checks. Every check must have come to its end, and every part of the control
// must have fired, or nothing is proved.
func answer(f *result.Finding, e, control *evidence, err error) {
	decide(f, e, control, 0, err)
	f.Upper95 = nil
	delete(f.Figures, "violations_low95_share")
	delete(f.Figures, "violations_high95_share")
	if err != nil || e.violations > 0 || f.Verdict == result.Unsupported {
		return
	}
	f.Verdict = result.Unproven
	switch {
	case e.failed > 0:
		f.Reason = fmt.Sprintf("%d of %d checks failed, errnos seen: %s", e.failed, e.rounds, countsOf(e.errnos))
	case control != nil && control.violations < max(1, control.rounds):
		f.Reason = fmt.Sprintf("the positive control fired in %d of %d checks only: this run could not have seen every violation", control.violations, control.rounds)
	case e.rounds == 0:
		f.Reason = "nothing was checked"
	default:
		f.Verdict, f.Reason = result.Holds, fmt.Sprintf("no violation in %d scripted checks", e.rounds-e.refused)
	}
}

// check counts a script that has been judged.
func (e *evidence) check(s *script, v ruling, what string) {
	e.add(&s.round, false, v, func() result.Round { return s.raw(what) })
}

// firsts is the first contender of each route.
func (b *Bench) firsts() []int {
	n := max(1, b.Routes)
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// footnote adds a footnote, once.
func footnote(f *result.Finding, text string) {
	if !slices.Contains(f.Warnings, text) {
		f.Warnings = append(f.Warnings, text)
	}
}
