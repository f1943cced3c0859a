package api

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"

	"tocsin/internal/access"
)

//go:embed docs.html.tmpl
var docsTemplate string

//go:embed docs.css
var docsStyle []byte

// document is the description of the API: as a JSON document, as a page, and for the checks of the
// server.
type document struct {
	json, page []byte
	// rules is the JSON Schema of documents of rules.
	rules []byte
	// parameters holds the names of each operation's query parameters.
	parameters map[string][]string
	// operations are keyed by method and path as in the router: "GET /api/v1/rules/:id".
	operations map[string]described
}

// described is the part of an operation's description that the server uses.
type described struct {
	id string
	// kind is the kind of object that the operation is about, such as "rule".
	kind string
	// role is the lowest role that may call it.
	role access.Role
	// changes says whether a call may change anything.
	changes bool
}

// servedDocument is prepared once, because it is the same for every server.
var servedDocument = sync.OnceValues(newDocument) //nolint:gochecknoglobals // constant, and costly to make

// newDocument prepares the description from the generated code.
func newDocument() (*document, error) {
	raw, err := GetSpecJSON()
	if err != nil {
		return nil, fmt.Errorf("read API description: %w", err)
	}
	var tree map[string]any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return nil, fmt.Errorf("parse API description: %w", err)
	}
	withoutGoHints(tree)
	served, err := json.MarshalIndent(tree, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode API description: %w", err)
	}
	var d description
	if err := json.Unmarshal(served, &d); err != nil {
		return nil, fmt.Errorf("parse API description: %w", err)
	}
	sections, err := d.sections()
	if err != nil {
		return nil, err
	}
	page, err := template.New("docs").Funcs(template.FuncMap{"type": schemaType, "prose": prose, "required": slices.Contains[[]string]}).Parse(docsTemplate)
	if err != nil {
		return nil, fmt.Errorf("parse API page: %w", err)
	}
	var out bytes.Buffer
	if err := page.Execute(&out, map[string]any{"Info": d.Info, "Sections": sections, "Schemas": d.Components.Schemas}); err != nil {
		return nil, fmt.Errorf("render API page: %w", err)
	}
	rulesSchema, err := RulesSchema()
	if err != nil {
		return nil, err
	}
	doc := &document{json: served, page: out.Bytes(), rules: rulesSchema, parameters: map[string][]string{}, operations: map[string]described{}}
	for _, section := range sections {
		for _, op := range section.Operations {
			if op.Role != access.Anyone && !slices.Contains(access.Roles(), op.Role) {
				return nil, fmt.Errorf("API description: x-tocsin-role of %s is %q", op.OperationID, op.Role)
			}
			path := strings.NewReplacer("{", ":", "}", "").Replace(op.Path)
			doc.operations[op.Method+" "+strings.TrimSuffix(prefixV1, "/")+path] = described{
				id: op.OperationID, kind: strings.TrimSuffix(op.Tags[0], "s"), role: op.Role,
				changes: op.Method != http.MethodGet && (op.Changes == nil || *op.Changes),
			}
			for _, p := range op.Parameters {
				if p.In == "query" {
					doc.parameters[op.OperationID] = append(doc.parameters[op.OperationID], p.Name)
				}
			}
		}
	}
	return doc, nil
}

func (d *document) register(e *echo.Echo) {
	e.GET("/api/openapi.json", func(c echo.Context) error { return c.JSONBlob(http.StatusOK, d.json) })
	e.GET(PathRulesSchema, func(c echo.Context) error { return c.Blob(http.StatusOK, "application/schema+json", d.rules) })
	e.GET("/api/docs", func(c echo.Context) error {
		c.Response().Header().Set(echo.HeaderContentSecurityPolicy, policyPage)
		return c.HTMLBlob(http.StatusOK, d.page)
	})
	e.GET("/api/docs.css", func(c echo.Context) error { return c.Blob(http.StatusOK, "text/css; charset=utf-8", docsStyle) })
}

// refuseUnknownParameters refuses unknown query parameters: with a misspelt filter, the answer
// would otherwise contain everything.
func (d *document) refuseUnknownParameters(next StrictHandlerFunc, operationID string) StrictHandlerFunc {
	operationID = strings.ToLower(operationID[:1]) + operationID[1:]
	known := d.parameters[operationID]
	return func(c echo.Context, request any) (any, error) {
		for _, name := range slices.Sorted(maps.Keys(c.QueryParams())) {
			if !slices.Contains(known, name) {
				return nil, invalidField(name, "unknown_parameter", "Unknown parameter; remove it, or correct its name")
			}
		}
		return next(c, request)
	}
}

// withoutGoHints removes keys that only the generator of Go code reads.
func withoutGoHints(node any) {
	switch node := node.(type) {
	case map[string]any:
		maps.DeleteFunc(node, func(key string, _ any) bool { return strings.HasPrefix(key, "x-go-") || key == "x-omitzero" })
		for _, child := range node {
			withoutGoHints(child)
		}
	case []any:
		for _, child := range node {
			withoutGoHints(child)
		}
	}
}

