package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"tocsin/internal/fault"
)

// StatusSource reads the state of the system.
type StatusSource interface {
	Status(ctx context.Context, tenant string) (SystemStatus, error)
}

// SystemStatus is the state of a tenant's rules and of the outbox.
type SystemStatus struct {
	// Now is the present instant by the clock of the store.
	Now                 time.Time
	Rules, EnabledRules int64
	// FailingRules is the number of enabled rules whose last evaluation failed.
	FailingRules int64
	// Backfilling is the number of enabled rules with a backfill behind their cursors. BackfillFrom
	// is the earliest start time to be evaluated; nil if there is none.
	Backfilling  int64
	BackfillFrom *time.Time
	// Partitions are the partitions of all tenants.
	Partitions []PartitionRecord
	// Slowest is the enabled rule that is furthest behind; nil if none has a cursor.
	Slowest *RuleLag
	// OutboxDepth is the number of notifications that are not settled. OldestAge is the age of the
	// oldest of them, by Postgres's clock; nil if there is none. The number is exact unless
	// Estimated is set.
	OutboxDepth     int64
	OutboxEstimated bool
	OldestAge       *time.Duration
	// Completeness is nil before the first comparison of rules with the source.
	Completeness *Completeness
}

// PartitionRecord is a partition as people see it.
type PartitionRecord struct {
	Partition int
	// CursorAt is the start time of the cursor; nil before the first pass. Lag is how far it is
	// behind the present, by Postgres's clock.
	CursorAt *time.Time
	Lag      *time.Duration
	// BackfillFrom is the earliest start time behind the cursor that is still to be evaluated; nil if
	// there is none.
	BackfillFrom *time.Time
	// Owner is the replica that holds the partition; empty if none does.
	Owner string
}

// Completeness is the result of the comparisons of the rules of all tenants with the source.
type Completeness struct {
	// Rules is how many rules the last round compared. Missing is how many matching exchanges
	// without an alert that round or the present one found.
	Rules, Missing int64
	ComparedAt     time.Time
	// WholeSince is an instant since which every rule was compared; nil before the first complete
	// round.
	WholeSince *time.Time
}

// RuleLag is how far a rule is behind.
type RuleLag struct {
	RuleID   uuid.UUID
	RuleName string
	Lag      time.Duration
}

const (
	// checkTimeout bounds one check of a dependency.
	checkTimeout = 2 * time.Second
	// checkAge is how old a shown check may be: probes cause at most one check in that time,
	// however many probes there are.
	checkAge = time.Second
)

// health checks the dependencies.
type health struct {
	checks []Check
	log    *slog.Logger
	now    func() time.Time

	// mu is held during a check, so that concurrent callers share it.
	mu     sync.Mutex
	seen   []Dependency
	seenAt time.Time
	// down holds the dependencies whose failure is already in the log.
	down map[string]bool

	// draining is set when this process is about to end.
	draining atomic.Bool
}

func newHealth(checks []Check, log *slog.Logger, now func() time.Time) *health {
	return &health{checks: checks, log: log, now: now, down: map[string]bool{}}
}

// look returns the state of each dependency, at most [checkAge] old, in the order of the checks.
func (h *health) look(ctx context.Context) []Dependency {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen == nil || h.now().Sub(h.seenAt) >= checkAge {
		h.seen = h.ask(ctx)
		h.seenAt = h.now()
	}
	return h.seen
}

// ask checks all dependencies at once. It continues if its caller disconnects, because the answer
// serves other callers as well.
func (h *health) ask(ctx context.Context) []Dependency {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
	defer cancel()
	errs := make([]error, len(h.checks))
	var wg sync.WaitGroup
	for i, check := range h.checks {
		wg.Go(func() { errs[i] = check.Ask(ctx) })
	}
	wg.Wait()
	found := make([]Dependency, len(h.checks))
	for i, check := range h.checks {
		found[i] = Dependency{Name: check.Name, Reachable: errs[i] == nil}
		if errs[i] != nil {
			text := "Cannot be reached; the log shows the reason"
			if known, ok := errors.AsType[*fault.Error](errs[i]); ok {
				text = known.Message
			}
			found[i].Error = &text
		}
		h.logChange(ctx, check.Name, errs[i])
	}
	return found
}

// logChange logs once when a dependency goes away, and once when it comes back.
func (h *health) logChange(ctx context.Context, name string, err error) {
	switch {
	case err != nil && !h.down[name]:
		h.log.LogAttrs(ctx, slog.LevelError, "dependency cannot be used; run tocsin doctor for the remedy", slog.String("dependency", name), slog.Any("error", err))
	case err == nil && h.down[name]:
		h.log.LogAttrs(ctx, slog.LevelInfo, "dependency can be used again", slog.String("dependency", name))
	}
	h.down[name] = err != nil
}

