package explore

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// Fingerprint changes when the code of the engine or of the explorer does, and
// not when only comments or tests do. The root is that of the work tree.
func Fingerprint(root string) (string, error) {
	h := sha256.New()
	for _, dir := range []string{"engine", "internal/explore"} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			return "", fmt.Errorf("fingerprint %s: %w", dir, err)
		}
		slices.Sort(files)
		for _, file := range files {
			name := filepath.Base(file)
			if strings.HasSuffix(name, "_test.go") || name == "requirements_table.go" {
				continue
			}
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, file, nil, 0)
			if err != nil {
				return "", fmt.Errorf("fingerprint %s: %w", dir, err)
			}
			fmt.Fprintln(h, name)
			if err := (&printer.Config{}).Fprint(h, fset, f); err != nil {
				return "", fmt.Errorf("fingerprint %s: %w", dir, err)
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
