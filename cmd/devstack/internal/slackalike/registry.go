package slackalike

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Hook is an incoming webhook that exists.
type Hook struct {
	// Path is the part of its URL after /services/: T…/B…/….
	Path string `json:"path"`
	// Channel is where its messages appear, with the leading #.
	Channel string `json:"channel"`
	// App is the name under which they appear.
	App string `json:"app"`
}

// FaultKind is a way to misbehave.
type FaultKind string

// The faults. Besides these, every word of refusal is a fault: "no_service",
// "channel_is_archived", "rollup_error" and so on.
const (
	// FaultError answers with Status, 500 by default.
	FaultError FaultKind = "error"
	// FaultSlow waits Seconds and then checks as usual.
	FaultSlow FaultKind = "slow"
	// FaultRateLimited answers 429 with Retry-After: Seconds.
	FaultRateLimited FaultKind = "rate_limited"
	// FaultHang does not answer until the client gives up.
	FaultHang FaultKind = "hang"
	// FaultDrop closes the connection without reading the message.
	FaultDrop FaultKind = "drop"
	// FaultLoseAnswer accepts the message and closes the connection without an answer: a message
	// that the sender takes for failed was posted.
	FaultLoseAnswer FaultKind = "lose_answer"
)

// Fault is how a webhook misbehaves.
type Fault struct {
	// Hook is the path of a webhook; "" means all of them.
	Hook string    `json:"hook"`
	Kind FaultKind `json:"kind"`
	// Status is the status of FaultError.
	Status int `json:"status,omitempty"`
	// Seconds are the time of FaultSlow and FaultRateLimited.
	Seconds float64 `json:"seconds,omitempty"`
	// Count is how many further requests the fault applies to; 0 means until it is reset.
	Count int `json:"count,omitempty"`
}

func (f *Fault) validate() error {
	if f.Seconds < 0 || f.Seconds > 3600 || math.IsNaN(f.Seconds) {
		return errors.New("seconds must be 0 to 3600")
	}
	if f.Count < 0 {
		return errors.New("count must not be negative")
	}
	switch f.Kind {
	case FaultError:
		if f.Status == 0 {
			f.Status = http.StatusInternalServerError
		}
		if f.Status < 300 || f.Status > 599 {
			return errors.New("status must be 300 to 599")
		}
	case FaultSlow, FaultRateLimited:
		if f.Seconds == 0 {
			f.Seconds = 5
		}
	case FaultHang, FaultDrop, FaultLoseAnswer:
	default:
		if refusal(f.Kind).status() == 0 {
			return fmt.Errorf("unknown kind of fault %q", f.Kind)
		}
	}
	return nil
}

// errHook is the error for a path that does not belong to a webhook.
var errHook = errors.New("a webhook's path is T…/B…/…, letters and digits")

// registry stores the webhooks, their rates and their faults. It is safe for concurrent use.
type registry struct {
	perSecond rate.Limit
	burst     int

	mu       sync.Mutex
	hooks    []Hook
	limiters map[string]*rate.Limiter
	faults   map[string]Fault
}

func newRegistry(hooks []Hook, perSecond float64, burst int) (*registry, error) {
	r := &registry{
		perSecond: rate.Limit(perSecond),
		burst:     burst,
		limiters:  map[string]*rate.Limiter{},
		faults:    map[string]Fault{},
	}
	if perSecond < 0 {
		r.perSecond = rate.Inf
	}
	for _, h := range hooks {
		if err := r.add(h); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// add adds a webhook, or changes where its messages appear.
func (r *registry) add(h Hook) error {
	if ok, _ := regexp.MatchString(`^T[A-Za-z0-9]+/B[A-Za-z0-9]+/[A-Za-z0-9]+$`, h.Path); !ok {
		return fmt.Errorf("%q: %w", h.Path, errHook)
	}
	if len(h.Channel) < 2 || h.Channel[0] != '#' {
		return fmt.Errorf("channel %q does not begin with #", h.Channel)
	}
	if h.App == "" {
		h.App = "Incoming webhook"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hooks = slices.DeleteFunc(r.hooks, func(o Hook) bool { return o.Path == h.Path })
	r.hooks = append(r.hooks, h)
	r.limiters[h.Path] = rate.NewLimiter(r.perSecond, r.burst)
	return nil
}

// addBot adds the channels of a bot.
func (r *registry) addBot(b Bot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range b.Channels {
		h := Hook{Path: hookOfBot + c.ID, Channel: c.Name, App: b.Name}
		r.hooks = append(r.hooks, h)
		r.limiters[h.Path] = rate.NewLimiter(r.perSecond, r.burst)
	}
}

// list returns the webhooks in the order in which they were added.
func (r *registry) list() []Hook {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.hooks)
}

// find returns the webhook with a path. For an unknown path the verdict says which part of it is
// known, as Slack does.
func (r *registry) find(team, service, token string) (Hook, verdict) {
	path := team + "/" + service + "/" + token
	sameTeam, sameService := false, false
	for _, h := range r.list() {
		if h.Path == path {
			return h, verdict{}
		}
		sameTeam = sameTeam || hasPrefix(h.Path, team)
		sameService = sameService || hasPrefix(h.Path, team+"/"+service)
	}
	switch {
	case sameService:
		return Hook{Path: path}, refuse(invalidToken, "the token is not that of the webhook")
	case sameTeam:
		return Hook{Path: path}, refuse(noService, "there is no such webhook")
	default:
		return Hook{Path: path}, refuse(noTeam, "there is no such workspace")
	}
}

func hasPrefix(path, start string) bool {
	return len(path) > len(start) && path[:len(start)+1] == start+"/"
}

// admit takes one message from the webhook's allowance. If there is none left, it returns the time
// until there will be.
func (r *registry) admit(path string, now time.Time) (wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	reservation := r.limiters[path].ReserveN(now, 1)
	if wait = reservation.DelayFrom(now); wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

// fault returns the fault that applies to a request to the webhook, and counts it. A fault of the
// webhook takes precedence over one for all webhooks.
func (r *registry) fault(path string) (Fault, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range []string{path, ""} {
		f, ok := r.faults[key]
		if !ok {
			continue
		}
		switch f.Count {
		case 0:
		case 1:
			delete(r.faults, key)
		default:
			left := f
			left.Count--
			r.faults[key] = left
		}
		return f, true
	}
	return Fault{}, false
}

// set replaces the fault of a webhook, or the one for all.
func (r *registry) set(f Fault) error {
	if err := f.validate(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults[f.Hook] = f
	return nil
}

// reset ends the fault of one webhook ("" is the one for all), or every fault.
func (r *registry) reset(path string, everything bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if everything {
		clear(r.faults)
		return
	}
	delete(r.faults, path)
}

// active returns the faults that apply now, the one for all first.
func (r *registry) active() []Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []Fault{}
	if f, ok := r.faults[""]; ok {
		out = append(out, f)
	}
	for _, h := range r.hooks {
		if f, ok := r.faults[h.Path]; ok {
			out = append(out, f)
		}
	}
	return out
}
