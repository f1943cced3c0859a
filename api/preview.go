package api

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/alerts/routing"
	"tocsin/cursor"
	"tocsin/evaluator/preview"
	"tocsin/internal/fault"
	"tocsin/notify"
	"tocsin/notify/template"
	"tocsin/rules"
)

// Previewer computes what a rule would have raised.
type Previewer interface {
	Preview(ctx context.Context, r preview.Request) (preview.Result, error)
	Difference(ctx context.Context, before, after preview.Request) (preview.Difference, error)
	Replay(ctx context.Context, r preview.ReplayRequest) (preview.Replayed, error)
}

const (
	defaultHours = 24
	maxHours     = 168
	// maxPreviews bounds the previews under way in this process: each may keep
	// ClickHouse busy for seconds.
	maxPreviews = 4
)

func hoursOf(hours *int) (time.Duration, error) {
	n := defaultHours
	if hours != nil {
		n = *hours
	}
	if n < 1 || n > maxHours {
		return 0, invalidField("hours", "out_of_range", fmt.Sprintf("Must be from 1 to %d", maxHours))
	}
	return time.Duration(n) * time.Hour, nil
}

// PreviewRuleDefinition answers POST /rules/preview.
func (s *server) PreviewRuleDefinition(ctx context.Context, req PreviewRuleDefinitionRequestObject) (PreviewRuleDefinitionResponseObject, error) {
	last, err := hoursOf(req.Body.Hours)
	if err != nil {
		return nil, err
	}
	named := req.Body.Definition
	if named.Name == "" {
		// The name does not affect what the rule raises.
		named.Name = "unnamed"
	}
	d, _, err := s.checkedDefinition(ctx, &named)
	if err != nil {
		return nil, inside("definition.", err)
	}
	d.Name = req.Body.Definition.Name
	answer, err := s.preview(ctx, preview.Request{TenantID: tenantOf(ctx), Definition: d, Version: 1, Last: last})
	return PreviewRuleDefinition200JSONResponse(answer), inside("definition.", err)
}

// inside prefixes the fields of a fault with a path.
func inside(path string, err error) error {
	if fault.KindOf(err) != fault.Invalid {
		return err
	}
	p := problemOf(err)
	fields := make([]fault.Field, len(p.Errors))
	for i, f := range p.Errors {
		f.Field = path + f.Field
		fields[i] = f
	}
	return fault.InvalidFields("the request", fields)
}

// PreviewRule answers POST /rules/{id}/preview.
func (s *server) PreviewRule(ctx context.Context, req PreviewRuleRequestObject) (PreviewRuleResponseObject, error) {
	last, err := hoursOf(req.Params.Hours)
	if err != nil {
		return nil, err
	}
	r, err := s.Rules.Get(ctx, tenantOf(ctx), req.ID)
	if err != nil {
		return nil, fmt.Errorf("preview rule: %w", err)
	}
	answer, err := s.preview(ctx, preview.Request{
		TenantID: tenantOf(ctx), Definition: r.Definition, RuleID: r.ID, Version: r.Version, Last: last,
	})
	return PreviewRule200JSONResponse(answer), err
}

// enterPreview waits until there is room for a preview. leave releases the room.
func (s *server) enterPreview(ctx context.Context) (leave func(), err error) {
	select {
	case s.previews <- struct{}{}:
		return func() { <-s.previews }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("preview: %w", ctx.Err())
	}
}

// preview makes a preview when there is room for one.
func (s *server) preview(ctx context.Context, r preview.Request) (RulePreview, error) {
	leave, err := s.enterPreview(ctx)
	if err != nil {
		return RulePreview{}, err
	}
	defer leave()
	if r.Definition.UseRoutingPolicy {
		if r.Router, err = s.policyRouter(ctx); err != nil {
			return RulePreview{}, err
		}
	}
	found, err := s.Previewer.Preview(ctx, r)
	if err != nil {
		return RulePreview{}, fromSource("preview", err)
	}
	answer := previewAnswer(&found)
	loads := found.Routed
	if r.Router == nil {
		loads = map[uuid.UUID]preview.Load{}
		for _, id := range r.Definition.WebhookIDs {
			loads[id] = preview.Load{Notifications: found.Notifications, BusiestMinute: found.BusiestMinute}
		}
	}
	for id, load := range loads {
		w, err := s.Webhooks.Get(ctx, r.TenantID, id)
		if fault.KindOf(err) == fault.NotFound {
			continue // deleted meanwhile
		}
		if err != nil {
			return RulePreview{}, fmt.Errorf("preview: %w", err)
		}
		answer.Webhooks = append(answer.Webhooks, PreviewLoad{
			WebhookID: id, WebhookName: w.Name, Notifications: load.Notifications, BusiestMinute: load.BusiestMinute,
			RatePerSecond: w.RatePerSecond, ExceedsRate: w.RatePerSecond > 0 && float64(load.BusiestMinute) > 60*w.RatePerSecond,
		})
	}
	slices.SortFunc(answer.Webhooks, func(a, b PreviewLoad) int { return strings.Compare(a.WebhookName, b.WebhookName) })
	return answer, nil
}

