package tracing

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"tocsin/alerts"
	"tocsin/evaluator"
	"tocsin/evaluator/window"
	"tocsin/notify"
	"tocsin/rules"
)

func tracer(share float64) (*Tracer, *tracetest.InMemoryExporter) {
	memory := tracetest.NewInMemoryExporter()
	return newTracer(sdktrace.NewSimpleSpanProcessor(memory), resource.Empty(), &Options{Share: share, Logger: slog.New(slog.DiscardHandler)}), memory
}

// notificationID returns the id of the n-th notification.
func notificationID(n int) uuid.UUID {
	rule := uuid.MustParse("0194f1c0-0000-7000-8000-000000000001")
	alert := alerts.ID(rule, &rules.Exchange{StartTimeNS: 1_795_244_520_123_456_789, ExecutionID: strconv.Itoa(n)})
	return notify.ID(alert, rule, notify.ReasonFired, 0)
}

func TestTheShareIsThatOfNotifications(t *testing.T) {
	t.Parallel()
	const all = 20_000
	for share, bounds := range map[float64][2]int{0: {0, 0}, 0.01: {140, 270}, 0.5: {9700, 10300}, 1: {all, all}} {
		one, _ := tracer(share)
		two, _ := tracer(share)
		sampled := 0
		for n := range all {
			id := trace.TraceID(notificationID(n))
			if one.samples(id) != two.samples(id) {
				t.Fatalf("two replicas do not agree on %s", id)
			}
			if one.samples(id) {
				sampled++
			}
		}
		if sampled < bounds[0] || sampled > bounds[1] {
			t.Errorf("of a share of %v, %d of %d are traced", share, sampled, all)
		}
	}
}

func TestOnlyAPassThatRaisesOrFailsIsAlwaysExported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		share  float64
		result evaluator.Result
		err    error
		want   []string
	}{
		"idle":            {0, evaluator.Result{Scanned: 5}, nil, nil},
		"idle, all":       {1, evaluator.Result{}, nil, []string{"read", "commit", "pass"}},
		"raises":          {0, evaluator.Result{Alerts: 1}, nil, []string{"read", "commit", "pass"}},
		"a rule fails":    {0, evaluator.Result{Failed: 1}, nil, []string{"read", "commit", "pass"}},
		"fails":           {0, evaluator.Result{}, errors.New("away"), []string{"read", "commit", "pass"}},
		"is overtaken":    {0, evaluator.Result{}, evaluator.ErrStale, []string{"read", "commit", "pass"}},
		"only a reminder": {0, evaluator.Result{Notifications: 1}, nil, []string{"read", "commit", "pass"}},
	} {
		r, memory := tracer(c.share)
		ctx, end := r.Pass(t.Context(), 3)
		_, read := r.read(ctx, "exchanges")
		read(1, nil)
		_, commit := r.tracer.Start(ctx, spanCommit)
		commit.End()
		end(c.result, c.err)
		var got []string
		for _, s := range memory.GetSpans() {
			got = append(got, s.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: exported %v, want %v", name, got, c.want)
		}
	}
}

// committing is a store that returns the batch it is given as written.
type committing struct {
	evaluator.Store

	done evaluator.Committed
	err  error
}

func (c committing) Commit(context.Context, evaluator.Batch) (evaluator.Committed, error) {
	return c.done, c.err
}

// sending is a sender with one outcome.
type sending notify.Outcome

func (s sending) Send(context.Context, *notify.Delivery) notify.Outcome { return notify.Outcome(s) }