// description is the part of an OpenAPI document that the page shows.
type description struct {
	Info struct {
		Title, Version, Summary, Description string
	}
	Tags       []struct{ Name, Description string }
	Paths      map[string]map[string]json.RawMessage
	Components struct {
		Schemas    map[string]schema
		Parameters map[string]parameter
		Headers    map[string]struct{ Description string }
	}
}

type operation struct {
	OperationID          string
	Tags                 []string
	Summary, Description string
	Parameters           []parameter
	RequestBody          struct{ Content map[string]media }
	Responses            map[string]response
	// Role is the lowest role that may call the operation. Changes is false if a call other than
	// GET changes nothing.
	Role    access.Role `json:"x-tocsin-role"`
	Changes *bool       `json:"x-tocsin-changes"`
	// Method and Path are those of the operation.
	Method, Path string
}

type parameter struct {
	Ref                   string `json:"$ref"`
	Name, In, Description string
	Required              bool
	Schema                schema
}

type response struct {
	Description string
	Content     map[string]media
}

type media struct{ Schema schema }

type schema struct {
	Ref                                   string `json:"$ref"`
	Type, Format, Description             string
	Enum                                  []string
	Items                                 *schema
	Properties                            map[string]schema
	Required                              []string
	Minimum, Maximum, MaxLength, MaxItems *float64
	Default                               any
}

// section is the operations of one tag, by path.
type section struct {
	Name, Description string
	Operations        []operation
}

func (d *description) sections() ([]section, error) {
	byTag := map[string][]operation{}
	for path, members := range d.Paths {
		var shared []parameter
		if raw, found := members["parameters"]; found {
			if err := json.Unmarshal(raw, &shared); err != nil {
				return nil, fmt.Errorf("API description: parameters of %s: %w", path, err)
			}
		}
		for method, raw := range members {
			if method == "parameters" {
				continue
			}
			op := operation{Method: strings.ToUpper(method), Path: path}
			if err := json.Unmarshal(raw, &op); err != nil {
				return nil, fmt.Errorf("API description: %s %s: %w", method, path, err)
			}
			if len(op.Tags) != 1 {
				return nil, errors.New("API description: " + op.OperationID + " must have one tag")
			}
			op.Parameters = append(slices.Clone(shared), op.Parameters...)
			for i, p := range op.Parameters {
				if p.Ref != "" {
					op.Parameters[i] = d.Components.Parameters[lastSegment(p.Ref)]
				}
			}
			byTag[op.Tags[0]] = append(byTag[op.Tags[0]], op)
		}
	}
	sections := make([]section, len(d.Tags))
	for i, tag := range d.Tags {
		sections[i] = section{Name: tag.Name, Description: tag.Description, Operations: byTag[tag.Name]}
		slices.SortFunc(sections[i].Operations, func(a, b operation) int {
			return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(methodRank(a.Method), methodRank(b.Method)))
		})
	}
	return sections, nil
}

func methodRank(method string) int {
	return slices.Index([]string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete}, method)
}

func lastSegment(ref string) string { return ref[strings.LastIndex(ref, "/")+1:] }

// schemaType returns the type of a schema for the page: a reference to another schema as its name
// with a link, and the constraints of the value.
func schemaType(s schema) shownType {
	var t shownType
	if s.Items != nil {
		t = schemaType(*s.Items)
		t.List = true
		return t
	}
	if s.Ref != "" {
		return shownType{Link: lastSegment(s.Ref)}
	}
	t.Name = cmp.Or(s.Format, s.Type)
	if len(s.Enum) > 0 {
		t.Name = strings.Join(s.Enum, " | ")
	}
	bound := func(format string, v *float64) {
		if v != nil {
			t.Bounds = append(t.Bounds, fmt.Sprintf(format, *v))
		}
	}
	if s.Minimum != nil && s.Maximum != nil {
		t.Bounds = append(t.Bounds, fmt.Sprintf("%.0f to %.0f", *s.Minimum, *s.Maximum))
	} else {
		bound("at least %.0f", s.Minimum)
		bound("at most %.0f", s.Maximum)
	}
	bound("at most %.0f characters", s.MaxLength)
	bound("at most %.0f entries", s.MaxItems)
	if s.Default != nil && s.Default != "" {
		t.Bounds = append(t.Bounds, fmt.Sprintf("default %v", s.Default))
	}
	return t
}

type shownType struct {
	Link, Name string
	List       bool
	Bounds     []string
}

// prose converts text of the description to HTML. It knows the Markdown that the description uses:
// paragraphs, lists and code.
func prose(text string) template.HTML {
	var b strings.Builder
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		items := strings.Split("\n"+paragraph, "\n- ")
		if first := strings.TrimSpace(items[0]); first != "" {
			b.WriteString("<p>" + withCode(first) + "</p>")
		}
		if len(items) > 1 {
			b.WriteString("<ul>")
			for _, item := range items[1:] {
				b.WriteString("<li>" + withCode(item) + "</li>")
			}
			b.WriteString("</ul>")
		}
	}
	return template.HTML(b.String())
}

// withCode escapes text and marks code between backquotes.
func withCode(text string) string {
	var b strings.Builder
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			b.WriteString("<code>" + template.HTMLEscapeString(part) + "</code>")
		} else {
			b.WriteString(template.HTMLEscapeString(part))
		}
	}
	return b.String()
}