func previewAnswer(p *preview.Result) RulePreview {
	instant := func(ns int64) time.Time { return time.Unix(0, ns).UTC() }
	answer := RulePreview{
		From: instant(p.FromNS), To: instant(p.ToNS), CoveredFrom: instant(p.CoveredFromNS), Truncated: p.Truncated,
		Scanned: int64(p.Scanned), Alerts: p.Alerts, BucketSeconds: time.Duration(p.WidthNS).Seconds(), Buckets: listed(p.Buckets),
		Shares: make([]PreviewShare, len(p.Shares)), Newest: make([]Alert, len(p.Newest)), Webhooks: []PreviewLoad{}, Problem: optional(p.Problem),
	}
	for i, share := range p.Shares {
		answer.Shares[i] = PreviewShare{Application: share.Application, Route: share.Route, Alerts: share.Alerts}
	}
	for i := range p.Newest {
		answer.Newest[i] = listedAlert(&p.Newest[i])
	}
	return answer
}

// TestRule answers POST /rules/{id}/test.
func (s *server) TestRule(ctx context.Context, req TestRuleRequestObject) (TestRuleResponseObject, error) {
	r, err := s.Rules.Get(ctx, tenantOf(ctx), req.ID)
	if err != nil {
		return nil, fmt.Errorf("test rule: %w", err)
	}
	a, _, err := s.alertOf(ctx, &r, req.Body.Exchange)
	if err != nil {
		return nil, err
	}
	webhooks, err := s.recipients(ctx, &r, &a)
	if err != nil {
		return nil, err
	}
	results := make([]TestResult, len(webhooks))
	faults := make([]error, len(webhooks))
	ended := make(chan struct{})
	for i, id := range webhooks {
		go func() {
			defer func() { ended <- struct{}{} }()
			w, err := s.Webhooks.Get(ctx, tenantOf(ctx), id)
			if err == nil {
				results[i], err = s.sendTest(ctx, &w, a)
			}
			faults[i] = err
		}()
	}
	for range results {
		<-ended
	}
	for _, err := range faults {
		if err != nil {
			return nil, fmt.Errorf("test rule: %w", err)
		}
	}
	return TestRule200JSONResponse{Items: results}, nil
}

// recipients returns the webhooks that an alert of a rule would be sent to. There must be at least
// one.
func (s *server) recipients(ctx context.Context, r *rules.Rule, a *alerts.Instance) ([]uuid.UUID, error) {
	var router *routing.Router
	if r.UseRoutingPolicy {
		var err error
		if router, err = s.policyRouter(ctx); err != nil {
			return nil, err
		}
	}
	webhooks := routing.Recipients(r, router, a)
	switch {
	case len(webhooks) > 0:
		return webhooks, nil
	case r.UseRoutingPolicy:
		return nil, fault.New(fault.Conflict, "the routing policy has no webhook for such an alert; add a route for it, or a default")
	}
	return nil, fault.New(fault.Conflict, "the rule has no webhooks; add one, then try again")
}

