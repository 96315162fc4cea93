package result

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxSize is the largest result file that Load reads, in bytes.
const MaxSize = 256 << 20

// A LoadError says in one line which file cannot be used, why, and what to do about it.
type LoadError struct {
	Path   string // empty when the bytes came from elsewhere
	Reason string
	Err    error // what the system said, if it was asked
}

func (e *LoadError) Error() string {
	name := e.Path
	switch {
	case name == "":
		name = "result"
	case strconv.Quote(name) != `"`+name+`"`:
		name = strconv.Quote(name)
	}
	return "load " + name + ": " + e.Reason
}

func (e *LoadError) Unwrap() error { return e.Err }

// Load reads the result file at path. Members it does not know are kept and saved again. Every error is a
// *LoadError.
func Load(path string) (*File, error) {
	data, err := read(path)
	if err != nil {
		return nil, withPath(err, path)
	}
	f, err := Decode(data)
	if err != nil {
		return nil, withPath(err, path)
	}
	return f, nil
}

// Decode is Load for a file that has been read already.
func Decode(data []byte) (*File, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, &LoadError{Reason: "is empty; run the survey again"}
	}
	var header struct {
		Schema jsontext.Value `json:"schema"`
	}
	if err := json.Unmarshal(data, &header); err != nil {
		return nil, refused(err, len(data))
	}
	if err := checkHeader(header.Schema); err != nil {
		return nil, &LoadError{Reason: err.Error()}
	}
	f := new(File)
	if err := json.Unmarshal(data, f); err != nil {
		return nil, refused(err, len(data))
	}
	if err := f.check(); err != nil {
		return nil, &LoadError{Reason: "is damaged or was edited: " + err.Error()}
	}
	return f, nil
}

func withPath(err error, path string) error {
	var load *LoadError
	if errors.As(err, &load) {
		load.Path = path
		return load
	}
	return &LoadError{Path: path, Reason: advise(err), Err: err}
}

func advise(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "no such file; name one that claimbench wrote"
	}
	return cause(err).Error()
}

// cause is err without the operation and path that os puts before it.
func cause(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() // nothing was written
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, &LoadError{Reason: "is a directory; name a result file in it"}
	}
	if info.Size() > MaxSize {
		return nil, tooLarge(MaxSize)
	}
	return readAtMost(file, MaxSize)
}

// readAtMost bounds what Stat cannot: pipes, devices, a file that grows.
func readAtMost(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, tooLarge(limit)
	}
	return data, nil
}

func tooLarge(limit int64) error {
	return &LoadError{Reason: fmt.Sprintf("is larger than the %d MiB a result file may have; survey fewer targets into one file", limit>>20)}
}

// refused puts the json package's errors into words for somebody who only has a file.
func refused(err error, size int) *LoadError {
	var syntax *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &LoadError{Reason: fmt.Sprintf("cut off after %d bytes; copy it again or run the survey again", size)}
	case errors.As(err, &syntax):
		return &LoadError{Reason: fmt.Sprintf("not JSON: %v at byte %d; name a file that claimbench wrote", syntax.Err, syntax.ByteOffset)}
	case errors.As(err, &semantic) && semantic.JSONPointer == "":
		return &LoadError{Reason: "not a claimbench result file: it holds no JSON object"}
	case errors.As(err, &semantic):
		return &LoadError{Reason: "is damaged or was edited: " + mismatch(semantic)}
	}
	return &LoadError{Reason: err.Error()}
}

func mismatch(e *json.SemanticError) string {
	s := string(e.JSONPointer)
	if e.JSONKind != 0 {
		s += " is " + kindWord(e.JSONKind)
	}
	if e.GoType != nil {
		s += ", want " + typeWord(e.GoType)
	}
	if e.Err != nil {
		s += " (" + e.Err.Error() + ")"
	}
	return s
}

func kindWord(k jsontext.Kind) string {
	switch k {
	case jsontext.KindString:
		return "a string"
	case jsontext.KindNumber:
		return "a number"
	case jsontext.KindBeginArray:
		return "an array"
	case jsontext.KindBeginObject:
		return "an object"
	case jsontext.KindNull:
		return "null"
	}
	return "a truth value"
}

func typeWord(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a truth value"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "an array"
	case reflect.Int, reflect.Int64, reflect.Uint32, reflect.Uint64:
		return "an integer"
	}
	if t == timeType {
		return "a time"
	}
	return "an object"
}

func checkHeader(raw jsontext.Value) error {
	if raw == nil {
		return errors.New("not a claimbench result file: it names no schema")
	}
	var schema string
	if err := json.Unmarshal(raw, &schema); err != nil {
		return errors.New("not a claimbench result file: its schema is not a string")
	}
	return checkSchema(schema)
}

func checkSchema(schema string) error {
	if schema == "" {
		return errors.New("not a claimbench result file: it names no schema")
	}
	if !strings.HasPrefix(schema, "claimbench.result/") {
		return fmt.Errorf("not a claimbench result file: its schema is %q", schema)
	}
	version := regexp.MustCompile(`/v(0|[1-9][0-9]*)(\.[0-9]+)*$`).FindStringSubmatch(schema)
	switch {
	case version == nil || version[1] == "0":
		return fmt.Errorf("%q is no version that claimbench ever wrote; this one reads v1", schema)
	case version[1] != "1":
		return fmt.Errorf("%s was written by a newer claimbench; this one reads v1", schema)
	}
	return nil
}
