package faultfs

import (
	"maps"
	"sync"
)

// A lockTable holds the locks of a share, on whole files: flock and fcntl locks do not see each other.
type lockTable struct {
	mu    sync.Mutex
	files map[lockedFile]map[lockOwner]lock
	freed chan struct{} // closed, and made anew, at each release
	gone  uint64
}

type lockedFile struct {
	ino   uint64
	flock bool
}

// A lockOwner is what the kernel calls an owner; the kernels of two mounts do not agree on names. An owner that is
// gone has no mount: its name may come back.
type lockOwner struct {
	mount *mount
	owner uint64
	pid   bool // the owner is a process
}

type lock struct {
	shared bool
	handle uint64 // through which it was taken
}

func newLockTable() lockTable {
	return lockTable{files: map[lockedFile]map[lockOwner]lock{}, freed: make(chan struct{})}
}

// take takes the lock, or returns the channel that is closed when it is worth trying again. A flock is not converted: the
// one that its owner has is gone, even if the other is not to be had (flock(2)).
func (t *lockTable) take(f lockedFile, o lockOwner, l lock, conflict func(other lockOwner, held lock) bool) (retry <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for other, held := range t.files[f] {
		if !conflict(other, held) {
			continue
		}
		if _, has := t.files[f][o]; has && f.flock && other != o {
			delete(t.files[f], o)
			t.wake()
		}
		return t.freed
	}
	if t.files[f] == nil {
		t.files[f] = map[lockOwner]lock{}
	}
	t.files[f][o] = l
	return nil
}

// A pick chooses among the locks that are held.
type pick func(lockedFile, lockOwner, lock) bool

// drop releases what is picked.
func (t *lockTable) drop(p pick) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.each(p, func(holders map[lockOwner]lock, o lockOwner) { delete(holders, o) })
	t.wake()
}

// orphan leaves what is picked to owners who are gone.
func (t *lockTable) orphan(p pick) (owners []lockOwner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.each(p, func(holders map[lockOwner]lock, o lockOwner) {
		t.gone++
		left := lockOwner{owner: t.gone}
		holders[left] = holders[o]
		delete(holders, o)
		owners = append(owners, left)
	})
	return owners
}

func (t *lockTable) each(p pick, do func(map[lockOwner]lock, lockOwner)) {
	for f, holders := range t.files {
		for o, l := range maps.Clone(holders) {
			if p(f, o, l) {
				do(holders, o)
			}
		}
		if len(holders) == 0 {
			delete(t.files, f)
		}
	}
}

func (t *lockTable) holders(f lockedFile) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.files[f])
}

func (t *lockTable) wake() {
	close(t.freed)
	t.freed = make(chan struct{})
}

func (t *lockTable) wakeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wake()
}
