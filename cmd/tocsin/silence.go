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

	api "tocsin/client"
	"tocsin/rules"
)

// silence are the commands for silences.
type silence struct {
	Add  silenceAdd  `cmd:"" help:"Suppress messages about some alerts, once or repeatedly."`
	List silenceList `cmd:"" help:"List the silences that are not over."`
	End  silenceEnd  `cmd:"" help:"End a silence early."`
}

// silenceAdd is a new silence.
type silenceAdd struct {
	serverFlags

	Name        string            `arg:"" help:"Name of the silence." placeholder:"NAME"`
	Reason      string            `help:"Reason, for people who see the alerts." placeholder:"TEXT"`
	For         *days             `help:"How long it lasts, such as 90m, 2h or 7d. Optional for a silence that recurs." placeholder:"TIME"`
	Until       *instant          `help:"When it ends, such as 2026-12-01T18:00:00Z, instead of --for." placeholder:"TIME"`
	From        *instant          `help:"When it begins, such as 2026-12-01T18:00:00Z; now by default." placeholder:"TIME"`
	Rule        []string          `help:"Rules, by name." placeholder:"NAME" sep:"none"`
	Label       map[string]string `help:"Labels of the rule, all of them." placeholder:"KEY=VALUE;…"`
	Severity    []string          `help:"Severities: critical, warning, info." placeholder:"SEVERITY"`
	Application []string          `help:"Applications; * matches any characters." placeholder:"NAME"`
	Route       []string          `help:"Routes; * matches any characters." placeholder:"NAME"`
	Environment []string          `help:"Environments; * matches any characters." placeholder:"NAME"`
	ErrorType   []string          `help:"Error types." placeholder:"TYPE"`
	Message     string            `help:"A text that the error message contains." placeholder:"TEXT"`
	Attribute   map[string]string `help:"Attributes of the exchange, all of them." placeholder:"KEY=VALUE;…"`
	Weekdays    []string          `help:"Days on which it recurs, such as mon,tue." placeholder:"DAY"`
	At          string            `help:"Time of day at which each window begins, such as 22:00." placeholder:"HH:MM"`
	Window      *days             `help:"How long each window lasts, such as 8h." placeholder:"TIME"`
	TimeZone    string            `help:"Time zone of the windows, such as Europe/Berlin." placeholder:"ZONE"`
	Digest      bool              `help:"Send each webhook one message that lists what was suppressed for it, when the silence or a window of it ends."`
	Preview     bool              `help:"Only show what it would have suppressed in the last 24 hours."`
}

// Help shows examples.
func (*silenceAdd) Help() string {
	return `A silence has at least one condition, and all its conditions must hold. It
suppresses messages, never alerts.

  tocsin silence add "Deploy orders" --for 30m --application orders --preview
  tocsin silence add "Nightly batch" --severity warning --label tier=2 \
    --weekdays mon,tue,wed,thu,fri --at 22:00 --window 8h \
    --time-zone Europe/Berlin`
}

// Run makes the silence.
func (a *silenceAdd) Run(ctx context.Context, out io.Writer) error {
	server, err := a.open()
	if err != nil {
		return err
	}
	d, err := a.definition(ctx, server)
	if err != nil {
		return err
	}
	if a.Preview {
		return a.preview(ctx, server, d, out)
	}
	made, err := server.CreateSilenceWithResponse(ctx, *d)
	if err := answered(made, err); err != nil {
		return fmt.Errorf("add silence: %w", a.byFlag(err))
	}
	if made.JSON201 == nil {
		return errForeign
	}
	_, err = fmt.Fprintf(out, "%s %s: %s\n", made.JSON201.ID, shown(made.JSON201.Name), stateOf(made.JSON201))
	return err
}

