//go:build unix

package torture

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// request is the receiver's record of a request.
type request struct {
	at              time.Time
	hook, webhookID string
	arrival
	// read says that the whole message arrived, and accepted that the receiver answered 200, or
	// that Jira did what was requested.
	read, accepted bool
	misdeed        misdeed
}

// misdeed is what the receiver does to a request.
type misdeed string

const (
	behaves         misdeed = "accept"
	errs            misdeed = "500"
	dawdles         misdeed = "slow"
	throttles       misdeed = "429"
	hangsUp         misdeed = "hang up before reading"
	readsAndHangsUp misdeed = "hang up after reading"
)

// receiver receives the messages of all webhooks. It records every request.
type receiver struct {
	seed uint64
	calm bool
	// script, when set, decides instead of the seed. It may block.
	script func(hook, webhookID string, nth int) misdeed
	server *http.Server
	// ways are the proxies in front of the server and, in the form with services, the mail server.
	ways  proxies
	jira  *jira
	mail  *mailServer
	ended chan struct{}

	mu   sync.Mutex
	log  []*request
	came map[string]int
}

func startReceiver(o *Options) (*receiver, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // listening on loopback does not wait
	if err != nil {
		return nil, err
	}
	r := &receiver{seed: o.Seed, calm: o.Calm, came: map[string]int{}, ended: make(chan struct{})}
	upstreams := []string{listener.Addr().String()}
	if o.Form == Receivers {
		mailListener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // listening on loopback does not wait
		if err != nil {
			return nil, err
		}
		upstreams = append(upstreams, mailListener.Addr().String())
		r.jira, r.mail = &jira{receiver: r}, startMail(r, mailListener)
	}
	if r.ways, err = newProxies(upstreams...); err != nil {
		return nil, err
	}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = r.server.Serve(listener) }()
	return r, nil
}

func (r *receiver) url(hook string) string {
	return "http://127.0.0.1:" + r.ways[0].port() + "/" + hook
}

func (r *receiver) stop(context.Context) error {
	close(r.ended)
	r.ways.close()
	if r.mail == nil {
		return r.server.Close()
	}
	return errors.Join(r.server.Close(), r.mail.server.Close())
}

func (r *receiver) requests() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]request, len(r.log))
	for i, each := range r.log {
		out[i] = *each
	}
	return out
}

// ServeHTTP records a request and answers it as the seed decides.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	hook := hookOf(req.URL.Path)
	if hook == jiraIssues && r.jira != nil {
		r.jira.ServeHTTP(w, req)
		return
	}
	id := req.Header.Get("webhook-id")
	r.mu.Lock()
	noted := &request{at: time.Now(), hook: hook, webhookID: id}
	r.log = append(r.log, noted)
	r.came[id]++
	nth := r.came[id]
	r.mu.Unlock()
	// Before a message is read, only its id is known, and that does not depend on the seed.
	if r.misdeed("hang up", id, nth) == hangsUp {
		r.note(func() { noted.misdeed = hangsUp })
		hangUp(w)
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	message, err := readArrival(hook, req.URL, req.Header, body)
	if err != nil {
		// The message then never counts as received for an alert, which the checker reports.
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	what := message.correlation
	if message.digest || what == "" {
		// What a digest gathers depends on the time, and so does what happens to it.
		what = id
	}
	misdeed := r.misdeed(what, noted.hook, nth)
	if r.script != nil {
		misdeed = r.script(noted.hook, id, nth)
	}
	r.note(func() {
		noted.read, noted.misdeed, noted.arrival = true, misdeed, message
	})
	switch misdeed {
	case errs:
		w.WriteHeader(http.StatusInternalServerError)
		return
	case throttles:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	case readsAndHangsUp:
		hangUp(w)
		return
	case dawdles:
		pause(r.ended, webhookTimeout*time.Duration(5+nth%7)/10)
	case behaves, hangsUp:
	}
	r.note(func() { noted.accepted = true })
	status, said := answer(hook)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, said)
}

func (r *receiver) note(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// misdeed returns what the seed decides. At most two attempts of a message are mistreated.
func (r *receiver) misdeed(what, hook string, nth int) misdeed {
	if r.calm || nth > 2 {
		return behaves
	}
	hash := fnv.New64a()
	_, _ = fmt.Fprint(hash, r.seed, what, "|", hook, nth)
	// The last bits of this hash are the most random.
	chance := hash.Sum64() * 0x9E3779B97F4A7C15 >> 40 % 1000
	if what == "hang up" {
		if chance < 10 {
			return hangsUp
		}
		return behaves
	}
	for _, each := range []struct {
		upTo uint64
		misdeed
	}{{25, errs}, {40, dawdles}, {44, throttles}, {60, readsAndHangsUp}} {
		if chance < each.upTo {
			return each.misdeed
		}
	}
	return behaves
}

func hangUp(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close()
	}
}
