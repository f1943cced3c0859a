package template

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/internal/fault"
	"tocsin/rules"
)

// sparseMessage replaces [rules.DefaultMessage] if an exchange has no error type or message, as a
// slow but completed one does.
const sparseMessage = "{{#exchange.errorType}}{{exchange.errorType}}, without a message, after {{exchange.duration}}{{/exchange.errorType}}" +
	"{{^exchange.errorType}}{{#exchange.errorMessage}}{{exchange.errorMessage}}{{/exchange.errorMessage}}" +
	"{{^exchange.errorMessage}}{{exchange.status}} after {{exchange.duration}}{{/exchange.errorMessage}}{{/exchange.errorType}}"

// Replacements of [rules.DefaultCountTitle] and [rules.DefaultCountMessage] for cases in which they
// would read badly: a count of one, a group without a name, a newest exchange that has no error
// message or is unknown, and a count that fell below its threshold.
const (
	oneTitle      = "{{#count.group}}{{count.group}}: {{/count.group}}{{count.observed}} exchange within {{count.window}}"
	noGroupTitle  = rules.DefaultCountTitle + ", without a name to group them by"
	lonelyMessage = "The threshold of {{count.threshold}} within {{count.window}} was reached."
	brokenMessage = "The threshold of {{count.threshold}} within {{count.window}} was reached. Newest exchange: {{exchange.application}} · {{exchange.route}}: " +
		"{{#exchange.errorType}}{{exchange.errorType}}{{/exchange.errorType}}{{^exchange.errorType}}{{exchange.status}}{{/exchange.errorType}} after {{exchange.duration}}"
	belowMessage = "Fewer than {{count.threshold}} match within {{count.window}}."

	noGroupRatio    = rules.DefaultRatioTitle + ", without a name to group them by"
	noGroupDuration = rules.DefaultDurationTitle + ", without a name to group them by"
	noGroupAbsent   = rules.DefaultAbsentTitle + ", without a name to group them by"
	oneMissing      = "No exchange within {{count.window}}"
	oneMissingOf    = "{{count.group}}: no exchange within {{count.window}}"
	presentMessage  = "Seen again: at least {{count.threshold}} within {{count.window}}."
)

// maxCachedRules bounds the rules whose parsed templates are cached.
const maxCachedRules = 20_000

// Texts writes the titles and messages of alerts. It caches the parsed templates of rules by
// version, up to a bound. It is safe for concurrent use.
type Texts struct {
	title, message, sparse *Template
	// counts are the templates of counts, by their text.
	counts map[string]*Template

	mu    sync.RWMutex
	rules map[uuid.UUID]*ruleTexts
}

// ruleTexts are the templates of a rule; nil means the default.
type ruleTexts struct {
	version        int64
	title, message *Template
	problem        error
}

// NewTexts returns a writer of texts.
func NewTexts() (*Texts, error) {
	title, err := Parse(rules.DefaultTitle, InTexts)
	if err != nil {
		return nil, fmt.Errorf("default title: %w", err)
	}
	message, err := Parse(rules.DefaultMessage, InTexts)
	if err != nil {
		return nil, fmt.Errorf("default message: %w", err)
	}
	sparse, err := Parse(sparseMessage, InTexts)
	if err != nil {
		return nil, fmt.Errorf("default message without error: %w", err)
	}
	counts := map[string]*Template{}
	for _, text := range []string{
		rules.DefaultCountTitle, rules.DefaultCountGroupTitle, oneTitle, noGroupTitle,
		rules.DefaultCountMessage, lonelyMessage, brokenMessage, belowMessage,
		rules.DefaultRatioTitle, rules.DefaultRatioGroupTitle, noGroupRatio,
		rules.DefaultDurationTitle, rules.DefaultDurationGroupTitle, noGroupDuration, rules.DefaultDurationMessage,
		rules.DefaultAbsentTitle, rules.DefaultAbsentGroupTitle, noGroupAbsent, oneMissing, oneMissingOf, rules.DefaultAbsentMessage, presentMessage,
	} {
		if counts[text], err = Parse(text, InTexts); err != nil {
			return nil, fmt.Errorf("default text of counts: %w", err)
		}
	}
	return &Texts{title: title, message: message, sparse: sparse, counts: counts, rules: map[uuid.UUID]*ruleTexts{}}, nil
}

// Texts returns the title and the message of the alert that rule raises for e. Both are valid UTF-8
// without NUL and not empty. The title is one line of at most [MaxTitleRunes] characters, the
// message has at most [MaxMessageRunes]. If a template fails, the default text is used and problem
// says why.
func (t *Texts) Texts(rule *rules.Rule, e *rules.Exchange) (title, message string, problem error) {
	texts := standard{t.title, t.message}
	if e.ErrorType == "" || e.ErrorMessage == "" {
		texts.message = t.sparse
	}
	return t.write(rule, ForExchange(rule, e), texts)
}

// CountTexts returns the title and the message of the alert that rule raises for c, like
// [Texts.Texts]. newest is the zero exchange if none is known.
func (t *Texts) CountTexts(rule *rules.Rule, c *alerts.Count, newest *rules.Exchange) (title, message string, problem error) {
	texts := standard{t.counts[titleOf(c)], t.counts[messageOf(c, newest)]}
	return t.write(rule, ForCount(rule, c, newest), texts)
}