func (a *silenceAdd) preview(ctx context.Context, server *api.ClientWithResponses, d *api.SilenceDefinition, out io.Writer) error {
	preview, err := server.PreviewSilenceWithResponse(ctx, api.SilencePreviewRequest{Match: d.Match, Recurrence: d.Recurrence, StartsAt: d.StartsAt, EndsAt: d.EndsAt})
	if err := answered(preview, err); err != nil {
		return fmt.Errorf("preview silence: %w", a.byFlag(err))
	}
	p := preview.JSON200
	if p == nil {
		return errForeign
	}
	_, err = fmt.Fprintf(out, "In the last 24 hours, it would have suppressed %d of %d messages about new alerts, for %d of %d alerts. Reminders, escalations and later events are not counted.\n",
		p.SuppressedMessages, p.Messages, p.SuppressedAlerts, p.Alerts)
	if err == nil && p.MatchedAlerts > p.SuppressedAlerts {
		_, err = fmt.Fprintf(out, "Alerts to which its conditions apply: %d. Of these, fired outside of its windows: %d.\n", p.MatchedAlerts, p.MatchedAlerts-p.SuppressedAlerts)
	}
	if err == nil && len(p.Newest) > 0 {
		_, err = fmt.Fprintln(out, "The newest alerts to which its conditions apply:")
	}
	for _, alert := range p.Newest {
		if err == nil {
			_, err = fmt.Fprintf(out, "  %s  %s  %s\n", alert.FiredAt.Format(time.RFC3339), shown(alert.RuleName), shown(alert.Title))
		}
	}
	for i, w := range p.Windows {
		if err == nil && i == 0 {
			_, err = fmt.Fprintln(out, "Its next windows:")
		}
		if err == nil {
			_, err = fmt.Fprintf(out, "  from %s until %s\n", w.From.Format(time.RFC3339), w.Until.Format(time.RFC3339))
		}
	}
	return err
}

// byFlag names the flags instead of the fields that the server refuses.
func (a *silenceAdd) byFlag(err error) error {
	refused, ok := errors.AsType[*api.Problem](err)
	if !ok || len(refused.Errors) == 0 {
		return err
	}
	end, lasts := "--until", "--for or --until"
	if a.For != nil {
		end, lasts = "--for", "--for"
	}
	flags := []struct{ field, flag string }{
		{"name", "NAME"},
		{"reason", "--reason"},
		{"startsAt", "--from"},
		{"endsAt", end},
		{"recurrence.weekdays", "--weekdays"},
		{"recurrence.from", "--at"},
		{"recurrence.durationMinutes", "--window"},
		{"recurrence.timeZone", "--time-zone"},
		{"match.rules", "--rule"},
		{"match.labels", "--label"},
		{"match.severities", "--severity"},
		{"match.scope.applications", "--application"},
		{"match.scope.routes", "--route"},
		{"match.scope.environments", "--environment"},
		{"match.filter.errorTypes", "--error-type"},
		{"match.filter.errorMessageContains", "--message"},
		{"match.filter.attributes", "--attribute"},
	}
	var errs []error
	for _, e := range refused.Errors {
		name, text := e.Field, e.Message
		for _, f := range flags {
			if e.Field == f.field || strings.HasPrefix(e.Field, f.field+".") || strings.HasPrefix(e.Field, f.field+"[") {
				name = f.flag
			}
		}
		switch {
		case e.Field == "match":
			name, text = "the conditions are missing", "Give at least one, such as --application or --severity; to silence everything, give --severity critical,warning,info"
		case e.Field == "endsAt" && e.Code == "required":
			name = lasts
		case e.Field == "recurrence.durationMinutes":
			text = "Must be a duration from 1m to 7d"
		}
		errs = append(errs, fmt.Errorf("%s: %s", name, text))
	}
	return errors.Join(errs...)
}

