package resolution_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/evaluator/resolution"
	"tocsin/rules"
)

const second = int64(time.Second)

func byOrder() *resolution.Rule {
	return &resolution.Rule{
		TenantID: "acme", LookBack: time.Hour,
		Resolution: rules.Resolution{Evidence: rules.EvidenceAttribute, Attribute: "order"},
	}
}

func byCorrelation() *resolution.Rule {
	return &resolution.Rule{TenantID: "acme", LookBack: time.Hour, Resolution: rules.Resolution{Evidence: rules.EvidenceCorrelation}}
}

// TestOnlyWhatBeganAfterTheEndIsEvidence compares what was found with an alert whose exchange
// ended at 10 s.
func TestOnlyWhatBeganAfterTheEndIsEvidence(t *testing.T) {
	key := resolution.Key{Environment: "production", Application: "orders", Route: "to-erp", Value: "42"}
	alert := resolution.Open{ID: uuid.New(), EndedNS: 10 * second, Key: key}
	for name, c := range map[string]struct {
		found  resolution.Completed
		proves bool
	}{
		"began a nanosecond later": {resolution.Completed{Key: key, Position: cursor.Position{StartTimeNS: 10*second + 1, ExecutionID: "ok"}}, true},
		"began at the end":         {resolution.Completed{Key: key, Position: cursor.Position{StartTimeNS: 10 * second, ExecutionID: "ok"}}, false},
		"ran beside it":            {resolution.Completed{Key: key, Position: cursor.Position{StartTimeNS: 9 * second, ExecutionID: "ok"}}, false},
		"another route":            {resolution.Completed{Key: resolution.Key{Environment: "production", Application: "orders", Route: "to-crm", Value: "42"}, Position: cursor.Position{StartTimeNS: 20 * second}}, false},
		"another application":      {resolution.Completed{Key: resolution.Key{Environment: "production", Application: "billing", Route: "to-erp", Value: "42"}, Position: cursor.Position{StartTimeNS: 20 * second}}, false},
		"another environment":      {resolution.Completed{Key: resolution.Key{Environment: "test", Application: "orders", Route: "to-erp", Value: "42"}, Position: cursor.Position{StartTimeNS: 20 * second}}, false},
	} {
		proofs := resolution.Proofs([]resolution.Open{alert, {ID: uuid.New(), EndedNS: 1}}, []resolution.Completed{c.found})
		if (len(proofs) == 1) != c.proves {
			t.Errorf("%s: %+v", name, proofs)
			continue
		}
		if !c.proves {
			continue
		}
		p := proofs[0]
		if p.AlertID != alert.ID || p.Evidence.Reason != alerts.ByEvidence || p.Evidence.ExecutionID != "ok" || *p.Evidence.StartTimeNS != c.found.StartTimeNS {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// TestWhatIsNotThereInFullIsNotCompared asks about alerts whose values may not be those of the
// source.
func TestWhatIsNotThereInFullIsNotCompared(t *testing.T) {
	values := func(rule *resolution.Rule, key resolution.Key) []string {
		return resolution.QueryOf(rule, []resolution.Open{{Key: key}}, 100*second).Values
	}
	for _, value := range []string{"", "a\uFFFDb", strings.Repeat("a", 257), "cut…"} {
		if got := values(byCorrelation(), resolution.Key{Value: value}); len(got) > 0 {
			t.Errorf("a correlation id %q is compared", value)
		}
		if got := values(byOrder(), resolution.Key{Route: "r", Value: value}); len(got) > 0 {
			t.Errorf("an attribute %q is compared", value)
		}
	}
	for _, key := range []resolution.Key{{Value: "42"}, {Route: "cut…", Value: "42"}, {Route: "r", Application: "\uFFFD", Value: "42"}, {Route: "r", Environment: "\uFFFD", Value: "42"}} {
		if got := values(byOrder(), key); len(got) > 0 {
			t.Errorf("%+v is compared", key)
		}
	}
	if got := values(byCorrelation(), resolution.Key{Value: "42"}); !slices.Equal(got, []string{"42"}) {
		t.Errorf("compared is %q", got)
	}
	q := resolution.QueryOf(byOrder(), []resolution.Open{{Key: resolution.Key{Route: "b", Value: "1"}}, {Key: resolution.Key{Route: "a", Value: "1"}}}, 100*second)
	if !slices.Equal(q.Values, []string{"1"}) || !slices.Equal(q.Routes, []string{"a", "b"}) || q.Attribute != "order" || q.TenantID != "acme" {
		t.Errorf("asked is %+v", q)
	}
}

// TestWhatWasSearchedIsNotSearchedAgain asks about alerts of various ages, at an instant ten
// days after the epoch, after a pass that had searched until a minute before.
func TestWhatWasSearchedIsNotSearchedAgain(t *testing.T) {
	const day = 86_400 * second
	now := 10 * day
	at := time.Unix(0, now)
	ago := func(d time.Duration) int64 { return now - d.Nanoseconds() }
	searched := &resolution.Searched{ToNS: ago(time.Minute), At: at.Add(-time.Minute)}
	for name, c := range map[string]struct {
		searched   *resolution.Searched
		lookBack   time.Duration
		fired, end time.Duration // ago
		from       time.Duration // ago
	}{
		"the first pass":                    {nil, time.Hour, 48 * time.Hour, 49 * time.Hour, 24 * time.Hour},
		"the first pass, an old exchange":   {nil, time.Hour, time.Minute, 9 * 24 * time.Hour, 24 * time.Hour},
		"an alert that was compared":        {searched, time.Hour, 48 * time.Hour, 49 * time.Hour, time.Hour + time.Minute},
		"a short look-back":                 {searched, time.Minute, 48 * time.Hour, 49 * time.Hour, 16 * time.Minute},
		"an alert that ended since":         {searched, time.Hour, 5 * time.Minute, 6 * time.Minute, 6 * time.Minute},
		"a new alert about an old exchange": {searched, time.Hour, time.Second, 49 * time.Hour, 24 * time.Hour},
		"one that may not have been seen":   {searched, time.Hour, 2 * time.Minute, 49 * time.Hour, 24 * time.Hour},
	} {
		rule := byCorrelation()
		rule.Searched, rule.LookBack = c.searched, c.lookBack
		open := resolution.Open{FiredAt: at.Add(-c.fired), EndedNS: ago(c.end), Key: resolution.Key{Value: "42"}}
		if q := resolution.QueryOf(rule, []resolution.Open{open}, now); q.FromNS != ago(c.from) || q.ToNS != now {
			t.Errorf("%s: searched from %v ago on, want %v", name, time.Duration(now-q.FromNS), c.from)
		}
	}
}
