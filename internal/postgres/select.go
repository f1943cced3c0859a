package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"tocsin/alerts"
	"tocsin/internal/postgres/pgq"
	"tocsin/rules"
)

// conditions are the conditions of a statement on alert a. Values are parameters, never part of the
// text. The index alert_listed decides all conditions, except those of [walks] and the one on the
// execution id.
type conditions struct {
	list []string
	args pgx.NamedArgs
}

func (c *conditions) also(condition, name string, value any) {
	c.list = append(c.list, condition)
	c.args[name] = value
}

func (c *conditions) where() string { return strings.Join(c.list, " and ") }

// unread selects alerts that the reader has not read: those that fired after the reader's mark or
// were marked as unread, and were not read one by one. The first condition is redundant; it lets an
// index be used however much was read.
const unread = `a.fired_at >= @unread_from
  and (a.fired_at > @read_up_to or a.alert_id in (
    select k.alert_id from alert_read k where k.tenant_id = @tenant and k.actor = @reader and not k.read))
  and not exists (select from alert_read k where k.tenant_id = @tenant and k.actor = @reader and k.alert_id = a.alert_id and k.read)`

// selects returns the conditions of a filter.
func (s *Inbox) selects(ctx context.Context, tenant string, f alerts.Filter) (*conditions, error) {
	c := &conditions{list: []string{"a.tenant_id = @tenant"}, args: pgx.NamedArgs{"tenant": tenant}}
	if len(f.IDs) > 0 {
		c.also("a.alert_id = any(@ids)", "ids", f.IDs)
	}
	if len(f.States) > 0 {
		c.also("a.state = any(@states)", "states", f.States)
	}
	if len(f.Severities) > 0 {
		c.also("a.severity = any(@severities)", "severities", f.Severities)
	}
	if len(f.Rules) > 0 {
		c.also("a.rule_id = any(@rules)", "rules", f.Rules)
	}
	if len(f.Applications) > 0 {
		c.also(byHash("application"), "applications", f.Applications)
	}
	if len(f.Routes) > 0 {
		c.also(byHash("route"), "routes", f.Routes)
	}
	if len(f.Signatures) > 0 {
		c.also("a.signature = any(@signatures)", "signatures", f.Signatures)
	}
	if f.PerExchange {
		c.list = append(c.list, "a.execution_id is not null")
	}
	if f.Text != "" {
		c.also("(strpos(lower(a.title), lower(@text)) > 0 or strpos(lower(a.message), lower(@text)) > 0)", "text", f.Text)
	}
	s.selectExchanges(c, &f)
	if f.From != nil {
		c.also("a.fired_at >= @from", "from", *f.From)
	}
	if f.UpTo != nil {
		c.also("a.fired_at <= @up_to", "up_to", *f.UpTo)
	}
	if f.MineOf != nil {
		mine, err := targetsOf(f.MineOf)
		if err != nil {
			return nil, err
		}
		c.also(ofMine, "mine", mine)
		c.args["me"], c.args["teams"] = namesOf(f.MineOf, rules.TargetUser), namesOf(f.MineOf, rules.TargetTeam)
	}
	if len(f.Assignees) > 0 {
		c.also(assignedTo, "assignees", f.Assignees)
	}
	if f.Snoozed != nil {
		c.also(isSnoozed, "snoozed", *f.Snoozed)
	}
	if f.UnreadBy != "" {
		mark, err := readUpTo(ctx, s.db.queries, tenant, f.UnreadBy)
		if err != nil {
			return nil, err
		}
		from, err := s.db.queries.ReaderUnreadFrom(ctx, pgq.ReaderUnreadFromParams{ReadUpTo: mark, TenantID: tenant, Actor: f.UnreadBy})
		if err != nil {
			return nil, fmt.Errorf("read the mark of the reader: %w", err)
		}
		c.also(unread, "read_up_to", mark)
		c.args["unread_from"], c.args["reader"] = from, f.UnreadBy
	}
	return c, nil
}

