// Package result is the result file of a survey, claimbench.result/v1: its types, its JSON Schema, load and
// save. It measures nothing and judges nothing.
package result

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Schema names the format of a result file and its major version.
const Schema = "claimbench.result/v1"

// A File is one survey: what was run, where, and what was found.
type File struct {
	Schema     string    `json:"schema"`
	Tool       Tool      `json:"tool"`
	Started    time.Time `json:"started"`
	DurationS  float64   `json:"duration_s"`
	Seed       uint64    `json:"seed"`
	Lab        string    `json:"lab,omitempty"`        // the target that "claimbench lab run" made for it, to be repeated by this name
	Incomplete string    `json:"incomplete,omitempty"` // why the survey ended early; empty when it did not
	Conditions []string  `json:"conditions,omitempty"` // the settings the survey ran under, as key=value
	Host       Host      `json:"host"`
	Hosts      []Joined  `json:"hosts,omitempty"` // whose contenders raced, where they are several
	Targets    []Target  `json:"targets"`

	Unknown jsontext.Value `json:",embed"`
}

// A Tool is the program that wrote the file.
type Tool struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`

	Unknown jsontext.Value `json:",embed"`
}

// A Host is the machine that the contenders ran on. What could not be read is absent, not zero.
type Host struct {
	Name           string `json:"name"`
	Kernel         string `json:"kernel"`
	OS             string `json:"os"`
	Arch           string `json:"arch"`
	CPUs           int    `json:"cpus"`                     // online on this host
	CPUsAllowed    string `json:"cpus_allowed"`             // the list this process may run on, "0-3,8"
	Container      string `json:"container,omitempty"`      // docker, podman, kubernetes, lxc, ...; empty on a plain host
	Virtualization string `json:"virtualization,omitempty"` // kvm, uml, wsl, ...; empty on bare metal
	BootID         string `json:"boot_id,omitempty"`
	Clock          string `json:"clock,omitempty"` // the kernel's clock source
	NTP            string `json:"ntp,omitempty"`   // "synchronised" or "unsynchronised" by adjtimex(2)
	PIDNamespace   string `json:"pid_namespace,omitempty"`
	UID            int    `json:"uid"`

	Unknown jsontext.Value `json:",embed"`
}

// A Joined is one of several hosts. All instants of a result are those of the coordinator's clock, which is File.Host's;
// a host's own were corrected by what is said here, as it was known at the end.
type Joined struct {
	Host      Host     `json:"host"`
	OwnKernel bool     `json:"own_kernel,omitzero"` // the coordinator's: one clock
	OffsetS   float64  `json:"offset_s,omitzero"`   // what was added to the host's clock
	UnsureUS  *float64 `json:"unsure_us,omitempty"` // by how much that may be wrong
	DriftPPM  float64  `json:"drift_ppm,omitzero"`
	TripUS    float64  `json:"trip_us,omitzero"` // of the shortest round trip
	Lost      string   `json:"lost,omitempty"`   // why the host was not there to the end
	Held      []Held   `json:"held,omitempty"`   // by a lost host, and asked for by the others

	Unknown jsontext.Value `json:",embed"`
}

// A Held is a lock that a host held when it was lost, or a claim that it renewed until then, by its protocol. Seconds are
// since the last sign of the host.
type Held struct {
	What     string  `json:"what"`
	RefusedS float64 `json:"refused_s,omitzero"` // when it was last asked for in vain
	GivenS   float64 `json:"given_s,omitzero"`   // when it was given to another; 0 is never

	Unknown jsontext.Value `json:",embed"`
}

// A Target is one directory under survey.
type Target struct {
	Name     string    `json:"name"`
	Scope    Scope     `json:"scope"`
	ScopeWhy string    `json:"scope_why,omitempty"`
	Routes   []Route   `json:"routes"`
	Sentence string    `json:"sentence"` // the verdict on the whole target, for a person
	Warnings []string  `json:"warnings,omitempty"`
	Findings []Finding `json:"findings"`

	Protocols []Protocol `json:"protocols,omitempty"` // what the findings and the bench say of each protocol here
	Bench     []Bench    `json:"bench,omitempty"`
	Faults    []Fault    `json:"faults,omitempty"` // what was made to go wrong meanwhile

	Unknown jsontext.Value `json:",embed"`
}

// A Fault is something that was made to go wrong with a target while it was surveyed. Times are of the
// clock that trials have: CLOCK_MONOTONIC, in nanoseconds, of the kernel that the survey ran on.
type Fault struct {
	Fault string `json:"fault"` // in the lab's words, as in "restart 1s every 20s"
	Begin int64  `json:"begin_ns"`
	End   int64  `json:"end_ns,omitzero"` // 0: not before the survey's

	Unknown jsontext.Value `json:",embed"`
}

// A Safety is what a survey says of a protocol on a target. The zero value is none; saving it is an error.
type Safety string

// What a protocol can be.
const (
	ProtocolSafe     Safety = "safe"
	ProtocolUnsafe   Safety = "unsafe"
	ProtocolUnproven Safety = "unproven"
)

// A Protocol is whether one claim protocol may be used on the target: the promises that it requires, as the
// explorer found them, joined with what the probes found of them, and overridden by any duplicate that was measured.
type Protocol struct {
	Name    string   `json:"name"`
	Verdict Safety   `json:"verdict"`
	Scope   Scope    `json:"scope"`
	Because []string `json:"because"`          // in words, what decided it first
	Advice  string   `json:"advice,omitempty"` // what to change, for every verdict but safe

	Unknown jsontext.Value `json:",embed"`
}

// HostDeath is the workload of what became of claims that a host held when it was lost.
const HostDeath = "host-death"

// A Bench is one workload with one protocol: real contenders, real deaths, the real directory. A trial that cannot be
// judged, because a contender died of something else or the directory was taken away, is void: it is in Void, with the
// reason in Voided, and in no other count.
type Bench struct {
	Workload   string `json:"workload"`
	Protocol   string `json:"protocol"`
	Variant    string `json:"variant,omitempty"` // of the workload: an interleaving, a number of keys
	Control    bool   `json:"control,omitzero"`  // the protocol is known to be wrong, and must be flagged
	Scope      Scope  `json:"scope"`
	Contenders int    `json:"contenders"`
	Keys       int    `json:"keys"`   // of a trial
	Trials     int    `json:"trials"` // that were judged
	Void       int    `json:"void,omitzero"`
	Attempts   int    `json:"attempts"`          // to claim
	Expected   int    `json:"expected"`          // executions, if each key is executed once
	Executed   int    `json:"executed"`          // executions that began
	Duplicates int    `json:"duplicates"`        // executions of what was done, or is being done under a good lease
	Missed     int    `json:"missed"`            // keys that nobody finished in time
	Blocked    int    `json:"blocked"`           // keys refused because of another key
	Overlaps   int    `json:"overlaps"`          // executions beside one whose lease had run out: no violation, see fencing
	Refused    int    `json:"refused,omitzero"`  // late writes that the fencing sink turned away
	Accepted   int    `json:"accepted,omitzero"` // late writes that it let through
	Illegal    int    `json:"illegal,omitzero"`  // trials whose history no sequential order explains
	Contested  int    `json:"contested"`         // trials in which the winner's claim overlapped another's

	LatencyUS  *Latency  `json:"latency_us,omitempty"`           // of a claim that was won
	TakeoverMS *Latency  `json:"takeover_ms,omitempty"`          // from a death to its successor's execution
	Rates      []float64 `json:"claims_per_s_samples,omitempty"` // of single trials, to compare runs with
	ClaimsPerS float64   `json:"claims_per_s,omitzero"`          // won and done, all contenders together
	Exponent   *float64  `json:"exponent,omitempty"`             // of the growth of latency with the number of keys
	Settings   string    `json:"settings,omitempty"`             // of a peer: journal mode, synchronous and the like

	Times      []TrialTime `json:"trial_times,omitempty"` // of the trials that were judged, if they were to be kept
	UnderFault int         `json:"under_fault,omitzero"`  // trials that a fault overlapped
	RecoveryMS *Latency    `json:"recovery_ms,omitempty"` // from the end of a fault to the first key done after it, in a trial under way

	Voided         []string        `json:"voided,omitempty"` // why trials are void, each reason once
	Counterexample *ClaimViolation `json:"counterexample,omitempty"`

	Unknown jsontext.Value `json:",embed"`
}

// Violations is how often something went wrong that a right protocol on a sound filesystem never does. Overlaps are none.
func (b *Bench) Violations() int { return b.Duplicates + b.Missed + b.Blocked + b.Illegal }

// A TrialTime is when a trial was. Times are CLOCK_MONOTONIC of one kernel, in nanoseconds.
type TrialTime struct {
	Begin      int64 `json:"begin_ns"`
	End        int64 `json:"end_ns"`
	Done       int64 `json:"done_ns,omitzero"` // when its first key was recorded as done; 0 is never
	UnderFault bool  `json:"under_fault,omitzero"`

	Unknown jsontext.Value `json:",embed"`
}

// A Latency is the distribution of a duration. A percentile that the sample cannot carry is absent.
type Latency struct {
	N       int       `json:"n"`
	P50     float64   `json:"p50"`
	P99     *float64  `json:"p99,omitempty"`
	P999    *float64  `json:"p999,omitempty"`
	Max     float64   `json:"max"`
	Samples []float64 `json:"samples,omitempty"` // medians of single trials, to compare runs with

	Unknown jsontext.Value `json:",embed"`
}

// A ClaimViolation is one trial gone wrong, in words and as raw records.
type ClaimViolation struct {
	Kind     string    `json:"kind"` // duplicate, missed, blocked or illegal
	Sentence string    `json:"sentence"`
	Trial    int       `json:"trial"`
	Attempts []Attempt `json:"attempts"`

	Unknown jsontext.Value `json:",embed"`
}

// An Attempt is what one contender did about one key. Times are CLOCK_MONOTONIC of one kernel, in nanoseconds, 0 for
// what did not happen.
type Attempt struct {
	Contender  int    `json:"contender"`
	Route      int    `json:"route"`
	PID        int    `json:"pid,omitzero"`
	Key        int    `json:"key"`
	Invoke     int64  `json:"invoke_ns"` // of the last attempt to claim it
	Return     int64  `json:"return_ns"`
	Outcome    string `json:"outcome"` // won, held, done, unknown; "" if it did not return
	Generation uint64 `json:"generation,omitzero"`
	Expires    int64  `json:"expires_ns,omitzero"` // of the lease
	Began      int64  `json:"began_ns,omitzero"`   // the execution
	Ended      int64  `json:"ended_ns,omitzero"`
	Done       int64  `json:"done_ns,omitzero"` // recorded as done, and told so
	Died       int64  `json:"died_ns,omitzero"`

	Unknown jsontext.Value `json:",embed"`
}

// A Scope says how far apart the contenders were. Evidence at one scope says nothing about a wider one.
type Scope string

// The scopes, from narrow to wide.
const (
	ScopeProcess Scope = "process" // one superblock
	ScopeMount   Scope = "mount"   // several superblocks of one share, one client to the server
	ScopeClient  Scope = "client"  // distinct clients of the server on one kernel
	ScopeHost    Scope = "host"    // several kernels
)

// A Route is one way to reach a target.
type Route struct {
	Path       string            `json:"path"`
	Host       string            `json:"host,omitempty"`
	Mount      string            `json:"mount,omitempty"` // the mount point
	FSType     string            `json:"fstype,omitempty"`
	Source     string            `json:"source,omitempty"`
	Root       string            `json:"root,omitempty"`          // the part of the filesystem that is mounted there
	Options    []string          `json:"options,omitempty"`       // per mount
	SuperOpts  []string          `json:"super_options,omitempty"` // per superblock
	LockOpts   []string          `json:"lock_options,omitempty"`  // of both, those that switch locks off or make them local
	Superblock string            `json:"superblock,omitempty"`    // major:minor
	OwnClient  bool              `json:"own_client,omitzero"`     // no other superblock shares its connection to the server (SMB, 9p)
	NetNS      string            `json:"net_namespace,omitempty"` // of the surveying process
	NFS        *NFS              `json:"nfs,omitempty"`
	Statfs     map[string]uint64 `json:"statfs,omitempty"` // name_max, block_size, blocks_free, inodes_free, type

	Unknown jsontext.Value `json:",embed"`
}

// NFS is what tells one NFS client, server and lock setting from another.
type NFS struct {
	Version    string `json:"version,omitempty"`     // "3", "4.2"
	Server     string `json:"server,omitempty"`      // the address mounted from
	ClientAddr string `json:"client_addr,omitempty"` // clientaddr= of an NFSv4 mount
	ClientID   string `json:"client_id,omitempty"`   // the client identifier of the network namespace, when set
	LocalLock  string `json:"local_lock,omitempty"`
	Foreign    bool   `json:"foreign,omitzero"` // mounted from another network namespace than the reader's

	Unknown jsontext.Value `json:",embed"`
}

// A Verdict is the answer of a probe. The zero value is not a verdict; saving it is an error.
type Verdict string

// The verdicts. Only Holds and Broken are statements about the filesystem's behaviour under contention.
const (
	Holds       Verdict = "holds"
	Broken      Verdict = "broken"
	Unsupported Verdict = "unsupported" // the filesystem refuses the operation; the errno is in Errnos
	Hung        Verdict = "hung"        // no answer within the deadline
	Unproven    Verdict = "unproven"    // too little evidence, or a control that did not fire; Reason says which
)

// A Finding is what a probe reports about one promise.
type Finding struct {
	Promise    string             `json:"promise"`
	Verdict    Verdict            `json:"verdict"`
	Class      string             `json:"class,omitempty"` // of a lock: enforced, local-only, no-op, emulated; of links: no-link-count; of names: case-folding; of inode numbers: reused; of what is not synced: directories
	Scope      Scope              `json:"scope"`
	Rounds     int                `json:"rounds"`
	Contested  int                `json:"contested"`
	Violations int                `json:"violations"`
	Upper95    *float64           `json:"upper95,omitempty"` // one-sided 95 % Clopper-Pearson bound on the rate of violation per contested round
	Control    *Control           `json:"control,omitempty"`
	Errnos     map[string]int     `json:"errnos,omitempty"`  // every errno seen, with its count; success is not an errno
	Kinds      map[string]int     `json:"kinds,omitempty"`   // violations by kind
	Figures    map[string]float64 `json:"figures,omitempty"` // the unit is the last word of each name
	Reason     string             `json:"reason"`            // one sentence
	Advice     string             `json:"advice,omitempty"`  // what to change, for every verdict but holds
	Warnings   []string           `json:"warnings,omitempty"`
	DurationS  float64            `json:"duration_s"`

	Counterexample *Counterexample `json:"counterexample,omitempty"`
	Violated       []Round         `json:"violated,omitempty"` // raw events of violated rounds, whole; the first ones when there are very many

	Unknown jsontext.Value `json:",embed"`
}

// A Control is the positive control of a finding: a variant known to be wrong, run by the same harness on the
// same target. It fired if Violations is not 0.
type Control struct {
	Name       string  `json:"name"` // what is wrong with it
	Rounds     int     `json:"rounds"`
	Contested  int     `json:"contested"`
	Violations int     `json:"violations"`
	FirstS     float64 `json:"first_s,omitzero"` // seconds to the first violation

	Unknown jsontext.Value `json:",embed"`
}

// A Counterexample is one violation, in words and as raw events.
type Counterexample struct {
	Kind     string `json:"kind"`
	Sentence string `json:"sentence"`
	Round    Round  `json:"round"`

	Unknown jsontext.Value `json:",embed"`
}

// A Round is the raw record of one synchronised attempt.
type Round struct {
	Operation string  `json:"operation"`
	Number    int     `json:"number"`
	Phase     string  `json:"phase"` // tight, scan, cold or step
	Events    []Event `json:"events"`
	After     *After  `json:"after,omitempty"`

	Unknown jsontext.Value `json:",embed"`
}

// An Event is one contender's attempt. Times are CLOCK_MONOTONIC of one kernel, in nanoseconds. Return is 0
// when the contender never came back: the operation may have happened.
type Event struct {
	Contender int    `json:"contender"`
	Route     int    `json:"route"`
	Host      string `json:"host,omitempty"` // where there are several
	PID       int    `json:"pid,omitzero"`
	TID       int    `json:"tid,omitzero"` // of the thread that made the call
	CPU       int    `json:"cpu"`
	Did       string `json:"did,omitempty"` // the step, where the contenders of a round did different things
	Invoke    int64  `json:"invoke_ns"`
	Return    int64  `json:"return_ns"`
	Released  int64  `json:"released_ns,omitzero"` // of a lock: when the holder began to let go
	Errno     string `json:"errno,omitempty"`      // "" is success
	Inode     uint64 `json:"inode,omitzero"`
	Links     uint32 `json:"links,omitzero"`
	Saw       uint64 `json:"saw,omitzero"` // what was read, as the operation defines it

	Unknown jsontext.Value `json:",embed"`
}

// After is what one contender found under the round's name when every contender had tried.
type After struct {
	By    int    `json:"by"`
	Errno string `json:"errno,omitempty"` // of the look at the name; ENOENT when nothing is there
	Inode uint64 `json:"inode,omitzero"`
	Links uint32 `json:"links,omitzero"`
	Mode  uint32 `json:"mode,omitzero"`
	Size  int64  `json:"size,omitzero"`
	Owner int    `json:"owner"` // the contender whose mark the object carries; -1 when it carries none
	Saw   uint64 `json:"saw,omitzero"`

	Unknown jsontext.Value `json:",embed"`
}
