package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"

	api "tocsin/client"
)

// replay is the command that makes a rule evaluate a range of the past again.
type replay struct {
	serverFlags

	Rule     string     `arg:"" help:"The name of the rule, or its ID." placeholder:"RULE"`
	From     *time.Time `help:"Beginning of the range of start times, RFC 3339." placeholder:"TIME"`
	To       *time.Time `help:"End of the range of start times (exclusive), RFC 3339; by default now." placeholder:"TIME"`
	Last     days       `help:"How far to go back, such as 90m, 36h or 7d, instead of --from and --to." placeholder:"TIME"`
	Messages string     `help:"Messages to send: none (except for exchanges for which the rule may still raise alerts by itself), digest (one message for each webhook and about 5000 alerts, at the end; not for receivers that know alerts by a key, such as PagerDuty) or each (one for each alert)." enum:"none,digest,each" default:"none"`
	DryRun   bool       `help:"Only show which alerts it would raise."`
	NoWait   bool       `help:"Do not wait until the replay has finished."`
	Cancel   bool       `help:"Cancel the running replay of the rule, instead of starting one."`
}

// replayPoll is the time between two looks at a replay. After so many looks in a row without an answer, it is not followed
// any more.
const (
	replayPoll     = time.Second
	unansweredMost = 60
)

// Run starts a replay and follows it to its end.
func (r *replay) Run(ctx context.Context, out io.Writer) error {
	server, err := r.open()
	if err != nil {
		return err
	}
	id, err := r.rule(ctx, server)
	if err != nil {
		return err
	}
	if r.Cancel {
		return r.cancel(ctx, server, id, out)
	}
	now, err := clockOf(ctx, server)
	if err != nil {
		return err
	}
	from, to, err := r.span(now)
	if err != nil {
		return err
	}
	preview, err := server.PreviewReplayWithResponse(ctx, id, api.RuleReplayRange{From: from, To: to})
	if err := answered(preview, err); err != nil {
		return fmt.Errorf("preview replay: %w", err)
	}
	if preview.JSON200 == nil {
		return errForeign
	}
	if err := printReplay(out, preview.JSON200); err != nil || r.DryRun {
		return err
	}
	begun, err := server.StartReplayWithResponse(ctx, id, api.RuleReplayRequest{
		From: from, To: to, Messages: api.RuleReplayMessages(strings.ToUpper(r.Messages)),
	})
	if err := answered(begun, err); err != nil {
		return fmt.Errorf("start replay: %w", err)
	}
	if begun.JSON201 == nil {
		return errForeign
	}
	if r.NoWait {
		_, err := fmt.Fprintf(out, "Replay %s has started.\n", begun.JSON201.ID)
		return err
	}
	return follow(ctx, server, id, begun.JSON201.ID, out)
}

// rule returns the id of the requested rule.
func (r *replay) rule(ctx context.Context, server *api.ClientWithResponses) (uuid.UUID, error) {
	names, err := ruleNames(ctx, server)
	if err != nil {
		return uuid.Nil, err
	}
	if id, known := names.ids[r.Rule]; known {
		return id, nil
	}
	if id, err := uuid.Parse(r.Rule); err == nil && names.names[id] != "" {
		return id, nil
	}
	return uuid.Nil, fmt.Errorf("there is no rule with the name or the ID %q; tocsin export --kind rules shows the names", r.Rule)
}

// span returns the requested range.
func (r *replay) span(now time.Time) (from, to time.Time, err error) {
	to = now
	if r.To != nil {
		to = *r.To
	}
	switch {
	case r.Last > 0 && (r.From != nil || r.To != nil):
		return from, to, errors.New("give either --last, or --from and --to")
	case r.Last > 0:
		return now.Add(-time.Duration(r.Last)), now, nil
	case r.From == nil:
		return from, to, errors.New("the range is missing; give --last 36h, or --from and --to")
	}
	return *r.From, to, nil
}

