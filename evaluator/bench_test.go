package evaluator_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/rules"
)

// steady is a source and a store in which time passes by ten seconds a tick,
// and as many exchanges failed in between as perTick says.
type steady struct {
	*model
	now, perTick int64
	claims       []evaluator.Claim
	queries      int
}

func (s *steady) Now(context.Context) (int64, error) { s.queries++; return s.now, nil }

func (s *steady) Scan(_ context.Context, scan evaluator.Scan) ([]rules.Exchange, error) {
	s.queries++
	step := 10 * second / max(1, s.perTick)
	var page []rules.Exchange
	for ns := (max(scan.After.StartTimeNS, s.now-20*second)/step + 1) * step; ns < scan.BeforeNS && s.perTick > 0 && len(page) < scan.Limit; ns += step {
		n := ns / step
		page = append(page, rules.Exchange{
			TenantID: scan.TenantID, StartTimeNS: ns, ExecutionID: fmt.Sprint(n), Status: rules.Failed, Environment: "production",
			Application: fmt.Sprintf("app-%d", n%500), Route: fmt.Sprintf("route-%d", n%10),
		})
	}
	return page, nil
}

func (s *steady) Fingerprints(_ context.Context, q evaluator.FingerprintQuery) ([]evaluator.Fingerprint, error) {
	s.queries++
	var prints []evaluator.Fingerprint
	for b := q.FromNS / q.WidthNS; b*q.WidthNS < q.ToNS; b++ {
		prints = append(prints, evaluator.Fingerprint{Status: rules.Failed, Bucket: b, Count: uint64(s.perTick)})
	}
	return prints, nil
}

func (s *steady) Rows(_ context.Context, _ string, fromNS, toNS int64) (uint64, error) {
	s.queries++
	return uint64(s.perTick * (toNS - fromNS) / (10 * second)), nil
}

func (s *steady) Load(context.Context, evaluator.ClaimRequest) (evaluator.Loaded, error) {
	return evaluator.Loaded{Claims: slices.Clone(s.claims)}, nil
}

func (s *steady) Commit(_ context.Context, b evaluator.Batch) (evaluator.Committed, error) {
	var done evaluator.Committed
	moved := make(map[uuid.UUID]cursor.Position, len(b.Advances))
	for _, a := range b.Advances {
		done.Advanced = append(done.Advanced, a.RuleID)
		moved[a.RuleID] = a.To
	}
	for i := range s.claims {
		if to, ok := moved[s.claims[i].Rule.ID]; ok {
			s.claims[i].From = &to
		}
	}
	return done, nil
}

// manyRules returns n rules, a tenth of them with wildcards. None of them
// matches anything but one in ten, which waits for an error that never comes.
func manyRules(n int) []rules.Rule {
	list := make([]rules.Rule, n)
	for i := range list {
		d := rules.Definition{
			Name: fmt.Sprintf("rule %05d", i), Enabled: true, FireMode: rules.PerExchange, Severity: rules.Warning,
			IntervalSeconds: 10, LookBackSeconds: 3600,
			Scope: rules.Scope{
				Environments: []string{"production"},
				Applications: []string{fmt.Sprintf("app-%d", i%500)}, Routes: []string{fmt.Sprintf("route-%d", i%97)},
			},
			Filter: rules.Filter{ErrorMessageMatches: `never|nowhere`},
		}
		if i%10 == 0 {
			d.Scope.Routes = []string{fmt.Sprintf("route-%d*", i%97)}
		}
		list[i] = rules.Rule{Definition: d, ID: uuid.UUID{14: byte(i >> 8), 15: byte(i)}, TenantID: "default", Version: 1, ArmedSinceNS: begin}
	}
	return list
}

// BenchmarkTick measures what one interval of ten seconds costs this process:
// ns/op is the time of the tick, and cores what part of a core that takes.
func BenchmarkTick(b *testing.B) {
	for _, rows := range []int64{0, 100, 5000} {
		b.Run(fmt.Sprintf("10000 rules, %d exchanges", rows), func(b *testing.B) {
			s := &steady{model: &model{}, now: begin + 3600*second, perTick: rows}
			for _, r := range manyRules(10_000) {
				s.claims = append(s.claims, evaluator.Claim{Rule: r, Token: 1, From: &cursor.Position{StartTimeNS: s.now}})
			}
			e, err := evaluator.New(evaluator.Options{
				Source: s, Store: s, Publisher: s, Texts: s, Logger: slog.New(slog.DiscardHandler),
				Clock: func() time.Time { return time.Unix(0, s.now) }, Replica: "bench",
			})
			if err != nil {
				b.Fatal(err)
			}
			pass := func() {
				s.now += 10 * second
				if result, err := e.Tick(b.Context()); err != nil || result.Rules != 10_000 || result.Stale+result.Failed > 0 {
					b.Fatalf("Tick = %+v, %v", result, err)
				}
			}
			pass()
			s.queries = 0
			before := cpu(b)
			for b.Loop() {
				pass()
			}
			b.ReportMetric(float64(cpu(b)-before)/float64(b.N)/float64(10*time.Second), "cores")
			b.ReportMetric(float64(s.queries)/float64(b.N), "queries/op")
		})
	}
}

// cpu returns the processor time that this process has used.
func cpu(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
