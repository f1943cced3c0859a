package simulate

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts/match"
	"tocsin/alerts/silences"
	"tocsin/internal/simulate/model"
	"tocsin/rules"
)

// silencedSeverity is that of the alerts that silences are about.
const silencedSeverity = rules.Warning

// handleSilence begins, edits or ends a silence.
func (w *world) handleSilence() {
	if w.conf.digests && len(w.people.silences) > 0 && w.rand.IntN(3) == 0 {
		w.editSilence(w.people.silences[w.rand.IntN(len(w.people.silences))])
		return
	}
	if n := len(w.people.silences); n > 0 && w.rand.IntN(3) == 0 {
		id := w.people.silences[w.rand.IntN(n)]
		if w.db.EndSilence(id) == nil {
			w.truth.silenced(id)
			w.note("a person ends silence %s", short(id))
		}
		return
	}
	id := uuid.UUID{3, 14: byte(len(w.people.silences) >> 8), 15: byte(len(w.people.silences) + 1)}
	starts := w.pgNow().UTC().Add(time.Duration(w.rand.IntN(4)-1) * 10 * time.Second)
	d := silences.Definition{Name: short(id), StartsAt: starts, Match: match.Match{Severities: []rules.Severity{silencedSeverity}, Scope: w.scope()}}
	ends := starts.Add(time.Duration(20+w.rand.IntN(600)) * time.Second)
	d.EndsAt = &ends
	if w.rand.IntN(3) == 0 {
		d.Recurrence = &silences.Recurrence{
			TimeZone: "UTC", Weekdays: rules.Weekdays(), From: starts.Add(time.Minute).Format("15:04"), DurationMinutes: 1 + w.rand.IntN(10),
		}
	}
	if w.conf.digests {
		d.Digest = w.rand.IntN(4) > 0
	}
	tenant := w.tenant()
	if w.db.CreateSilence(tenant, id, d) != nil {
		return
	}
	w.people.silences = append(w.people.silences, id)
	w.truth.silenced(id)
	w.note("a person silences %v of %s from %s to %s, as %s", d.Match.Scope.Applications, tenant, w.instant(starts.UnixNano()), w.instant(ends.UnixNano()), short(id))
}

// editSilence moves the end of a silence, has it recur or not, or switches its digests.
func (w *world) editSilence(id uuid.UUID) {
	row, there := w.db.Silence(id)
	if !there {
		return
	}
	d := row.Definition
	now := w.pgNow().UTC()
	switch w.rand.IntN(4) {
	case 0, 1:
		d.Digest = !d.Digest
	case 2:
		ends := now.Add(time.Duration(1+w.rand.IntN(600)) * time.Second)
		if !ends.After(d.StartsAt) {
			return
		}
		d.EndsAt = &ends
	default:
		if d.Recurrence != nil {
			d.Recurrence = nil
		} else {
			d.Recurrence = &silences.Recurrence{TimeZone: "UTC", Weekdays: rules.Weekdays(), From: now.Add(time.Duration(w.rand.IntN(4)-2) * time.Minute).Format("15:04"), DurationMinutes: 1 + w.rand.IntN(5)}
		}
	}
	if w.db.UpdateSilence(id, d) != nil {
		return
	}
	w.truth.silenced(id)
	w.note("a person edits silence %s: until %s, recurs %v, digest %v", short(id), w.instant(d.EndsAt.UnixNano()), d.Recurrence, d.Digest)
}

// silenceTruth is a silence: the instants are by Postgres's clock. It recurs every day where it
// lasts for some minutes of one, from a minute of the day on, in UTC.
type silenceTruth struct {
	tenant        string
	fromNS, toNS  int64
	def           rules.Definition
	minute, lasts int64
	digest        bool
}

// silenced notes a silence as it is stored, or that a failover took it away.
func (t *truth) silenced(id uuid.UUID) {
	row, there := t.w.db.Silence(id)
	if !there {
		delete(t.silences, id)
		delete(t.digests, id)
		return
	}
	s := silenceTruth{digest: row.Digest, tenant: row.TenantID, fromNS: row.StartsAt.UnixNano(), toNS: row.EndsAt.UnixNano()}
	s.def.Filter.Statuses = []rules.Status{rules.Failed, rules.Completed}
	s.def.Scope = row.Match.Scope
	if row.EndedAt != nil {
		s.toNS = row.EndedAt.UnixNano()
	}
	if r := row.Recurrence; r != nil {
		s.minute = int64(r.From[0]-'0')*600 + int64(r.From[1]-'0')*60 + int64(r.From[3]-'0')*10 + int64(r.From[4]-'0')
		s.lasts = int64(r.DurationMinutes)
	}
	t.planDigests(id, &s)
	t.silences[id] = s
}

// suppresses reports whether a silence is in force for an exchange at an instant.
func (s *silenceTruth) suppresses(e *exchange, atNS int64) bool {
	return s.tenant == e.tenant && matches(&s.def, e) && s.inForce(atNS)
}

// suppressesCount reports whether a silence is in force at an instant for the alert of a rule on a window: where all that
// it can be about is in applications of the silence, by its group or by the scope of the rule.
func (s *silenceTruth) suppressesCount(a *model.Alert, d *rules.Definition, atNS int64) bool {
	if s.tenant != a.TenantID || a.Severity != silencedSeverity || !s.inForce(atNS) {
		return false
	}
	if len(s.def.Scope.Applications) == 0 {
		return true
	}
	names := d.Scope.Applications
	if d.GroupBy == rules.GroupByApplication {
		names = []string{a.Group}
	}
	for _, name := range names {
		if strings.Contains(name, "*") || !matches(&s.def, &exchange{app: name, status: rules.Failed}) {
			return false
		}
	}
	return len(names) > 0
}

func (s *silenceTruth) inForce(atNS int64) bool {
	const minute, day = int64(time.Minute), 24 * 60 * int64(time.Minute)
	if atNS < s.fromNS || atNS >= s.toNS {
		return false
	}
	return s.lasts == 0 || (atNS%day+day-s.minute*minute)%day < s.lasts*minute
}
