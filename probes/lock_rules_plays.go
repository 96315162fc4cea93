package probes

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/claimbench/claimbench/internal/race"
)

// What a rule says of the attempt at its end.
type wanted int

const (
	isGranted wanted = iota
	isBusy           // another holds it
	isBadFd          // EBADF: the descriptor is not open for that
	isEither         // the man pages leave it open
)

// A rule is one sentence of flock(2) or fcntl(2): steps, and an attempt that must or must not succeed.
type rule struct {
	name  string
	play  func(*rulePlay) race.Event // the attempt
	wants [3]wanted                  // of flock, posix-lock, ofd-lock
	holds bool                       // a lock is on trial: granted means that it was dropped
}

// held is the rule without which none of the others can be seen.
var held = rule{"a lock that is held", func(p *rulePlay) race.Event {
	p.hold()
	return p.other()
}, [3]wanted{isBusy, isBusy, isBusy}, true}

// The rules of the control: each is told the wrong answer.
var (
	letGo = rule{"a lock that was let go", func(p *rulePlay) race.Event {
		p.hold()
		p.do(holder, "rule-unlock", ruleArg{}, "unlocks")
		return p.other()
	}, [3]wanted{isBusy, isBusy, isBusy}, true}
	heldOn = rule{"a lock that is held on to", held.play, [3]wanted{isGranted, isGranted, isGranted}, true}
)

// rules are in the order of the man pages. flock(2): locks belong to the open file description, are inherited and
// preserved by execve, and a conversion is not atomic. fcntl(2): a process's record locks are released when it closes
// any descriptor of the file, and are not inherited; open file description locks are like those of flock.
var rules = []rule{
	{"another descriptor of the file is closed", func(p *rulePlay) race.Event {
		p.hold()
		p.do(holder, "rule-open", ruleArg{second: true, access: unix.O_RDWR}, "opens the file again")
		p.do(holder, "rule-close", ruleArg{second: true}, "closes the second descriptor")
		return p.other()
	}, [3]wanted{isBusy, isGranted, isBusy}, true},

	{"a duplicate of the descriptor is closed", func(p *rulePlay) race.Event {
		p.hold()
		p.do(holder, "rule-dup", ruleArg{}, "duplicates the descriptor")
		p.do(holder, "rule-close", ruleArg{second: true}, "closes the duplicate")
		return p.other()
	}, [3]wanted{isBusy, isGranted, isBusy}, true},

	{"a child has inherited the descriptor, and the holder has died", func(p *rulePlay) race.Event {
		p.hold()
		p.do(holder, "rule-child", ruleArg{}, "leaves the descriptor to a child")
		defer p.b.Line.EndChild(holder)
		p.die()
		if p.kind == posixKind {
			return p.patiently() // a dead process lets go when it is gone
		}
		return p.other()
	}, [3]wanted{isBusy, isGranted, isBusy}, true},

	{"the holder has executed another program", func(p *rulePlay) race.Event {
		p.hold()
		p.become()
		return p.other()
		// Before Linux 5.11 a process of several threads lost its record locks here.
	}, [3]wanted{isBusy, isEither, isBusy}, true},

	{"two descriptors in one process", func(p *rulePlay) race.Event {
		p.hold()
		p.do(holder, "rule-open", ruleArg{second: true, access: unix.O_RDWR}, "opens the file again")
		return p.ask(holder, ruleArg{second: true}, "asks for the lock through the second descriptor")
	}, [3]wanted{isBusy, isGranted, isBusy}, false},

	{"an exclusive lock on a read-only descriptor", func(p *rulePlay) race.Event {
		p.do(holder, "rule-open", ruleArg{access: unix.O_RDONLY}, "opens for reading")
		return p.ask(holder, ruleArg{}, "asks for an exclusive lock")
	}, [3]wanted{isGranted, isBadFd, isBadFd}, false},

	{"a shared lock on a write-only descriptor", func(p *rulePlay) race.Event {
		p.do(holder, "rule-open", ruleArg{access: unix.O_WRONLY}, "opens for writing")
		return p.ask(holder, ruleArg{shared: true}, "asks for a shared lock")
	}, [3]wanted{isGranted, isBadFd, isBadFd}, false},

	{"a shared lock made exclusive", func(p *rulePlay) race.Event {
		p.share(holder)
		return p.ask(holder, ruleArg{}, "makes it exclusive")
	}, [3]wanted{isGranted, isGranted, isGranted}, false},

	{"a shared lock that was made exclusive", func(p *rulePlay) race.Event {
		p.share(holder)
		p.do(holder, "rule-lock", ruleArg{}, "makes it exclusive")
		p.do(rival, "rule-open", ruleArg{access: unix.O_RDWR}, "opens the file")
		return p.ask(rival, ruleArg{shared: true}, "asks for a shared lock")
	}, [3]wanted{isBusy, isBusy, isBusy}, true},

	{"an exclusive lock made shared", func(p *rulePlay) race.Event {
		p.hold()
		p.do(holder, "rule-lock", ruleArg{shared: true}, "makes it shared")
		p.do(rival, "rule-open", ruleArg{access: unix.O_RDWR}, "opens the file")
		return p.ask(rival, ruleArg{shared: true}, "asks for a shared lock")
	}, [3]wanted{isGranted, isGranted, isGranted}, false},

	{"a shared lock made exclusive beside another", func(p *rulePlay) race.Event {
		p.share(holder)
		p.share(rival)
		return p.ask(holder, ruleArg{}, "wants to make it exclusive")
	}, [3]wanted{isBusy, isBusy, isBusy}, false},

	{"a shared lock that could not be made exclusive", func(p *rulePlay) race.Event {
		p.share(holder)
		p.share(rival)
		p.refused(p.ask(holder, ruleArg{}, "wants to make it exclusive"))
		return p.ask(rival, ruleArg{}, "makes it exclusive")
	}, [3]wanted{isEither, isBusy, isBusy}, true},

	{atOnce, func(p *rulePlay) race.Event {
		p.do(holder, "rule-open", ruleArg{access: unix.O_RDWR}, "opens the file")
		return p.askTo(holder, "rule-many", "takes 300 locks")
	}, [3]wanted{isGranted, isGranted, isGranted}, false},

	{"a file that was removed, and another under its name", func(p *rulePlay) race.Event {
		p.hold()
		p.do(holder, "rule-unlink", ruleArg{}, "removes the file")
		p.do(rival, "rule-make", ruleArg{}, "makes a file of that name")
		return p.other()
	}, [3]wanted{isGranted, isGranted, isGranted}, false},

	{"a file made, locked and removed 20 times", func(p *rulePlay) race.Event {
		return p.askTo(holder, "rule-churn", "makes, locks, removes and closes a file 20 times")
	}, [3]wanted{isGranted, isGranted, isGranted}, false},
}

