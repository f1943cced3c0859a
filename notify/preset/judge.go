package preset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"tocsin/notify"
)

// verdict is the meaning of an answer. All its conditions must hold.
type verdict struct {
	statuses []int
	// pointer points into a JSON answer. equals and contains apply to the value there or, without a
	// pointer, to the whole answer.
	pointer, equals, contains string
	verdict                   notify.Verdict
	remedy                    string
	hold                      time.Duration
	// forget says that what an earlier message opened does not exist any more.
	forget bool
}

// retryAfter is the place in an answer that says how long to wait before the next message.
type retryAfter struct {
	Header  string   `yaml:"header"`
	Pointer string   `yaml:"pointer"`
	Unit    waitUnit `yaml:"unit"`
}

// waitUnit is the format of a waiting time.
type waitUnit string

const (
	waitSeconds      waitUnit = "seconds"
	waitMilliseconds waitUnit = "milliseconds"
	waitDate         waitUnit = "date"
	waitEpoch        waitUnit = "epoch"
)

func (u waitUnit) valid() bool {
	return u == waitSeconds || u == waitMilliseconds || u == waitDate || u == waitEpoch
}

// Judgement is the meaning of an answer.
type Judgement struct {
	Verdict notify.Verdict
	// Remedy says what to do; empty if there is nothing to do.
	Remedy string
	// Wait is how long the receiver wants no messages; 0 if it says nothing.
	Wait time.Duration
	// Reference is the receiver's own id of what the message opened. It is empty if what an earlier
	// message opened does not exist any more, and nil if the answer does not say.
	Reference *string
}

// Judge refines the judgement that follows from the status of an answer. wait is the time in a
// Retry-After header.
func (p *Preset) Judge(status int, header http.Header, body []byte, byStatus Judgement, now time.Time) Judgement {
	j := byStatus
	answer := answered{body: body}
	for i := range p.verdicts {
		v := &p.verdicts[i]
		if !slices.Contains(v.statuses, status) || !v.matches(&answer) {
			continue
		}
		j.Verdict, j.Remedy = v.verdict, v.remedy
		if v.forget {
			j.Reference = new(string)
		}
		if v.hold > 0 && j.Verdict == notify.VerdictThrottled {
			j.Wait = max(j.Wait, v.hold)
		}
		break
	}
	if id := answer.at(p.capture); j.Verdict == notify.VerdictDelivered && p.capture != "" && IsReference(id) {
		j.Reference = &id
	}
	if j.Verdict == notify.VerdictDelivered || j.Verdict == notify.VerdictRefused || j.Verdict == notify.VerdictGone {
		return j
	}
	for _, form := range p.retryAfter {
		text := header.Get(form.Header)
		if form.Pointer != "" {
			text = answer.at(form.Pointer)
		}
		j.Wait = max(j.Wait, form.wait(text, now))
	}
	if j.Verdict == notify.VerdictThrottled && j.Wait == 0 {
		j.Wait = p.hold
	}
	return j
}

// ReadsBody reports whether the body of an answer with a status may decide its meaning.
func (p *Preset) ReadsBody(status int) bool {
	if p.capture != "" && status < http.StatusMultipleChoices {
		return true
	}
	return slices.ContainsFunc(p.verdicts, func(v verdict) bool {
		return slices.Contains(v.statuses, status) && (v.pointer != "" || v.equals != "" || v.contains != "")
	}) || status >= http.StatusMultipleChoices && slices.ContainsFunc(p.retryAfter, func(f retryAfter) bool { return f.Pointer != "" })
}

// Captures reports whether answers contain ids of what messages have opened.
func (p *Preset) Captures() bool { return p.capture != "" }

// Updates reports whether a message of an event changes what an earlier one opened, if its id is
// known.
func (p *Preset) Updates(e Event) bool {
	return p.update != nil && (e == Acknowledged || e == Resolved || e == Reopened)
}

// forgets reports whether an answer may say that what was opened does not exist any more.
func (p *Preset) forgets() bool {
	return slices.ContainsFunc(p.verdicts, func(v verdict) bool { return v.forget })
}

var reference = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._:~-]{0,199}$`)

// IsReference reports whether a text can be an id, which becomes part of URLs.
func IsReference(text string) bool { return reference.MatchString(text) }

func (v *verdict) matches(a *answered) bool {
	text := string(a.body)
	if v.pointer != "" {
		if text = a.at(v.pointer); text == "" {
			return false
		}
	}
	return (v.equals == "" || text == v.equals) && strings.Contains(text, v.contains)
}

// maxWait bounds the waiting time that a receiver can ask for.
const maxWait = 24 * time.Hour

func (f *retryAfter) wait(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0
	}
	if f.Unit == waitDate {
		at, err := http.ParseTime(text)
		if err != nil {
			return 0
		}
		return min(max(at.Sub(now), 0), maxWait)
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || n <= 0 {
		return 0
	}
	switch f.Unit { //nolint:exhaustive // seconds, and dates above
	case waitMilliseconds:
		n /= 1000
	case waitEpoch:
		n -= float64(now.UnixNano()) / float64(time.Second)
	}
	return time.Duration(math.Ceil(min(max(n, 0), maxWait.Seconds()))) * time.Second
}

// answered is an answer that is parsed as JSON on demand.
type answered struct {
	body []byte
	read bool
	root any
}

// at returns the text at a pointer; empty if there is none. * stands for each element of a list:
// the first element with a text counts.
func (a *answered) at(pointer string) string {
	if !a.read {
		a.read = true
		decoder := json.NewDecoder(bytes.NewReader(a.body))
		decoder.UseNumber()
		if err := decoder.Decode(&a.root); err != nil {
			a.root = nil
		}
	}
	return textAt(a.root, strings.Split(strings.TrimPrefix(pointer, "/"), "/"))
}

func textAt(value any, path []string) string {
	if len(path) == 0 {
		switch value.(type) {
		case nil, map[string]any, []any:
			return ""
		}
		return fmt.Sprint(value)
	}
	switch v := value.(type) {
	case map[string]any:
		return textAt(v[strings.ReplaceAll(strings.ReplaceAll(path[0], "~1", "/"), "~0", "~")], path[1:])
	case []any:
		if n, err := strconv.Atoi(path[0]); err == nil && n >= 0 && n < len(v) {
			return textAt(v[n], path[1:])
		}
		for _, element := range v {
			if text := textAt(element, path[1:]); path[0] == "*" && text != "" {
				return text
			}
		}
	}
	return ""
}
