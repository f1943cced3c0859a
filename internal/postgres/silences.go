package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/alerts/match"
	"tocsin/alerts/silences"
	"tocsin/api"
	"tocsin/internal/fault"
	"tocsin/internal/postgres/pgq"
	"tocsin/rules"
)

// maxSilences is how many silences of a tenant may be upcoming or in force at a time.
const maxSilences = 500

// Silences is the API's store of silences.
type Silences struct {
	db *DB
	// TakesDigests reports whether the receiver of a preset takes digests. By default, all do.
	TakesDigests func(preset string) bool
}

// Clock returns the present instant by Postgres's clock.
func (db *DB) Clock(ctx context.Context) (time.Time, error) {
	now, err := db.queries.SilenceClock(ctx)
	if err != nil {
		return now, fmt.Errorf("read clock: %w", err)
	}
	return now, nil
}

// Silences returns the API's store of silences.
func (db *DB) Silences() *Silences {
	return &Silences{db: db, TakesDigests: func(string) bool { return true }}
}

// Open returns the silences that have not ended by their own definition, newest first.
func (s *Silences) Open(ctx context.Context, tenant string) ([]api.SilenceRecord, error) {
	rows, err := s.db.queries.SilencesOpen(ctx, pgq.SilencesOpenParams{TenantID: tenant, Most: maxSilences})
	if err != nil {
		return nil, fmt.Errorf("list silences: %w", err)
	}
	list := make([]api.SilenceRecord, len(rows))
	for i := range rows {
		list[i] = silenceRecord(&rows[i].Silence, rows[i].Now, rows[i].Suppressed, rows[i].Digests)
	}
	return list, nil
}

// Past returns the silences that have ended, newest first, of those made before one.
func (s *Silences) Past(ctx context.Context, tenant string, before *uuid.UUID, limit int) ([]api.SilenceRecord, error) {
	rows, err := s.db.queries.SilencesPast(ctx, pgq.SilencesPastParams{TenantID: tenant, BeforeID: before, Most: int32(limit)})
	if err != nil {
		return nil, fmt.Errorf("list silences: %w", err)
	}
	list := make([]api.SilenceRecord, len(rows))
	for i := range rows {
		list[i] = silenceRecord(&rows[i].Silence, rows[i].Now, rows[i].Suppressed, rows[i].Digests)
	}
	return list, nil
}

// Get returns one silence.
func (s *Silences) Get(ctx context.Context, tenant string, id uuid.UUID) (api.SilenceRecord, error) {
	return getSilence(ctx, s.db.queries, tenant, id)
}

func getSilence(ctx context.Context, q *pgq.Queries, tenant string, id uuid.UUID) (api.SilenceRecord, error) {
	row, err := q.SilenceGet(ctx, pgq.SilenceGetParams{TenantID: tenant, SilenceID: id})
	if err != nil {
		return api.SilenceRecord{}, notFound(err, "silence")
	}
	return silenceRecord(&row.Silence, row.Now, row.Suppressed, row.Digests), nil
}

func silenceRecord(row *pgq.Silence, now time.Time, suppressed, digests int64) api.SilenceRecord {
	r := api.SilenceRecord{Silence: silenceOf(row), Suppressed: suppressed, Digests: digests}
	if c, err := silences.Compile(&r.Silence); err == nil {
		r.Status = c.At(now)
		return r
	} else if r.Problem == "" {
		r.Problem = err.Error()
	}
	r.Status.State = silences.Upcoming // it suppresses nothing
	if r.EndedAt != nil || r.EndsAt != nil && !r.EndsAt.After(now) {
		r.Status.State = silences.Past
	}
	return r
}

// change runs f in a transaction during which the tenant's partition commits nothing.
func (s *Silences) change(ctx context.Context, tenant string, f func(q *pgq.Queries) (uuid.UUID, error)) (api.SilenceRecord, error) {
	var done api.SilenceRecord
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		if err := q.PartitionsShare(ctx); err != nil {
			return fmt.Errorf("keep partitions: %w", err)
		}
		hash := strconv.FormatUint(xxhash.Sum64String(tenant), 10)
		if err := q.TenantAssign(ctx, pgq.TenantAssignParams{TenantID: tenant, Hash: hash}); err != nil {
			return fmt.Errorf("assign tenant: %w", err)
		}
		if _, err := q.SilencesHold(ctx, tenant); err != nil {
			return fmt.Errorf("hold partition: %w", err)
		}
		id, err := f(q)
		if err != nil {
			return err
		}
		done, err = getSilence(ctx, q, tenant, id)
		return err
	})
	return done, err
}

