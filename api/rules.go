package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"tocsin/cursor"
	"tocsin/internal/fault"
	"tocsin/rules"
)

// RuleStore stores rules.
type RuleStore interface {
	RuleReader
	RuleWriter
	RuleRetrier
	RuleApplier
	Replayer
}

// RuleRetrier makes the next pass evaluate a rule.
type RuleRetrier interface {
	// Retry forgets why a rule could not be evaluated, so that the next pass tries again. A
	// disabled rule is a fault of kind Conflict.
	Retry(ctx context.Context, tenant string, id uuid.UUID) (rules.Rule, error)
}

// RuleReader reads rules.
type RuleReader interface {
	// List returns rules, including those that cannot be read, which say so.
	List(ctx context.Context, tenant string, page NamePage) ([]rules.Rule, error)
	// Names returns the names of all rules, sorted by name as bytes.
	Names(ctx context.Context, tenant string) ([]RuleName, error)
	// Get returns one rule. For a rule that cannot be read, it returns the readable part and a
	// fault of kind Conflict.
	Get(ctx context.Context, tenant string, id uuid.UUID) (rules.Rule, error)
	// Health returns the state of the evaluation of rules, by their ids. A rule that is unknown or
	// was never evaluated may be missing.
	Health(ctx context.Context, tenant string, ids []uuid.UUID) (map[uuid.UUID]EvaluationHealth, error)
}

// RuleWriter writes rules. The definitions passed to it are valid. A webhook that was deleted since
// the check is a fault of kind Conflict.
type RuleWriter interface {
	// Create stores a rule of version 1, armed by its creation.
	Create(ctx context.Context, tenant string, d rules.Definition) (rules.Rule, error)
	// Update replaces the definition. A version other than the stored one is a fault of kind Stale.
	// Enabling a rule in this way arms it again.
	Update(ctx context.Context, tenant string, edit RuleEdit) (rules.Rule, error)
	// SetEnabled enables a rule, which arms it again, or disables it. A rule that is already in the
	// requested state stays as it is.
	SetEnabled(ctx context.Context, tenant string, id uuid.UUID, enabled bool) (rules.Rule, error)
	Delete(ctx context.Context, tenant string, id uuid.UUID) error
}

// RuleEdit is a new definition for a version of a rule.
type RuleEdit struct {
	ID uuid.UUID
	// Version is the version that was edited.
	Version    int64
	Definition rules.Definition
}

// EvaluationHealth is the state of the evaluation of a rule.
type EvaluationHealth struct {
	// Partition is the partition that evaluates the rule; nil before the tenant is assigned to one.
	Partition *int
	// Cursor is the rule's own position while it has a backfill; otherwise the start time of its
	// partition's cursor. It is nil before the first evaluation, for window rules, and for disabled
	// rules.
	Cursor *cursor.Position
	// Lag is how far the cursor is behind the present, by Postgres's clock; nil if there is no
	// cursor.
	Lag *time.Duration
	// BackfillFrom is the earliest start time behind the cursor that is still to be evaluated; nil if
	// there is none.
	BackfillFrom *time.Time
	// Failing says that the rule cannot be evaluated, and is skipped until it can.
	Failing bool
	// LateLastHour is the number of alerts that the look-back raised in the last
	// hour: exchanges that became visible behind the cursor.
	LateLastHour int64
	// LateDropped is the number of matching exchanges that became visible beyond the
	// look-back and have no alert.
	LateDropped int64
	// LastRunAt is the last evaluation, NextRunAt is when the rule is due; each is nil if there is
	// none.
	LastRunAt, NextRunAt *time.Time
	// LastError says why the last evaluation failed, without secrets. If the evaluation succeeded,
	// it is empty and LastErrorAt is nil.
	LastError   string
	LastErrorAt *time.Time
}

