package explore

import "time"

// A Weakness is one promise that a filesystem does not keep.
type Weakness uint8

// The weaknesses. Perfect is the absence of them.
const (
	Perfect Weakness = iota
	ExclNotAtomic
	FlockNoop
	FlockLocal
	StaleNegative
	StaleReaddir
	LostReply
	ClockSkew
	CoarseTimes
	TornWrites
	RenameOccupied
	InodeReuse
	CaseFolding
	NoLinks
	NoUnlink
)

// Weaknesses describes each of them, in the order of the requirement table.
var Weaknesses = []struct {
	Weakness Weakness
	Name     string
	Means    string
}{
	{Perfect, "perfect", "every promise is kept"},
	{ExclNotAtomic, "excl-not-atomic", "an exclusive create looks the name up and then creates, and opens what came between"},
	{FlockNoop, "flock-noop", "flock always succeeds"},
	{FlockLocal, "flock-local", "flock excludes only contenders on the same mount"},
	{StaleNegative, "stale-negative", "a name once looked up and not found may go on looking absent"},
	{StaleReaddir, "stale-readdir", "a listing may lack the newest entry of another contender"},
	{LostReply, "lost-reply", "a create, mkdir or link that succeeded may be answered with EEXIST, once for each contender"},
	{ClockSkew, "clock-skew", "the writer's clock stamps files, and clocks differ by more than the TTL"},
	{CoarseTimes, "coarse-times", "file times are whole multiples of 2 s"},
	{TornWrites, "torn-writes", "what is written is seen by others when it is synced or closed, first one half of it"},
	{RenameOccupied, "rename-occupied", "renaming a directory onto one that is not empty replaces it"},
	{InodeReuse, "inode-reuse", "the inode number of a removed file is given to the next one"},
	{CaseFolding, "case-folding", "names that differ in case are one name"},
	{NoLinks, "no-links", "link is refused with EPERM"},
	{NoUnlink, "no-unlink", "unlink is refused with EPERM"},
}

func (w Weakness) String() string { return Weaknesses[w].Name }

// FindWeakness looks a weakness up by its name.
func FindWeakness(name string) (Weakness, bool) {
	for _, w := range Weaknesses {
		if w.Name == name {
			return w.Weakness, true
		}
	}
	return Perfect, false
}

const coarse = 2 * time.Second
