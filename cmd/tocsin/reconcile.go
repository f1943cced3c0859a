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

	Hours           int           `help:"How many hours to look back, but not before a rule was armed." default:"24"`
	Rule            []uuid.UUID   `help:"IDs of the rules to compare; by default every enabled rule." placeholder:"ID"`
	RetentionAlerts days          `help:"How long the replicas keep alerts after they were resolved; older exchanges cannot be checked." default:"90d" env:"TOCSIN_RETENTION_ALERTS" placeholder:"DAYS"`
	Confirm         time.Duration `help:"How long to wait before checking missing alerts again, because exchanges that have just become visible may still be found." default:"30s"`
}

const (
	// maxReconcileHours is ten years.
	maxReconcileHours = 10 * 365 * 24
	// unevaluatedNamed is how many of the rules that have evaluated nothing are named.
	unevaluatedNamed = 10
)

// Run compares and prints. It returns an error if anything is missing or different.
func (r *reconcile) Run(ctx context.Context, out io.Writer) error {
	if r.Hours < 1 || r.Hours > maxReconcileHours || r.Confirm < 0 {
		return fmt.Errorf("--hours must be from 1 to %d, --confirm must not be negative", maxReconcileHours)
	}
	mapping, err := r.mapping()
	if err != nil {
		return err
	}
	report, err := newReport(out)
	if err != nil {
		return err
	}
	return report.end(app.Reconcile(ctx, app.ReconcileOptions{
		PostgresURL: r.PostgresURL, ClickHouseURL: r.ClickHouseURL, Source: mapping, Rules: r.Rule,
		Last: time.Duration(r.Hours) * time.Hour, Confirm: r.Confirm, Keep: time.Duration(r.RetentionAlerts), Version: buildVersion(),
	}, report.add))
}

// report prints comparisons as a table, and below it what was found.
type report struct {
	out   io.Writer
	table *tabwriter.Writer

	missing, different int64
	// until is the earliest end of a comparison; 0 without one.
	until                          int64
	samples, findings, unevaluated []string
}

func newReport(out io.Writer) (*report, error) {
	r := &report{out: out, table: tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	_, err := fmt.Fprintln(r.table, "TENANT\tRULE\tID\tMATCHING\tALERTED\tMISSING\tLATE-DROPPED\tUNEXPECTED\tDIFFERENT\tLATE\tUNCHECKED")
	return r, err
}

// add adds the comparison of a rule.
func (r *report) add(c app.Reconciliation) error {
	r.missing, r.different = r.missing+c.Missing, r.different+c.Different
	switch {
	case c.ToNS == 0:
		r.unevaluated = append(r.unevaluated, shown(c.RuleName))
	case r.until == 0 || c.ToNS < r.until:
		r.until = c.ToNS
	}
	// What a window rule misses is among its findings, with the reason.
	if c.Missing > 0 && len(c.Findings) == 0 {
		r.samples = append(r.samples, shown(c.RuleName+": "+strings.Join(c.MissingSample, ", ")))
	}
	for i := range c.Findings {
		r.findings = append(r.findings, shown(c.RuleName+": "+findingLine(&c.Findings[i])))
	}
	_, err := fmt.Fprintf(r.table, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", shown(c.TenantID), shown(c.RuleName), c.RuleID, c.Matching, c.Alerted, c.Missing, c.LateDropped, c.Unexpected,
		c.Different, c.Late, c.Unchecked)
	return err
}

// end prints what was found. Its error says what is missing or different, and which rules could not
// be compared, which is failed. What was found about the others is printed all the same.
func (r *report) end(failed error) error {
	if err := r.table.Flush(); err != nil {
		return errors.Join(err, failed)
	}
	if failed != nil && r.until == 0 && len(r.unevaluated) == 0 {
		return failed
	}
	if err := printUntil(r.out, r.until, r.unevaluated); err != nil {
		return errors.Join(err, failed)
	}
	for _, s := range r.samples {
		if _, err := fmt.Fprintf(r.out, "missing for %s\n", s); err != nil {
			return errors.Join(err, failed)
		}
	}
	for _, f := range r.findings {
		if _, err := fmt.Fprintln(r.out, f); err != nil {
			return errors.Join(err, failed)
		}
	}
	switch {
	case r.missing > 0:
		return errors.Join(fmt.Errorf("exchanges or groups that match and have no alert: %d; TocsinAlertsMissing in docs/runbook.md says what to do", r.missing), failed)
	case r.different > 0:
		return errors.Join(fmt.Errorf("alerts whose count differs from the table: %d; see above", r.different), failed)
	}
	return failed
}

// findingLine formats a finding about an alert of a window rule as a line.
func findingLine(f *app.ReconciliationFinding) string {
	line := strings.ToLower(string(f.Kind))
	if f.Kind == app.ReconciledUnexpected {
		line = "unexpected" // as its column
	}
	if f.Group != "" {
		line += fmt.Sprintf(" %q", f.Group)
	}
	if f.AtNS != 0 {
		line += " at " + time.Unix(0, f.AtNS).UTC().Format(time.RFC3339)
	}
	line += ": " + f.Why
	if f.AlertID != uuid.Nil {
		line += fmt.Sprintf("; alert %s says %d", f.AlertID, f.Stored.Observed)
		if f.Stored.Volume > 0 {
			line += fmt.Sprintf(" of %d", f.Stored.Volume)
		}
		line += fmt.Sprintf(", there are %d", f.Found.Observed)
		if f.Found.Volume > 0 {
			line += fmt.Sprintf(" of %d", f.Found.Volume)
		}
	}
	if f.Kind == app.ReconciledLate {
		line += fmt.Sprintf("; up to %v late", f.LateBy.Round(time.Millisecond))
	}
	return line
}

// printUntil prints until when exchanges were compared, and for which rules none were. Otherwise a
// person who has just started could take the zeros of the table for a result.
func printUntil(out io.Writer, untilNS int64, unevaluated []string) error {
	if untilNS == 0 {
		_, err := fmt.Fprintln(out, "Nothing was compared: no rule has evaluated exchanges yet that can be compared. Try again in a few minutes.")
		return err
	}
	_, err := fmt.Fprintf(out, "Exchanges that ended until %s were compared; newer ones may still be found.\n", time.Unix(0, untilNS).UTC().Format(time.RFC3339))
	if err != nil || len(unevaluated) == 0 {
		return err
	}
	names := strings.Join(unevaluated[:min(len(unevaluated), unevaluatedNamed)], ", ")
	if more := len(unevaluated) - unevaluatedNamed; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	_, err = fmt.Fprintf(out, "Rules that have evaluated nothing older than that, and were not compared: %d (%s).\n", len(unevaluated), names)
	return err
}