// definition returns the silence that the flags describe.
func (a *silenceAdd) definition(ctx context.Context, server *api.ClientWithResponses) (*api.SilenceDefinition, error) {
	d := &api.SilenceDefinition{Name: a.Name, StartsAt: (*time.Time)(a.From), EndsAt: (*time.Time)(a.Until)}
	if a.Reason != "" {
		d.Reason = &a.Reason
	}
	if a.Digest {
		d.Digest = &a.Digest
	}
	switch {
	case a.For != nil && a.Until != nil:
		return nil, errors.New("give either --for or --until")
	case a.For != nil && *a.For <= 0:
		return nil, errors.New("--for: must be longer than 0, such as 2h")
	case a.For != nil && a.From != nil:
		d.EndsAt = new(d.StartsAt.Add(time.Duration(*a.For)))
	case a.For != nil:
		now, err := clockOf(ctx, server)
		if err != nil {
			return nil, err
		}
		d.EndsAt = new(now.Add(time.Duration(*a.For)))
	}
	if missing := a.missing(); len(missing) < 4 {
		switch {
		case len(missing) > 0:
			return nil, fmt.Errorf("a silence that recurs also needs %s", strings.Join(missing, ", "))
		case *a.Window <= 0:
			return nil, errors.New("--window: must be longer than 0, such as 8h")
		case time.Duration(*a.Window)%time.Minute != 0:
			return nil, errors.New("--window: must be whole minutes, such as 90m")
		}
		r := &api.SilenceRecurrence{TimeZone: a.TimeZone, From: a.At, DurationMinutes: int(time.Duration(*a.Window).Minutes())}
		for _, day := range a.Weekdays {
			full, err := weekday(day)
			if err != nil {
				return nil, err
			}
			r.Weekdays = append(r.Weekdays, full)
		}
		d.Recurrence = r
	} else if d.EndsAt == nil {
		return nil, errors.New("the duration is missing; give --for 2h, --until, or a recurrence with --weekdays, --at, --window and --time-zone")
	}
	err := a.match(ctx, server, &d.Match)
	return d, err
}

// missing returns the flags of a recurrence that are not given.
func (a *silenceAdd) missing() (flags []string) {
	for _, f := range []struct {
		name  string
		given bool
	}{{"--weekdays", len(a.Weekdays) > 0}, {"--at", a.At != ""}, {"--window", a.Window != nil}, {"--time-zone", a.TimeZone != ""}} {
		if !f.given {
			flags = append(flags, f.name)
		}
	}
	return flags
}

func (a *silenceAdd) match(ctx context.Context, server *api.ClientWithResponses, m *api.AlertMatch) error {
	if len(a.Rule) > 0 {
		names, err := ruleNames(ctx, server)
		if err != nil {
			return err
		}
		ids := make([]uuid.UUID, len(a.Rule))
		for i, name := range a.Rule {
			id, known := names.ids[name]
			if !known {
				return fmt.Errorf("--rule: there is no rule named %q; tocsin export --kind rules shows the names", name)
			}
			ids[i] = id
		}
		m.Rules = &ids
	}
	for _, s := range a.Severity {
		if m.Severities == nil {
			m.Severities = &[]api.AlertMatchSeverities{}
		}
		*m.Severities = append(*m.Severities, api.AlertMatchSeverities(strings.ToUpper(s)))
	}
	m.Labels = equal(a.Label)
	some := func(list []string) *[]string {
		if len(list) == 0 {
			return nil
		}
		return &list
	}
	if len(a.Application)+len(a.Route)+len(a.Environment) > 0 {
		m.Scope = &api.Scope{Applications: some(a.Application), Routes: some(a.Route), Environments: some(a.Environment)}
	}
	if len(a.ErrorType) > 0 || a.Message != "" || len(a.Attribute) > 0 {
		m.Filter = &api.Filter{ErrorTypes: some(a.ErrorType), Attributes: equal(a.Attribute)}
		if a.Message != "" {
			m.Filter.ErrorMessageContains = &a.Message
		}
	}
	return nil
}

// equal returns conditions that each of some keys has a value.
func equal(of map[string]string) *[]api.AttributeMatch {
	if len(of) == 0 {
		return nil
	}
	list := []api.AttributeMatch{}
	for _, key := range sortedKeys(of) {
		list = append(list, api.AttributeMatch{Key: key, Op: "EQUALS", Value: new(of[key])})
	}
	return &list
}

// weekday returns the day that a text names, also by the first two letters of its name or more.
func weekday(text string) (api.SilenceRecurrenceWeekdays, error) {
	for i, day := range rules.Weekdays() {
		if len(text) >= 2 && strings.HasPrefix(strings.ToUpper(time.Weekday(i).String()), strings.ToUpper(text)) {
			return api.SilenceRecurrenceWeekdays(day), nil
		}
	}
	return "", fmt.Errorf("--weekdays: %q is not a weekday; write mon, tue, wed, thu, fri, sat or sun", text)
}

