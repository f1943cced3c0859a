//go:build unix

package torture

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// operators is the name of the webhook that hears of rules that cannot be evaluated.
const operators = "operators"

// operator makes and edits rules over the API of any replica that answers, and notes when.
type operator struct {
	w      *world
	client *http.Client
	hooks  map[string]string
	// quiet is the webhook with quiet hours as the API takes it, quietVersion its version.
	quiet        map[string]any
	quietVersion int64
}

// Longer than any replica is stopped or cut off, so that no call comes into effect after it was given up.
const callTimeout = 20 * time.Second

// thing is what the API answers of a rule or a webhook.
type thing struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Version int64  `json:"version"`
	Enabled bool   `json:"enabled"`
}

// answerError is an answer that says no.
type answerError struct {
	status int
	text   string
}

func (e *answerError) Error() string { return fmt.Sprintf("%d: %.300s", e.status, e.text) }

// isStale says whether what was edited had another version.
func isStale(err error) bool {
	said, is := errors.AsType[*answerError](err)
	return is && said.status == http.StatusPreconditionFailed
}

// call asks one replica after the other until one answers with other than a server error.
func (o *operator) call(ctx context.Context, method, path, etag string, in any) (thing, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return thing{}, err
	}
	for nth := 0; ; nth++ {
		replica := o.w.replicas[nth%len(o.w.replicas)]
		answer, err := o.once(ctx, method, replica.url()+path, etag, body)
		said, _ := errors.AsType[*answerError](err)
		if err == nil || ctx.Err() != nil || said != nil && said.status < http.StatusInternalServerError {
			return answer, err
		}
		pause(ctx.Done(), 50*time.Millisecond)
	}
}

func (o *operator) once(ctx context.Context, method, target, etag string, body []byte) (thing, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, target, nil)
	if err != nil {
		return thing{}, err
	}
	if string(body) != "null" {
		request.Body = io.NopCloser(bytes.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
	}
	if etag != "" {
		request.Header.Set("If-Match", etag)
	}
	answer, err := o.client.Do(request)
	if err != nil {
		return thing{}, err
	}
	defer answer.Body.Close() //nolint:errcheck // read to its end below
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return thing{}, err
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		return thing{}, &answerError{answer.StatusCode, string(text)}
	}
	var got thing
	if len(text) > 0 {
		err = json.Unmarshal(text, &got)
	}
	return got, err
}

// make creates a rule or a webhook. An attempt whose answer was lost may have made it already.
func (o *operator) make(ctx context.Context, path, name string, definition any) (thing, error) {
	made, err := o.call(ctx, http.MethodPost, path, "", definition)
	if said, ok := errors.AsType[*answerError](err); !ok || said.status != http.StatusConflict {
		return made, err
	}
	table, key := "rule", "rule_id"
	if path == "/webhooks" {
		table, key = "webhook", "webhook_id"
	}
	err = o.w.persist(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT "+key+"::text, version, enabled FROM "+table+" WHERE name = $1", name).
			Scan(&made.ID, &made.Version, &made.Enabled)
	})
	return made, err
}

// begin makes the webhooks and the first rules.
func (o *operator) begin(ctx context.Context) error {
	timeout := cmp.Or(o.w.options.WebhookTimeout, webhookTimeout)
	for _, name := range []string{"a", "b", "c", operators} {
		hook, err := o.make(ctx, "/webhooks", name, map[string]any{
			"name": name, "kind": "generic", "url": o.w.receiver.url(name), "timeoutSeconds": timeout.Seconds(), "maxConcurrent": 16,
			"operators": name == operators, "digestAbove": digestAbove(name),
		})
		if err != nil {
			return fmt.Errorf("make webhook %s: %w", name, err)
		}
		o.hooks[name] = hook.ID
	}
	if err := o.beginServices(ctx, timeout); err != nil {
		return err
	}
	if err := o.beginQuiet(ctx, timeout); err != nil {
		return err
	}
	if err := o.beginPolicy(ctx); err != nil {
		return err
	}
	for _, r := range o.w.plan.rules {
		if err := o.create(ctx, r); err != nil {
			return fmt.Errorf("create rule %s: %w", r.name, err)
		}
	}
	return nil
}

// beginServices makes the webhooks of the services, if the form has any. They want each message by itself, and as many as
// there are.
func (o *operator) beginServices(ctx context.Context, timeout time.Duration) error {
	if o.w.options.Form != Receivers {
		return nil
	}
	for _, name := range services() {
		definition := o.w.receiver.webhook(name)
		maps.Copy(definition, map[string]any{
			"name": name, "timeoutSeconds": timeout.Seconds(), "maxConcurrent": 16, "ratePerSecond": 0, "digestAbove": 0, "events": []string{anAcknowledging, aResolution},
		})
		hook, err := o.make(ctx, "/webhooks", name, definition)
		if err != nil {
			return fmt.Errorf("make webhook %s: %w", name, err)
		}
		o.hooks[name] = hook.ID
	}
	return nil
}

