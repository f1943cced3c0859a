package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	api "tocsin/client"
)

// action is what becomes of an object.
type action string

const (
	created   action = "created"
	updated   action = "updated"
	deleted   action = "deleted"
	unchanged action = "unchanged"
)

// step is what becomes of one object, and why.
type step struct {
	kind, name string
	action     action
	// why is the reason, where the fields that differ are not all of it.
	why      string
	changes  []change
	warnings []api.FieldError
	// run does it; nil where another step does it as well, or there is nothing to do.
	run func(ctx context.Context) error
}

// change is a field that differs, and why it is written where its values cannot be shown.
type change struct {
	field         string
	before, after any
	why           string
}

// plan is what becomes of everything, in the order in which it is done.
type plan struct {
	steps []step
	// leftAlone is how many objects are not in the files and stay.
	leftAlone int
}

// differs reports whether anything is not as the files say.
func (p *plan) differs() bool {
	for _, s := range p.steps {
		if s.action != unchanged {
			return true
		}
	}
	return false
}

// print writes what becomes of each object that is not as it was.
func (p *plan) print(out io.Writer) error {
	var b strings.Builder
	for _, s := range p.steps {
		if sign := map[action]string{created: "+", updated: "~", deleted: "-"}[s.action]; sign != "" {
			why := s.why
			if why == "" && s.action == created {
				why = "is not there yet"
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

// sum writes how many objects are concerned.
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

// run executes the plan, and says how far it came if something fails.
func (p *plan) run(ctx context.Context) error {
	done := 0
	for _, s := range p.steps {
		if s.run == nil {
			continue
		}
		if err := s.run(ctx); err != nil {
			if done > 0 {
				return fmt.Errorf("%s %s: %w; everything above this in the plan is done; remove the cause and run the command again", s.kind, shown(s.name), err)
			}
			if unanswered(err) {
				return fmt.Errorf("%s %s: %w; it may have been changed all the same: run the command again", s.kind, shown(s.name), err)
			}
			return fmt.Errorf("%s %s: %w; nothing was changed", s.kind, shown(s.name), err)
		}
		done++
	}
	return nil
}

// unanswered reports whether the server may have done what it was asked, although the answer is an error.
func unanswered(err error) bool {
	if _, lost := errors.AsType[*url.Error](err); lost {
		return true
	}
	refused, ok := errors.AsType[*api.Problem](err)
	return ok && refused.Status >= http.StatusInternalServerError
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

// writeLines shows the lines between those that two texts begin and end with alike.
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
		return shown(string(text))
	}
}

// shown is a text as a terminal may print it: whoever wrote it cannot move the
// cursor.
func shown(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) && r != '\t' }) {
		return strconv.Quote(text)
	}
	return text
}