const atOnce = "300 locks at once"

const (
	holder = 0
	rival  = 1
)

// posixKind is the kind of lock that belongs to a process.
const posixKind = 1

// A rulePlay is a rule being played with one kind of lock.
type rulePlay struct {
	*script
	kind   int
	setup  []race.Event
	links  uint32 // of the file that was removed
	killed bool   // the holder is to be replaced
}

// do performs a step that must succeed.
func (p *rulePlay) do(who int, op string, a ruleArg, did string) race.Event {
	ev := p.step(who, op, a, did)
	if op == "rule-unlink" {
		p.links = ev.Links
	}
	p.setup = append(p.setup, ev)
	return ev
}

func (p *rulePlay) step(who int, op string, a ruleArg, did string) race.Event {
	if p.err != nil {
		return race.Event{}
	}
	a.kind = p.kind
	ev := p.script.do(who, op, a.pack())
	p.steps[len(p.steps)-1].Did = did
	return ev
}

// ask is the attempt that the rule is about.
func (p *rulePlay) ask(who int, a ruleArg, did string) race.Event {
	return p.step(who, "rule-lock", a, did)
}

func (p *rulePlay) askTo(who int, op, did string) race.Event { return p.step(who, op, ruleArg{}, did) }

// refused is an attempt that must fail for the rule to be seen.
func (p *rulePlay) refused(ev race.Event) {
	if !busy(ev.Errno) {
		p.amiss()
	}
}

// amiss notes that the rule could not be set up.
func (p *rulePlay) amiss() { p.setup = append(p.setup, race.Event{Errno: uint32(unix.EIO)}) }

func (p *rulePlay) hold() {
	p.do(holder, "rule-open", ruleArg{access: unix.O_RDWR}, "opens the file")
	p.do(holder, "rule-lock", ruleArg{}, "takes the lock")
}

func (p *rulePlay) share(who int) {
	p.do(who, "rule-open", ruleArg{access: unix.O_RDWR}, "opens the file")
	p.do(who, "rule-lock", ruleArg{shared: true}, "takes a shared lock")
}

// other lets the rival ask for the lock.
func (p *rulePlay) other() race.Event {
	p.do(rival, "rule-open", ruleArg{access: unix.O_RDWR}, "opens the file")
	return p.ask(rival, ruleArg{}, "asks for the lock")
}

// patiently is other, after a while if need be. Only the last attempt is recorded.
func (p *rulePlay) patiently() race.Event {
	p.do(rival, "rule-open", ruleArg{access: unix.O_RDWR}, "opens the file")
	for until := time.Now().Add(p.b.HoldWait); p.err == nil && time.Now().Before(until); time.Sleep(2 * time.Millisecond) {
		ev, err := p.b.Line.Do(p.ctx, rival, "rule-lock", p.name, ruleArg{kind: p.kind}.pack())
		if p.err = err; err != nil || !busy(ev.Errno) {
			break
		}
	}
	return p.ask(rival, ruleArg{}, "asks for the lock, or has it already")
}

// die kills the holder.
func (p *rulePlay) die() {
	if p.err == nil {
		p.killed = true
		p.record(holder, "SIGKILL", &race.Event{Invoke: race.Now(), Return: race.Now()})
		p.b.Line.Kill(holder)
	}
}

// become lets the holder execute another program, and waits until it has.
func (p *rulePlay) become() {
	if p.err != nil {
		return
	}
	p.killed = true
	p.record(holder, "exec", &race.Event{Invoke: race.Now(), Return: race.Now()})
	p.b.Line.Begin(holder, "rule-exec", p.name, 0)
	for until := time.Now().Add(p.b.HoldWait); !p.b.Line.Became(holder); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			p.amiss() // a holder that goes on as it was shows nothing
			return
		}
	}
}