// TestAnAttemptBelongsToWhatTheCommitBegan follows a notification through two processes that share nothing but its id.
func TestAnAttemptBelongsToWhatTheCommitBegan(t *testing.T) {
	t.Parallel()
	const traceID, spanID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	hook := notify.Webhook{ID: uuid.New(), URL: "https://user:pass@hooks.example.com/services/SECRET?token=SECRET", SigningSecret: "SECRET"}
	exchange := rules.Exchange{ExecutionID: traceID + ":" + spanID, ErrorMessage: "SECRET"}
	alert := alerts.Instance{ID: uuid.New(), Exchange: exchange}
	known := alerts.Instance{ID: uuid.New(), Exchange: exchange}
	of := func(a *alerts.Instance) notify.Notification {
		return notify.Notification{ID: notify.ID(a.ID, hook.ID, notify.ReasonFired, 0), AlertID: a.ID, WebhookID: hook.ID, Reason: notify.ReasonFired}
	}
	n := of(&alert)

	evaluates, committed := tracer(1)
	store := evaluates.Store(committing{done: evaluator.Committed{Inserted: []uuid.UUID{alert.ID}, Notifications: map[uuid.UUID]int{hook.ID: 1}}})
	ctx, end := evaluates.Pass(t.Context(), 0)
	if _, err := store.Commit(ctx, evaluator.Batch{Instances: []alerts.Instance{alert, known}, Notifications: []notify.Notification{n, of(&known)}}); err != nil {
		t.Fatal(err)
	}
	end(evaluator.Result{Alerts: 1}, nil)
	spans := map[string]tracetest.SpanStub{}
	for _, s := range committed.GetSpans() {
		if _, twice := spans[s.Name]; twice {
			t.Errorf("two spans %s: nothing was written for an alert that is known", s.Name)
		}
		spans[s.Name] = s
	}
	begun := spans[spanNotification]
	if got, want := begun.SpanContext.TraceID().String(), strings.ReplaceAll(n.ID.String(), "-", ""); got != want {
		t.Errorf("the trace of the notification %s is %s", n.ID, got)
	}
	links := begun.Links
	if len(links) != 2 || links[0].SpanContext.SpanID() != spans[spanCommit].SpanContext.SpanID() || links[0].SpanContext.TraceID() != spans[spanPass].SpanContext.TraceID() ||
		links[1].SpanContext.TraceID().String() != traceID || links[1].SpanContext.SpanID().String() != spanID {
		t.Errorf("the notification links to %+v", links)
	}

	dispatches, attempted := tracer(1)
	refusing := dispatches.Sender(sending{Verdict: notify.VerdictRetry, StatusCode: 503, Error: "SECRET", Response: "SECRET"})
	for attempt := range 2 {
		refusing.Send(t.Context(), &notify.Delivery{NotificationID: n.ID, Reason: notify.ReasonFired, Attempt: attempt + 1, Alert: alert, Webhook: hook})
	}
	attempts := attempted.GetSpans()
	if len(attempts) != 2 {
		t.Fatalf("%d attempts", len(attempts))
	}
	for _, a := range attempts {
		if a.SpanContext.TraceID() != begun.SpanContext.TraceID() || a.Parent.SpanID() != begun.SpanContext.SpanID() {
			t.Errorf("the attempt is %s in %s, the notification %s in %s", a.Parent.SpanID(), a.SpanContext.TraceID(), begun.SpanContext.SpanID(), begun.SpanContext.TraceID())
		}
	}
	if attempts[0].SpanContext.SpanID() == attempts[1].SpanContext.SpanID() {
		t.Error("two attempts have one id")
	}
	for _, s := range slices.Concat(committed.GetSpans(), attempts) {
		for _, a := range s.Attributes {
			if text := a.Value.String(); strings.Contains(text, "SECRET") || strings.Contains(text, "pass@") {
				t.Errorf("%s: %s is %q", s.Name, a.Key, text)
			}
		}
		if strings.Contains(s.Status.Description, "SECRET") {
			t.Errorf("%s: %s", s.Name, s.Status.Description)
		}
	}
}

// TestWhatNoCommitBeganIsARoot checks that attempts of messages that no pass wrote have no parent
// or link to a span that does not exist.
func TestWhatNoCommitBeganIsARoot(t *testing.T) {
	t.Parallel()
	r, memory := tracer(1)
	hook, alert, id := uuid.New(), uuid.New(), uuid.New()
	r.Sender(sending{Verdict: notify.VerdictDelivered}).Send(t.Context(), &notify.Delivery{
		NotificationID: id, Reason: notify.ReasonDigest, Webhook: notify.Webhook{ID: hook}, Digest: &notify.Digest{Alerts: []uuid.UUID{alert}},
	})
	spans := memory.GetSpans()
	if len(spans) != 1 || spans[0].Parent.IsValid() || spans[0].SpanContext.TraceID() != trace.TraceID(id) {
		t.Fatalf("the attempt is %+v", spans)
	}
	if member := notify.ID(alert, hook, notify.ReasonFired, 0); len(spans[0].Links) != 1 || spans[0].Links[0].SpanContext.TraceID() != trace.TraceID(member) {
		t.Errorf("the digest links to %+v", spans[0].Links)
	}
}