// work does the edits of the plan when they are due.
func (o *operator) work(ctx context.Context) error {
	for _, e := range o.w.plan.edits {
		if !pause(ctx.Done(), time.Duration(e.atNS)-o.w.elapsed()) {
			return ctx.Err()
		}
		o.w.logf("operator: %v %s", e.act, e.rule)
		if err := o.do(ctx, e); err != nil {
			return fmt.Errorf("%v rule %s: %w", e.act, e.rule, err)
		}
	}
	return nil
}

func (o *operator) do(ctx context.Context, e edit) error {
	l := o.w.truth.find(e.rule)
	if e.act == disable || e.act == remove {
		return o.end(ctx, l, e.act)
	}
	o.w.editing.Lock()
	defer o.w.editing.Unlock()
	switch e.act {
	case create:
		var r rule
		e.change(&r)
		return o.create(ctx, r)
	case update:
		return o.update(ctx, l, e.change)
	case disable, remove:
	case enable:
		return o.enable(ctx, l)
	}
	return fmt.Errorf("unknown act %d", e.act)
}

func (o *operator) create(ctx context.Context, r rule) error {
	definition := r.definition(o.hooks)
	if o.w.options.LookBackOff && !r.counts() {
		definition["lookBackSeconds"] = 0
	}
	from := time.Now().UnixNano()
	made, err := o.make(ctx, "/rules", r.name, definition)
	if err != nil {
		return err
	}
	o.w.truth.mu.Lock()
	defer o.w.truth.mu.Unlock()
	o.w.truth.lives = append(o.w.truth.lives, &life{
		rule: r, id: made.ID, version: made.Version, enabled: true,
		periods: []period{{condition: r.condition, began: span{from, time.Now().UnixNano()}}},
		bound:   []binding{{made.Version, r.hooks}},
	})
	return nil
}

func (o *operator) update(ctx context.Context, l *life, change func(*rule)) error {
	r := l.rule
	change(&r)
	definition := r.definition(o.hooks)
	if o.w.options.LookBackOff {
		definition["lookBackSeconds"] = 0
	}
	from := time.Now().UnixNano()
	updated, err := o.call(ctx, http.MethodPut, "/rules/"+l.id, strconv.Quote(strconv.FormatInt(l.version, 10)), definition)
	if isStale(err) {
		// Nobody else edits: an attempt whose answer was lost has done it.
		updated, err = o.call(ctx, http.MethodGet, "/rules/"+l.id, "", nil)
	}
	if err != nil {
		return err
	}
	if updated.Version != l.version+1 {
		return fmt.Errorf("version %d followed %d", updated.Version, l.version)
	}
	when := span{from, time.Now().UnixNano()}
	o.w.truth.mu.Lock()
	defer o.w.truth.mu.Unlock()
	l.version, l.touched = updated.Version, append(l.touched, when)
	if !slices.Equal(r.hooks, l.rule.hooks) {
		l.bound = append(l.bound, binding{updated.Version, r.hooks})
	}
	if !r.condition.equal(&l.rule.condition) {
		l.periods[len(l.periods)-1].ended = &when
		l.periods = append(l.periods, period{condition: r.condition, began: when})
	}
	l.rule = r
	return nil
}

// end disables or removes a rule after it has alerted all that is visible now.
func (o *operator) end(ctx context.Context, l *life, d act) error {
	sealed, seen := time.Now().UnixNano(), o.w.losses()
	defer o.w.editing.Unlock()
	for {
		o.w.awaitAlerts(ctx, l, sealed)
		o.w.editing.Lock()
		if o.w.losses() == seen {
			break
		}
		// What was there a failover may have taken away.
		seen = o.w.losses()
		o.w.editing.Unlock()
	}
	from := time.Now().UnixNano()
	var after thing
	var err error
	if d == remove {
		after, err = o.call(ctx, http.MethodDelete, "/rules/"+l.id, "", nil)
		if said, ok := errors.AsType[*answerError](err); ok && said.status == http.StatusNotFound {
			err = nil
		}
	} else {
		after, err = o.call(ctx, http.MethodPost, "/rules/"+l.id+"/disable", "", nil)
	}
	if err != nil {
		return err
	}
	o.w.truth.mu.Lock()
	defer o.w.truth.mu.Unlock()
	p := &l.periods[len(l.periods)-1]
	p.ended, p.forgotten, p.sealedNS = &span{from, time.Now().UnixNano()}, true, sealed
	l.version, l.enabled, l.touched = after.Version, false, append(l.touched, *p.ended)
	return nil
}

func (o *operator) enable(ctx context.Context, l *life) error {
	from := time.Now().UnixNano()
	after, err := o.call(ctx, http.MethodPost, "/rules/"+l.id+"/enable", "", nil)
	if err != nil {
		return err
	}
	o.w.truth.mu.Lock()
	defer o.w.truth.mu.Unlock()
	began := span{from, time.Now().UnixNano()}
	l.periods = append(l.periods, period{condition: l.rule.condition, began: began})
	l.version, l.enabled, l.touched = after.Version, true, append(l.touched, began)
	return nil
}