// selectExchanges adds the conditions on the exchanges of alerts. An exchange is found by its id
// through the index of the constraint alert_once. There is no index for the other conditions, see
// [walks].
func (*Inbox) selectExchanges(c *conditions, f *alerts.Filter) {
	if f.ExecutionID != "" {
		c.also(`a.rule_id = any(array(select r.rule_id from rule r where r.tenant_id = @tenant)) and a.execution_id = @execution_id`,
			"execution_id", f.ExecutionID)
	}
	if len(f.Environments) > 0 {
		c.also("a.exchange::jsonb->>'environment' = any(@environments)", "environments", f.Environments)
	}
	if f.CorrelationID != "" {
		c.also("a.exchange::jsonb->>'correlationId' = @correlation_id", "correlation_id", f.CorrelationID)
	}
	if len(f.Attributes) > 0 {
		c.also("a.exchange::jsonb->'attributes' @> @attributes::jsonb", "attributes", f.Attributes)
	}
}

// walks reports whether a list must read alerts one after another, because the filter has
// conditions without an index.
func walks(f *alerts.Filter) bool {
	return f.Text != "" || len(f.Environments) > 0 || f.CorrelationID != "" || len(f.Attributes) > 0
}

// withoutWalk returns the part of a filter that an index decides.
func withoutWalk(f alerts.Filter) alerts.Filter {
	f.Text, f.Environments, f.CorrelationID, f.Attributes = "", nil, "", nil
	return f
}

// ofMine selects the alerts of rules that have one of some targets or are owned by some teams, and
// the alerts assigned to somebody.
const ofMine = `(a.rule_id = any(array(
    select r.rule_id from rule r
    where r.tenant_id = @tenant
      and (r.about->>'owner' = any(@teams::text[])
           or exists (select from unnest(@mine::text[]) m (target) where jsonb_contains(r.targets, m.target::jsonb)))))
  or a.alert_id in (select h.alert_id from alert_assignment h where h.tenant_id = @tenant and h.assignee = any(@me::text[])))`

// assignedTo selects the alerts assigned to somebody; the empty name selects alerts assigned to
// nobody.
const assignedTo = `(a.alert_id in (select h.alert_id from alert_assignment h where h.tenant_id = @tenant and h.assignee = any(@assignees::text[]))
  or '' = any(@assignees::text[]) and a.alert_id not in (select h.alert_id from alert_assignment h where h.tenant_id = @tenant))`

// isSnoozed selects the alerts that are snoozed, or the others.
const isSnoozed = `(a.state <> 'RESOLVED'
  and a.alert_id in (select z.alert_id from alert_snooze z where z.tenant_id = @tenant and z.until > now())) = @snoozed::boolean`

// namesOf returns the names of the targets of a kind.
func namesOf(targets []rules.Target, kind rules.TargetKind) []string {
	names := []string{}
	for _, t := range targets {
		if t.Kind == kind {
			names = append(names, t.Name)
		}
	}
	return names
}

// byHash selects the alerts whose column has one of the values of its parameter. The index contains
// only the hash.
func byHash(column string) string {
	return fmt.Sprintf(`hashtext(a.%[1]s) = any(array(select hashtext(v) from unnest(@%[1]ss::text[]) w (v))) and a.%[1]s = any(@%[1]ss)`, column)
}

// targetsOf returns each target as the JSON text of a list with only this target.
func targetsOf(targets []rules.Target) ([]string, error) {
	list := make([]string, len(targets))
	for i, t := range targets {
		text, err := json.Marshal([]rules.Target{t})
		if err != nil {
			return nil, fmt.Errorf("encode target: %w", err)
		}
		list[i] = string(text)
	}
	return list, nil
}

// readUpTo returns a reader's mark; the zero time if there is none.
func readUpTo(ctx context.Context, q *pgq.Queries, tenant, actor string) (time.Time, error) {
	mark, err := q.ReaderGet(ctx, pgq.ReaderGetParams{TenantID: tenant, Actor: actor})
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return time.Time{}, fmt.Errorf("read the mark of the reader: %w", err)
	}
	return mark, nil
}
