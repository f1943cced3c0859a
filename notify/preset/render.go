package preset

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/notify/template"
)

const redacted = "[redacted]"

// request is the request for an event.
type request struct {
	method         string
	url            *address
	headers        []header
	user, password *template.Template
	body           node
}

// address is a URL whose values are percent-encoded.
type address struct {
	// base is the input that it begins with, or empty.
	base        string
	path, query *template.Template
}

type header struct {
	name     string
	template *template.Template
}

// rendering is the rendering of one body.
type rendering struct {
	preset   *Preset
	event    Event
	severity string
	values   *template.Values
	inputs   map[string]string
	// shrunk are the limits, in bytes, that follow from the limit of the whole body.
	shrunk  map[string]int
	cuts    []Cut
	problem error
}

// failed keeps an error and reports whether there is one.
func (r *rendering) failed(err error) bool {
	if err != nil && r.problem == nil {
		r.problem = err
	}
	return err != nil
}

// withDefaults returns the inputs with defaults.
func (p *Preset) withDefaults(inputs map[string]string) map[string]string {
	all := maps.Clone(inputs)
	if all == nil {
		all = map[string]string{}
	}
	for i := range p.Inputs {
		in := &p.Inputs[i]
		if all[in.Name] == "" {
			all[in.Name] = in.Default
		}
		if in.Type == InputURL && !strings.Contains(all[in.Name], "?") {
			all[in.Name] = strings.TrimRight(all[in.Name], "/")
		}
	}
	return all
}

// Body renders the body of a message, without secrets, and returns what was cut. problem says what
// could not be rendered and was left out.
func (p *Preset) Body(m *Message, inputs map[string]string) (body notify.Body, cuts []Cut, problem error) {
	of := p.requests[m.Event]
	if of == nil {
		// Messages of this kind are not sent. What is rendered shows what it would be.
		of, problem = p.requests[Fired], fmt.Errorf("%s is not notified of %s; remove that event from the webhook", p.Name, m.Event)
	}
	r := rendering{preset: p, event: m.Event, severity: m.Severity, inputs: p.withDefaults(inputs), shrunk: map[string]int{}}
	request := m.Request
	request.Inputs, request.Event, request.Word = r.inputs, string(m.Event), cmp.Or(m.Word, m.Event.Word())
	request.Severity, _ = r.inOwnWords().(string)
	r.values = m.Values.In(&request)
	content := r.encode(of.body)
	for at := 0; p.totalBytes > 0 && len(content) > p.totalBytes && at < len(p.shrink); {
		pointer := p.shrink[at]
		limit, found := r.shrunk[pointer]
		if limit /= 2; !found {
			limit = mostShrunk
		}
		if limit < leastShrunk {
			limit = 0
			at++
		}
		r.shrunk[pointer], r.cuts = limit, nil
		content = r.encode(of.body)
	}
	if p.totalBytes > 0 && len(content) > p.totalBytes {
		r.failed(fmt.Errorf("the body has %d bytes, but %s accepts only %d", len(content), p.Name, p.totalBytes))
	}
	contentType := "application/json"
	if p.encoding == encodingForm {
		contentType = "application/x-www-form-urlencoded"
	}
	return notify.Body{ContentType: contentType, Content: content}, r.cuts, errors.Join(problem, r.problem)
}

// A field that is shrunk gets mostShrunk bytes first, then half of that, and so on. It is left out
// below leastShrunk.
const (
	mostShrunk  = 32 << 10
	leastShrunk = 32
)

// encode writes a body.
func (r *rendering) encode(tree node) []byte {
	value, present := tree.render(r)
	if !present {
		value = map[string]any{}
	}
	if r.preset.encoding == encodingForm {
		return []byte(form(value))
	}
	content, err := marshal(value)
	r.failed(err)
	return content
}

// form writes a flat mapping.
func form(value any) string {
	values := url.Values{}
	members, _ := value.(map[string]any)
	for name, member := range members {
		values.Set(name, fmt.Sprint(member))
	}
	return values.Encode()
}