// Create stores a valid silence. It begins now at the earliest.
func (s *Silences) Create(ctx context.Context, tenant, actor string, d silences.Definition) (api.SilenceRecord, error) {
	done, err := s.change(ctx, tenant, func(q *pgq.Queries) (uuid.UUID, error) {
		id := uuid.Must(uuid.NewV7())
		if err := mayHold(ctx, q, tenant, id, d.Name); err != nil {
			return id, err
		}
		matched, recurrence, err := silenceColumns(&d)
		if err != nil {
			return id, err
		}
		is, err := q.SilenceInsert(ctx, pgq.SilenceInsertParams{
			SilenceID: id, TenantID: tenant, Name: d.Name, Reason: d.Reason, Match: matched, Recurrence: recurrence,
			StartsAt: d.StartsAt, EndsAt: d.EndsAt, Digest: d.Digest, Actor: actor,
		})
		if err != nil {
			return id, overAlready(err)
		}
		return id, replanSilenceDigests(ctx, q, nil, &is, is.StartsAt)
	})
	if err != nil {
		return done, fmt.Errorf("create silence: %w", err)
	}
	return done, nil
}

// mayHold refuses a silence whose name is used by another one that has not ended, and a silence
// beyond the maximum.
func mayHold(ctx context.Context, q *pgq.Queries, tenant string, id uuid.UUID, name string) error {
	taken, err := q.SilenceNamed(ctx, pgq.SilenceNamedParams{TenantID: tenant, Name: name, Other: id})
	if err != nil {
		return fmt.Errorf("look up name: %w", err)
	}
	if taken {
		return fault.New(fault.Conflict, "another active or upcoming silence has the name %q; edit or end that one, or choose another name", name)
	}
	open, err := q.SilencesOpenCount(ctx, pgq.SilencesOpenCountParams{TenantID: tenant, Other: id})
	if err != nil {
		return fmt.Errorf("count silences: %w", err)
	}
	if open >= maxSilences {
		return fault.New(fault.Conflict, "there are already %d active or upcoming silences; end one first", open)
	}
	return nil
}

// overAlready turns the refusal of an end before the start into a fault. The start may be later
// than requested.
func overAlready(err error) error {
	if isCheck(err, "silence_ends_after_start") {
		return fault.InvalidFields("the silence", []fault.Field{{Field: "endsAt", Code: "out_of_range", Message: "Must be after the start, and after the present"}})
	}
	return err
}

func silenceColumns(d *silences.Definition) (matched, recurrence []byte, err error) {
	if matched, err = json.Marshal(d.Match); err != nil {
		return nil, nil, fmt.Errorf("encode match: %w", err)
	}
	if d.Recurrence != nil {
		if recurrence, err = json.Marshal(storedRecurrence(d.Recurrence)); err != nil {
			return nil, nil, fmt.Errorf("encode recurrence: %w", err)
		}
	}
	return matched, recurrence, nil
}

// storedRecurrence returns a recurrence as it is stored, with full names of weekdays: earlier programs
// know no others, and may work with the same database.
func storedRecurrence(r *silences.Recurrence) silences.Recurrence {
	stored, days := *r, rules.Weekdays()
	stored.Weekdays = make([]rules.Weekday, len(r.Weekdays))
	for i, day := range r.Weekdays {
		stored.Weekdays[i] = rules.Weekday(strings.ToUpper(time.Weekday(slices.Index(days, day)).String()))
	}
	return stored
}

// Update replaces the definition of a silence that has not ended. A silence that has begun keeps
// its start.
func (s *Silences) Update(ctx context.Context, tenant, actor string, edit api.SilenceEdit) (api.SilenceRecord, error) {
	done, err := s.change(ctx, tenant, func(q *pgq.Queries) (uuid.UUID, error) {
		was, now, err := s.lock(ctx, q, tenant, edit.ID)
		if err != nil {
			return edit.ID, err
		}
		switch {
		case was.Version != edit.Version:
			return edit.ID, fault.New(fault.Stale, "the silence was changed to version %d since version %d was read; read it again and repeat the edit", was.Version, edit.Version)
		case was.EndedAt != nil || was.EndsAt != nil && !was.EndsAt.After(now):
			return edit.ID, fault.New(fault.Conflict, "the silence is over; create a new one")
		}
		d := edit.Definition
		if err := mayHold(ctx, q, tenant, edit.ID, d.Name); err != nil {
			return edit.ID, err
		}
		matched, recurrence, err := silenceColumns(&d)
		if err != nil {
			return edit.ID, err
		}
		is, err := q.SilenceUpdate(ctx, pgq.SilenceUpdateParams{
			SilenceID: edit.ID, Name: d.Name, Reason: d.Reason, Match: matched, Recurrence: recurrence, StartsAt: d.StartsAt, EndsAt: d.EndsAt,
			Digest: d.Digest, Actor: actor,
		})
		if err != nil {
			return edit.ID, overAlready(err)
		}
		// The start may be earlier than requested.
		stored := silenceOf(&is)
		if err := fault.InvalidFields("the silence", stored.CheckLength()); err != nil {
			return edit.ID, err
		}
		return edit.ID, replanSilenceDigests(ctx, q, was, &is, now)
	})
	if err != nil {
		return done, fmt.Errorf("update silence: %w", err)
	}
	return done, nil
}

