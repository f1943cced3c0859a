package resolution_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// TestOnlyWhatBeganAfterTheEndIsEvidence compares what was found with an alert whose exchange ended
// at 10 s.
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

// TestWhatIsNotThereInFullIsNotCompared checks alerts whose values may differ from those of the
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

// TestWhatWasSearchedIsNotSearchedAgain has alerts of various ages, ten days after the epoch, after
// a pass that searched up to a minute before.
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

// table is a source in memory that refuses to read more than a given period at once, and a store of
// rules with open alerts.
type table struct {
	nowNS, mostNS int64
	queries       []resolution.Query
	rules         []*resolution.Rule
	open          map[*resolution.Rule][]resolution.Open
	taken         int
	proven        map[string]string
	marked        int
}

func (b *table) Now(context.Context) (int64, error) { return b.nowNS, nil }

func (b *table) LastCompleted(_ context.Context, q resolution.Query) (found []resolution.Completed, _ error) {
	b.queries = append(b.queries, q)
	if q.ToNS-q.FromNS > b.mostNS {
		return nil, errors.New("timeout")
	}
	// Each value is completed each hour.
	for _, value := range q.Values {
		if at := q.ToNS - q.ToNS%(3600*second); at >= q.FromNS && at < q.ToNS {
			found = append(found, resolution.Completed{Key: keyOf(value), Position: cursor.Position{StartTimeNS: at, ExecutionID: fmt.Sprint(at / second)}})
		}
	}
	return found, nil
}

func keyOf(value string) resolution.Key {
	return resolution.Key{Environment: "production", Application: "orders", Route: "to-erp", Value: value}
}

func (b *table) Take(context.Context, time.Duration) (*resolution.Rule, error) {
	if b.taken == len(b.rules) {
		return nil, nil //nolint:nilnil // there is none
	}
	b.taken++
	return b.rules[b.taken-1], nil
}

func (b *table) ResolveAged(context.Context, *resolution.Rule, int) (int, error) { return 0, nil }

func (b *table) Open(_ context.Context, r *resolution.Rule, after *resolution.Open, most int) ([]resolution.Open, error) {
	list := b.open[r]
	if after != nil {
		list = list[slices.IndexFunc(list, func(o resolution.Open) bool { return o.ID == after.ID })+1:]
	}
	return list[:min(most, len(list))], nil
}

func (b *table) ResolveProven(_ context.Context, r *resolution.Rule, proofs []resolution.Proof) (int, error) {
	for _, p := range proofs {
		i := slices.IndexFunc(b.open[r], func(o resolution.Open) bool { return o.ID == p.AlertID })
		b.proven[b.open[r][i].ExecutionID] = p.Evidence.ExecutionID
	}
	return len(proofs), nil
}

func (b *table) MarkSearched(context.Context, *resolution.Rule, resolution.Searched) error {
	b.marked++
	return nil
}

// newTable has rules by correlation with open alerts, each of which ended the given time before the
// present.
func newTable(rulesOf, alertsOf int, ago, mostAtOnce time.Duration) *table {
	b := &table{nowNS: 30*3600*second + 1, mostNS: mostAtOnce.Nanoseconds(), open: map[*resolution.Rule][]resolution.Open{}, proven: map[string]string{}}
	for r := range rulesOf {
		rule := byCorrelation()
		rule.ID = uuid.New()
		b.rules = append(b.rules, rule)
		for a := range alertsOf {
			id := fmt.Sprint(r, "-", a)
			b.open[rule] = append(b.open[rule], resolution.Open{ID: uuid.New(), EndedNS: b.nowNS - ago.Nanoseconds(), ExecutionID: id, Key: keyOf(id)})
		}
	}
	return b
}

func (b *table) tick(t *testing.T, r *resolution.Resolver) resolution.Result {
	t.Helper()
	b.taken = 0
	got, err := r.Tick(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (b *table) resolver() *resolution.Resolver {
	return &resolution.Resolver{Store: b, Source: b, Interval: time.Hour, Logger: slog.New(slog.DiscardHandler)}
}

// TestOneQueryForManyRules searches for the evidence of rules that compare the same.
func TestOneQueryForManyRules(t *testing.T) {
	b := newTable(40, 10, 90*time.Minute, 24*time.Hour)
	if got := b.tick(t, b.resolver()); got.Proven != 400 || got.Rules != 40 || got.Failed != 0 {
		t.Errorf("%+v", got)
	}
	if len(b.queries) != 1 || b.marked != 40 {
		t.Errorf("%d queries, %d marks", len(b.queries), b.marked)
	}
	// Of other tenants, and by an attribute, different ones.
	b = newTable(3, 1100, 90*time.Minute, 24*time.Hour)
	b.rules[1].TenantID = "globex"
	b.rules[2].Resolution = rules.Resolution{Evidence: rules.EvidenceAttribute, Attribute: "order"}
	if got := b.tick(t, b.resolver()); got.Proven != 3300 || len(b.queries) != 9 || b.marked != 3 {
		t.Errorf("%+v in %d queries, %d marks", got, len(b.queries), b.marked)
	}
}

// TestEvidenceIsReadInSlices has a source that refuses to read much at once.
func TestEvidenceIsReadInSlices(t *testing.T) {
	b := newTable(1, 1, 20*time.Hour, 90*time.Minute)
	r := b.resolver()
	// The newest that completed is the evidence, whatever the slices are.
	if got := b.tick(t, r); got.Proven != 1 || b.proven["0-0"] != "108000" {
		t.Errorf("%+v, by %v", got, b.proven)
	}
	covered := b.nowNS
	for _, q := range b.queries {
		if q.ToNS != covered {
			t.Fatalf("a slice ends at %d, and what was read begins at %d", q.ToNS, covered)
		}
		if q.ToNS-q.FromNS <= b.mostNS {
			covered = q.FromNS
		}
	}
	if covered != b.nowNS-20*3600*second {
		t.Errorf("read back to %d", covered)
	}
	first := len(b.queries)
	if b.tick(t, r); len(b.queries)-first > first {
		t.Errorf("%d queries, %d at first: what is too much is not remembered", len(b.queries)-first, first)
	}
}

// TestFailuresAreWaitedFor has a source that refuses everything: nothing is marked, and the next
// passes make no queries.
func TestFailuresAreWaitedFor(t *testing.T) {
	b := newTable(2, 3, time.Hour, 0)
	r := b.resolver()
	if got := b.tick(t, r); got.Failed != 2 || got.Proven != 0 || b.marked != 0 {
		t.Errorf("%+v, %d marks", got, b.marked)
	}
	asked := len(b.queries)
	if got := b.tick(t, r); got.Failed != 0 || len(b.queries) != asked || b.marked != 0 {
		t.Errorf("after a failure: %+v in %d queries, %d marks", got, len(b.queries)-asked, b.marked)
	}
}