// alertOf returns the alert that a rule would raise for an exchange, or for a made-up one. problem
// says why a text is a fallback.
func (s *server) alertOf(ctx context.Context, r *rules.Rule, ref *ExchangeRef) (a alerts.Instance, problem, err error) {
	a = s.sample(r.FireMode)
	e := a.Exchange
	if ref != nil {
		if e, err = s.exchange(ctx, ref); err != nil {
			return a, nil, err
		}
	}
	a.About = r.About()
	a.TenantID, a.RuleID, a.RuleVersion, a.RuleName, a.Severity, a.Exchange = r.TenantID, r.ID, r.Version, r.Name, r.Severity, e.Clean()
	if a.Count != nil {
		a.Count = madeUp(&r.Definition)
		a.Count.Group = cursor.Key(r.Grouping().Of(&e))
		if r.FireMode == rules.AbsentInWindow {
			switch {
			case len(r.Expected) > 0:
				a.Count.Group = cursor.Key(r.ExpectedGroups()[0])
			case ref == nil:
				a.Count.Group = r.Grouping().Of(&template.Samples()[0].Exchange)
			}
			e = r.Grouping().Example(a.Count.Group)
			a.Exchange = e.Clean()
		}
		a.Title, a.Message, problem = s.Texts.CountTexts(r, a.Count, &e)
		return a, problem, nil
	}
	a.Title, a.Message, problem = s.Texts.Texts(r, &e)
	return a, problem, nil
}

// madeUp returns a count at which a rule fires.
func madeUp(d *rules.Definition) *alerts.Count {
	c := alerts.CountOf(d)
	c.WindowSeconds = max(c.WindowSeconds, 60)
	volume := int64(max(c.MinVolume, 100)) + 20
	switch c.Mode { //nolint:exhaustive // the others count
	case rules.RatioInWindow:
		c.Percent = cmp.Or(c.Percent, 10)
		c.Volume, c.Observed = volume, min(volume, (rules.Thousandths(c.Percent)*volume+99_999)/100_000+2)
		c.ShortVolume, c.ShortObserved = volume/10, min(volume/10, (rules.Thousandths(c.Percent)*volume/10+99_999)/100_000+1)
	case rules.DurationInWindow:
		c.Percentile, c.DurationMS = cmp.Or(c.Percentile, 95), cmp.Or(c.DurationMS, 1000)
		c.Volume, c.Observed, c.DurationNS = volume, volume-rules.Rank(c.Percentile, volume)+1, min(c.DurationMS, math.MaxInt64/1_200_000)*1_200_000
	case rules.AbsentInWindow:
		c.Threshold = max(c.Threshold, 1)
		c.Observed = int64(c.Threshold) / 4
	default:
		c.Threshold = max(c.Threshold, 1)
		c.Observed = int64(c.Threshold) + 2
	}
	return &c
}

// sample returns an alert of a fire mode about a made-up exchange, at the present time.
func (s *server) sample(mode rules.FireMode) alerts.Instance {
	samples := template.Samples()
	a := samples[0]
	if mode.Windowed() {
		a = samples[slices.IndexFunc(samples, func(a alerts.Instance) bool { return a.FireMode() == mode })]
	}
	a.FiredAt = s.Now()
	return a
}

// PreviewTemplates answers POST /templates/preview.
func (s *server) PreviewTemplates(ctx context.Context, req PreviewTemplatesRequestObject) (PreviewTemplatesResponseObject, error) {
	b := req.Body
	r := rules.Rule{TenantID: tenantOf(ctx), Definition: rules.Definition{
		Name: b.RuleName, FireMode: rules.PerExchange, Severity: rules.Critical, TitleTemplate: b.TitleTemplate, MessageTemplate: b.MessageTemplate,
		Threshold: b.Threshold, WindowSeconds: b.WindowSeconds, GroupBy: b.GroupBy, GroupByAttribute: b.GroupByAttribute,
		Percent: b.Percent, ShortWindowSeconds: b.ShortWindowSeconds, Percentile: b.Percentile, DurationMS: b.DurationMS, MinVolume: b.MinVolume,
		Labels: b.Labels, Owner: b.Owner, RunbookURL: b.RunbookURL, Note: b.Note,
	}}
	if b.FireMode != "" {
		r.FireMode = b.FireMode
	}
	if b.Severity != "" {
		r.Severity = b.Severity
	}
	w, err := s.previewedWebhook(ctx, b)
	if err != nil {
		return nil, err
	}
	if err := s.checkTemplates(&r.Definition, &w); err != nil {
		return nil, err
	}
	a, problem, err := s.alertOf(ctx, &r, b.Exchange)
	if err != nil {
		return nil, err
	}
	d := notify.Delivery{Reason: notify.ReasonFired, Attempt: 1, Alert: a, Webhook: w, At: s.Now()}
	if d.NotificationID, err = uuid.NewV7(); err != nil {
		return nil, fmt.Errorf("preview templates: %w", err)
	}
	d.Alert.ID = d.NotificationID
	body, bodyProblem := s.Renderer.Render(&d)
	d.Body = &body
	answer := PreviewTemplates200JSONResponse{Title: a.Title, Message: a.Message, Request: previewedRequest(s.Sender.Head(&d), &body)}
	if b.WebhookID == nil {
		answer.Request.Host = ""
	}
	for _, p := range []error{bodyProblem, problem} {
		if p != nil {
			text := p.Error()
			answer.Problem = &text
		}
	}
	return answer, nil
}