// shortDays returns weekdays by their short names, in which a server answers: files may have others.
func shortDays[D ~string](days []D) []D {
	short := make([]D, len(days))
	for i, day := range days {
		short[i] = D(rules.AsWeekday(string(day)))
	}
	return short
}

// silenceList lists silences.
type silenceList struct {
	serverFlags

	Past bool `help:"List the newest silences that are over."`
}

// Run lists.
func (l *silenceList) Run(ctx context.Context, out io.Writer) error {
	server, err := l.open()
	if err != nil {
		return err
	}
	list, err := silencesOf(ctx, server, l.Past)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, err = fmt.Fprint(table, "ID\tNAME\tSTATE\tSUPPRESSED\tBY\n")
	for i := range list {
		s := &list[i]
		if err == nil {
			_, err = fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\n", s.ID, shown(s.Name), stateOf(s), s.Suppressed, shown(s.CreatedBy))
		}
	}
	return errors.Join(err, table.Flush())
}

// stateOf describes the state of a silence.
func stateOf(s *api.Silence) string {
	switch {
	case s.Problem != nil:
		return "cannot be used: " + shown(*s.Problem)
	case s.State == "ACTIVE" && s.Until != nil:
		return "active until " + s.Until.Format(time.RFC3339)
	case s.State == "UPCOMING" && s.From != nil:
		return "from " + s.From.Format(time.RFC3339)
	case s.EndedAt == nil && s.EndsAt != nil && s.EndsAt.After(time.Now()):
		return "no further window before its end at " + s.EndsAt.Format(time.RFC3339)
	}
	return "past"
}

// silencesOf returns the silences that are not over, or the newest of those that are.
func silencesOf(ctx context.Context, server *api.ClientWithResponses, past bool) ([]api.Silence, error) {
	list, _, err := silencePage(ctx, server, &api.ListSilencesParams{Past: &past})
	return list, err
}

// pastSilences returns all silences that are over.
func pastSilences(ctx context.Context, server *api.ClientWithResponses) ([]api.Silence, error) {
	past, most := true, 200
	return listed(ctx, func(ctx context.Context, cursor *string) ([]api.Silence, *string, error) {
		return silencePage(ctx, server, &api.ListSilencesParams{Past: &past, Limit: &most, Cursor: cursor})
	})
}

func silencePage(ctx context.Context, server *api.ClientWithResponses, p *api.ListSilencesParams) ([]api.Silence, *string, error) {
	page, err := server.ListSilencesWithResponse(ctx, p)
	if err := answered(page, err); err != nil {
		return nil, nil, fmt.Errorf("list silences: %w", err)
	}
	if page.JSON200 == nil {
		return nil, nil, errForeign
	}
	return page.JSON200.Items, page.JSON200.NextCursor, nil
}

// silenceEnd ends a silence.
type silenceEnd struct {
	serverFlags

	Name string `arg:"" help:"Its name, or its ID." placeholder:"NAME"`
}

// Run ends it.
func (e *silenceEnd) Run(ctx context.Context, out io.Writer) error {
	server, err := e.open()
	if err != nil {
		return err
	}
	list, err := silencesOf(ctx, server, false)
	if err != nil {
		return err
	}
	for i := range list {
		if s := &list[i]; s.Name == e.Name || s.ID.String() == e.Name {
			done, err := server.EndSilenceWithResponse(ctx, s.ID)
			if err := answered(done, err); err != nil {
				return fmt.Errorf("end silence: %w", err)
			}
			_, err = fmt.Fprintf(out, "%s has ended. Messages suppressed: %d.\n", shown(s.Name), s.Suppressed)
			if err == nil && s.Digest && s.Suppressed > 0 {
				_, err = fmt.Fprintln(out, "A digest lists those that are in no digest yet.")
			}
			return err
		}
	}
	return fmt.Errorf("no active or upcoming silence has the name or the ID %q; tocsin silence list shows them", e.Name)
}
