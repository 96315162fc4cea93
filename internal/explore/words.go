package explore

import (
	"encoding/hex"
	"fmt"
	"strings"
	"syscall"
)

// words are what a contender is about to do, and with whose file.
func (t *teller) words(s *state, who int, op Op) string {
	whose := t.whose(s, who, op)
	switch op.Verb {
	case Begin, Finish:
		return op.Verb.String() + " key " + keyName(op.Key)
	case Now, ReadClock, Poll, End:
		return op.Verb.String()
	case Link, Rename:
		if whose != "" {
			whose += ","
		}
		return op.Verb.String() + " " + t.short(op.Path) + whose + " to " + t.short(op.To)
	case WriteAt, Touch, Fstat, Sync, Close, ReadAt, TryLock:
		return op.Verb.String() + " " + t.open(s, who, op.Handle)
	default:
		return op.Verb.String() + " " + t.short(op.Path) + whose
	}
}

func keyName(key uint8) string { return string('k' + rune(key)) }

// short replaces signatures by k and l, and leaves the fan-out directory out.
func (t *teller) short(path uint16) string {
	text := t.x.w.paths[path].text
	for i, sig := range keys {
		text = strings.ReplaceAll(text, string(sig), keyName(uint8(i)))
	}
	return strings.TrimPrefix(text, string(keys[0][:2])+"/")
}

// open is a name of what is open, or whose file it is if it has none.
func (t *teller) open(s *state, who int, slot uint8) string {
	h := s.fs.handle(who, slot)
	if h == nil {
		return "what is closed"
	}
	for _, name := range s.fs.names() {
		if p := t.x.w.path(name); t.id(s, p) == h.id {
			return t.short(p)
		}
	}
	return "the nameless file that " + maker(h.id) + " made"
}

func (t *teller) id(s *state, p uint16) uint32 {
	spot, errno := s.fs.find(p)
	if errno != 0 || !spot.there() {
		return 0
	}
	return spot.id
}

func maker(id uint32) string { return letter(int(id>>16) - 1) }

// whose says so if a name stands for something else than when the contender
// last looked.
func (t *teller) whose(s *state, who int, op Op) string {
	switch op.Verb {
	case Open, Lstat, Unlink, Rename, Rmdir:
	default:
		return ""
	}
	key := sight{who, op.Path}
	now := t.id(s, op.Path)
	then, looked := t.seen[key]
	t.seen[key] = now
	if now == 0 {
		return ""
	}
	by := maker(now)
	switch {
	case looked && then != now && then != 0:
		return ", which is now " + by + "'s"
	case by != letter(who):
		return ", which is " + by + "'s"
	default:
		return ""
	}
}

// errnoWords is strerror(3) with the name, but for a lock, where strerror says nothing.
func errnoWords(e syscall.Errno) string {
	if e == syscall.EWOULDBLOCK {
		return "another holds the lock (EWOULDBLOCK)"
	}
	return fmt.Sprintf("%v (%s)", e, errnoName(e))
}

func listing(names string) string {
	if names == "" {
		return "nothing is there"
	}
	for i, sig := range keys {
		names = strings.ReplaceAll(names, string(sig), keyName(uint8(i)))
	}
	return strings.ReplaceAll(names, "\n", ", ")
}

// states are how a record begins; engine/record.go has the format.
var states = map[string]string{"c1": "claimed", "x1": "given up", "f1": "finished", "d1": "done"}

// content says of a record what state it is in and whose it is.
func content(text string) string {
	fields := strings.Fields(text)
	if text == "" {
		return "it is empty"
	}
	if len(fields) >= 5 {
		if state, ok := states[fields[0]]; ok {
			return state + " by " + fields[1]
		}
	}
	return fmt.Sprintf("%.20q", text)
}

// written is for a whole record, or the one letter by which a record changes its state.
func written(text string) string {
	if state, ok := states[text+"1"]; ok {
		return "marks it as " + state
	}
	return content(text)
}

// unsecret writes A-1 for A's first nonce, and so on.
var unsecret = func() *strings.Replacer {
	var pairs []string
	for who := range places {
		for n := range 10 {
			nonce := nonceStart(who) + string('0'+rune(n))
			pairs = append(pairs, hex.EncodeToString([]byte(nonce)), fmt.Sprintf("%s-%d", letter(who), n))
		}
	}
	return strings.NewReplacer(pairs...)
}()
