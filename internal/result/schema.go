package result

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// SchemaJSON is the JSON Schema (draft 2020-12) of a result file. It allows members it does not know.
//
//go:embed result.schema.json
var SchemaJSON []byte

var compiled = sync.OnceValues(func() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(SchemaJSON))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("result.schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("result.schema.json")
})

// Validate says whether data is a result file by its JSON Schema. It is slower and stricter than Decode: it is
// for files about to be published.
func Validate(data []byte) error {
	schema, err := compiled()
	if err != nil {
		return fmt.Errorf("compile result.schema.json: %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("validate result: not JSON: %w", err)
	}
	err = schema.Validate(doc)
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		return fmt.Errorf("validate result: %s", strings.Join(complaints(invalid), "; "))
	}
	return err
}

// complaints are the leaves of the tree of errors: the values that are wrong, not the objects they are in.
func complaints(e *jsonschema.ValidationError) []string {
	if len(e.Causes) == 0 {
		where := "/" + strings.Join(e.InstanceLocation, "/")
		return []string{where + ": " + e.ErrorKind.LocalizedString(message.NewPrinter(language.English))}
	}
	var all []string
	for _, cause := range e.Causes {
		all = append(all, complaints(cause)...)
	}
	return all
}
