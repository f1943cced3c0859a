package preset

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"tocsin/notify"
	"tocsin/notify/template"
)

// MaxFileBytes bounds the file of a preset.
const MaxFileBytes = 256 << 10

// document is the structure of a preset's file.
type document struct {
	ID            string               `yaml:"id"`
	Name          string               `yaml:"name"`
	About         string               `yaml:"about"`
	Docs          string               `yaml:"docs"`
	Keyed         bool                 `yaml:"keyed"`
	Protocol      string               `yaml:"protocol"`
	Inputs        []Input              `yaml:"inputs"`
	Encoding      encoding             `yaml:"encoding"`
	Escape        map[string]string    `yaml:"escape"`
	PlainURLs     bool                 `yaml:"plainUrls"`
	Severity      map[string]any       `yaml:"severity"`
	URL           yaml.Node            `yaml:"url"`
	Method        string               `yaml:"method"`
	Headers       map[string]yaml.Node `yaml:"headers"`
	BasicAuth     *basicAuth           `yaml:"basicAuth"`
	Events        map[Event]yaml.Node  `yaml:"events"`
	Limits        []limitEntry         `yaml:"limits"`
	TotalBytes    int                  `yaml:"totalBytes"`
	Shrink        []yaml.Node          `yaml:"shrink"`
	Verdicts      []verdictEntry       `yaml:"verdicts"`
	RetryAfter    []retryAfter         `yaml:"retryAfter"`
	Hold          string               `yaml:"hold"`
	RatePerSecond float64              `yaml:"ratePerSecond"`
	DigestAbove   int                  `yaml:"digestAbove"`
	Schedule      []string             `yaml:"schedule"`
	MaxAge        string               `yaml:"maxAge"`
	Capture       string               `yaml:"capture"`
	Update        *updateEntry         `yaml:"update"`
	Schema        map[string]any       `yaml:"schema"`
}

type basicAuth struct {
	User     yaml.Node `yaml:"user"`
	Password yaml.Node `yaml:"password"`
}

// eventEntry is an event with properties.
type eventEntry struct {
	URL    yaml.Node `yaml:"url"`
	Method string    `yaml:"method"`
	Body   yaml.Node `yaml:"body"`
}

// updateEntry is the target of messages that change what an earlier one has opened.
type updateEntry struct {
	URL    yaml.Node `yaml:"url"`
	Method string    `yaml:"method"`
}

type limitEntry struct {
	Pointer yaml.Node `yaml:"pointer"`
	Max     int       `yaml:"max"`
	Unit    unit      `yaml:"unit"`
	OneLine bool      `yaml:"oneLine"`
	Domain  bool      `yaml:"domain"`
}

// Words in the place of an event.
const (
	wordSame = "same"
	wordSkip = "skip"
)

// reader reads one file. Its methods return an [*Error].
type reader struct {
	file   string
	d      document
	preset *Preset
	// lines holds the lines of the fields of the file.
	lines map[string]int
	// leaves are the leaves of all events, by pointer.
	leaves map[string][]*leaf
	nodes  int
}

// Parse reads the file of a preset. Its error is an [*Error].
func Parse(file string, text []byte) (*Preset, error) {
	r := &reader{file: file, leaves: map[string][]*leaf{}}
	if len(text) > MaxFileBytes {
		return nil, r.fail(1, "The file is longer than %d bytes; shorten it", MaxFileBytes)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&r.d); err != nil {
		return nil, r.syntax(err)
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, r.fail(1, "The file contains more than one document; put each receiver into a separate file")
	}
	r.lines = linesOf(text)
	for _, step := range []func() error{r.head, r.inputs, r.events, r.limits, r.answers, r.schedule, r.captured} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return r.preset, nil
}

func (r *reader) fail(line int, format string, args ...any) error {
	return &Error{File: r.file, Line: max(line, 1), Message: fmt.Sprintf(format, args...)}
}

// linesOf returns the lines of the fields of a file.
func linesOf(text []byte) map[string]int {
	var root yaml.Node
	lines := map[string]int{}
	if yaml.Unmarshal(text, &root) != nil || len(root.Content) != 1 {
		return lines
	}
	fields := root.Content[0].Content
	for i := 0; i+1 < len(fields); i += 2 {
		lines[fields[i].Value] = fields[i].Line
	}
	return lines
}

