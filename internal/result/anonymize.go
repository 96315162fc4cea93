package result

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Anonymize replaces host names, target names, paths, sources, server and client addresses, client and boot
// identifiers by placeholders (host1, target1/route1, ...), the same one wherever the same thing occurs, in
// sentences too. Mount options keep their value only where it is a number or a setting known to name nobody.
// A secret that stands in a sentence and nowhere else is not found: read a file before you publish it.
func (f *File) Anonymize() {
	d := f.disguise()
	for i := range f.Targets {
		for j := range f.Targets[i].Routes {
			r := &f.Targets[i].Routes[j]
			hideOptions(r.Options)
			hideOptions(r.SuperOpts)
			hideOptions(r.LockOpts)
		}
	}
	walk(reflect.ValueOf(f), nil, func(v reflect.Value, at []string) {
		switch {
		case v.Type() == rawType:
			v.SetBytes(d.raw(v.Bytes()))
		case v.Kind() == reflect.String && !isVocabulary(v, at):
			v.SetString(d.text(v.String()))
		}
	})
	placeholders := slices.Collect(maps.Values(d.shown))
	for i, c := range f.Conditions {
		if key, value, _ := strings.Cut(c, "="); strings.Contains(value, "/") && !slices.Contains(placeholders, value) {
			f.Conditions[i] = key + "=hidden"
		}
	}
}

// isVocabulary says that the words of a member come from claimbench or the kernel: they identify nobody, and a
// host that is called "link" must not rename a promise.
func isVocabulary(v reflect.Value, at []string) bool {
	if v.Type() != reflect.TypeFor[string]() {
		return true // a verdict or a scope
	}
	if len(at) > 3 && at[len(at)-3] == "protocols" && at[len(at)-1] == "name" {
		return true
	}
	switch at[len(at)-1] {
	case "schema", "version", "commit", "go", "kernel", "os", "arch", "cpus_allowed", "container",
		"virtualization", "clock", "ntp", "pid_namespace", "fstype", "superblock", "net_namespace", "local_lock",
		"promise", "class", "kind", "operation", "phase", "errno",
		"workload", "protocol", "variant", "settings", "outcome", "lab", "fault":
		return true
	}
	return false
}

// A disguise maps what must not be published to its placeholder.
type disguise struct {
	shown   map[string]string
	numbers map[string]int
	public  map[string]bool
}

func (f *File) disguise() *disguise {
	d := &disguise{shown: map[string]string{}, numbers: map[string]int{}, public: map[string]bool{"/": true, "none": true}}
	walk(reflect.ValueOf(f), nil, func(v reflect.Value, at []string) {
		if v.Kind() == reflect.String && isVocabulary(v, at) {
			d.public[v.String()] = true
		}
	})
	d.host(f.Host.Name)
	d.next("boot", f.Host.BootID)
	for i := range f.Hosts {
		d.host(f.Hosts[i].Host.Name)
		d.next("boot", f.Hosts[i].Host.BootID)
	}
	for i := range f.Targets {
		d.target(&f.Targets[i], fmt.Sprint("target", i+1))
	}
	return d
}

func (d *disguise) target(t *Target, name string) {
	d.hide(t.Name, name)
	for j, r := range t.Routes {
		d.hide(r.Path, fmt.Sprint(name, "/route", j+1))
	}
	for _, r := range t.Routes {
		d.host(r.Host)
		d.next(name+"/mount", r.Mount)
		d.next(name+"/root", r.Root)
		d.next("source", r.Source)
		if r.NFS != nil {
			d.next("server", r.NFS.Server)
			d.next("client-addr", r.NFS.ClientAddr)
			d.next("client-id", r.NFS.ClientID)
		}
		d.source(r.Source)
	}
	for _, r := range t.Routes {
		d.ancestors(name+"/above", r.Path)
	}
}

// ancestors hides the directories above a path, such as somebody's home, but not /home itself.
func (d *disguise) ancestors(kind, p string) {
	for dir := path.Dir(p); strings.Count(dir, "/") > 1; dir = path.Dir(dir) {
		d.next(kind, dir)
	}
}

// host hides the full name and the short one alike.
func (d *disguise) host(name string) {
	d.next("host", name)
	if short, _, dotted := strings.Cut(name, "."); dotted {
		d.hide(short, d.shown[name])
	}
}

// source hides the halves of server:/path and //server/path as well, which messages name alone.
func (d *disguise) source(s string) {
	server, export, found := strings.Cut(s, ":/")
	if share, smb := strings.CutPrefix(s, "//"); smb {
		server, export, found = strings.Cut(share, "/")
	}
	if !found {
		return
	}
	for part := range strings.FieldsFuncSeq(server, func(r rune) bool { return strings.ContainsRune("@,[]", r) }) {
		d.next("server", part)
	}
	d.next("export", "/"+export)
}

// next hides real behind the next number of its kind.
func (d *disguise) next(kind, real string) {
	if d.hide(real, fmt.Sprint(kind, d.numbers[kind]+1)) {
		d.numbers[kind]++
	}
}

func (d *disguise) hide(real, shown string) bool {
	if _, known := d.shown[real]; known || real == "" || d.public[real] {
		return false
	}
	d.shown[real] = shown
	return true
}

// text replaces what is hidden wherever it stands as a word, the longest first.
func (d *disguise) text(s string) string {
	if shown, whole := d.shown[s]; whole {
		return shown
	}
	var out strings.Builder
	for i := 0; i < len(s); {
		if real := d.at(s, i); real != "" {
			out.WriteString(d.shown[real])
			i += len(real)
			continue
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		out.WriteString(s[i : i+size])
		i += size
	}
	return out.String()
}

func (d *disguise) at(s string, i int) string {
	if before, _ := utf8.DecodeLastRuneInString(s[:i]); inWord(before) {
		return ""
	}
	longest := ""
	for real := range d.shown {
		if len(real) > len(longest) && strings.HasPrefix(s[i:], real) {
			if after, _ := utf8.DecodeRuneInString(s[i+len(real):]); !inWord(after) {
				longest = real
			}
		}
	}
	return longest
}

func inWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_')
}

// raw does for members of a later version what text does for ours. What cannot be rewritten is dropped.
func (d *disguise) raw(v jsontext.Value) jsontext.Value {
	var out bytes.Buffer
	dec, enc := jsontext.NewDecoder(bytes.NewReader(v)), jsontext.NewEncoder(&out)
	for {
		token, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			return out.Bytes()
		}
		if err != nil {
			return nil
		}
		if token.Kind() == jsontext.KindString {
			token = jsontext.String(d.text(token.String()))
		}
		if err := enc.WriteToken(token); err != nil {
			return nil
		}
	}
}

func hideOptions(options []string) {
	plain := regexp.MustCompile(`^(0x)?[0-9]+(\.[0-9]+)?[kKmMgG%]?$`)
	for i, o := range options {
		key, value, found := strings.Cut(o, "=")
		if found && !plain.MatchString(value) && !slices.Contains(telling(), key) {
			options[i] = key + "=hidden"
		}
	}
}

// telling names the mount options whose values matter to a promise and can name neither person nor place.
func telling() []string {
	return []string{"vers", "nfsvers", "proto", "mountproto", "sec", "xprtsec", "local_lock", "lookupcache", "lock",
		"cache", "access", "trans", "reparse", "symlink", "data", "errors", "barrier", "discard", "compress",
		"allocsize", "index", "redirect_dir", "xino", "metacopy", "uuid", "verity", "fsync_mode", "iocharset",
		"codepage", "nls", "shortname", "huge", "mode", "acl", "space_cache", "quota", "jqfmt"}
}
