package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	api "tocsin/client"
)

// explainExchange is the command that explains why there is an alert about an exchange, or why
// there is none.
type explainExchange struct {
	serverFlags

	ExecutionID string     `arg:"" help:"The ID of the exchange." placeholder:"EXECUTION_ID"`
	StartTime   *time.Time `help:"When the exchange started, RFC 3339 with nanoseconds; without it, the newest exchange with this ID." placeholder:"TIME"`
	Hours       int        `help:"How many hours to search, if the exchange has no alert." default:"24"`
	All         bool       `help:"Also list the rules whose conditions the exchange does not meet."`
}

// Run asks the server and prints the answer.
func (x *explainExchange) Run(ctx context.Context, out io.Writer) error {
	server, err := x.open()
	if err != nil {
		return err
	}
	answer, err := server.ExplainExchangeWithResponse(ctx, &api.ExplainExchangeParams{ExecutionID: x.ExecutionID, StartTime: x.StartTime, Hours: &x.Hours})
	if err := answered(answer, err); err != nil {
		return fmt.Errorf("explain exchange: %w", err)
	}
	if answer.JSON200 == nil {
		return errForeign
	}
	explained := answer.JSON200
	e := &explained.Exchange
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	place := e.Application + " · " + e.Route
	if e.Environment != "" {
		place += " in " + e.Environment
	}
	_, err = fmt.Fprintf(out, "%s: %s, %s, started %s\n", shown(e.ExecutionID), shown(place), e.Status, e.StartTime.Format(time.RFC3339Nano))
	listed, others := 0, 0
	for _, c := range explained.Counts {
		if c.Verdict == api.ExplainVerdictNOTMATCHED {
			others += c.Rules
		}
	}
	for i := range explained.Rules {
		r := &explained.Rules[i]
		if len(r.Unmet) > 0 && !x.All {
			// A rule that was not armed, or is disabled, would not match either.
			if r.Verdict != api.ExplainVerdictNOTMATCHED {
				others++
			}
			continue
		}
		if listed++; listed == 1 && err == nil {
			_, err = fmt.Fprint(table, "\nRULE\tVERDICT\tWHY\n")
		}
		why := r.Detail
		if len(r.Unmet) > 0 {
			why += " Not met: " + strings.Join(r.Unmet, ", ") + "."
		}
		if r.AlertID != nil {
			why += " Alert " + r.AlertID.String() + "."
		}
		if err == nil {
			_, err = fmt.Fprintf(table, "%s\t%s\t%s\n", shown(r.RuleName), r.Verdict, shown(why))
		}
	}
	if err == nil {
		err = table.Flush()
	}
	if others > 0 && !x.All && err == nil {
		_, err = fmt.Fprintln(out, "\n"+unmet(others, listed > 0))
	}
	if len(explained.Counts) == 0 && err == nil {
		_, err = fmt.Fprintln(out, "\nThere are no rules.")
	}
	return err
}

// unmet says that an exchange does not meet the conditions of so many rules, beside those that are
// listed, if any are.
func unmet(count int, listed bool) string {
	other, rule, them := "", "rules", "them"
	if listed {
		other = "other "
	}
	if count == 1 {
		rule, them = "rule", "it"
	}
	return fmt.Sprintf("It does not meet the conditions of %d %s%s; --all lists %s.", count, other, rule, them)
}