// syntax makes an error from a parser error, whose text contains a line number.
func (r *reader) syntax(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if errors.Is(err, io.EOF) {
		return r.fail(1, "The file is empty; `tocsin receivers schema` shows its fields")
	}
	line := 1
	if at := regexp.MustCompile(`line (\d+): `).FindStringSubmatch(text); at != nil {
		line, _ = strconv.Atoi(at[1])
		text = text[strings.Index(text, at[0])+len(at[0]):]
	}
	text = regexp.MustCompile(`field (.+) not found in type \S+`).ReplaceAllString(text, "unknown field $1; `tocsin receivers schema` lists all")
	return r.fail(line, "%s", strings.Join(strings.Fields(text), " "))
}

var presetID = regexp.MustCompile(`^[a-z][a-z0-9-]{1,39}$`)

func (r *reader) head() error {
	d := &r.d
	switch {
	case !presetID.MatchString(d.ID):
		return r.fail(r.lines["id"], "id must be 2 to 40 lower-case letters, digits and dashes, and begin with a letter")
	case d.Name == "" || d.About == "":
		return r.fail(cmp.Or(r.lines["about"], r.lines["name"]), "name and about must not be empty; write the name of the receiver, and one sentence about what it gets")
	case d.TotalBytes < 0 || d.TotalBytes > template.MaxJSONBytes*4:
		return r.fail(r.lines["totalBytes"], "totalBytes must be from 0 to %d", template.MaxJSONBytes*4)
	case d.RatePerSecond < 0 || d.DigestAbove < 0 || d.DigestAbove > notify.MaxDigestAbove:
		return r.fail(cmp.Or(r.lines["digestAbove"], r.lines["ratePerSecond"]), "ratePerSecond must not be negative, and digestAbove be from 0 to %d", notify.MaxDigestAbove)
	case d.Protocol != "" && d.Protocol != ProtocolJira && d.Protocol != ProtocolAlertmanager:
		return r.fail(r.lines["protocol"], "protocol must be jira or alertmanager, or be left out")
	case d.Protocol == ProtocolAlertmanager && (!d.Keyed || !strings.HasSuffix(d.URL.Value, AlertmanagerPath)):
		return r.fail(r.lines["protocol"], "protocol alertmanager needs keyed, and a url that ends with %s", AlertmanagerPath)
	case d.Protocol == ProtocolJira && (d.Capture == "" || !d.Keyed || d.Encoding != "" && d.Encoding != encodingJSON):
		return r.fail(r.lines["protocol"], "protocol jira needs keyed, capture and the encoding json")
	case d.Keyed && d.DigestAbove > 0:
		return r.fail(r.lines["digestAbove"], "A keyed receiver gets no digests; remove digestAbove or keyed")
	}
	hold, err := r.duration(r.lines["hold"], "hold", d.Hold)
	if err != nil {
		return err
	}
	escape, err := newEscaper(d.Escape)
	if err != nil {
		return r.fail(r.lines["escape"], "%s", err)
	}
	switch d.Encoding {
	case encodingJSON, encodingForm, encodingEmail:
	case "":
		d.Encoding = encodingJSON
	default:
		return r.fail(r.lines["encoding"], "encoding must be json, form or email, not %q", d.Encoding)
	}
	for name, value := range d.Severity {
		if !slices.Contains(severityNames(), name) {
			return r.fail(r.lines["severity"], "severity: there is no %q; name CRITICAL, WARNING and INFO, and ACKNOWLEDGED and RESOLVED where these differ", name)
		}
		if _, isText := value.(string); !isText && !isNumber(value) {
			return r.fail(r.lines["severity"], "severity: %s must be a string or a number", name)
		}
	}
	r.preset = &Preset{
		ID: d.ID, Name: d.Name, About: d.About, Docs: d.Docs, Keyed: d.Keyed, Protocol: d.Protocol, Inputs: d.Inputs, RatePerSecond: d.RatePerSecond,
		DigestAbove: d.DigestAbove, file: r.file, encoding: d.Encoding, escape: escape, plainURLs: d.PlainURLs, severity: d.Severity,
		requests: map[Event]*request{}, secretAt: map[string]string{}, totalBytes: d.TotalBytes, hold: hold,
	}
	r.preset.compiled = sync.OnceValues(r.preset.compileSchema)
	if len(d.Schema) > 0 {
		r.preset.Schema, err = marshal(d.Schema)
		if err != nil {
			return r.fail(r.lines["schema"], "schema: %v", err)
		}
	}
	return nil
}

func severityNames() []string {
	return []string{"CRITICAL", "WARNING", "INFO", severityAcknowledged, severityResolved}
}

func isNumber(value any) bool {
	switch value.(type) {
	case int, int64, uint64, float64:
		return true
	}
	return false
}

