package app

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"tocsin/internal/fault"
	"tocsin/internal/postgres"
	"tocsin/internal/retention"
	"tocsin/notify/template"
	"tocsin/rules"
)

// openRetention makes the deleter. It refuses a retention that is shorter than the look-back of a
// rule, because the rule could alert again on what was deleted.
func (a *App) openRetention(ctx context.Context, db *postgres.DB) (err error) {
	a.deleter, err = retention.New(retention.Options{
		Store: db.Retention(), Observer: a.metrics, Logger: a.options.Logger.With(slog.String("part", "retention")),
		Clock: a.options.Clock, Keep: a.options.Keep, Interval: a.options.RetentionInterval,
	})
	if err != nil {
		return err
	}
	return checkLookBacks(ctx, db, a.options.Keep)
}

// checkLookBacks returns an error if a rule looks back as far as alerts are kept, or further.
func checkLookBacks(ctx context.Context, db *postgres.DB, keep retention.Keep) error {
	name, lookBack, err := db.Retention().LongestLookBack(ctx)
	if err != nil {
		return err
	}
	if !keep.CheckLookBack(lookBack) {
		return fmt.Errorf("the rule %q looks back %v, but alerts are kept only for %v; increase TOCSIN_RETENTION_ALERTS, at least until the look-back of the rule is shorter",
			name, lookBack, keep.Alerts)
	}
	return nil
}

// checkRule returns what is wrong with a definition, including its templates.
func (a *App) checkRule(d *rules.Definition) []fault.Field {
	wrong := template.CheckRule(d)
	if !a.options.Keep.CheckLookBack(time.Duration(d.LookBackSeconds) * time.Second) {
		wrong = append(wrong, fault.Field{
			Field: "lookBackSeconds", Code: "out_of_range",
			Message: "Must be below " + strconv.Itoa(int(a.options.Keep.Alerts.Seconds())) +
				", the retention of alerts; choose less, or ask an administrator to increase TOCSIN_RETENTION_ALERTS",
		})
	}
	return wrong
}
