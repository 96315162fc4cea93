package race

import (
	"bytes"
	"strings"

	"golang.org/x/sys/unix"
)

// beneath separates, in the name of a directory to be entered, what may be reached by symlinks from what must not. No
// path holds it.
const beneath = "\x00"

// Beneath names a directory that is reached from root by no symlink and no "..", for Enter. dir may be "".
func Beneath(root, dir string) string { return root + beneath + dir }

// shown is how such a name is told to a person.
func shown(dir string) string {
	root, rest, ok := strings.Cut(dir, beneath)
	if ok && rest != "" {
		return root + "/" + rest
	}
	return root
}

// enter opens the route's directory, which may take a moment to be seen over another route than its maker's.
func (e *Env) enter(path *[maxPath]byte) unix.Errno {
	if e.Dir >= 0 {
		Close(e.Dir)
	}
	fd, errno := Open(unix.AT_FDCWD, &path[0], unix.O_RDONLY|unix.O_DIRECTORY, 0)
	rest := path[bytes.IndexByte(path[:], 0)+1:]
	for errno == 0 && rest[0] != 0 {
		fd, rest, errno = descend(fd, rest)
	}
	e.Dir = fd
	return errno
}

// descend opens the first element of a relative path in a directory, in whose place it comes, and returns the rest.
func descend(dir int, path []byte) (int, []byte, unix.Errno) {
	defer Close(dir)
	end := bytes.IndexAny(path, "/\x00")
	rest := path[end:]
	if path[end] == '/' {
		rest = path[end+1:]
	}
	path[end] = 0
	if name := path[:end]; len(name) == 0 || string(name) == ".." {
		return -1, rest, unix.EXDEV
	}
	fd, errno := Open(dir, &path[0], unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	return fd, rest, errno
}
