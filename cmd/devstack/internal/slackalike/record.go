package slackalike

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Entry is one request to a webhook, and its result.
type Entry struct {
	// ID counts the requests, from 1.
	ID int64 `json:"id"`
	// At is when the request arrived.
	At      time.Time `json:"at"`
	Hook    string    `json:"hook"`
	Channel string    `json:"channel"`
	App     string    `json:"app"`
	// Accepted says that the message was posted.
	Accepted bool `json:"accepted"`
	// Status and Answer are what the sender got; Status is 0 if it got nothing.
	Status int    `json:"status"`
	Answer string `json:"answer"`
	// Reason says more than the answer, for people.
	Reason string `json:"reason,omitempty"`
	// Fault is the fault that applied.
	Fault FaultKind `json:"fault,omitempty"`
	// WebhookID is the header of that name. Delivery counts the messages that this webhook accepted
	// with it: from 2 on they are duplicates.
	WebhookID string `json:"webhookId,omitempty"`
	// TS is the place of a bot's message in its channel, for an accepted call.
	TS string `json:"ts,omitempty"`
	// Edits is the id of the message that the call changed; 0 if it posted one.
	Edits    int64       `json:"edits,omitempty"`
	Delivery int         `json:"delivery,omitempty"`
	Headers  http.Header `json:"headers"`
	Body     string      `json:"body"`
}

// Duplicate says that the message had been accepted before.
func (e *Entry) Duplicate() bool { return e.Delivery > 1 }

// Counts sum up a record.
type Counts struct {
	Accepted   int64 `json:"accepted"`
	Refused    int64 `json:"refused"`
	Duplicates int64 `json:"duplicates"`
}

// maxKnownIDs bounds the webhook-ids that are remembered to find duplicates.
const maxKnownIDs = 200_000

// record holds the newest entries, in order, and notifies listeners of new ones. It is safe for
// concurrent use.
type record struct {
	most int

	mu        sync.Mutex
	entries   []*Entry
	newest    int64
	counts    map[string]*Counts // by channel
	delivered map[string]int     // by webhook and webhook-id
	order     []string           // keys of delivered, oldest first
	edits     map[int64]*Entry   // the last change of each message that was changed
	file      *os.File
	changed   chan struct{} // closed at the next change
}

func newRecord(most int) *record {
	return &record{most: most, counts: map[string]*Counts{}, delivered: map[string]int{}, edits: map[int64]*Entry{}, changed: make(chan struct{})}
}

// open reads the journal, if there is one, and continues to write it. It keeps only the newest
// entries: the file is rewritten, so it stays small, and a line that a crash cut off does no harm.
// It returns how many lines were unreadable.
func (r *record) open(path string) (unreadable int, err error) {
	unreadable, err = r.load(path)
	if err != nil {
		return unreadable, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return unreadable, fmt.Errorf("make folder of journal: %w", err)
	}
	fresh, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return unreadable, fmt.Errorf("rewrite journal: %w", err)
	}
	out := bufio.NewWriter(fresh)
	encoder := json.NewEncoder(out)
	for _, e := range r.entries {
		if err = encoder.Encode(e); err != nil {
			break
		}
	}
	if err = errors.Join(err, out.Flush()); err == nil {
		err = os.Rename(fresh.Name(), path)
	}
	if err != nil {
		return unreadable, errors.Join(fmt.Errorf("rewrite journal: %w", err), fresh.Close(), os.Remove(fresh.Name()))
	}
	r.file = fresh
	return unreadable, nil
}

func (r *record) load(path string) (unreadable int, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("open journal: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16*maxBody)
	for lines.Scan() {
		var e Entry
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.ID <= r.newest {
			unreadable++
			continue
		}
		r.keep(&e)
	}
	if err := lines.Err(); err != nil {
		return unreadable, fmt.Errorf("read journal: %w", err)
	}
	return unreadable, nil
}

// add numbers an entry, stores it and notifies the listeners. The error is that of the journal. The
// entry is stored in any case and must not be changed afterwards.
func (r *record) add(e *Entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.ID = r.newest + 1
	if e.Accepted && e.WebhookID != "" {
		e.Delivery = r.delivered[e.Hook+" "+e.WebhookID] + 1
	}
	r.keep(e)
	r.wake()
	if r.file == nil {
		return nil
	}
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode journal entry: %w", err)
	}
	if _, err := r.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// wake makes the listeners look again. The caller holds the lock.
func (r *record) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// announce notifies the listeners of a change outside of the record.
func (r *record) announce() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wake()
}

func (r *record) keep(e *Entry) {
	r.newest = e.ID
	if r.entries = append(r.entries, e); len(r.entries) > r.most {
		delete(r.edits, r.entries[0].ID)
		r.entries[0] = nil
		r.entries = r.entries[1:]
	}
	c := r.counts[e.Channel]
	if c == nil {
		c = &Counts{}
		r.counts[e.Channel] = c
	}
	switch {
	case e.Accepted && e.Edits != 0:
		r.edits[e.Edits] = e
	case e.Accepted && e.Duplicate():
		c.Accepted++
		c.Duplicates++
	case e.Accepted:
		c.Accepted++
	default:
		c.Refused++
	}
	if e.Accepted && e.WebhookID != "" {
		key := e.Hook + " " + e.WebhookID
		if r.delivered[key] == 0 {
			r.order = append(r.order, key)
		}
		r.delivered[key] = max(r.delivered[key]+1, e.Delivery)
		if len(r.order) > maxKnownIDs {
			delete(r.delivered, r.order[0])
			r.order = r.order[1:]
		}
	}
}

// since returns the matching entries after an id, oldest first, at most most of the newest; and a
// channel that is closed when there are more.
func (r *record) since(id int64, most int, match func(*Entry) bool) ([]*Entry, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*Entry
	for i := len(r.entries) - 1; i >= 0 && r.entries[i].ID > id && len(out) < most; i-- {
		if match == nil || match(r.entries[i]) {
			out = append(out, r.entries[i])
		}
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out, r.changed
}

// byID returns a stored entry, or nil.
func (r *record) byID(id int64) *Entry {
	return r.last(func(e *Entry) bool { return e.ID == id })
}

// find returns the message of a bot at a place, or nil.
func (r *record) find(hook, ts string) *Entry {
	return r.last(func(e *Entry) bool { return e.Accepted && e.Edits == 0 && e.Hook == hook && e.TS == ts && ts != "" })
}

func (r *record) last(match func(*Entry) bool) *Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range slices.Backward(r.entries) {
		if match(e) {
			return e
		}
	}
	return nil
}

// lastEdit returns the last change of a message, or nil.
func (r *record) lastEdit(id int64) *Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.edits[id]
}

// sums returns the counts by channel, and the id of the newest entry.
func (r *record) sums() (map[string]Counts, int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string]Counts, len(r.counts))
	for channel, c := range r.counts {
		out[channel] = *c
	}
	return out, r.newest
}

// clear deletes all entries and counts, and empties the journal. Ids continue.
func (r *record) clear() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries, r.order = nil, nil
	clear(r.counts)
	clear(r.delivered)
	clear(r.edits)
	r.wake()
	if r.file == nil {
		return nil
	}
	if err := r.file.Truncate(0); err != nil {
		return fmt.Errorf("empty journal: %w", err)
	}
	if _, err := r.file.Seek(0, 0); err != nil {
		return fmt.Errorf("empty journal: %w", err)
	}
	return nil
}

func (r *record) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return nil
	}
	file := r.file
	r.file = nil
	return file.Close()
}
