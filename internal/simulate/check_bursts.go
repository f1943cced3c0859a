package simulate

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/internal/simulate/model"
	"tocsin/rules"
)

// burstFor is longer than rules wait until they fire. Only the windows of seeds with short windows are shorter.
const burstFor = 45 * time.Second

// burst has every window rule reach its threshold, for a group that nothing else is about, and holds that each fires, but
// for shares that fall below theirs by what others write. Each fires once, unless servers are asked in turn: one that lags
// may show too few in between. An alert of a window that is over by then has ended.
func (w *world) burst() {
	before, began := len(w.truth.exchanges), w.pgNow()
	list := slices.DeleteFunc(w.windowRules(), (*ruleTruth).absent)
	for _, r := range list {
		d := &r.present().def
		status := rules.Failed
		if len(d.Filter.Statuses) > 0 {
			status = d.Filter.Statuses[0]
		}
		needed := max(d.Threshold, d.MinVolume)
		for range needed {
			end := w.Now().Add(w.chSkew).UnixNano()
			w.write(&exchange{tenant: r.tenant, app: appOf(d), customer: "7", startNS: end - int64(2*time.Second), endNS: end, status: status}, 0)
		}
	}
	w.run(burstFor)
	for _, r := range list {
		d := &r.present().def
		group := groupOf(d, &exchange{app: appOf(d), customer: "7"})
		fired := w.firedSince(r.id, group, began)
		open := slices.IndexFunc(fired, func(a model.Alert) bool { return a.State != alerts.Resolved })
		enough := d.FireMode == rules.CountInWindow || w.isEnough(r, group, before)
		over := time.Duration(d.WindowSeconds+d.ForDurationSeconds)*time.Second+2*w.conf.interval < burstFor
		switch {
		case w.violation != nil || !enough:
		case len(fired) == 0:
			w.violate("P1", "rule %s does not fire for %q, which reached its threshold within its window of %d s", short(r.id), group, d.WindowSeconds)
		case len(fired) > 1 && w.conf.servers == oneServer:
			w.violate("P1", "rule %s fires %d times for %q, which reached its threshold once", short(r.id), len(fired), group)
		case open < 0 && !over:
			w.violate("P4", "rule %s has resolved alert %s within its window of %d s", short(r.id), short(fired[0].ID), d.WindowSeconds)
		case open >= 0 && over:
			w.violate("P4", "rule %s has not resolved alert %s after its window of %d s", short(r.id), short(fired[open].ID), d.WindowSeconds)
		}
	}
}

// isEnough reports whether a share or a percentile is reached by what was written since.
func (w *world) isEnough(r *ruleTruth, group string, since int) bool {
	d := &r.present().def
	var observed, volume int64
	for _, x := range w.truth.exchanges[since:] {
		if x.tenant != r.tenant || groupOf(d, x) != group {
			continue
		}
		is, compared := counts(d, x)
		if is {
			observed++
		}
		if compared {
			volume++
		}
	}
	return reaches(d, observed, volume)
}

// firedSince returns the alerts of a rule for a group that have fired since an instant.
func (w *world) firedSince(rule uuid.UUID, group string, since time.Time) (list []model.Alert) {
	for _, id := range w.db.AlertIDs() {
		if a, _ := w.db.Alert(id); a.RuleID == rule && a.Window && a.Group == group && a.State != alerts.Pending && !a.FiredAt.Before(since) {
			list = append(list, a)
		}
	}
	return list
}
