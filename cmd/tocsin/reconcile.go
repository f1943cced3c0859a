package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/app"
)

// reconcile is the command that compares alerts with exchanges.
type reconcile struct {
	database
	sourceFlags

	Hours   int           `help:"How far to look back, not before a rule was armed." default:"24"`
	Rule    []uuid.UUID   `help:"Rules to compare, by their ids; without it every enabled rule that raises an alert for each exchange." placeholder:"ID"`
	Confirm time.Duration `help:"How long to wait before what is missing is looked for again: what became visible just now is still to be found." default:"30s"`
}

const (
	// maxReconcileHours is ten years.
	maxReconcileHours = 10 * 365 * 24
	// unjudgedNamed is how many rules are named that have judged nothing.
	unjudgedNamed = 10
)

// Run compares and prints. That anything is missing is an error.
func (r *reconcile) Run(ctx context.Context, out io.Writer) error {
	if r.Hours < 1 || r.Hours > maxReconcileHours || r.Confirm < 0 {
		return fmt.Errorf("--hours must be from 1 to %d, --confirm must not be negative", maxReconcileHours)
	}
	mapping, err := r.mapping()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintln(table, "RULE\tID\tMATCHING\tALERTED\tMISSING\tLATE-DROPPED\tUNEXPECTED"); err != nil {
		return err
	}
	var missing, until int64
	var samples, unjudged []string
	err = app.Reconcile(ctx, app.ReconcileOptions{
		PostgresURL: r.PostgresURL, ClickHouseURL: r.ClickHouseURL, Source: mapping, Rules: r.Rule,
		Last: time.Duration(r.Hours) * time.Hour, Confirm: r.Confirm, Version: buildVersion(),
	}, func(c app.Reconciliation) error {
		missing += c.Missing
		switch {
		case c.ToNS == 0:
			unjudged = append(unjudged, c.RuleName)
		case until == 0 || c.ToNS < until:
			until = c.ToNS
		}
		if c.Missing > 0 {
			samples = append(samples, fmt.Sprintf("%s: %s", c.RuleName, strings.Join(c.MissingSample, ", ")))
		}
		_, err := fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%d\n", c.RuleName, c.RuleID, c.Matching, c.Alerted, c.Missing, c.LateDropped, c.Unexpected)
		return err
	})
	if err := errors.Join(table.Flush(), err); err != nil {
		return err
	}
	if err := printUntil(out, until, unjudged); err != nil {
		return err
	}
	for _, s := range samples {
		if _, err := fmt.Fprintf(out, "missing of %s\n", s); err != nil {
			return err
		}
	}
	if missing > 0 {
		return fmt.Errorf("%d exchanges that match have no alert", missing)
	}
	return nil
}

// printUntil prints up to when exchanges were compared, and of which rules
// none were: who has just started would take the zeros of the table for an answer.
func printUntil(out io.Writer, untilNS int64, unjudged []string) error {
	if untilNS == 0 {
		_, err := fmt.Fprintln(out, "No rule has judged anything yet; nothing was compared.")
		return err
	}
	_, err := fmt.Fprintf(out, "Compared is what ended until %s; newer exchanges are still being found.\n", time.Unix(0, untilNS).UTC().Format(time.RFC3339))
	if err != nil || len(unjudged) == 0 {
		return err
	}
	names := strings.Join(unjudged[:min(len(unjudged), unjudgedNamed)], ", ")
	if more := len(unjudged) - unjudgedNamed; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	_, err = fmt.Fprintf(out, "Rules that have judged nothing yet, and were not compared: %d (%s).\n", len(unjudged), names)
	return err
}