// marshal writes JSON in the form in which receivers count it: "<" is one byte, not six.
func marshal(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("encode the body: %w", err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// Reveal fills the secrets into a body that was stored without them.
func (p *Preset) Reveal(body []byte, inputs map[string]string) ([]byte, error) {
	if len(p.secretAt) == 0 {
		return body, nil
	}
	if p.encoding == encodingForm {
		values, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, errors.New("the stored body is not a form")
		}
		for name, input := range p.secretAt {
			if values.Has(name) {
				values.Set(name, inputs[input])
			}
		}
		return []byte(values.Encode()), nil
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var root any
	if err := decoder.Decode(&root); err != nil {
		return nil, errors.New("the stored body is not JSON")
	}
	for path, input := range p.secretAt {
		names := strings.Split(path, "\x00")
		at, _ := root.(map[string]any)
		for _, name := range names[:len(names)-1] {
			at, _ = at[name].(map[string]any)
		}
		if last := names[len(names)-1]; at[last] != nil {
			at[last] = inputs[input]
		}
	}
	return marshal(root)
}

// Target is where a request goes.
type Target struct {
	Method string
	URL    *url.URL
	Header http.Header
}

// About identifies the subject of messages for receivers: by Key in all messages, and by Reference
// once the receiver has returned an id.
type About struct{ Key, Reference string }

// AboutOf returns the subject of a delivery.
func AboutOf(d *notify.Delivery) About { return About{Key(d), d.Reference} }

// Target returns where the message of an event is sent, with its secrets. Its errors do not contain
// them.
func (p *Preset) Target(e Event, about About, inputs map[string]string) (Target, error) {
	of := p.requests[e]
	if of != nil && about.Reference != "" && p.Updates(e) {
		of = p.update
	}
	if of == nil {
		return Target{}, fmt.Errorf("%s is not notified of %s; remove that event from the webhook", p.Name, e)
	}
	if p.Mails() {
		to, err := p.Mail(inputs)
		if err != nil {
			return Target{}, err
		}
		return Target{Method: of.method, URL: to.url(), Header: http.Header{}}, nil
	}
	all := p.withDefaults(inputs)
	values := noAlert().In(&template.Request{Inputs: all, Key: about.Key, Reference: about.Reference, Event: string(e), Word: e.Word()})
	text := func(t *template.Template, escape func(string) string) string {
		if t == nil {
			return ""
		}
		s, err := t.Text(values, template.Limit{Value: escape})
		if err != nil {
			return ""
		}
		return s
	}
	made := Target{Method: of.method, Header: http.Header{}}
	address := text(of.url.path, url.PathEscape)
	if of.url.base != "" {
		address = all[of.url.base] + address
	}
	if query := text(of.url.query, queryEscape); query != "" {
		separator := "?"
		if strings.Contains(address, "?") {
			separator = "&"
		}
		address += separator + query
	}
	var err error
	if made.URL, err = url.Parse(address); err != nil || made.URL.Hostname() == "" || made.URL.Scheme != "https" && made.URL.Scheme != "http" {
		return Target{}, errors.New("the inputs do not result in a valid URL; check them")
	}
	for _, h := range of.headers {
		value := text(h.template, nil)
		if !httpguts.ValidHeaderFieldValue(value) {
			return Target{}, fmt.Errorf("the inputs do not result in a valid header %s; check them", h.name)
		}
		if value != "" {
			made.Header.Set(h.name, value)
		}
	}
	if user := text(of.user, nil); user != "" {
		made.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+text(of.password, nil))))
	}
	return made, nil
}

// queryEscape writes a value of a query, a space as %20.
func queryEscape(value string) string { return strings.ReplaceAll(url.QueryEscape(value), "+", "%20") }

// noAlert are the values of a template without an alert.
func noAlert() *template.Values { return template.ForAlert(&alerts.Instance{}, "") }

// checkBase returns what is wrong with a URL that a person entered.
func checkBase(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("The URL cannot be read; it must have the form https://host/path") //nolint:staticcheck // a sentence for a form
	case u.Scheme != "https" && u.Scheme != "http":
		return errors.New("Must begin with https:// or http://") //nolint:staticcheck // a sentence for a form
	case u.Hostname() == "":
		return errors.New("The URL names no host; it must have the form https://host/path") //nolint:staticcheck // a sentence for a form
	case u.Fragment != "" || u.User != nil:
		return errors.New("Must not contain a user or a fragment; remove them") //nolint:staticcheck // a sentence for a form
	}
	return nil
}
