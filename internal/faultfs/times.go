package faultfs

import (
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const (
	coarse = 2 * time.Second       // the step of FAT's mtime
	tick   = 10 * time.Millisecond // of a kernel with CONFIG_HZ=100
)

// spoilTimes changes the times that a look is given. Without these faults they are those of the backing file.
func (m *mount) spoilTimes(a *fuse.Attr) {
	s := m.share
	spoil := func(sec *uint64, nsec *uint32) {
		t := time.Unix(int64(*sec), int64(*nsec))
		switch {
		case s.has(TimesCoarse):
			t = t.Truncate(coarse)
		case s.has(TimesTick):
			t = t.Truncate(tick)
		case s.has(TimesStill):
			t = s.began
		case s.has(TimesBackwards):
			t = s.began.Add(-10 * t.Sub(s.began))
		case s.has(TimesOfLook):
			t = time.Now()
		}
		t = t.Add(m.skew(t))
		*sec, *nsec = uint64(t.Unix()), uint32(t.Nanosecond())
	}
	if s.has(ClientStamps) || s.has(TouchSkewed) {
		a.Ctime, a.Ctimensec = a.Mtime, a.Mtimensec // whose clock it is cannot be set on the backing file
	}
	spoil(&a.Atime, &a.Atimensec)
	spoil(&a.Mtime, &a.Mtimensec)
	spoil(&a.Ctime, &a.Ctimensec)
}

// stamp gives a file that this mount has made, written or touched the time of the client, with that fault.
func (m *mount) stamp(fd int) {
	if m.share.has(ClientStamps) && !m.first {
		setTime(path(fd), m.clock(ClientStamps))
	}
}

// clock is a wrong clock.
func (m *mount) clock(k Kind) time.Time {
	f, now := m.share.the(k), time.Now()
	drifted := f.Drift.Seconds() * float64(now.Sub(m.share.began))
	return now.Add(f.Skew + time.Duration(drifted))
}

// setTimes carries out a touch, and a time that is set.
func (m *mount) setTimes(in *fuse.SetAttrIn, file string) unix.Errno {
	at, ok := in.GetMTime()
	if !ok {
		return 0
	}
	s, touched := m.share, in.Valid&fuse.FATTR_MTIME_NOW != 0
	switch {
	case s.has(TimesIgnored):
		return 0
	case touched && s.fires(TouchRefused):
		return unix.EPERM
	case touched && s.fires(TouchIgnored), !touched && s.fires(TimesNotSet):
		return 0
	case touched && s.has(TouchSkewed):
		return setTime(file, m.clock(TouchSkewed))
	case touched && s.has(ClientStamps) && !m.first:
		return setTime(file, m.clock(ClientStamps))
	case touched:
		now := unix.Timespec{Nsec: unix.UTIME_NOW}
		return code(unix.UtimesNanoAt(unix.AT_FDCWD, file, []unix.Timespec{now, now}, 0))
	}
	return setTime(file, at.Add(-m.skew(at)))
}

// skew is by how much a time is off that the mount gives.
func (m *mount) skew(t time.Time) time.Duration {
	k := TimesSkewed
	if !m.share.has(k) && !m.first {
		k = MountSkewed
	}
	f := m.share.the(k)
	return f.Skew + time.Duration(f.Drift.Seconds()*float64(t.Sub(m.share.began)))
}

func setTime(file string, at time.Time) unix.Errno {
	ts := unix.NsecToTimespec(at.UnixNano())
	return code(unix.UtimesNanoAt(unix.AT_FDCWD, file, []unix.Timespec{ts, ts}, 0))
}
