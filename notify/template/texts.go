package template

import (
	"errors"
	"fmt"
	"sync"

	"github.com/google/uuid"

	"tocsin/internal/fault"
	"tocsin/rules"
)

// sparseMessage stands in for [rules.DefaultMessage] where an exchange lacks an
// error type or message, as a slow but completed one does.
const sparseMessage = "{{#exchange.errorType}}{{exchange.errorType}}, without a message, after {{exchange.duration}}{{/exchange.errorType}}" +
	"{{^exchange.errorType}}{{#exchange.errorMessage}}{{exchange.errorMessage}}{{/exchange.errorMessage}}" +
	"{{^exchange.errorMessage}}{{exchange.status}} after {{exchange.duration}}{{/exchange.errorMessage}}{{/exchange.errorType}}"

// maxCachedRules bounds the rules whose templates are kept parsed.
const maxCachedRules = 20_000

// Texts writes the title and the message of alerts. It keeps the parsed
// templates of rules by their version, bounded. It is safe for concurrent use.
type Texts struct {
	title, message, sparse *Template

	mu    sync.RWMutex
	rules map[uuid.UUID]*ruleTexts
}

// ruleTexts are a rule's templates; a nil one is the default.
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
	return &Texts{title: title, message: message, sparse: sparse, rules: map[uuid.UUID]*ruleTexts{}}, nil
}

// Texts returns the title and the message of the alert that rule raises for e:
// valid UTF-8 without NUL, the title one line of at most [MaxTitleRunes]
// characters, the message at most [MaxMessageRunes], neither empty. Where a
// template does not work out, the default text stands in for it and problem
// says why.
func (t *Texts) Texts(rule *rules.Rule, e *rules.Exchange) (title, message string, problem error) {
	parsed := t.of(rule)
	values := ForExchange(rule, e)
	title, titleProblem := text(parsed.title, t.title, values, TitleLimit())
	standard := t.message
	if e.ErrorType == "" || e.ErrorMessage == "" {
		standard = t.sparse
	}
	message, messageProblem := text(parsed.message, standard, values, MessageLimit())
	return title, message, errors.Join(parsed.problem, prefixed("title", titleProblem), prefixed("message", messageProblem))
}

// text renders own, or standard where there is no own template or it comes to nothing.
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

// of returns the rule's templates, parsed once for each version.
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

// CheckRule returns what is wrong with the templates of a rule, by field. It
// parses them and renders them with samples of the worst that exchanges hold.
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
	for _, sample := range Samples() {
		if _, err := parsed.Text(ForExchange(&rule, &sample.Exchange), limit); err != nil {
			return err
		}
	}
	return nil
}

// sentence writes an error for the person at the form.
func sentence(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return fmt.Sprintf("%s (line %d, column %d)", e.Message, e.Line, e.Column)
	}
	return err.Error()
}
