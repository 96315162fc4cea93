package museum

import (
	"cmp"
	"fmt"
	"os"
	"strings"
)

// WritePage writes the museum's page.
func WritePage(file string) error { return os.WriteFile(file, []byte(Page()), 0o644) }

// Page is the museum's page, made from the exhibits.
func Page() string {
	b := &strings.Builder{}
	fmt.Fprintf(b, `# The museum

%d failures of file claims and locks that people reported, in our own words, each planted on a real mount or run with
the protocol that failed them. `+"`go test`"+` shows all of them: a probe that does not recognise its exhibit fails, and so does
a workload that does not show what a wrong protocol does, or shows it of the right one. That a probe recognises an
imitation does not say that it would have found the original, whose cause may have been another.

This page is made from `+"`internal/museum/museum.yaml`; `make docs`"+` writes it again.

| kind | exhibits | sources |
| --- | --- | --- |
`, len(Reported))
	for _, k := range Kinds {
		all, sources := of(k)
		fmt.Fprintf(b, "| %s %s | %d | %d |\n", k.Key, k.Title, len(all), sources)
	}
	for _, k := range Kinds {
		all, _ := of(k)
		fmt.Fprintf(b, "\n## %s: %s\n\n| what happened | source | fault | shown by | what must come out |\n| --- | --- | --- | --- | --- |\n", k.Key, k.Title)
		for i := range all {
			b.WriteString(all[i].row())
		}
	}
	return b.String()
}

// of is the exhibits of a kind, and the number of their sources.
func of(k Kind) (all []Exhibit, sources int) {
	seen := map[string]bool{}
	for _, x := range Reported {
		if x.Kind != k.Key {
			continue
		}
		all = append(all, x)
		for _, s := range x.Sources {
			seen[s] = true
		}
	}
	return all, len(seen)
}

func (x *Exhibit) row() string {
	return fmt.Sprintf("| **%s.** %s | %s | %s | %s | %s |\n",
		strings.ToUpper(x.Name[:1])+x.Name[1:], x.Story, strings.Join(x.Sources, ", "), x.fault(), x.shownBy(), x.comesOut())
}

func (x *Exhibit) fault() string {
	switch {
	case x.Faults == "":
		return "none: the protocol's own"
	case x.Mounts == 1:
		return "`" + x.Faults + "`"
	}
	return fmt.Sprintf("`%s`, %d mounts", x.Faults, x.Mounts)
}

func (x *Exhibit) shownBy() string {
	if x.Workload != "" {
		return fmt.Sprintf("%s with %s", x.Workload, x.Protocol)
	}
	return fmt.Sprintf("[%s](probes/%[1]s.md)", x.Probe)
}

func (x *Exhibit) comesOut() string {
	if x.Workload != "" {
		return fmt.Sprintf("%s; with %s none", x.Shows, x.Right)
	}
	detail := x.Class
	if len(x.Violations) > 0 {
		detail = x.Violations[0]
	}
	return strings.TrimSuffix(fmt.Sprintf("%s: %s", x.Verdict, cmp.Or(detail, x.Reason, x.Warning)), ": ")
}