// titleOf returns the default title of a count.
func titleOf(c *alerts.Count) string {
	plain, grouped, nameless := rules.DefaultCountTitle, rules.DefaultCountGroupTitle, noGroupTitle
	switch {
	case c.Mode == rules.RatioInWindow:
		plain, grouped, nameless = rules.DefaultRatioTitle, rules.DefaultRatioGroupTitle, noGroupRatio
	case c.Mode == rules.DurationInWindow:
		plain, grouped, nameless = rules.DefaultDurationTitle, rules.DefaultDurationGroupTitle, noGroupDuration
	case c.Mode == rules.AbsentInWindow && c.Observed == 0:
		plain, grouped, nameless = oneMissing, oneMissingOf, oneMissing
	case c.Mode == rules.AbsentInWindow:
		plain, grouped, nameless = rules.DefaultAbsentTitle, rules.DefaultAbsentGroupTitle, noGroupAbsent
	case c.Observed == 1:
		plain, grouped = oneTitle, oneTitle
	}
	switch {
	case c.GroupBy == rules.GroupByNothing:
		return plain
	case c.Group == "":
		return nameless
	}
	return grouped
}

// messageOf returns the default message of a count.
func messageOf(c *alerts.Count, newest *rules.Exchange) string {
	known := HasExample(c, newest)
	switch {
	case c.Mode == rules.AbsentInWindow && c.Observed < int64(c.Threshold):
		return rules.DefaultAbsentMessage
	case c.Mode == rules.AbsentInWindow:
		return presentMessage
	case c.Mode == rules.DurationInWindow && !known:
		return lonelyMessage
	case c.Mode == rules.DurationInWindow:
		return rules.DefaultDurationMessage
	case c.Mode != rules.RatioInWindow && c.Observed < int64(c.Threshold):
		return belowMessage
	case !known:
		return lonelyMessage
	case newest.ErrorMessage == "":
		return brokenMessage
	}
	return rules.DefaultCountMessage
}

// standard are the texts of a rule without templates of its own.
type standard struct{ title, message *Template }

func (t *Texts) write(rule *rules.Rule, values *Values, s standard) (title, message string, problem error) {
	parsed := t.of(rule)
	title, titleProblem := text(parsed.title, s.title, values, TitleLimit())
	message, messageProblem := text(parsed.message, s.message, values, MessageLimit())
	return title, message, errors.Join(parsed.problem, prefixed("title", titleProblem), prefixed("message", messageProblem))
}

// text renders own, or standard if there is no own template or its result is empty.
func text(own, standard *Template, values *Values, limit Limit) (string, error) {
	var problem error
	if own != nil {
		text, err := own.Text(values, limit)
		if err == nil && text != "" {
			return text, nil
		}
		problem = err
	}
	text, err := standard.Text(values, limit)
	return text, errors.Join(problem, err)
}

// of returns the rule's templates, which are parsed once for each version.
func (t *Texts) of(rule *rules.Rule) *ruleTexts {
	t.mu.RLock()
	kept, found := t.rules[rule.ID]
	t.mu.RUnlock()
	if found && kept.version == rule.Version && rule.ID != uuid.Nil {
		return kept
	}
	parsed := parseRule(rule)
	if rule.ID == uuid.Nil {
		return parsed
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, found := t.rules[rule.ID]; !found && len(t.rules) >= maxCachedRules {
		for id := range t.rules {
			delete(t.rules, id)
			break
		}
	}
	t.rules[rule.ID] = parsed
	return parsed
}

func parseRule(rule *rules.Rule) *ruleTexts {
	parsed := &ruleTexts{version: rule.Version}
	var titleProblem, messageProblem error
	if rule.TitleTemplate != "" {
		parsed.title, titleProblem = Parse(rule.TitleTemplate, InTexts)
	}
	if rule.MessageTemplate != "" {
		parsed.message, messageProblem = Parse(rule.MessageTemplate, InTexts)
	}
	parsed.problem = errors.Join(prefixed("titleTemplate", titleProblem), prefixed("messageTemplate", messageProblem))
	return parsed
}

func prefixed(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// CheckRule returns what is wrong with the templates of a rule, by field. It parses them and
// renders them with the worst samples of exchanges or, for a window rule, of counts.
func CheckRule(d *rules.Definition) []fault.Field {
	var fields []fault.Field
	for _, t := range []struct {
		field, text string
		limit       Limit
	}{
		{"titleTemplate", d.TitleTemplate, TitleLimit()},
		{"messageTemplate", d.MessageTemplate, MessageLimit()},
	} {
		if t.text == "" {
			continue
		}
		parsed, err := Parse(t.text, InTexts)
		if err == nil {
			err = try(parsed, d, t.limit)
		}
		if err != nil {
			fields = append(fields, fault.Field{Field: t.field, Code: "template", Message: sentence(err)})
		}
	}
	return fields
}

func try(parsed *Template, d *rules.Definition, limit Limit) error {
	rule := rules.Rule{Definition: *d}
	mode := rules.PerExchange
	if d.FireMode.Windowed() {
		mode = d.FireMode
	}
	for _, sample := range Samples() {
		if sample.FireMode() != mode {
			continue
		}
		if _, err := parsed.Text(ForCount(&rule, sample.Count, &sample.Exchange), limit); err != nil {
			return err
		}
	}
	return nil
}

// sentence writes an error as a sentence for people.
func sentence(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return fmt.Sprintf("%s (line %d, column %d)", e.Message, e.Line, e.Column)
	}
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}
