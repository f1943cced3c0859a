package preset

import (
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"tocsin/notify"
)

type verdictEntry struct {
	Status   yaml.Node `yaml:"status"`
	Pointer  string    `yaml:"pointer"`
	Equals   string    `yaml:"equals"`
	Contains string    `yaml:"contains"`
	Verdict  yaml.Node `yaml:"verdict"`
	Remedy   string    `yaml:"remedy"`
	Hold     string    `yaml:"hold"`
	Forget   bool      `yaml:"forget"`
}

// answers reads the meanings of answers.
func (r *reader) answers() error {
	for _, entry := range r.d.Verdicts {
		v := verdict{pointer: entry.Pointer, equals: entry.Equals, contains: entry.Contains, remedy: entry.Remedy, forget: entry.Forget}
		status := &entry.Status
		var err error
		if status.Kind == yaml.SequenceNode {
			err = status.Decode(&v.statuses)
		} else {
			v.statuses = make([]int, 1)
			err = status.Decode(&v.statuses[0])
		}
		if err != nil || slices.ContainsFunc(v.statuses, func(n int) bool { return n < 200 || n > 599 }) {
			return r.fail(entry.Verdict.Line, "status must be an HTTP status, or a list of them")
		}
		v.verdict = notify.ParseVerdict(entry.Verdict.Value)
		if !slices.Contains([]notify.Verdict{notify.VerdictDelivered, notify.VerdictRetry, notify.VerdictThrottled, notify.VerdictRefused, notify.VerdictGone}, v.verdict) {
			return r.fail(entry.Verdict.Line, "verdict must be DELIVERED, RETRY, THROTTLED, REFUSED or GONE, not %q", entry.Verdict.Value)
		}
		if v.verdict != notify.VerdictDelivered && v.remedy == "" {
			return r.fail(entry.Verdict.Line, "a verdict other than DELIVERED needs a remedy, which says what to do")
		}
		if v.forget && v.verdict != notify.VerdictRetry {
			return r.fail(entry.Verdict.Line, "forget needs the verdict RETRY, because the next attempt is made without the stored ID")
		}
		if v.pointer == "" && v.equals != "" {
			return r.fail(entry.Verdict.Line, "equals needs a pointer into the response")
		}
		if v.hold, err = r.duration(r.lines["verdicts"], "hold", entry.Hold); err != nil {
			return err
		}
		r.preset.verdicts = append(r.preset.verdicts, v)
	}
	for _, form := range r.d.RetryAfter {
		if (form.Header == "") == (form.Pointer == "") || !form.Unit.valid() {
			return r.fail(r.lines["retryAfter"], "retryAfter needs a header or a pointer, and a unit: seconds, milliseconds, date or epoch")
		}
		r.preset.retryAfter = append(r.preset.retryAfter, form)
	}
	return nil
}

const maxHold = 24 * time.Hour

func (r *reader) duration(line int, name, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d > maxHold {
		return 0, r.fail(line, "%s must be a duration such as 30s, from 1s to 24h", name)
	}
	return d, nil
}

// Bounds of a schedule.
const (
	maxPauses = 20
	maxAge    = 30 * 24 * time.Hour
)

// schedule reads when messages are repeated, and until when.
func (r *reader) schedule() error {
	r.preset.Schedule.KeepsState = r.preset.Keyed
	if len(r.d.Schedule) > maxPauses {
		return r.fail(r.lines["schedule"], "schedule has more than %d pauses", maxPauses)
	}
	for _, text := range r.d.Schedule {
		pause, err := r.duration(r.lines["schedule"], "each pause of schedule", text)
		if err != nil {
			return err
		}
		if pause == 0 {
			return r.fail(r.lines["schedule"], "schedule has an empty pause; remove it")
		}
		r.preset.Schedule.Pauses = append(r.preset.Schedule.Pauses, pause)
	}
	if r.d.MaxAge == "" {
		return nil
	}
	age, err := time.ParseDuration(r.d.MaxAge)
	if err != nil || age < time.Minute || age > maxAge {
		return r.fail(r.lines["maxAge"], "maxAge must be a duration such as 6h, from 1m to 720h")
	}
	r.preset.Schedule.MaxAge = age
	return nil
}
