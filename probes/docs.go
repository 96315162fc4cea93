package probes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// WriteDocs writes one page per probe, and an index, into a directory.
func WriteDocs(dir string) error {
	for name, text := range Docs() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Docs is the pages by file name, made from the registry.
func Docs() map[string]string {
	pages := map[string]string{}
	index := &strings.Builder{}
	index.WriteString("# The promises\n\nThese pages are made from the probes themselves; `make docs` writes them again.\n\n| probe | the promise |\n| --- | --- |\n")
	for _, p := range All {
		pages[p.Name+".md"] = p.page()
		fmt.Fprintf(index, "| [%s](%s.md) | %s |\n", p.Name, p.Name, strings.ReplaceAll(p.Promise, "|", "\\|"))
	}
	pages["README.md"] = index.String()
	return pages
}

func (p *Probe) page() string {
	return fmt.Sprintf(`# %s

**The promise.** %s

**Why a claim needs it.** %s

**How it is tested.** %s

**Positive control.** %s. It is run by the same harness on the same directory; where it does not fire, the verdict is `+"`unproven`"+`.

| verdict | it means | what to do |
| --- | --- | --- |
| holds | %s, at the scope named | rely on it at that scope, not at a wider one |
| broken | at least one violation was seen; the result file has its raw events | %s |
| unsupported | the filesystem refuses the operation; the errno is named | %s |
| hung | an operation did not come back within the deadline | look at the server, at the mount, and at dmesg: a claim here can wait for ever |
| unproven | %s, a control that did not fire, or errors; the reason is named | %s |
`, p.Name, p.Promise, p.Why, p.How, upperFirst(p.Control), p.evidence(), p.Broken, p.Refused, p.lacking(), p.again())
}

// evidence is what a verdict of holds rests on, lacking what one of unproven lacks, and again how to get it.
func (p *Probe) evidence() string {
	if p.Alone {
		return "nothing that was done went wrong; nobody races, and so there is no rate to bound"
	}
	return "no violation in the contested rounds counted, with the bound printed beside it"
}

func (p *Probe) lacking() string {
	if p.Alone {
		return "too few rounds, a check that could not be made"
	}
	return "too few contested rounds"
}

const againAlone = "look at what the reason names, and repeat, with a larger --budget where the rounds were too few"

func (p *Probe) again() string {
	if p.Alone {
		return againAlone
	}
	return "repeat with a larger budget, on an idle machine, with at least two CPUs"
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
