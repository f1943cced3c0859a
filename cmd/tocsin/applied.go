package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// applied is what became of a document, or would.
type applied struct {
	Rules []struct {
		Name    string `json:"name"`
		Action  string `json:"action"`
		Changes []struct {
			Field  string `json:"field"`
			Before any    `json:"before"`
			After  any    `json:"after"`
		} `json:"changes"`
		Warnings []struct {
			Field   string `json:"field"`
			Message string `json:"message"`
		} `json:"warnings"`
	} `json:"rules"`
	LeftAlone int `json:"leftAlone"`
}

const unchanged = "unchanged"

// differs reports whether any rule is not as the document says.
func (a *applied) differs() bool {
	for _, r := range a.Rules {
		if r.Action != unchanged {
			return true
		}
	}
	return false
}

// print writes what became of each rule that is not as it was, and a count.
func (a *applied) print(out io.Writer, dryRun bool) error {
	var b strings.Builder
	counts := map[string]int{}
	for _, r := range a.Rules {
		counts[r.Action]++
		if sign := map[string]string{"created": "+", "updated": "~", "deleted": "-"}[r.Action]; sign != "" {
			fmt.Fprintf(&b, "%s %s\n", sign, shown(r.Name))
		}
		for _, c := range r.Changes {
			writeChange(&b, c.Field, c.Before, c.After)
		}
		for _, w := range r.Warnings {
			fmt.Fprintf(&b, "! %s: %s: %s\n", shown(r.Name), w.Field, w.Message)
		}
	}
	would := ""
	if dryRun {
		would = "would be "
	}
	fmt.Fprintf(&b, "%s%d created, %d updated, %d deleted; %d unchanged, %d left alone\n",
		would, counts["created"], counts["updated"], counts["deleted"], counts[unchanged], a.LeftAlone)
	_, err := io.WriteString(out, b.String())
	return err
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
