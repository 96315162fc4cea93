package engine

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
)

// The files of generations. What they call is found from them.
var generationsFiles = []string{"generations.go", "generations_lease.go"}

// pure are the packages whose functions generations may reach: none of them
// can touch a file.
var pure = map[string]bool{
	"bytes": true, "encoding/binary": true, "encoding/hex": true, "errors": true, "fmt": true, "hash/crc32": true,
	"io": true, "strconv": true, "strings": true, "sync": true, "sync/atomic": true, "time": true,
}

// seamTypes are the interfaces through which generations may call.
var seamTypes = map[string]bool{"FS": true, "File": true, "Reader": true, "Clock": true, "error": true}

// powerful are types that generations must not so much as mention.
var powerful = map[string]bool{"LinkFS": true, "FullFS": true, "LockFile": true, "DirFS": true, "Env": true}

// seamMethods is everything that the seam in its smallest size can do. A
// method that is added to it shows up here.
var seamMethods = []string{"Create", "Lstat", "Mkdir", "Now", "Open"}

// TestGenerationsCannotRemoveRenameOrLock needs no knowledge of concurrency:
// what can never be taken away can never be taken away at the wrong moment.
func TestGenerationsCannotRemoveRenameOrLock(t *testing.T) {
	for _, v := range violations(t, nil) {
		t.Error(v)
	}
}

func TestTheAcceptanceTestSeesViolations(t *testing.T) {
	for _, c := range []struct{ name, file, old, new, want string }{
		{"a removal", "generations.go", "began := g.clock.Now()", "began := g.clock.Now(); _ = os.Remove(\"x\")", "reaches os.Remove"},
		{"a removal in what it calls", "write.go", "if !durable {", "if os.Remove(name) == nil {", "reaches os.Remove"},
		{"a system call in what it calls", "slot.go", "r, err := fs.Open(name)", "_ = syscall.Unlink(name); r, err := fs.Open(name)", "reaches syscall.Unlink"},
		{"a larger seam", "generations.go", "began := g.clock.Now()", "began := g.clock.Now(); if l, ok := g.fs.(interface{ Unlink(string) error }); ok { _ = l.Unlink(\"x\") }", "type assertion"},
		{"a larger seam in what it calls", "slot.go", "_, err := fs.Lstat(name)", "_, err := fs.Lstat(name); switch l := fs.(type) { case FullFS: _ = l.Rename(name, name) }", "type assertion"},
		{"a field of a larger seam", "generations.go", "	fs     FS\n", "	fs     FS\n	full   FullFS\n", "mentions FullFS"},
		{"another protocol's function", "generations.go", "began := g.clock.Now()", "began := g.clock.Now(); _ = removeStale", "reclaim.go"},
		{"a lock", "generations_lease.go", "start := l.g.clock.Now()", "start := l.g.clock.Now(); var lock LockFile; _ = lock.TryLock()", "LockFile"},
		{"a function in a variable", "write.go", "func givenUp(f File, err error) error {\n", "var remove = os.Remove\n\nfunc givenUp(f File, err error) error {\n\t_ = remove\n", "reaches os.Remove"},
		{"an import", "generations.go", "import (\n", "import (\n\t_ \"os/exec\"\n", "imports os/exec"},
	} {
		t.Run(c.name, func(t *testing.T) {
			src, err := os.ReadFile(c.file)
			if err != nil {
				t.Fatal(err)
			}
			planted := strings.Replace(string(src), c.old, c.new, 1)
			if planted == string(src) {
				t.Fatalf("%s has no %q to plant a violation at", c.file, c.old)
			}
			if strings.Contains(c.new, "os.Remove") {
				planted = strings.Replace(planted, "import (\n", "import (\n\t\"os\"\n", 1)
			}
			got := strings.Join(violations(t, map[string]string{c.file: planted}), "\n")
			if !strings.Contains(got, c.want) {
				t.Errorf("found %q, want something about %q", got, c.want)
			}
		})
	}
}

// standard remembers the packages of the standard library between checks.
var standard = sync.OnceValue(func() types.Importer {
	return importer.ForCompiler(token.NewFileSet(), "source", nil)
})

