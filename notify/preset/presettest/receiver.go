// Package presettest has stand-ins for the receivers of presets in tests.
//
// A [Receiver] accepts what the service accepts: it checks bodies against the preset's schema,
// measures lengths itself, knows which keys are open, and refuses what the service refuses. The
// protocol of each service (dialects.go) is written independently of the preset, so that a mistake
// in the preset is noticed.
package presettest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"tocsin/notify/preset"
)

// Answer is an answer to send instead of the normal one.
type Answer struct {
	Status int
	Header map[string]string
	Body   string
	// Cut closes the connection after the request was read, without an answer.
	Cut bool
}

// Receiver is a stand-in for one service. It is safe for concurrent use.
type Receiver struct {
	preset  *preset.Preset
	dialect dialect

	mu       sync.Mutex
	script   []Answer
	state    map[string]string
	messages []Message
	refusals []string
	changed  []string
	began    time.Time
}

// Message is an accepted message.
type Message struct {
	// Action is the effect on the key: open, acknowledge or close; or send, if the service has no
	// keys.
	Action, Key string
	URL         *url.URL
	Header      http.Header
	Body        []byte
}

// New returns a stand-in for the preset's service.
func New(p *preset.Preset) *Receiver {
	return &Receiver{preset: p, dialect: dialects()[p.ID], state: map[string]string{}, began: time.Now()} //nolint:forbidigo // names a process
}

// Restart makes the service forget its keys, as one does that keeps them in memory.
func (r *Receiver) Restart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state, r.began = map[string]string{}, time.Now() //nolint:forbidigo // names a process
}

// Script sets the answers to the next requests, one each.
func (r *Receiver) Script(answers ...Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.script = append(r.script, answers...)
}

// Messages returns the accepted messages.
func (r *Receiver) Messages() []Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Message(nil), r.messages...)
}

// Refusals returns why requests were refused.
func (r *Receiver) Refusals() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.refusals...)
}

// Changed returns the messages that later ones changed or replied to, by their numbers from 1.
func (r *Receiver) Changed() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.changed...)
}

// State returns the state of a key: open, acknowledged, closed, or empty.
func (r *Receiver) State(key string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state[key]
}

// ServeHTTP answers a request as the service does.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.script) > 0 {
		answer := r.script[0]
		r.script = r.script[1:]
		if answer.Cut {
			panic(http.ErrAbortHandler)
		}
		for name, value := range answer.Header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(answer.Status)
		_, _ = io.WriteString(w, answer.Body)
		return
	}
	if req.Method == http.MethodGet && r.dialect.describes != "" && strings.HasSuffix(req.URL.Path, r.dialect.describes) {
		_ = json.NewEncoder(w).Encode(map[string]any{"config": map[string]string{"original": "route:\n"}, "uptime": r.began})
		return
	}
	if err == nil {
		err = r.take(req, body)
	}
	if err != nil {
		r.refusals = append(r.refusals, err.Error())
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(r.dialect.accepts)
	_, _ = io.WriteString(w, strings.ReplaceAll(r.dialect.answer, "{n}", strconv.Itoa(len(r.messages))))
}

// take accepts a message, or says why not.
func (r *Receiver) take(req *http.Request, body []byte) error {
	form := req.Header.Get("Content-Type") == "application/x-www-form-urlencoded"
	switch {
	case req.Method != http.MethodPost && (req.Method != http.MethodPatch || r.dialect.changes == nil):
		return fmt.Errorf("the method is %s", req.Method)
	case form != r.dialect.form || !form && req.Header.Get("Content-Type") != "application/json":
		return fmt.Errorf("the content type is %q", req.Header.Get("Content-Type"))
	case !utf8.Valid(body):
		return fmt.Errorf("the body is not UTF-8")
	case r.preset.TotalBytes() > 0 && len(body) > r.preset.TotalBytes():
		return fmt.Errorf("the body has %d bytes", len(body))
	}
	if err := r.preset.Valid(body); err != nil {
		return err
	}
	root, err := decode(form, body)
	if err != nil {
		return err
	}
	if err := within(r.preset.ID, root, len(body)); err != nil {
		return err
	}
	for _, limit := range r.preset.Limits() {
		for _, text := range textsAt(root, strings.Split(limit.Pointer, "/")[1:]) {
			if n := length(text, limit.Unit); n > limit.Max {
				return fmt.Errorf("%s has %d %s, more than %d", limit.Pointer, n, limit.Unit, limit.Max)
			}
		}
	}
	if r.dialect.check != nil {
		if err := r.dialect.check(req, root); err != nil {
			return err
		}
	}
	if r.dialect.changes != nil {
		// The message that it names exists: it is the number of a message.
		if id := r.dialect.changes(req, root); id != "" {
			if n, err := strconv.Atoi(id); err != nil || n < 1 || n > len(r.messages) {
				return fmt.Errorf("there is no message %q", id)
			}
			r.changed = append(r.changed, id)
		}
	}
	m := Message{Action: actionSend, URL: req.URL, Header: req.Header, Body: body}
	if r.dialect.action != nil {
		if m.Action, m.Key = r.dialect.action(req, root); m.Key == "" || m.Action == "" {
			return fmt.Errorf("it names no key, or does nothing with it")
		}
		r.apply(m.Action, m.Key)
	}
	r.messages = append(r.messages, m)
	return nil
}

// apply updates the state of keys. Acknowledging or closing a key that is not open changes nothing
// and is no error: the service ignores it.
func (r *Receiver) apply(action, key string) {
	switch was := r.state[key]; {
	case action == actionOpen && was != stateAcknowledged:
		r.state[key] = stateOpen
	case action == actionAcknowledge && was == stateOpen:
		r.state[key] = stateAcknowledged
	case action == actionClose && was != "":
		r.state[key] = stateClosed
	}
}

func decode(form bool, body []byte) (any, error) {
	if form {
		values, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, fmt.Errorf("the form cannot be read: %w", err)
		}
		root := map[string]any{}
		for name := range values {
			root[name] = values.Get(name)
		}
		return root, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var root any
	if err := decoder.Decode(&root); err != nil {
		return nil, fmt.Errorf("the body is no JSON: %w", err)
	}
	return root, nil
}

// textsAt returns the texts at a pointer, with * for each element of a list. Pointers lead into
// texts that contain JSON.
func textsAt(value any, path []string) []string {
	if len(path) == 0 {
		if text, ok := value.(string); ok {
			return []string{text}
		}
		return nil
	}
	switch v := value.(type) {
	case map[string]any:
		return textsAt(v[path[0]], path[1:])
	case []any:
		var all []string
		for _, element := range v {
			all = append(all, textsAt(element, path[1:])...)
		}
		return all
	case string:
		var inner any
		if err := json.Unmarshal([]byte(v), &inner); err == nil {
			return textsAt(inner, path)
		}
	}
	return nil
}

// one returns the text at a pointer; empty if there is none.
func one(root any, pointer string) string {
	if texts := textsAt(root, strings.Split(pointer, "/")[1:]); len(texts) > 0 {
		return texts[0]
	}
	return ""
}

func length(text, unit string) int {
	switch unit {
	case "runes":
		return len([]rune(text))
	case "utf16":
		return len(utf16.Encode([]rune(text)))
	}
	return len(text)
}