func (r *reader) events() error {
	if r.preset.Mails() {
		if err := r.mailed(); err != nil {
			return err
		}
	}
	for event := range r.d.Events {
		if !slices.Contains(Events(), event) {
			node := r.d.Events[event]
			return r.fail(node.Line, "unknown event %q; the events are fired, reminder, acknowledged, resolved, reopened and digest", event)
		}
	}
	for _, event := range Events() {
		node, given := r.d.Events[event]
		if node.Kind == yaml.AliasNode {
			node = *node.Alias
		}
		word := node.Value
		switch {
		case !given && (event == Fired || event == Resolved):
			return r.fail(r.lines["events"], "the event %s is missing; write same, skip, or a body", event)
		case event == Fired && word != "":
			return r.fail(node.Line, "fired needs a body; the other events may be same")
		case event == Digest && r.preset.Keyed && given && word != wordSkip:
			return r.fail(node.Line, "a keyed receiver gets no digests; write digest: skip, or leave digest out")
		case word == wordSkip && (event == Resolved || event == Reminder):
			return r.fail(node.Line, "%s cannot be skipped; write same, or a body", event)
		case word == wordSkip, !given && event != Reminder:
		case word == wordSame, !given:
			r.preset.requests[event] = r.preset.requests[Fired]
		case node.Kind != yaml.MappingNode:
			return r.fail(node.Line, "%s must be same, skip, or a mapping with a body", event)
		default:
			made, err := r.request(event, &node)
			if err != nil {
				return err
			}
			r.preset.requests[event] = made
		}
	}
	return nil
}

func (r *reader) request(event Event, node *yaml.Node) (*request, error) {
	var entry eventEntry
	for i := 0; i+1 < len(node.Content); i += 2 {
		if key := node.Content[i]; !slices.Contains([]string{"url", "method", "body"}, key.Value) {
			return nil, r.fail(key.Line, "%s: unknown field %s; the fields are url, method and body", event, key.Value)
		}
	}
	if err := node.Decode(&entry); err != nil {
		return nil, r.syntax(err)
	}
	if entry.URL.IsZero() {
		entry.URL = r.d.URL
	}
	if entry.Method == "" {
		entry.Method = r.d.Method
	}
	made := &request{}
	var err error
	if made.method, err = r.method(node, string(event), entry.Method); err != nil {
		return nil, err
	}
	if r.preset.Mails() {
		if !entry.URL.IsZero() || entry.Method != "" {
			return nil, r.fail(node.Line, "%s: an e-mail has no url and no method; remove them", event)
		}
		made.method = MethodMail
	} else if made.url, err = r.url(string(event), node, &entry.URL); err != nil {
		return nil, err
	}
	if err := r.headers(made); err != nil {
		return nil, err
	}
	if entry.Body.Kind == yaml.AliasNode {
		entry.Body = *entry.Body.Alias
	}
	if entry.Body.Kind != yaml.MappingNode && (entry.Body.Kind != yaml.SequenceNode || r.preset.encoding == encodingForm) {
		return nil, r.fail(node.Line, "%s: body must be a mapping", event)
	}
	tree, err := r.tree(&entry.Body, place{})
	if err != nil {
		return nil, err
	}
	if r.preset.Mails() {
		if err := r.mailBody(event, node.Line, tree); err != nil {
			return nil, err
		}
	}
	made.body = tree
	return made, nil
}

// limits sets the limits of the leaves of all bodies.
func (r *reader) limits() error {
	for _, entry := range r.d.Limits {
		leaves := r.leaves[entry.Pointer.Value]
		switch {
		case len(leaves) == 0:
			return r.fail(entry.Pointer.Line, "%s: no body has a text there; write the pointer as in the bodies of this file, with * for each element of a list", entry.Pointer.Value)
		case entry.Max < 1 || !entry.Unit.valid():
			return r.fail(entry.Pointer.Line, "%s: max must be at least 1, and unit be bytes, runes or utf16", entry.Pointer.Value)
		}
		for _, l := range leaves {
			l.limit, l.unit, l.oneLine, l.domain = entry.Max, entry.Unit, entry.OneLine, entry.Domain
		}
		r.preset.limits = append(r.preset.limits, Limit{entry.Pointer.Value, entry.Max, string(entry.Unit)})
	}
	for _, node := range r.d.Shrink {
		if len(r.leaves[node.Value]) == 0 {
			return r.fail(node.Line, "%s: no body has a text there to shrink", node.Value)
		}
		r.preset.shrink = append(r.preset.shrink, node.Value)
	}
	if r.preset.totalBytes > 0 && len(r.preset.shrink) == 0 {
		return r.fail(r.lines["totalBytes"], "totalBytes needs shrink: pointers to the texts that are shortened first")
	}
	return nil
}
