package api

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"tocsin/internal/fault"
)

const (
	maxBodyBytes = 1 << 20
	maxDepth     = 32
	// maxFaults bounds the entries in one answer.
	maxFaults = 50
)

// strictBinder reads bodies. It is installed in place of echo's, which accepts
// empty bodies, unknown fields, names in another case, and trailing documents.
type strictBinder struct{}

// Bind decodes the request's body into target.
func (strictBinder) Bind(target any, c echo.Context) error {
	r := c.Request()
	kind, params, err := mime.ParseMediaType(r.Header.Get(echo.HeaderContentType))
	charset := params["charset"]
	if err != nil || kind != echo.MIMEApplicationJSON || (charset != "" && !strings.EqualFold(charset, "utf-8")) {
		return echo.NewHTTPError(http.StatusUnsupportedMediaType, "Send the body as Content-Type: application/json, in UTF-8")
	}
	if encoding := r.Header.Get(echo.HeaderContentEncoding); encoding != "" && encoding != "identity" {
		return echo.NewHTTPError(http.StatusUnsupportedMediaType, "Send the body without Content-Encoding")
	}
	limit := int64(maxBodyBytes)
	if _, document := target.(*ApplyRulesJSONRequestBody); document {
		limit = maxDocumentBytes
	}
	data, err := io.ReadAll(http.MaxBytesReader(c.Response(), r.Body, limit))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return echo.NewHTTPError(http.StatusRequestEntityTooLarge, fmt.Sprintf("The body must have at most %d bytes", tooLarge.Limit))
	}
	if err != nil {
		return echo.NewHTTPError(http.StatusBadRequest, "The body ended early; send the request again").SetInternal(err)
	}
	return decodeStrict(data, target)
}

// decodeStrict decodes the one JSON document in data into target, a pointer.
// Its error is a fault with an entry for each field that is unknown, repeated,
// null or of a wrong type.
func decodeStrict(data []byte, target any) error {
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return fault.New(fault.Invalid, "the body is empty; send a JSON document")
	case !utf8.Valid(data):
		return fault.New(fault.Invalid, "the body is not valid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	w := walker{dec: dec}
	if err := w.value(reflect.TypeOf(target).Elem(), "", 0); err != nil {
		return malformed(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fault.New(fault.Invalid, "the body continues after the end of its JSON document")
	}
	if len(w.fields) > 0 {
		return fault.InvalidFields("the body", w.fields)
	}
	if err := json.Unmarshal(data, target); err != nil {
		return malformed(err)
	}
	return nil
}

func malformed(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.New(fault.Invalid, "the body is not valid JSON: it ends early")
	}
	return fault.New(fault.Invalid, "the body is not valid JSON: %v", err)
}

// walker compares a document with a type, token by token.
type walker struct {
	dec    *json.Decoder
	fields []fault.Field
}

func (w *walker) report(path, code, message string) {
	if len(w.fields) < maxFaults {
		w.fields = append(w.fields, fault.Field{Field: path, Code: code, Message: message})
	}
}

// value reads the next value and reports where it does not fit t. A nil t fits
// everything. Its error says that the document itself is broken.
func (w *walker) value(t reflect.Type, path string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("it has more than %d levels", maxDepth)
	}
	token, err := w.dec.Token()
	if err != nil {
		return err
	}
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '{' {
			return w.object(t, path, depth)
		}
		return w.array(t, path, depth)
	case nil:
		if t != nil {
			w.report(path, "null", "Must not be null; leave the field out")
		}
	default:
		if t != nil {
			if message := unfit(t, token); message != "" {
				w.report(path, "type", message)
			}
		}
	}
	return nil
}

func (w *walker) object(t reflect.Type, path string, depth int) error {
	var known map[string]reflect.Type
	var each reflect.Type
	switch {
	case t == nil:
	case t.Kind() == reflect.Struct && !readsText(t):
		known = jsonFields(t)
	case t.Kind() == reflect.Map:
		each = t.Elem()
	default:
		w.report(path, "type", "Must be "+article(t))
		t = nil
	}
	seen := map[string]bool{}
	for w.dec.More() {
		token, err := w.dec.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		at := fieldPath(path, name)
		field := each
		if known != nil {
			var found bool
			if field, found = known[name]; !found {
				w.report(at, "unknown_field", unknownField(name, known))
			}
		}
		if seen[name] && t != nil {
			w.report(at, "duplicate_field", "The field is given twice")
		}
		seen[name] = true
		if err := w.value(field, at, depth+1); err != nil {
			return err
		}
	}
	_, err := w.dec.Token()
	return err
}

func (w *walker) array(t reflect.Type, path string, depth int) error {
	var each reflect.Type
	switch {
	case t == nil:
	case t.Kind() == reflect.Slice:
		each = t.Elem()
	default:
		w.report(path, "type", "Must be "+article(t))
	}
	for i := 0; w.dec.More(); i++ {
		if err := w.value(each, path+"["+strconv.Itoa(i)+"]", depth+1); err != nil {
			return err
		}
	}
	_, err := w.dec.Token()
	return err
}

// unfit says why a scalar is not a valid t; empty if it is.
func unfit(t reflect.Type, token json.Token) string {
	want := "Must be " + article(t)
	switch token := token.(type) {
	case string:
		if readsText(t) {
			value := reflect.New(t).Interface().(encoding.TextUnmarshaler)
			if err := value.UnmarshalText([]byte(token)); err != nil {
				return want
			}
			if at, is := value.(*time.Time); is && (at.UTC().Year() < 0 || at.UTC().Year() > 9999) {
				return "Must be in one of the years 0 to 9999 of UTC" // no answer could contain it
			}
			return ""
		}
		if t.Kind() == reflect.String {
			return ""
		}
	case bool:
		if t.Kind() == reflect.Bool {
			return ""
		}
	case json.Number:
		value := reflect.New(t)
		if !readsText(t) && json.Unmarshal([]byte(token), value.Interface()) == nil {
			return ""
		}
	}
	return want
}

func readsText(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// article names a type for people.
func article(t reflect.Type) string {
	if t == reflect.TypeFor[time.Time]() {
		return "an RFC 3339 timestamp"
	}
	if readsText(t) {
		return "a UUID"
	}
	switch t.Kind() { //nolint:exhaustive // bodies are made of these kinds alone
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice:
		return "a list"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return "a whole number"
	}
}

func jsonFields(t reflect.Type) map[string]reflect.Type {
	fields := make(map[string]reflect.Type, t.NumField())
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields[name] = f.Type
	}
	return fields
}

func unknownField(name string, known map[string]reflect.Type) string {
	for k := range known {
		if strings.EqualFold(k, name) {
			return "Unknown field; write it " + k
		}
	}
	return "Unknown field"
}

// fieldPath returns the path of a field within an object.
func fieldPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