// violations checks the package, with the files of planted in place of those
// on disk.
func violations(t *testing.T, planted map[string]string) []string {
	t.Helper()
	fset := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || name == "osfs_other.go" {
			continue
		}
		var src any
		if text, ok := planted[name]; ok {
			src = text
		}
		f, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	conf := types.Config{Importer: standard()}
	pkg, err := conf.Check("engine", fset, files, info)
	if err != nil {
		t.Fatal(err)
	}
	r := &reach{fset: fset, info: info, pkg: pkg, decls: map[types.Object]ast.Node{}, seen: map[types.Object]bool{}, found: map[string]bool{}}
	r.roots(files)
	r.seam()
	found := make([]string, 0, len(r.found))
	for v := range r.found {
		found = append(found, v)
	}
	sort.Strings(found)
	return found
}

// reach walks everything that the functions of generations mention, called or
// not: a function that is only passed on can be called as well.
type reach struct {
	fset  *token.FileSet
	info  *types.Info
	pkg   *types.Package
	decls map[types.Object]ast.Node // functions, and variables of the package
	seen  map[types.Object]bool
	found map[string]bool
}

func (r *reach) roots(files []*ast.File) {
	var roots []*ast.File
	for _, f := range files {
		for _, d := range f.Decls {
			r.declare(d)
		}
		for _, name := range generationsFiles {
			if r.fset.Position(f.Package).Filename == name {
				roots = append(roots, f)
			}
		}
	}
	if len(roots) != len(generationsFiles) {
		r.found[fmt.Sprintf("%d files of generations, not %d", len(roots), len(generationsFiles))] = true
	}
	for _, f := range roots {
		for _, imp := range f.Imports {
			path := strings.Trim(imp.Path.Value, `"`)
			if !pure[path] && path != "syscall" {
				r.report(imp, "imports %s", path)
			}
		}
		r.walk(f)
	}
}

func (r *reach) declare(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		r.decls[r.info.Defs[d.Name]] = d
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if values, ok := spec.(*ast.ValueSpec); ok {
				for _, name := range values.Names {
					r.decls[r.info.Defs[name]] = values
				}
			}
		}
	}
}

func (r *reach) report(n ast.Node, format string, args ...any) {
	r.found[fmt.Sprintf("%s: %s", r.fset.Position(n.Pos()), fmt.Sprintf(format, args...))] = true
}

func (r *reach) walk(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeAssertExpr, *ast.TypeSwitchStmt:
			r.report(n, "type assertion: what is behind the seam may be larger than the seam")
		case *ast.Ident:
			r.use(n, r.info.Uses[n])
		}
		return true
	})
}

func (r *reach) use(n *ast.Ident, o types.Object) {
	switch o := o.(type) {
	case *types.TypeName:
		if o.Pkg() == r.pkg && powerful[o.Name()] {
			r.report(n, "mentions %s", o.Name())
		}
	case *types.Var:
		if named := typeName(o.Type()); powerful[named] {
			r.report(n, "has a %s", named)
		}
		if decl := r.decls[o]; decl != nil && !r.seen[o] {
			r.seen[o] = true
			r.walk(decl)
		}
	case *types.Func:
		r.call(n, o.Origin())
	}
}

func (r *reach) call(n *ast.Ident, f *types.Func) {
	recv := f.Signature().Recv()
	switch {
	case recv != nil && types.IsInterface(recv.Type()):
		if name := typeName(recv.Type()); !seamTypes[name] {
			r.report(n, "calls %s of the interface %s, which may be anything", f.Name(), name)
		}
	case f.Pkg() == nil:
	case f.Pkg() != r.pkg:
		if !pure[f.Pkg().Path()] {
			r.report(n, "reaches %s.%s", f.Pkg().Path(), f.Name())
		}
	case !r.seen[f]:
		r.seen[f] = true
		decl := r.decls[f]
		if decl == nil {
			r.report(n, "reaches %s, which has no body", f.Name())
			return
		}
		r.walk(decl)
	}
}

// seam holds the interface itself to what it may do.
func (r *reach) seam() {
	seam := r.pkg.Scope().Lookup("FS").Type().Underlying().(*types.Interface)
	var got []string
	for m := range seam.Methods() {
		got = append(got, m.Name())
	}
	sort.Strings(got)
	if strings.Join(got, " ") != strings.Join(seamMethods, " ") {
		r.found[fmt.Sprintf("FS has the methods %v, want %v", got, seamMethods)] = true
	}
}

func typeName(t types.Type) string {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := t.(*types.Named); ok {
		return n.Obj().Name()
	}
	return ""
}