// printReplay prints what a replay would raise.
func printReplay(out io.Writer, preview *api.RuleReplayPreview) error {
	p, more := &preview.Preview, ""
	if p.Truncated {
		more = fmt.Sprintf(" (only those from %s on were counted)", p.CoveredFrom.Format(time.RFC3339))
	}
	raised := p.Alerts - preview.Existing
	_, err := fmt.Fprintf(out, "Exchanges that match, from %s to %s: %d. Alerts that exist: %d. Alerts to raise: %d%s.\n",
		p.From.Format(time.RFC3339), p.To.Format(time.RFC3339), p.Alerts, preview.Existing, raised, more)
	if shown := int64(len(p.Newest)); shown > 0 && shown < raised && err == nil {
		_, err = fmt.Fprintf(out, "The newest %d:\n", shown)
	}
	for i := range p.Newest {
		if a := &p.Newest[i]; err == nil && a.Exchange != nil {
			_, err = fmt.Fprintf(out, "  %s  %s  %s\n", a.Exchange.StartTime.Format(time.RFC3339), shown(a.Exchange.ExecutionID), shown(a.Title))
		}
	}
	return err
}

// follow waits for the end of a replay. A replay that fails or is cancelled is an error. The server may be away meanwhile,
// for example because it is updated.
func follow(ctx context.Context, server *api.ClientWithResponses, rule, id uuid.UUID, out io.Writer) error {
	ticker := time.NewTicker(replayPoll)
	defer ticker.Stop()
	lost := func(err error) error {
		return fmt.Errorf("the replay continues, but is not followed any more: %w; follow it on the page of the rule, or end it with --cancel", err)
	}
	problem := ""
	for missed := 0; ; {
		p, err := replayOf(ctx, server, rule, func(p *api.RuleReplay) bool { return p.ID == id })
		if missed++; err != nil && (ctx.Err() != nil || !unanswered(err) || missed >= unansweredMost) {
			return lost(cmp.Or(ctx.Err(), err))
		}
		if err != nil {
			if err := until(ctx, ticker); err != nil {
				return lost(err)
			}
			continue
		}
		missed = 0
		if p == nil {
			return errors.New("the replay is no longer among the newest of the rule; to be sure, run the command again: it raises no alert a second time")
		}
		said := ""
		if p.Problem != nil {
			said = *p.Problem
		}
		if p.EndedAt != nil {
			_, err := fmt.Fprintf(out, "Exchanges that matched: %d. Alerts raised: %d.\n", p.Matched, p.Alerts)
			if p.State != "DONE" && err == nil {
				err = fmt.Errorf("the replay did not finish (%s); to continue, start another one with --from %s --to %s",
					strings.TrimSpace(strings.ToLower(string(p.State))+" "+shown(said)), p.At.Format(time.RFC3339Nano), p.To.Format(time.RFC3339Nano))
			}
			return err
		}
		if said != problem && said != "" {
			if _, err := fmt.Fprintf(out, "It waits: %s\n", shown(said)); err != nil {
				return err
			}
		}
		problem = said
		if err := until(ctx, ticker); err != nil {
			return lost(err)
		}
	}
}

// until waits for a tick, or returns the error of ctx.
func until(ctx context.Context, ticker *time.Ticker) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-ticker.C:
		return nil
	}
}

// replayOf returns the newest replay of a rule for which meant returns true, or nil.
func replayOf(ctx context.Context, server *api.ClientWithResponses, rule uuid.UUID, meant func(p *api.RuleReplay) bool) (*api.RuleReplay, error) {
	list, err := server.ListReplaysWithResponse(ctx, rule)
	if err := answered(list, err); err != nil {
		return nil, fmt.Errorf("list replays: %w", err)
	}
	if list.JSON200 == nil {
		return nil, errForeign
	}
	for i := range list.JSON200.Items {
		if p := &list.JSON200.Items[i]; meant(p) {
			return p, nil
		}
	}
	return nil, nil //nolint:nilnil // there is none
}

func (r *replay) cancel(ctx context.Context, server *api.ClientWithResponses, rule uuid.UUID, out io.Writer) error {
	p, err := replayOf(ctx, server, rule, func(p *api.RuleReplay) bool { return p.EndedAt == nil })
	if err != nil {
		return err
	}
	if p == nil {
		return errors.New("no replay of the rule is running; there is nothing to cancel")
	}
	done, err := server.CancelReplayWithResponse(ctx, p.ID)
	if err := answered(done, err); err != nil {
		return fmt.Errorf("cancel replay: %w", err)
	}
	if done.JSON200 == nil {
		return errForeign
	}
	_, err = fmt.Fprintf(out, "%s. Alerts raised: %d.\n", shown(string(done.JSON200.State)), done.JSON200.Alerts)
	return err
}