// unknownURL is used for a webhook that does not exist, or whose URL cannot be decrypted.
const unknownURL = "https://webhook.invalid/"

// previewedWebhook returns the webhook that a preview is for.
func (s *server) previewedWebhook(ctx context.Context, b *TemplatePreviewRequest) (w notify.Webhook, err error) {
	w = notify.Webhook{Kind: notify.KindGeneric, URL: unknownURL, Timeout: notify.DefaultTimeout}
	if b.Kind != "" {
		w.Kind = b.Kind
	}
	if b.WebhookID != nil {
		if w, err = s.Webhooks.Get(ctx, tenantOf(ctx), *b.WebhookID); err != nil {
			return w, fmt.Errorf("preview templates: %w", err)
		}
		if w.Sealed != nil {
			w.URL = unknownURL
		}
	}
	if b.BodyTemplate != nil {
		w.BodyTemplate = *b.BodyTemplate
	}
	return w, nil
}

// checkTemplates returns what is wrong with the templates, and ignores all other faults.
func (s *server) checkTemplates(d *rules.Definition, w *notify.Webhook) error {
	wrong := s.CheckRule(d)
	for _, f := range s.CheckWebhook(w) {
		if f.Field == "bodyTemplate" {
			wrong = append(wrong, f)
		}
	}
	_, modeErr := oneOf("fireMode", &[]rules.FireMode{d.FireMode}, rules.FireModes()...)
	_, severityErr := oneOf("severity", &[]rules.Severity{d.Severity}, rules.Critical, rules.Warning, rules.Info)
	_, groupErr := oneOf("groupBy", &[]rules.GroupBy{d.GroupBy}, append(rules.GroupBys(), "")...)
	_, kindErr := oneOf("kind", &[]notify.WebhookKind{w.Kind}, notify.KindSlack, notify.KindGeneric)
	for _, err := range []error{modeErr, severityErr, groupErr, kindErr, withinAll(d)} {
		if err != nil {
			wrong = append(wrong, problemOf(err).Errors...)
		}
	}
	return fault.InvalidFields("the template", withoutRepeats(wrong))
}

// withinAll refuses the first number of a definition that is out of range.
func withinAll(d *rules.Definition) error {
	for _, n := range []struct {
		field   string
		n, most int64
	}{
		{"threshold", int64(d.Threshold), 1_000_000},
		{"windowSeconds", int64(d.WindowSeconds), 86_400},
		{"percent", rules.Thousandths(d.Percent) / 1000, 100},
		{"shortWindowSeconds", int64(d.ShortWindowSeconds), 86_400},
		{"percentile", int64(d.Percentile), 100},
		{"durationMs", d.DurationMS, 9_000_000_000_000},
		{"minVolume", int64(d.MinVolume), 1_000_000},
	} {
		if err := within(n.field, n.n, n.most); err != nil {
			return err
		}
	}
	return nil
}

// within refuses a number that is negative or above a bound.
func within(field string, n, most int64) error {
	if n < 0 || n > most {
		return invalidField(field, "out_of_range", fmt.Sprintf("Must be from 0 to %d", most))
	}
	return nil
}

func previewedRequest(head notify.RequestHead, body *notify.Body) PreviewedRequest {
	answer := PreviewedRequest{
		Method: head.Method, Host: head.Host, ContentType: body.ContentType, Body: string(body.Content), Headers: make([]PreviewedHeader, len(head.Headers)),
	}
	for i, h := range head.Headers {
		answer.Headers[i] = PreviewedHeader{Name: h.Name, Masked: h.Masked, Value: optional(h.Value)}
	}
	return answer
}
