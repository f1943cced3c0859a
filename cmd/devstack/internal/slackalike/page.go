package slackalike

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"time"
)

//go:embed assets
var files embed.FS

// pageMessages is how many messages a page shows at first.
const pageMessages = 150

// refusedView is the name, in place of a channel, of the list of requests that
// were not accepted.
const refusedView = "refused"

func parsePage() (*template.Template, error) {
	t, err := template.ParseFS(files, "assets/page.html", "assets/message.html")
	if err != nil {
		return nil, fmt.Errorf("parse page: %w", err)
	}
	return t, nil
}

func assets() http.Handler {
	served := http.FileServerFS(files)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		served.ServeHTTP(w, r)
	})
}

// channelView is an entry of the list on the left.
type channelView struct {
	Name     string
	Selected bool
	Counts
}

// pageView is the data of the page's template.
type pageView struct {
	View     string // the channel, or refusedView
	Channels []channelView
	Refused  int64
	Total    Counts
	Hooks    []Hook
	Here     []Hook // those of the channel
	Messages []messageView
	Newest   int64
	Older    int64 // id before which older messages exist, 0 for none
	Rate     float64
	Host     string // under which the browser knows this server
}

// showPage answers GET /, for one channel or the refused requests.
func (s *Server) showPage(w http.ResponseWriter, r *http.Request) {
	before, _ := strconv.ParseInt(r.URL.Query().Get("before"), 10, 64)
	v := s.pageOf(r.URL.Query().Get("view"), before)
	v.Host = r.Host
	var out bytes.Buffer
	if err := s.page.ExecuteTemplate(&out, "page.html", v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = out.WriteTo(w)
}

func (s *Server) pageOf(name string, before int64) pageView {
	counts, newest := s.record.sums()
	hooks := s.registry.list()
	v := pageView{View: name, Hooks: hooks, Newest: newest, Rate: s.opts.Rate}
	if v.View == "" && len(hooks) > 0 {
		v.View = hooks[0].Channel
	}
	known := map[string]bool{}
	for _, h := range hooks {
		if h.Channel == v.View {
			v.Here = append(v.Here, h)
		}
		if !known[h.Channel] {
			known[h.Channel] = true
			v.Channels = append(v.Channels, channelView{Name: h.Channel, Selected: h.Channel == v.View, Counts: counts[h.Channel]})
		}
	}
	for _, c := range counts {
		v.Total.Accepted += c.Accepted
		v.Total.Duplicates += c.Duplicates
		v.Total.Refused += c.Refused
	}
	entries, _ := s.record.since(0, pageMessages+1, func(e *Entry) bool {
		return e.shownIn(v.View) && e.ID <= newest && (before == 0 || e.ID < before)
	})
	if len(entries) > pageMessages {
		entries = entries[1:]
		v.Older = entries[0].ID
	}
	for _, e := range entries {
		v.Messages = append(v.Messages, s.view(e))
	}
	return v
}

// shownIn reports whether an entry belongs to a view.
func (e *Entry) shownIn(name string) bool {
	if name == refusedView {
		return !e.Accepted
	}
	return e.Accepted && e.Edits == 0 && e.Channel == name
}

// update is what a live page receives.
type update struct {
	Messages []string          `json:"messages"` // HTML, oldest first
	Counts   map[string]Counts `json:"counts"`
	Faults   []Fault           `json:"faults"`
}

// streamEvents answers GET /events?view=…&after=…: server-sent events with the additions to a view
// after an id. The next connection continues at the id of the last event.
func (s *Server) streamEvents(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	if last, err := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64); err == nil {
		after = last
	}
	name := r.URL.Query().Get("view")
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	beat := time.NewTicker(15 * time.Second)
	defer beat.Stop()
	for {
		entries, changed := s.record.since(after, s.opts.Kept, nil)
		u := update{Messages: []string{}, Faults: s.registry.active()}
		u.Counts, _ = s.record.sums()
		for _, e := range entries {
			after = e.ID
			if original := s.record.byID(e.Edits); e.Accepted && original != nil {
				e = original
			}
			if e.shownIn(name) {
				html, err := s.render(e)
				if err != nil {
					return
				}
				u.Messages = append(u.Messages, html)
			}
		}
		data, err := json.Marshal(u)
		if err != nil {
			return
		}
		// A writer that cannot set deadlines belongs to a test.
		_ = out.SetWriteDeadline(time.Now().Add(30 * time.Second))
		if _, err := fmt.Fprintf(w, "id: %d\ndata: %s\n\n", after, data); err != nil || out.Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-beat.C:
		case <-r.Context().Done():
			return
		case <-s.closing:
			return
		}
	}
}

func (s *Server) render(e *Entry) (string, error) {
	var out bytes.Buffer
	if err := s.page.ExecuteTemplate(&out, "message.html", s.view(e)); err != nil {
		return "", fmt.Errorf("render message %d: %w", e.ID, err)
	}
	return out.String(), nil
}
