package preset

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"tocsin/notify/template"
)

// method reads a method; the default is POST.
func (r *reader) method(at *yaml.Node, what, name string) (string, error) {
	switch name {
	case "":
		return http.MethodPost, nil
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		return name, nil
	}
	return "", r.fail(at.Line, "%s: method must be POST, PUT or PATCH", what)
}

// captured reads how ids of opened items are captured and used.
func (r *reader) captured() error {
	r.preset.capture = r.d.Capture
	switch update := r.d.Update; {
	case r.d.Capture == "" && (update != nil || r.preset.forgets()):
		return r.fail(cmp.Or(r.lines["update"], r.lines["verdicts"]), "update and forget need capture: where in a response the receiver names what a message has opened")
	case r.d.Capture != "" && !strings.HasPrefix(r.d.Capture, "/"):
		return r.fail(r.lines["capture"], "capture is a pointer into the response, such as /id")
	case r.d.Capture != "" && r.preset.Mails():
		return r.fail(r.lines["capture"], "a response of a mail server has no ID; remove capture")
	case update != nil:
		made := &request{}
		var err error
		if made.method, err = r.method(&update.URL, "update", update.Method); err != nil {
			return err
		}
		if made.url, err = r.url("update", &update.URL, &update.URL); err != nil {
			return err
		}
		if err := r.headers(made); err != nil {
			return err
		}
		r.preset.update = made
	}
	return nil
}

// url reads a URL. It begins with https:// or with an input of type url.
func (r *reader) url(event string, at, node *yaml.Node) (*address, error) {
	if node.Value == "" {
		return nil, r.fail(at.Line, "%s: url is missing; write it here or for all events", event)
	}
	text := node.Value
	made := &address{}
	if base, found := strings.CutPrefix(text, "{{input."); found {
		name, rest, _ := strings.Cut(base, "}}")
		if in := r.preset.input(name); in == nil || !in.leads() {
			return nil, r.fail(node.Line, "a URL must begin with https:// or with an input of type url; %q does not", name)
		}
		made.base, text = name, rest
	} else if !strings.HasPrefix(text, "https://") {
		return nil, r.fail(node.Line, "a URL must begin with https:// or with an input of type url")
	}
	path, query, _ := strings.Cut(text, "?")
	var err error
	if made.path, err = r.simple(node, path); err != nil {
		return nil, err
	}
	if made.query, err = r.simple(node, query); err != nil {
		return nil, err
	}
	return made, nil
}

// simple reads a template that is not stored but rendered for each attempt. It may use inputs and
// the key of the alert.
func (r *reader) simple(node *yaml.Node, text string) (*template.Template, error) {
	parsed, err := template.Parse(text, template.InPreset)
	if err != nil {
		return nil, r.template(node, err)
	}
	for _, name := range parsed.Names() {
		if name != "event.key" && name != "event.reference" && !strings.HasPrefix(name, "input.") {
			return nil, r.fail(node.Line, "URLs and headers may contain inputs, event.key and event.reference, but not %s", name)
		}
	}
	return parsed, r.known(node, parsed)
}

// known refuses inputs that the preset does not have.
func (r *reader) known(node *yaml.Node, t *template.Template) error {
	for _, name := range t.Inputs() {
		if r.preset.input(name) == nil {
			return r.fail(node.Line, "unknown input %q; add it to inputs", name)
		}
	}
	return nil
}

func (r *reader) template(node *yaml.Node, err error) error {
	if e, ok := errors.AsType[*template.Error](err); ok {
		return r.fail(node.Line+e.Line-1, "%s", e.Message)
	}
	return r.fail(node.Line, "%v", err)
}

func (r *reader) headers(made *request) error {
	for _, name := range slices.Sorted(maps.Keys(r.d.Headers)) {
		node := r.d.Headers[name]
		parsed, err := r.simple(&node, node.Value)
		if err != nil {
			return err
		}
		made.headers = append(made.headers, header{name, parsed})
	}
	if auth := r.d.BasicAuth; auth != nil {
		var err error
		if made.user, err = r.simple(&auth.User, auth.User.Value); err != nil {
			return err
		}
		if made.password, err = r.simple(&auth.Password, auth.Password.Value); err != nil {
			return err
		}
	}
	return nil
}
