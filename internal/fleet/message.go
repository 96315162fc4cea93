package fleet

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/claimbench/claimbench/internal/race"
	"github.com/claimbench/claimbench/internal/result"
)

// Protocol is the version of the messages: hosts whose major version, the part before the dot, differs cannot meet.
const Protocol = "1.1"

// The subjects. At first only the name of the meeting is known to both sides, and after the welcome the session is; what
// one host says or hears ends in that host's id, or has it before its last word, so that a server can tell whose it is.
const (
	prefix    = "claimbench."
	hellos    = ".hello."            // of the meeting, and the host's id
	taken     = ".taken"             // of the meeting: answered by the coordinator that is there
	written   = ".words.coordinator" // of the session, as all that follows
	announced = ".words.host."       // and the host's id
	anyWords  = ".words.>"           // one subscription, so that they come in their order
	arrivals  = ".arrivals."         // and the host's id
	starts    = ".starts"
	alive     = ".alive" // asked by a host that hears nothing
	orders    = ".to."   // and the host's id
	answers   = ".from." // and the host's id: what the coordinator asks it is answered below
)

func helloAt(meeting, id string) string  { return prefix + meeting + hellos + id }
func errandAt(session, id string) string { return prefix + session + orders + id + ".errand" }
func pingAt(session, id string) string   { return prefix + session + orders + id + ".ping" }
func contenderAt(session, id string, who int) string {
	return fmt.Sprintf("%s%s%s%s.contender.%d", prefix, session, orders, id, who)
}

// answerAt is another each time, and nobody guesses it.
func answerAt(session, id string) string { return prefix + session + answers + id + "." + rand.Text() }

// idIn is the host's id at the end of a subject.
func idIn(subject string) string { return subject[strings.LastIndexByte(subject, '.')+1:] }

// idOf is the id of the host that has a key. Others may know the id; who does not have the key cannot speak for it.
func idOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

// A hello is how a host introduces itself.
type hello struct {
	Protocol string         `json:"protocol"`
	Version  string         `json:"version"` // of the program
	Name     string         `json:"name"`
	Named    bool           `json:"named,omitzero"` // somebody chose the name
	Dirs     int            `json:"dirs"`           // ways to the directory
	Host     result.Host    `json:"host"`
	TimeNS   string         `json:"time_namespace,omitzero"` // kernels are compared by their boot id and this
	Routes   []result.Route `json:"routes"`
	Warnings []string       `json:"warnings,omitzero"`
	Ops      string         `json:"operations"` // a digest of the table of operations, which must be the coordinator's
}

// A pong answers a ping.
type pong struct {
	At    int64 `json:"at"`             // the host's clock, ns
	Again int64 `json:"again,omitzero"` // how often its connection was broken, and mended
}

// A welcome answers a hello: the host's number and session, or why it may not join.
type welcome struct {
	Refused  string `json:"refused,omitzero"`
	Protocol string `json:"protocol"`
	Session  string `json:"session,omitzero"`
	Host     int    `json:"host"`
	Hosts    int    `json:"hosts"` // that take part
}

// An errand is what a host is asked to do beside its contenders' orders.
type errand struct {
	Do         string   `json:"do"`
	Contenders []int    `json:"contenders,omitzero"` // to keep ready: start
	Route      []int    `json:"route,omitzero"`      // of each of them, an index of this host's ways
	Homes      []string `json:"homes,omitzero"`      // of every contender, the id of its host
	Seed       uint64   `json:"seed,omitzero"`
	HangAfter  int64    `json:"hang_after_ns,omitzero"`
	Way        int      `json:"way,omitzero"` // the index of this host's way to the directory
	Nonce      string   `json:"nonce,omitzero"`
	Heats      int64    `json:"heats,omitzero"` // those that began by this round are over: cancel
	Sub        string   `json:"sub,omitzero"`
	Name       string   `json:"name,omitzero"` // of the host whose things are meant: keep, ask
	What       string   `json:"what,omitzero"` // ask
	Seen       uint64   `json:"seen,omitzero"` // as in an order: start
}

// The errands of a host.
const (
	doStart   = "start"   // contenders, in the place of those that are there
	doMake    = "make"    // the work directory
	doSee     = "see"     // whether it is there
	doSub     = "sub"     // make a directory in it
	doClear   = "clear"   // remove that
	doRemove  = "remove"  // remove the work directory
	doTidy    = "tidy"    // remove what surveys that were killed have left
	doCancel  = "cancel"  // what the contenders named are waited for
	doKeep    = "keep"    // locks and claims, until they are to be released
	doRelease = "release" // them
	doAsk     = "ask"     // for what another host keeps
	doSign    = "sign"    // the work directory, in the place of a host that is lost
	doLeave   = "leave"   // the survey is over
)

