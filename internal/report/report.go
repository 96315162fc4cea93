// Package report turns result files into tables for people and rows for programs. It measures and judges
// nothing: the same files always give the same output. It is the only place where units are scaled.
package report

import (
	"bytes"
	"fmt"
	"io"

	"github.com/claimbench/claimbench/internal/result"
)

// A Format is one way to write result files. What a format has no use for in the options it ignores.
type Format struct {
	Name   string
	Tables bool // it can write one table with the files side by side
	Write  func(io.Writer, []*result.File, TextOptions) error
}

// Formats is every format, in the order in which help texts list them.
var Formats = []Format{
	{"table", true, Text},
	{"markdown", true, func(w io.Writer, files []*result.File, o TextOptions) error {
		if o.Table != "" {
			return sideMarkdown(w, files, o.Table)
		}
		return Markdown(w, files)
	}},
	{"csv", true, func(w io.Writer, files []*result.File, o TextOptions) error { return csvTable(w, files, o.Table) }},
	{"json", false, func(w io.Writer, files []*result.File, _ TextOptions) error { return JSON(w, files) }},
	{"gobench", false, func(w io.Writer, files []*result.File, _ TextOptions) error { return GoBench(w, files) }},
}

// JSON writes one file as it is saved, so that the output is a result file again, and any other number of files
// as an array of them.
func JSON(w io.Writer, files []*result.File) error {
	docs := make([][]byte, len(files))
	for i, f := range files {
		data, err := f.Encode()
		if err != nil {
			return fmt.Errorf("encode file %d: %w", i+1, err)
		}
		docs[i] = bytes.TrimSuffix(data, []byte("\n"))
	}
	if len(docs) == 1 {
		_, err := fmt.Fprintf(w, "%s\n", docs[0])
		return err
	}
	_, err := fmt.Fprintf(w, "[%s]\n", bytes.Join(docs, []byte(",\n")))
	return err
}
