// Package lab makes real filesystems to survey, surveys them, compares what was found with what is expected there, and
// takes them down again. It judges no filesystem itself: a survey in a made target is the same command that a user
// runs. It needs root, and the programs that each target names.
package lab

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/claimbench/claimbench/internal/config"
	"github.com/claimbench/claimbench/internal/result"
)

// A Target is one filesystem, or one way to share it, that the lab can make. It lies on a disk, and has one layer over
// it or none.
type Target struct {
	Name  string            `yaml:"-"`     // that of its file
	About string            `yaml:"about"` // in one line
	Group string            `yaml:"group"` // for the order of tables: local, fuse, nfs, smb, 9p
	Quick bool              `yaml:"quick"` // one of the selection for every day
	Needs map[string]string `yaml:"needs"` // programs, and the Debian package of each, or the command that installs it

	Disk    *Disk    `yaml:"disk"` // what is below; nil is a plain directory
	Overlay *Overlay `yaml:"overlay"`
	Bind    bool     `yaml:"bind"` // two bind mounts of the disk
	FUSE    *FUSE    `yaml:"fuse"`
	UML     *UML     `yaml:"uml"`

	Disposable bool `yaml:"disposable"` // it may be filled: the survey runs the probes that only such a target is tested for

	Survey    string                 `yaml:"survey"`    // settings, by the name of a file in surveys/; "" is local
	Protocols []string               `yaml:"protocols"` // of the workloads; none is all
	Scope     result.Scope           `yaml:"scope"`     // that the survey must find
	Refuse    string                 `yaml:"refuse"`    // the survey must refuse the routes, with these words
	Expect    map[string]Expectation `yaml:"expect"`    // of promises and protocols; a promise that is not here holds
	Claims    map[string]string      `yaml:"claims"`    // what a manual says of a promise
}

// A Disk is a filesystem of the running kernel: on a loop device if it has a mkfs, without a device otherwise.
type Disk struct {
	Type    string   `yaml:"type"`
	Mkfs    []string `yaml:"mkfs"` // the command, without the device
	SizeMiB int      `yaml:"size_mib"`
	Options string   `yaml:"options"`
}

// An Overlay is one or two overlay mounts of directories on the disk.
type Overlay struct {
	Kind string `yaml:"kind"` // one of overlayKinds
}

// A FUSE target is one or two mounts by a program that stays in the foreground. In its commands and files {dir} is the
// target's scratch directory, {disk} what lies below, {at} the mount point, {n} the number of the mount, and {port1},
// {port2} and so on are free ports, as many as there may be servers.
type FUSE struct {
	Dirs    []string          `yaml:"dirs"`    // to be made, on the disk
	Files   map[string]string `yaml:"files"`   // to be written in {dir}, by their names there
	Prepare [][]string        `yaml:"prepare"` // commands before the first mount
	Servers [][]string        `yaml:"servers"` // programs beside the mounts, started in this order; the first listens on {port1}
	Mount   []string          `yaml:"mount"`   // the program, in the foreground
	Mounts  int               `yaml:"mounts"`
	Settle  []string          `yaml:"settle"` // a command that ends when the first mount can be used, if that is later
	Env     map[string]string `yaml:"env"`
	Network bool              `yaml:"network"` // all of it in a network namespace of its own, with no device but lo
}

func (t *Target) ownNetwork() bool { return t.FUSE != nil && t.FUSE.Network }

const maxServers = 4

// Load reads the targets of a directory: each file *.yaml in it is one, and is called like it. Files that cannot be
// read do not hide the others: what is wrong with them is joined in the error.
func Load(dir fs.FS) ([]Target, error) {
	names, err := fs.Glob(dir, "*.yaml")
	if err != nil {
		return nil, err
	}
	var all []Target
	var wrong []error
	for _, name := range names {
		t, err := loadOne(dir, name)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b Target) int {
		return cmp.Or(cmp.Compare(groupOrder(a), groupOrder(b)), cmp.Compare(a.Name, b.Name))
	})
	return all, errors.Join(wrong...)
}

func groupOrder(t Target) int { return slices.Index(groups, t.Group) }

var groups = []string{"local", "fuse", "nfs", "smb", "9p"}

func loadOne(dir fs.FS, name string) (Target, error) {
	data, err := fs.ReadFile(dir, name)
	if err != nil {
		return Target{}, err
	}
	t := Target{Name: strings.TrimSuffix(path.Base(name), ".yaml"), Survey: "local"}
	if err := config.Strict(name, data, &t); err != nil {
		return Target{}, err
	}
	if err := t.validate(); err != nil {
		return Target{}, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// validate finds what the types leave open.
func (t *Target) validate() error {
	layers := 0
	for _, has := range []bool{t.Overlay != nil, t.Bind, t.FUSE != nil, t.UML != nil} {
		if has {
			layers++
		}
	}
	switch {
	case t.About == "":
		return errors.New("about: is missing; say in one line what the target is")
	case !slices.Contains(groups, t.Group):
		return fmt.Errorf("group: %q is none; there are %s", t.Group, strings.Join(groups, ", "))
	case layers > 1:
		return errors.New("more than one of overlay, bind, fuse and uml; a target has one layer over its disk")
	case layers == 0 && t.Disk == nil:
		return errors.New("neither disk nor overlay, bind, fuse or uml; nothing would be made")
	case t.Disk != nil && t.Disk.Type == "":
		return errors.New("disk: type is missing")
	case t.Overlay != nil && !slices.Contains(overlayKinds, t.Overlay.Kind):
		return fmt.Errorf("overlay: kind %q is none; there are %s", t.Overlay.Kind, strings.Join(overlayKinds, ", "))
	case t.Disposable && layers > 0:
		return errors.New("disposable: only a disk without a layer can be")
	case t.FUSE != nil && (len(t.FUSE.Mount) == 0 || t.FUSE.Mounts < 1 || t.FUSE.Mounts > 2):
		return errors.New("fuse: expected a mount command, and 1 or 2 mounts")
	case t.FUSE != nil && len(t.FUSE.Servers) > maxServers:
		return fmt.Errorf("fuse: at most %d servers", maxServers)
	}
	if t.UML != nil {
		if err := t.UML.validate(); err != nil {
			return fmt.Errorf("uml: %w", err)
		}
	}
	return t.validateExpectations()
}