// alive answers /healthz: the process answers.
func (h *health) alive(c echo.Context) error {
	return c.JSON(http.StatusOK, map[string]string{"status": "ok"})
}

// closeWhileDraining makes clients open their next connection elsewhere: an idle connection would
// be cut when the server ends.
func (h *health) closeWhileDraining(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if h.draining.Load() {
			c.Response().Header().Set(echo.HeaderConnection, "close")
		}
		return next(c)
	}
}

// ready answers /readyz with what is missing: 503 if a required dependency is missing or this
// process is about to end.
func (h *health) ready(c echo.Context) error {
	if h.draining.Load() {
		return c.JSON(http.StatusServiceUnavailable, readiness{Status: "stopping", Missing: []string{}})
	}
	answer := readiness{Status: "ready", Missing: []string{}}
	status := http.StatusOK
	for i, d := range h.look(c.Request().Context()) {
		if d.Reachable {
			continue
		}
		answer.Missing = append(answer.Missing, d.Name)
		if answer.Reasons == nil {
			answer.Reasons = map[string]string{}
		}
		answer.Reasons[d.Name] = *d.Error
		if h.checks[i].Required {
			answer.Status, status = "not ready", http.StatusServiceUnavailable
		}
	}
	return c.JSON(status, answer)
}

type readiness struct {
	Status  string   `json:"status"`
	Missing []string `json:"missing"`
	// Reasons says by name why what is missing is; without addresses and secrets.
	Reasons map[string]string `json:"reasons,omitempty"`
}

// GetStatus answers GET /status. It also answers while Postgres is away, because that is when
// people look. If people must sign in, they cannot be recognised then, and /readyz shows the
// problem instead.
func (s *server) GetStatus(ctx context.Context, _ GetStatusRequestObject) (GetStatusResponseObject, error) {
	dependencies := s.health.look(ctx)
	ready := !slices.ContainsFunc(dependencies, func(d Dependency) bool { return !d.Reachable })
	answer := GetStatus200JSONResponse{
		ReplicaID:    s.ReplicaID,
		Version:      s.Version,
		StartedAt:    s.startedAt.UTC(),
		Now:          s.Now().UTC(),
		Ready:        ready,
		Dependencies: dependencies,
	}
	state, err := s.Status.Status(ctx, tenantOf(ctx))
	switch {
	case err != nil && ready:
		return nil, fmt.Errorf("read status: %w", err)
	case err != nil:
		s.Log.LogAttrs(ctx, slog.LevelWarn, "status is incomplete, because Postgres cannot be used; run tocsin doctor for the remedy", slog.Any("error", err))
		return answer, nil
	}
	answer.Now = state.Now.UTC()
	answer.Rules = &RuleStatus{
		Total: state.Rules, Enabled: state.EnabledRules, Failing: state.FailingRules,
		Backfilling: state.Backfilling, BackfillFrom: state.BackfillFrom, LookingBack: state.Backfilling, LookingBackTo: state.BackfillFrom,
	}
	answer.Partitions = partitionsAnswer(state.Partitions)
	if state.Slowest != nil {
		answer.Rules.SlowestLagSeconds = seconds(&state.Slowest.Lag)
		answer.Rules.SlowestRuleID = &state.Slowest.RuleID
		answer.Rules.SlowestRuleName = &state.Slowest.RuleName
	}
	answer.Outbox = &OutboxStatus{Depth: state.OutboxDepth, Estimated: state.OutboxEstimated, OldestAgeSeconds: seconds(state.OldestAge)}
	if c := state.Completeness; c != nil {
		answer.Completeness = &CompletenessStatus{Rules: c.Rules, Missing: c.Missing, ComparedAt: c.ComparedAt.UTC()}
		if c.WholeSince != nil {
			answer.Completeness.WholeSince = new(c.WholeSince.UTC())
		}
	}
	return answer, nil
}

func partitionsAnswer(list []PartitionRecord) *[]PartitionStatus {
	answer := make([]PartitionStatus, len(list))
	for i, p := range list {
		answer[i] = PartitionStatus{
			Partition: p.Partition, CursorAt: utc(p.CursorAt), LagSeconds: seconds(p.Lag), BackfillFrom: utc(p.BackfillFrom), Owner: optional(p.Owner),
		}
	}
	return &answer
}
