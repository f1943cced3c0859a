package preview_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"

	"tocsin/evaluator/preview"
	"tocsin/rules"
)

// TestReplayFindsWhatEndedBeforeItsRange has an exchange whose clock says that it ended before it began, and so
// before the range of the replay in which it began. A replay evaluates by start times.
func TestReplayFindsWhatEndedBeforeItsRange(t *testing.T) {
	h := newHistory(
		rules.Exchange{TenantID: "acme", ExecutionID: "before", StartTimeNS: now - 1, EndTimeNS: new(now + second), Status: rules.Failed},
		rules.Exchange{TenantID: "acme", ExecutionID: "skewed", StartTimeNS: now, EndTimeNS: new(now - second), Status: rules.Failed},
		rules.Exchange{TenantID: "acme", ExecutionID: "usual", StartTimeNS: now + second, EndTimeNS: new(now + 2*second), Status: rules.Failed},
	)
	var asked []string
	got, err := previewer(h).Replay(t.Context(), preview.ReplayRequest{
		Request: preview.Request{TenantID: "acme", RuleID: uuid.New(), Definition: rules.Definition{FireMode: rules.PerExchange}},
		FromNS:  now, ToNS: now + 10*second,
		Unalerted: func(_ context.Context, keys []string) ([]string, error) { asked = keys; return keys, nil },
	})
	slices.Sort(asked)
	if err != nil || !slices.Equal(asked, []string{"skewed", "usual"}) || got.Alerts != 2 || len(got.Newest) != 2 {
		t.Errorf("%q, %+v, %v", asked, got, err)
	}
}