// ListRules answers GET /rules.
func (s *server) ListRules(ctx context.Context, req ListRulesRequestObject) (ListRulesResponseObject, error) {
	page, err := namePage(listRules, req.Params.Cursor, req.Params.Limit)
	if err != nil {
		return nil, err
	}
	found, err := s.Rules.List(ctx, tenantOf(ctx), page)
	if err != nil {
		return nil, fmt.Errorf("list rules: %w", err)
	}
	answer := ListRules200JSONResponse{Items: make([]Rule, len(found))}
	ids := make([]uuid.UUID, len(found))
	for i := range found {
		ids[i] = found[i].ID
	}
	health, err := s.evaluationHealth(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i := range found {
		answer.Items[i] = ruleAnswer(&found[i])
		answer.Items[i].Health = healthAnswer(health, found[i].ID)
	}
	answer.NextCursor, err = nextCursor(len(found), page.Limit, func() mark {
		last := &found[len(found)-1]
		return mark{List: listRules, Name: last.Name, ID: last.ID}
	})
	return answer, err
}

// CreateRule answers POST /rules.
func (s *server) CreateRule(ctx context.Context, req CreateRuleRequestObject) (CreateRuleResponseObject, error) {
	d, warnings, err := s.checkedDefinition(ctx, req.Body)
	if err != nil {
		return nil, err
	}
	r, err := s.Rules.Create(ctx, tenantOf(ctx), d)
	if err != nil {
		return nil, fmt.Errorf("create rule: %w", err)
	}
	answer := CreateRule201JSONResponse{Body: ruleAnswer(&r)}
	answer.Body.Warnings = warnings
	answer.Headers = CreateRule201ResponseHeaders{ETag: etag(r.Version), Location: "/api/v1/rules/" + r.ID.String()}
	return answer, nil
}

// GetRule answers GET /rules/{id}.
func (s *server) GetRule(ctx context.Context, req GetRuleRequestObject) (GetRuleResponseObject, error) {
	r, err := s.namedRule(ctx, req.ID)
	if err != nil {
		return nil, err
	}
	health, err := s.evaluationHealth(ctx, []uuid.UUID{r.ID})
	if err != nil {
		return nil, err
	}
	answer := GetRule200JSONResponse{Body: ruleAnswer(&r), Headers: GetRule200ResponseHeaders{ETag: etag(r.Version)}}
	answer.Body.Health = healthAnswer(health, r.ID)
	return answer, nil
}

// namedRule returns a rule if its definition does not matter: the rule may be one that cannot be
// read.
func (s *server) namedRule(ctx context.Context, id uuid.UUID) (rules.Rule, error) {
	r, err := s.Rules.Get(ctx, tenantOf(ctx), id)
	if err != nil && r.Unreadable == "" {
		return r, fmt.Errorf("get rule: %w", err)
	}
	return r, nil
}

// UpdateRule answers PUT /rules/{id}.
func (s *server) UpdateRule(ctx context.Context, req UpdateRuleRequestObject) (UpdateRuleResponseObject, error) {
	version, err := editedVersion(req.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	d, warnings, err := s.checkedDefinition(ctx, req.Body)
	if err != nil {
		return nil, err
	}
	r, err := s.Rules.Update(ctx, tenantOf(ctx), RuleEdit{ID: req.ID, Version: version, Definition: d})
	if err != nil {
		return nil, fmt.Errorf("update rule: %w", err)
	}
	answer := UpdateRule200JSONResponse{Body: ruleAnswer(&r), Headers: UpdateRule200ResponseHeaders{ETag: etag(r.Version)}}
	answer.Body.Warnings = warnings
	return answer, nil
}

// DeleteRule answers DELETE /rules/{id}.
func (s *server) DeleteRule(ctx context.Context, req DeleteRuleRequestObject) (DeleteRuleResponseObject, error) {
	if err := s.Rules.Delete(ctx, tenantOf(ctx), req.ID); err != nil {
		return nil, fmt.Errorf("delete rule: %w", err)
	}
	return DeleteRule204Response{}, nil
}

// EnableRule answers POST /rules/{id}/enable.
func (s *server) EnableRule(ctx context.Context, req EnableRuleRequestObject) (EnableRuleResponseObject, error) {
	r, err := s.Rules.SetEnabled(ctx, tenantOf(ctx), req.ID, true)
	if err != nil {
		return nil, fmt.Errorf("enable rule: %w", err)
	}
	return EnableRule200JSONResponse{Body: ruleAnswer(&r), Headers: EnableRule200ResponseHeaders{ETag: etag(r.Version)}}, nil
}

// DisableRule answers POST /rules/{id}/disable.
func (s *server) DisableRule(ctx context.Context, req DisableRuleRequestObject) (DisableRuleResponseObject, error) {
	r, err := s.Rules.SetEnabled(ctx, tenantOf(ctx), req.ID, false)
	if err != nil {
		return nil, fmt.Errorf("disable rule: %w", err)
	}
	return DisableRule200JSONResponse{Body: ruleAnswer(&r), Headers: DisableRule200ResponseHeaders{ETag: etag(r.Version)}}, nil
}

// RetryRule answers POST /rules/{id}/retry.
func (s *server) RetryRule(ctx context.Context, req RetryRuleRequestObject) (RetryRuleResponseObject, error) {
	r, err := s.Rules.Retry(ctx, tenantOf(ctx), req.ID)
	if err != nil {
		return nil, fmt.Errorf("retry rule: %w", err)
	}
	return RetryRule200JSONResponse{Body: ruleAnswer(&r), Headers: RetryRule200ResponseHeaders{ETag: etag(r.Version)}}, nil
}

// definition fills in what the author did not set.
func definition(b *RuleDefinition) rules.Definition {
	d := rules.Definition{
		Name:               b.Name,
		Enabled:            b.Enabled == nil || *b.Enabled,
		FireMode:           b.FireMode,
		Severity:           b.Severity,
		Scope:              b.Scope,
		Filter:             b.Filter,
		TitleTemplate:      b.TitleTemplate,
		MessageTemplate:    b.MessageTemplate,
		WebhookIDs:         b.WebhookIds,
		UseRoutingPolicy:   b.UseRoutingPolicy,
		Targets:            b.Targets,
		IntervalSeconds:    rules.DefaultIntervalSeconds,
		Threshold:          b.Threshold,
		WindowSeconds:      b.WindowSeconds,
		Percent:            b.Percent,
		ShortWindowSeconds: b.ShortWindowSeconds,
		Percentile:         b.Percentile,
		DurationMS:         b.DurationMS,
		MinVolume:          b.MinVolume,
		Expected:           b.Expected,
		LearnDays:          b.LearnDays,
		Calendar:           b.Calendar,
		GroupBy:            b.GroupBy,
		GroupByAttribute:   b.GroupByAttribute,
		ForDurationSeconds: b.ForDurationSeconds,
		ReNotifyMinutes:    b.ReNotifyMinutes,
		NotifyOnResolve:    b.NotifyOnResolve,
		Resolution:         b.Resolution,
		Labels:             b.Labels,
		Owner:              b.Owner,
		RunbookURL:         b.RunbookURL,
		Note:               b.Note,
	}
	if (d.FireMode == rules.DurationInWindow || d.FireMode == rules.AbsentInWindow) && len(d.Filter.Statuses) == 0 {
		d.Filter.Statuses = []rules.Status{rules.Completed, rules.Failed}
	}
	if !d.FireMode.Windowed() {
		d.LookBackSeconds = rules.DefaultLookBackSeconds
	}
	if d.FireMode == rules.AbsentInWindow {
		d.IntervalSeconds = rules.DefaultAbsentIntervalSeconds
	}
	if b.IntervalSeconds != nil {
		d.IntervalSeconds = *b.IntervalSeconds
	}
	if b.LookBackSeconds != nil {
		d.LookBackSeconds = *b.LookBackSeconds
	}
	return d
}

// checkedDefinition returns the definition in a body, and its warnings. Its error is a fault with
// all that is wrong.
func (s *server) checkedDefinition(ctx context.Context, b *RuleDefinition) (d rules.Definition, warnings []fault.Field, err error) {
	var hooks webhookNames
	if len(b.WebhookIds)+len(b.Webhooks) > 0 {
		if hooks, err = s.webhookNames(ctx); err != nil {
			return d, nil, err
		}
	}
	d, wrong, warnings, err := s.findings(b, hooks)
	if err != nil {
		return d, nil, err
	}
	return d, warnings, fault.InvalidFields("the rule", wrong)
}

// findings returns the definition in a body, all that is wrong with it, and its warnings.
func (s *server) findings(b *RuleDefinition, hooks webhookNames) (d rules.Definition, wrong, warnings []fault.Field, err error) {
	d = definition(b)
	bound, unbound, warnings := hooks.bound(b)
	d.WebhookIDs = bound
	if err := s.validator.Definition(&d); err != nil {
		if fault.KindOf(err) != fault.Invalid {
			return d, nil, nil, err
		}
		wrong = append(wrong, problemOf(err).Errors...)
	}
	wrong = append(wrong, s.CheckRule(&d)...)
	return d, withoutRepeats(append(wrong, unbound...)), warnings, nil
}

// withoutRepeats drops entries that say the same about the same field.
func withoutRepeats(fields []fault.Field) []fault.Field {
	seen := map[[2]string]bool{}
	var kept []fault.Field
	for _, f := range fields {
		key := [2]string{f.Field, f.Code}
		if !seen[key] {
			kept = append(kept, f)
		}
		seen[key] = true
	}
	return kept
}

func (s *server) evaluationHealth(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]EvaluationHealth, error) {
	if len(ids) == 0 {
		return map[uuid.UUID]EvaluationHealth{}, nil
	}
	health, err := s.Rules.Health(ctx, tenantOf(ctx), ids)
	if err != nil {
		return nil, fmt.Errorf("read health of rules: %w", err)
	}
	return health, nil
}

func ruleAnswer(r *rules.Rule) Rule {
	return Rule{
		ID:                 r.ID,
		Version:            r.Version,
		CreatedAt:          r.CreatedAt.UTC(),
		UpdatedAt:          r.UpdatedAt.UTC(),
		ArmedSince:         time.Unix(0, r.ArmedSinceNS).UTC(),
		Name:               r.Name,
		Enabled:            r.Enabled,
		FireMode:           r.FireMode,
		Severity:           r.Severity,
		Scope:              r.Scope,
		Filter:             r.Filter,
		TitleTemplate:      r.TitleTemplate,
		MessageTemplate:    r.MessageTemplate,
		WebhookIds:         listed(r.WebhookIDs),
		UseRoutingPolicy:   r.UseRoutingPolicy,
		Targets:            listed(r.Targets),
		IntervalSeconds:    r.IntervalSeconds,
		LookBackSeconds:    r.LookBackSeconds,
		Threshold:          r.Threshold,
		WindowSeconds:      r.WindowSeconds,
		Percent:            r.Percent,
		ShortWindowSeconds: r.ShortWindowSeconds,
		Percentile:         r.Percentile,
		DurationMS:         r.DurationMS,
		MinVolume:          r.MinVolume,
		Expected:           r.Expected,
		LearnDays:          r.LearnDays,
		Calendar:           r.Calendar,
		GroupBy:            r.GroupBy,
		GroupByAttribute:   r.GroupByAttribute,
		ForDurationSeconds: r.ForDurationSeconds,
		ReNotifyMinutes:    r.ReNotifyMinutes,
		NotifyOnResolve:    r.NotifyOnResolve,
		Resolution:         r.Resolution,
		Labels:             r.Labels,
		Owner:              r.Owner,
		RunbookURL:         r.RunbookURL,
		Note:               r.Note,
		Unreadable:         r.Unreadable,
	}
}

func healthAnswer(all map[uuid.UUID]EvaluationHealth, id uuid.UUID) *RuleHealth {
	h, found := all[id]
	if !found {
		return nil
	}
	answer := RuleHealth{
		LastRunAt:     utc(h.LastRunAt),
		NextRunAt:     utc(h.NextRunAt),
		LastError:     optional(h.LastError),
		LastErrorAt:   utc(h.LastErrorAt),
		LagSeconds:    seconds(h.Lag),
		Partition:     h.Partition,
		Failing:       &h.Failing,
		BackfillFrom:  h.BackfillFrom,
		LookingBackTo: h.BackfillFrom,
		LateLastHour:  &h.LateLastHour,
		LateDropped:   &h.LateDropped,
	}
	if h.Cursor != nil {
		text := h.Cursor.String()
		answer.Cursor = &text
	}
	return &answer
}

func etag(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

// editedVersion parses If-Match. A weak tag counts as the strong one, because proxies that compress
// make it weak.
func editedVersion(ifMatch *string) (int64, error) {
	if ifMatch == nil {
		return 0, echo.NewHTTPError(http.StatusPreconditionRequired, "Send If-Match with the ETag of the version that you edited")
	}
	tag, opened := strings.CutPrefix(strings.TrimPrefix(strings.TrimSpace(*ifMatch), "W/"), `"`)
	tag, closed := strings.CutSuffix(tag, `"`)
	if !opened || !closed || strings.Contains(tag, `"`) {
		return 0, invalidField("If-Match", "malformed", "Must be one ETag, quotes included")
	}
	version, err := strconv.ParseInt(tag, 10, 64)
	if err != nil || version < 1 {
		return 0, fault.New(fault.Stale, "If-Match names no version; send the ETag of what you read")
	}
	return version, nil
}

func listed[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

func seconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	s := max(*d, 0).Seconds()
	return &s
}
