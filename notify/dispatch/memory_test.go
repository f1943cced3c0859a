package dispatch_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/google/uuid"

	"tocsin/notify"
	"tocsin/notify/dispatch"
)

// TestHoldsNothingOfWhatIsDone settles a burst of messages together; afterwards the dispatcher must
// not keep any of their bodies.
func TestHoldsNothingOfWhatIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := uuid.New()
		o := &outbox{limits: dispatch.Due{WebhookID: id, MaxConcurrent: 100}}
		d := dispatcher(t, o, &calls{takes: time.Second}, nil)
		var bodies []weak.Pointer[notify.Body]
		o.due = deliveries(100, id, time.Minute)
		for i := range o.due {
			o.due[i].Webhook.MaxConcurrent = 100
			body := &notify.Body{ContentType: "text/plain", Content: []byte("x")}
			o.due[i].Body = body
			bodies = append(bodies, weak.Make(body))
		}
		if _, err := d.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(o.settled) != 100 {
			t.Fatalf("%d settled, want 100", len(o.settled))
		}
		o.due, o.claimed, o.settled = nil, nil, nil
		runtime.GC()
		held := 0
		for _, body := range bodies {
			if body.Value() != nil {
				held++
			}
		}
		if held > 0 {
			t.Errorf("%d bodies are held, want none", held)
		}
		runtime.KeepAlive(d)
	})
}
