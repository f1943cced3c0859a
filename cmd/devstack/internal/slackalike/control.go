package slackalike

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// Listing is the answer of GET /api/messages.
type Listing struct {
	// Messages are requests, oldest first.
	Messages []*Entry `json:"messages"`
	// Newest is the id to pass as since the next time.
	Newest int64 `json:"newest"`
	// Counts are by channel, since the record was begun or cleared; "" means requests to no
	// channel.
	Counts map[string]Counts `json:"counts"`
}

// messagesList answers GET /api/messages: the requests with an id above since, of one webhook
// (hook=T…/B…/…), and only accepted or refused ones (accepted=true|false); at most limit of the
// newest.
func (s *Server) messagesList(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	since, limit := int64(0), s.opts.Kept
	var err error
	if v := q.Get("since"); v != "" {
		if since, err = strconv.ParseInt(v, 10, 64); err != nil {
			problem(w, "since must be the id of a message")
			return
		}
	}
	if v := q.Get("limit"); v != "" {
		if limit, err = strconv.Atoi(v); err != nil || limit < 1 {
			problem(w, "limit must be a positive number")
			return
		}
	}
	accepted := q.Get("accepted")
	counts, newest := s.record.sums()
	entries, _ := s.record.since(since, limit, func(e *Entry) bool {
		return (q.Get("hook") == "" || q.Get("hook") == e.Hook) &&
			(accepted == "" || accepted == strconv.FormatBool(e.Accepted))
	})
	if len(entries) > 0 {
		newest = max(newest, entries[len(entries)-1].ID)
	} else {
		entries = []*Entry{}
	}
	respond(w, http.StatusOK, Listing{Messages: entries, Newest: newest, Counts: counts})
}

func (s *Server) messagesClear(w http.ResponseWriter, _ *http.Request) {
	if err := s.record.clear(); err != nil {
		respond(w, http.StatusInternalServerError, map[string]string{"error": err.Error()})
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) faultsList(w http.ResponseWriter, _ *http.Request) {
	respond(w, http.StatusOK, s.registry.active())
}

// faultsSet answers POST /control/faults with a [Fault].
func (s *Server) faultsSet(w http.ResponseWriter, r *http.Request) {
	var f Fault
	if !read(w, r, &f) {
		return
	}
	if err := s.registry.set(f); err != nil {
		problem(w, err.Error())
		return
	}
	s.record.announce()
	respond(w, http.StatusOK, s.registry.active())
}

// faultsReset answers DELETE /control/faults. It resets all faults. With hook=T…/B…/… it resets
// that of one webhook, and with an empty hook= the one for all webhooks.
func (s *Server) faultsReset(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.registry.reset(q.Get("hook"), !q.Has("hook"))
	s.record.announce()
	respond(w, http.StatusOK, s.registry.active())
}

func (s *Server) hooksList(w http.ResponseWriter, _ *http.Request) {
	respond(w, http.StatusOK, s.registry.list())
}

// hooksAdd answers POST /control/hooks with a [Hook].
func (s *Server) hooksAdd(w http.ResponseWriter, r *http.Request) {
	var h Hook
	if !read(w, r, &h) {
		return
	}
	if err := s.registry.add(h); err != nil {
		problem(w, err.Error())
		return
	}
	respond(w, http.StatusOK, s.registry.list())
}

func read(w http.ResponseWriter, r *http.Request, to any) bool {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(to); err != nil {
		problem(w, err.Error())
		return false
	}
	return true
}

func problem(w http.ResponseWriter, text string) {
	respond(w, http.StatusBadRequest, map[string]string{"error": text})
}

func respond(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}