// An order is what a contender is asked to do: a method of race.Line.
type order struct {
	Do     string      `json:"do"`
	Nonce  string      `json:"nonce,omitzero"` // of the work directory to enter; "" is the target itself
	Sub    string      `json:"sub,omitzero"`
	Leave  bool        `json:"leave,omitzero"` // enter / instead
	Op     string      `json:"op,omitzero"`
	Number int64       `json:"number,omitzero"`
	Arg    uint64      `json:"arg,omitzero"`
	Heat   *race.Heat  `json:"heat,omitzero"`
	Clock  *race.Clock `json:"clock,omitzero"` // to go by from now on
	Seen   uint64      `json:"seen,omitzero"`  // the words that have to be there before: see news
}

// The orders.
const (
	toEnter    = "enter"
	toBegin    = "begin"
	toDo       = "do" // begin and await
	toAwait    = "await"
	toPend     = "pending"
	toHeat     = "heat"
	toLook     = "look"
	toClean    = "clean"
	toKill     = "kill"
	toRestart  = "restart"
	toContinue = "continue"
	toBecame   = "became"
	toEndChild = "end child"
)

// An arrival says that a contender stands before a round of its heat; the heat is known by its first round. A start is the
// answer, when all have arrived.
type arrival struct {
	Who   int   `json:"who"`
	First int64 `json:"first"`
	Round int   `json:"round"`
}

type start struct {
	First int64 `json:"first"`
	Round int   `json:"round"`
	At    int64 `json:"at"`
}

// A news is what changed in contenders' words.
type news struct {
	Number uint64 `json:"number,omitzero"` // the coordinator counts its own, so that an order can wait for them
	Echo   bool   `json:"echo,omitzero"`   // the contender itself wrote them; so it is with all that a host announces
	Words  []byte `json:"words"`           // patches
}

// An answer is what came of an order or an errand.
type answer struct {
	Failure *failure        `json:"failure,omitzero"`
	Events  []byte          `json:"events,omitzero"`
	Late    int             `json:"late,omitzero"` // starts that were heard of too late
	After   []byte          `json:"after,omitzero"`
	Words   []byte          `json:"words,omitzero"` // what changed in the contender's own
	Pending bool            `json:"pending,omitzero"`
	Invoke  int64           `json:"invoke,omitzero"`
	Gone    bool            `json:"gone,omitzero"`
	Stopped bool            `json:"stopped,omitzero"`
	Became  bool            `json:"became,omitzero"` // another program
	Left    int             `json:"left,omitzero"`   // processes left behind
	Who     race.Identity   `json:"who,omitzero"`
	Whos    []race.Identity `json:"whos,omitzero"`
	Seen    bool            `json:"seen,omitzero"`
	Notes   []string        `json:"notes,omitzero"`
	Held    []string        `json:"held,omitzero"` // what a host keeps
	Won     bool            `json:"won,omitzero"`
	Given   bool            `json:"given,omitzero"` // by now, to whomever
}

// mostBytes is more than any message of ours has.
const mostBytes = 2 << 20

// decode reads one message strictly: what it does not know is an error, and so is what follows it.
func decode(data []byte, into any) error {
	if len(data) > mostBytes {
		return fmt.Errorf("a message of %d bytes", len(data))
	}
	return json.Unmarshal(data, into, json.RejectUnknownMembers(true))
}

func encode(v any) []byte {
	data, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true)) // a path may be any bytes
	if err != nil {
		panic("fleet: " + err.Error()) // our own types have nothing that JSON lacks
	}
	return data
}

// plain is what another machine says, without what could steer a terminal.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return ' '
		case !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, s)
}

// plain is of what a person is shown.
func (h *hello) plain() {
	for i := range h.Routes {
		h.Routes[i].Path = plain(h.Routes[i].Path)
	}
	for i := range h.Warnings {
		h.Warnings[i] = plain(h.Warnings[i])
	}
}

// pack and unpack are for the fixed-size records of contenders.
func pack[T race.Event | race.After](all []T) []byte {
	data, err := binary.Append(nil, binary.LittleEndian, all)
	if err != nil {
		panic("fleet: " + err.Error())
	}
	return data
}

func unpack[T race.Event | race.After](data []byte, n int) ([]T, error) {
	all := make([]T, n)
	if got, want := len(data), binary.Size(all); got != want {
		return nil, fmt.Errorf("%d bytes of records instead of %d", got, want)
	}
	_, err := binary.Decode(data, binary.LittleEndian, all)
	return all, err
}

var (
	nonceForm = regexp.MustCompile(`^[0-9a-f]{32}$`)
	subForm   = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)
	nameForm  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
)

// where is the directory that an order names, below the host's own; an error for what is none of ours.
func where(nonce, sub string) (string, error) {
	switch {
	case nonce == "" && sub == "":
		return "", nil
	case !nonceForm.MatchString(nonce):
		return "", fmt.Errorf("%.80q is no work directory of ours: refused", nonce)
	case sub == "":
		return dirPrefix + nonce, nil
	case !subForm.MatchString(sub):
		return "", fmt.Errorf("%.80q is no directory of ours: refused", sub)
	default:
		return dirPrefix + nonce + "/" + sub, nil
	}
}
