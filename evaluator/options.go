package evaluator

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"tocsin/notify"
)

// Options configures an [Evaluator]. Source, Store, Publisher, Texts, Logger,
// Clock and Replica are required.
type Options struct {
	Source Source
	Store  Store
	// Cohorts may be nil where the store has none; then none are made.
	Cohorts   Cohorts
	Publisher Publisher
	Texts     Texts
	// Observer is told of each tick; nil is nobody.
	Observer Observer
	Logger   *slog.Logger
	// Clock measures the budget of a tick, and how long to rest; it is never compared
	// with a claim.
	Clock func() time.Time
	// NewID makes the ids of alerts and notifications; version 7 by default.
	NewID func() uuid.UUID
	// Replica names this process in claims.
	Replica string
	// Interval is the time between ticks, 1 s by default.
	Interval time.Duration
	// Rest is the longest time without a question to the store, 5 s by default.
	Rest time.Duration
	// WakeUps says that something may be due earlier than the store said. Each signal
	// is answered at once, and the next tick asks; nil leaves it to Rest.
	WakeUps <-chan notify.Signal
	// Settle is how far the horizon lies behind the source's clock, 0 or more.
	Settle time.Duration
	// PageSize is the most exchanges read at once, 1,000 by default. Where time
	// runs out, fewer are.
	PageSize int
	// ClaimMost is the most rules claimed in a tick, 20,000 by default.
	ClaimMost int
	// CohortLeast is how many rules make a cohort, 100 by default; negative makes
	// none, and dissolves those there are.
	CohortLeast int
	// CohortMost is the most rules of a cohort, 20,000 by default.
	CohortMost int
	// ClaimFor is how long a claim stands without a commit, 30 s by default.
	ClaimFor time.Duration
	// Budget bounds the time that a tick goes on reading, 10 s by default.
	// Whatever is left is read by the next tick.
	Budget time.Duration
}

// Evaluator evaluates rules. Its ticks are made one after the other.
type Evaluator struct {
	Options
	raise raiser
	// told holds the problem last logged of each rule that has one, so that a
	// rule which fails each second is logged once.
	told map[uuid.UUID]string
	// suspects holds the counting rules that are not trusted, and until when.
	suspects map[uuid.UUID]suspect
	// untallied holds the sets of counting rules a tally of which took too long, and
	// until when none is taken.
	untallied map[setKey]time.Time
	turns     turns
	ledger    *ledger
	known     *known
	cache     *cache
	// cohorts holds those that this process evaluated of late.
	cohorts map[uuid.UUID]*cohort
	pace    pace
	owing   owing
	// askAt is until when there is nothing to claim, as far as the last tick was told.
	askAt time.Time
}

// New returns an evaluator. Its error names the option that cannot be used.
func New(o Options) (*Evaluator, error) {
	if o.Source == nil || o.Store == nil || o.Publisher == nil || o.Texts == nil || o.Logger == nil || o.Clock == nil || o.Replica == "" {
		return nil, errors.New("evaluator: Source, Store, Publisher, Texts, Logger, Clock and Replica are required")
	}
	if o.NewID == nil {
		o.NewID = func() uuid.UUID { return uuid.Must(uuid.NewV7()) }
	}
	o.Interval = orDefault(o.Interval, time.Second)
	o.PageSize = orDefault(o.PageSize, 1000)
	o.ClaimMost = orDefault(o.ClaimMost, 20_000)
	o.CohortLeast = orDefault(o.CohortLeast, 100)
	if o.Cohorts == nil {
		o.CohortLeast = -1
	}
	o.CohortMost = orDefault(o.CohortMost, 20_000)
	o.ClaimFor = orDefault(o.ClaimFor, 30*time.Second)
	o.Budget = orDefault(o.Budget, 10*time.Second)
	o.Rest = orDefault(o.Rest, defaultRest)
	if o.Interval < 0 || o.Rest < 0 || o.Settle < 0 || o.PageSize < 0 || o.ClaimMost < 0 || o.CohortMost < 0 || o.ClaimFor < 0 || o.Budget < 0 {
		return nil, errors.New("evaluator: Interval, Rest, Settle, PageSize, ClaimMost, CohortMost, ClaimFor and Budget must not be negative")
	}
	if o.Budget >= o.ClaimFor {
		return nil, fmt.Errorf("evaluator: Budget %v must be below ClaimFor %v, or claims lapse while they are used", o.Budget, o.ClaimFor)
	}
	return &Evaluator{
		Options: o, raise: raiser{newID: o.NewID, texts: o.Texts}, told: map[uuid.UUID]string{}, suspects: map[uuid.UUID]suspect{},
		untallied: map[setKey]time.Time{}, turns: turns{slow: map[string]time.Time{}}, ledger: newLedger(), known: newKnown(), cache: newCache(), cohorts: map[uuid.UUID]*cohort{}, pace: newPace(o.PageSize),
	}, nil
}

func orDefault[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}
