package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tocsin/internal/bench/lab"
	"tocsin/internal/bench/product"
	"tocsin/internal/bench/report"
)

// restart is L6: a process starts after another one was killed, with a full look-back.
func restart(ctx context.Context, b bench) ([]report.Result, error) {
	count := lab.Either(b.Quick, 100_000, 3_000_000)
	r := report.Result{
		ID: "L6", Title: fmt.Sprintf("Restart: a process starts after a kill, with %s exchanges in the look-back", report.Number(float64(count))),
		Unit: "a start",
		Notes: []string{
			"The look-back is an hour. One exchange in a hundred failed and has its alert. Meanwhile a failure is written every 100 ms. The first process is killed (SIGKILL), and the second one is started at once.",
			"The second process can take the partition only when the lease of the first one has expired (TOCSIN_PARTITION_LEASE, 15 s). A process that is stopped by SIGTERM releases its lease.",
		},
	}
	s, err := b.restarted(ctx, int64(count))
	if err != nil {
		return []report.Result{r}, err
	}
	r.Figures = []report.Figure{
		report.One("the partition is taken after", "s", s.held.Seconds(), nil),
		report.One("first new alert after the start", "s", s.first.Seconds(), nil),
		report.One("first new alert after the partition was taken", "s", (s.first - s.held).Seconds(), report.AtMost(3)),
		report.One("look-back done after the partition was taken", "s", (s.done - s.held).Seconds(), report.AtMost(30)),
		report.Of("a new failure is alerted meanwhile, counted from when it is visible", "s", s.fresh, nil),
	}
	return []report.Result{r}, nil
}

// second is what was measured of the second process, from its start on.
type second struct {
	held, first, done time.Duration
	// fresh is how long after it became visible each failure was alerted that was written after the
	// partition was taken, in seconds.
	fresh []float64
}

func (b bench) restarted(ctx context.Context, count int64) (s second, err error) {
	world, err := b.Engines.NewWorld(ctx)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, world.Close(ctx)) }()
	if _, err := world.Rule(ctx, nil); err != nil {
		return s, err
	}
	past := product.Past{Count: count, Span: time.Hour - time.Minute, FailedEvery: 100}
	if err := errors.Join(world.LeftBehind(ctx, 0), world.History(ctx, past)); err != nil {
		return s, err
	}
	first, err := world.Start(ctx)
	if err != nil {
		return s, err
	}
	_, err = world.AwaitCaughtUp(ctx)
	owner := ""
	if err == nil {
		owner, err = world.Owner(ctx)
	}
	first.Kill()
	if err != nil {
		return s, err
	}
	began := time.Now()
	other, err := world.Start(ctx)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, other.End()) }()
	var held, done time.Time
	visible, err := world.TrickleUntil(ctx, "new-", 1, func() (bool, error) {
		if held.IsZero() {
			now, err := world.Owner(ctx)
			if now != owner && now != "" {
				held = time.Now()
			}
			return false, err
		}
		// The first commit after a start stores what is to be evaluated as the backfill mark.
		caughtUp, err := world.CaughtUp(ctx, held.UnixNano())
		if caughtUp {
			done = time.Now()
		}
		return caughtUp, err
	})
	if err == nil {
		err = world.AwaitJudged(ctx, time.Now().UnixNano())
	}
	if err != nil {
		return s, err
	}
	commits, err := world.Commits(ctx)
	if err != nil {
		return s, err
	}
	s.held, s.done = held.Sub(began), done.Sub(began)
	for id, at := range commits {
		if !strings.HasPrefix(id, "new-") {
			continue
		}
		after := time.Unix(0, at).Sub(began)
		if s.first == 0 || after < s.first {
			s.first = after
		}
		if visible[id] > held.UnixNano() {
			s.fresh = append(s.fresh, time.Duration(at-visible[id]).Seconds())
		}
	}
	if len(commits) != int(count)/100+len(visible) {
		err = fmt.Errorf("%d alerts, want %d of the look-back and %d new ones", len(commits), count/100, len(visible))
	}
	return s, err
}