// lock locks a silence, writes the digests that are due, and returns the silence and the present
// instant. What it has suppressed until then has committed.
func (s *Silences) lock(ctx context.Context, q *pgq.Queries, tenant string, id uuid.UUID) (*pgq.Silence, time.Time, error) {
	for {
		row, err := q.SilenceLock(ctx, pgq.SilenceLockParams{TenantID: tenant, SilenceID: id})
		if err != nil {
			return nil, time.Time{}, notFound(err, "silence")
		}
		now, err := q.SilenceClock(ctx)
		if err != nil {
			return nil, now, fmt.Errorf("read clock: %w", err)
		}
		if row.DigestAt == nil || row.DigestAt.After(now) {
			return &row, now, nil
		}
		if _, err := writeSilenceDigests(ctx, q, &row, s.TakesDigests); err != nil {
			return nil, now, fmt.Errorf("write digests that are due: %w", err)
		}
	}
}

// End ends a silence early. A silence that has ended stays as it is.
func (s *Silences) End(ctx context.Context, tenant, actor string, id uuid.UUID) (api.SilenceRecord, error) {
	done, err := s.change(ctx, tenant, func(q *pgq.Queries) (uuid.UUID, error) {
		was, now, err := s.lock(ctx, q, tenant, id)
		if err != nil || was.EndedAt != nil || was.EndsAt != nil && !was.EndsAt.After(now) {
			return id, err
		}
		is, err := q.SilenceEnd(ctx, pgq.SilenceEndParams{SilenceID: id, Actor: actor})
		if err != nil {
			return id, err
		}
		return id, replanSilenceDigests(ctx, q, was, &is, *is.EndedAt)
	})
	if err != nil {
		return done, fmt.Errorf("end silence: %w", err)
	}
	return done, nil
}

// mostPreviewed is how many alerts a preview looks at.
const mostPreviewed = 10_000

// Preview returns what a silence would have suppressed in the last 24 hours.
func (s *Silences) Preview(ctx context.Context, tenant string, d silences.Definition) (api.SilencePreview, error) {
	var p api.SilencePreview
	c, err := silences.Compile(&silences.Silence{Definition: d})
	if err != nil {
		return p, fmt.Errorf("preview silence: %w", err)
	}
	rows, err := s.db.queries.SilencePreview(ctx, pgq.SilencePreviewParams{TenantID: tenant, Most: mostPreviewed + 1})
	if err != nil {
		return p, fmt.Errorf("preview silence: %w", err)
	}
	if p.Partial = len(rows) > mostPreviewed; p.Partial {
		rows = rows[:mostPreviewed]
	}
	ruleIDs := map[uuid.UUID]bool{}
	for i := range rows {
		ruleIDs[rows[i].RuleID] = true
	}
	said, err := rulesSaying(ctx, s.db.queries, ruleIDs)
	if err != nil {
		return p, fmt.Errorf("preview silence: %w", err)
	}
	for i := range rows {
		row := &rows[i]
		p.Alerts++
		p.Messages += row.Messages
		of := match.Subject{RuleID: row.RuleID, Severity: rules.Severity(row.Severity)}
		rule, known := said[row.RuleID]
		if !known || !readSubject(row.Exchange, row.Count, &of) {
			continue
		}
		if of.Labels, of.Scope, of.ErrorTypes = rule.Labels, rule.Scope, rule.ErrorTypes; !c.Matches(&of) {
			continue
		}
		p.Matched++
		p.MatchedMessages += row.Messages
		if c.Recurrence == nil || c.Recurs(row.FiredAt) {
			p.Suppressed++
			p.SuppressedMessages += row.Messages
		}
		if len(p.Newest) < api.SilencePreviewNewest {
			p.Newest = append(p.Newest, api.SilencePreviewed{
				AlertID: row.AlertID, Title: row.Title, RuleName: row.RuleName, Severity: rules.Severity(row.Severity), State: alerts.State(row.State), FiredAt: row.FiredAt,
			})
		}
	}
	return p, nil
}