func TestWhatIsNotInTheShareMakesNoSpan(t *testing.T) {
	t.Parallel()
	r, memory := tracer(0)
	outcome := r.Sender(sending{Verdict: notify.VerdictDelivered}).Send(t.Context(), &notify.Delivery{NotificationID: uuid.New(), Reason: notify.ReasonFired})
	if spans := memory.GetSpans(); len(spans) != 0 || outcome.Verdict != notify.VerdictDelivered {
		t.Errorf("%d spans, %v", len(spans), outcome)
	}
}

func TestTheExchangesOwnSpan(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"4bf92f3577b34da6a3ce929d0e0e4736:00f067aa0ba902b7": true,
		"4bf92f3577b34da6a3ce929d0e0e4736":                  false,
		"4bf92f3577b34da6a3ce929d0e0e4736:":                 false,
		"4bf92f3577b34da6a3ce929d0e0e473x:00f067aa0ba902b7": false,
		"4bf92f3577b34da6a3ce929d0e0e4736:00f067aa0ba902bx": false,
		"00000000000000000000000000000000:0000000000000000": false,
		"order-17": false,
		"":         false,
	} {
		if got := ofExchange(id); got.IsValid() != want {
			t.Errorf("%q is %+v", id, got)
		}
	}
}

// panicking is an evaluation with a bug.
type panicking struct{}

func (panicking) Evaluate(context.Context, window.Request) window.Outcome { panic("a bug") }

func TestAnEvaluationThatPanicsIsShown(t *testing.T) {
	t.Parallel()
	r, memory := tracer(0)
	ctx, end := r.Pass(t.Context(), 0)
	func() {
		defer func() { end(evaluator.Result{}, fmt.Errorf("panic: %v", recover())) }()
		r.Windows(panicking{}).Evaluate(ctx, window.Request{})
	}()
	var got []string
	for _, s := range memory.GetSpans() {
		got = append(got, s.Name+" "+s.Status.Code.String())
	}
	if want := []string{"read Error", "pass Error"}; !slices.Equal(got, want) {
		t.Errorf("exported %q, want %q", got, want)
	}
}

func TestTheLogNamesTraces(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	logger := slog.New(Handler(slog.NewTextHandler(&out, nil)))
	r, _ := tracer(1)
	ctx, end := r.Pass(t.Context(), 0)
	logger.With(slog.String("part", "evaluator")).InfoContext(ctx, "within")
	end(evaluator.Result{}, nil)
	id := uuid.New()
	logger.With(slog.String("notification_id", id.String()), slog.Int("attempt", 1)).WarnContext(t.Context(), "about")
	logger.WarnContext(t.Context(), "about", slog.String("notification_id", id.String()))
	logger.InfoContext(t.Context(), "neither")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	within := trace.SpanContextFromContext(ctx)
	for i, want := range []string{"trace_id=" + within.TraceID().String() + " span_id=" + within.SpanID().String(), "trace_id=" + hex.EncodeToString(id[:]), "trace_id=" + hex.EncodeToString(id[:])} {
		if strings.Count(lines[i], want) != 1 {
			t.Errorf("%q, want %q", lines[i], want)
		}
	}
	if strings.Contains(lines[3], "trace_id") {
		t.Error(lines[3])
	}
}

// TestTheEnvironmentIsCheckedAsOpenTelemetryReadsIt compares the check with what reads the variable.
func TestTheEnvironmentIsCheckedAsOpenTelemetryReadsIt(t *testing.T) {
	for _, value := range []string{"", " ", "a=b", " a = b , c=", "a=b,", "a", ",", "a=b,c", "=", "a=%zz"} {
		t.Setenv("OTEL_RESOURCE_ATTRIBUTES", value)
		_, refused := resource.New(t.Context(), resource.WithFromEnv())
		if err := CheckEnvironment(); (err == nil) != (refused == nil) {
			t.Errorf("%q: %v, but OpenTelemetry says %v", value, err, refused)
		}
	}
}

func TestAnAddressIsChecked(t *testing.T) {
	t.Parallel()
	for address, good := range map[string]bool{
		"http://127.0.0.1:4318": true, "https://otel.example.com/otlp": true, "otel:4318": false, "http://": false, "https://u:p@otel.example.com": false,
		"https://otel.example.com/?token=x": false,
	} {
		if err := Check(address, 0.5); (err == nil) != good {
			t.Errorf("%s: %v", address, err)
		}
	}
	for share, good := range map[float64]bool{-0.1: false, 0: true, 1: true, 1.1: false} {
		if err := Check("http://127.0.0.1:4318", share); (err == nil) != good {
			t.Errorf("%v: %v", share, err)
		}
	}
}
