package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	api "tocsin/client"
)

// action is what happens to an object.
type action string

const (
	created   action = "created"
	updated   action = "updated"
	deleted   action = "deleted"
	unchanged action = "unchanged"
)

// step is what happens to one object, and why.
type step struct {
	kind, name string
	action     action
	// why is the reason, if the changed fields do not say enough.
	why      string
	changes  []change
	warnings []api.FieldError
	// run does the step. It is nil if another step does it, or if there is nothing to do.
	run func(ctx context.Context) error
}

// change is a field that differs. If its values cannot be shown, it has the reason for the change.
type change struct {
	field         string
	before, after any
	why           string
}

// plan is a list of steps, in the order in which they are done.
type plan struct {
	steps []step
	// leftAlone is how many objects are not in the files and remain.
	leftAlone int
}

// differs reports whether anything differs from the files.
func (p *plan) differs() bool {
	for _, s := range p.steps {
		if s.action != unchanged {
			return true
		}
	}
	return false
}

// print writes what happens to each object that changes.
func (p *plan) print(out io.Writer) error {
	var b strings.Builder
	for _, s := range p.steps {
		if sign := map[action]string{created: "+", updated: "~", deleted: "-"}[s.action]; sign != "" {
			why := s.why
			if why == "" && s.action == created {
				why = "does not exist yet"
			}
			fmt.Fprintf(&b, "%s %s %s", sign, s.kind, shown(s.name))
			if why != "" {
				fmt.Fprintf(&b, ": %s", shown(why))
			}
			b.WriteByte('\n')
		}
		for _, c := range s.changes {
			if c.why != "" {
				fmt.Fprintf(&b, "    %s: %s\n", c.field, c.why)
			} else {
				writeChange(&b, c.field, c.before, c.after)
			}
		}
		for _, w := range s.warnings {
			fmt.Fprintf(&b, "! %s %s: %s: %s\n", s.kind, shown(s.name), w.Field, w.Message)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// sum writes the numbers of objects.
func (p *plan) sum(out io.Writer, would bool) error {
	counts := map[action]int{}
	for _, s := range p.steps {
		counts[s.action]++
	}
	prefix := ""
	if would {
		prefix = "would be "
	}
	_, err := fmt.Fprintf(out, "%s%d created, %d updated, %d deleted; %d unchanged, %d not in the files\n",
		prefix, counts[created], counts[updated], counts[deleted], counts[unchanged], p.leftAlone)
	return err
}

// run executes the plan. If a step fails, it says what was done.
func (p *plan) run(ctx context.Context) error {
	done := 0
	for _, s := range p.steps {
		if s.run == nil {
			continue
		}
		if err := s.run(ctx); err != nil {
			return fmt.Errorf("%s %s: %w; %s", s.kind, shown(s.name), err, outcome(err, done > 0))
		}
		done++
	}
	return nil
}

// outcome says what was done when a step failed, and what to do.
func outcome(err error, others bool) string {
	above := "everything above this in the plan is done; "
	if !others {
		above = ""
	}
	switch _, begun := errors.AsType[begunError](err); {
	case begun:
		return above + "remove the cause and run the command again"
	case unanswered(err):
		return above + "it may have been changed all the same: run the command again"
	case others:
		return above + "remove the cause and run the command again"
	}
	return "nothing was changed"
}

// begunError is the error of a step that has changed something. It says what.
type begunError struct{ error }

// Unwrap returns the cause.
func (b begunError) Unwrap() error { return b.error }

// unanswered reports whether the server may have done what it was asked, although the answer is an error or
// could not be read.
func unanswered(err error) bool {
	if refused, ok := errors.AsType[*api.Problem](err); ok && !errors.Is(err, errForeign) {
		return refused.Status >= http.StatusInternalServerError
	}
	_, lost := errors.AsType[net.Error](err)
	_, garbled := errors.AsType[*json.SyntaxError](err)
	_, other := errors.AsType[*json.UnmarshalTypeError](err)
	return lost || garbled || other || errors.Is(err, errForeign) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

func writeChange(b *strings.Builder, field string, before, after any) {
	was, wasText := before.(string)
	is, isText := after.(string)
	if (wasText || before == nil) && (isText || after == nil) && strings.ContainsRune(was+is, '\n') {
		fmt.Fprintf(b, "    %s:\n", field)
		writeLines(b, strings.Split(was, "\n"), strings.Split(is, "\n"))
		return
	}
	fmt.Fprintf(b, "    %s: %s → %s\n", field, value(before), value(after))
}

// writeLines shows the lines in which two texts differ, without their common beginning and end.
func writeLines(b *strings.Builder, was, is []string) {
	for len(was) > 0 && len(is) > 0 && was[0] == is[0] {
		was, is = was[1:], is[1:]
	}
	for len(was) > 0 && len(is) > 0 && was[len(was)-1] == is[len(is)-1] {
		was, is = was[:len(was)-1], is[:len(is)-1]
	}
	for _, line := range was {
		fmt.Fprintf(b, "      - %s\n", shown(line))
	}
	for _, line := range is {
		fmt.Fprintf(b, "      + %s\n", shown(line))
	}
}

func value(v any) string {
	switch v := v.(type) {
	case nil:
		return "(default)"
	case string:
		return shown(v)
	default:
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		if string(text) == "null" { // a list that is not given
			return "(default)"
		}
		return shown(string(text))
	}
}

// shown is a text in a form that is safe on a terminal: it cannot move the cursor.
func shown(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) && r != '\t' }) {
		return strconv.Quote(text)
	}
	return text
}
