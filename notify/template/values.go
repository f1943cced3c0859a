package template

import (
	"math"
	"slices"
	"strconv"
	"time"

	"tocsin/alerts"
	"tocsin/notify"
	"tocsin/rules"
)

// Scope says where a template is used, which decides its variables.
type Scope int

// The scopes.
const (
	// InTexts is the title or the message of an alert. They are written before the alert exists,
	// and know its rule, its exchange and its count.
	InTexts Scope = iota
	// InBody is the body of a webhook, which knows everything about the alert.
	InBody
	// InPreset is a request of a preset, which also knows the webhook's inputs and the event.
	InPreset
)

// Variable is a name that templates can use.
type Variable struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// InTexts says whether titles and messages know the variable; bodies know all.
	InTexts bool `json:"inTexts"`
}

// Variables returns every variable, in the order in which people look for them. A label appears
// once, as "rule.labels.KEY", and an attribute as "exchange.attributes.KEY"; lists come last.
func Variables() []Variable {
	known := vocabulary()
	list := make([]Variable, 0, len(known)+4)
	for _, k := range known {
		list = append(list, k.Variable)
	}
	return append(list,
		Variable{labelPrefix + "KEY", "The label KEY of the rule, empty if it has none", true},
		Variable{attributePrefix + "KEY", "The attribute KEY of the exchange, empty if it has none", true},
		Variable{attributeList, "A section for each attribute, in the order of their keys: {{key}} and {{value}}", true},
		Variable{stackLines, "A section for each line of the stack trace: {{.}}", true},
	)
}

// Values are the values of a template's variables.
type Values struct {
	ruleID, ruleName, severity string
	about                      rules.About
	// exchange is never nil. For a count it is the newest exchange, and may be the zero exchange.
	exchange *rules.Exchange
	// count is nil for an alert about one exchange.
	count *alerts.Count
	// alert is nil while title and message are written.
	alert    *alerts.Instance
	alertURL string
	reason   notify.Reason
	// request is nil outside of presets.
	request *Request
}

// Request is what a request of a preset knows in addition to the alert.
type Request struct {
	// Inputs are the inputs of the webhook, by name.
	Inputs map[string]string
	// Key is the key by which the receiver knows the alert, in every message about it.
	Key string
	// Reference is the receiver's own ID of what an earlier message opened; empty if unknown.
	Reference string
	// Event is the event's name in presets; Word is the same in words for people.
	Event, Word string
	// Severity is the alert's severity in the receiver's own words; empty if these are not texts.
	Severity string
	// By is who caused the event; empty means Tocsin. At is when it happened.
	By string
	At time.Time
	// Until is when the subject ends if no message ends it; far in the future if a message will.
	Until time.Time
}

// In returns the values for a request of a preset.
func (v *Values) In(r *Request) *Values {
	of := *v
	of.request = r
	return &of
}

// ForExchange returns the values for the title and the message of the alert that r raises for e.
// Texts of e are cleaned when they are used.
func ForExchange(r *rules.Rule, e *rules.Exchange) *Values {
	return &Values{ruleID: r.ID.String(), ruleName: r.Name, severity: string(r.Severity), about: r.About(), exchange: e}
}

// ForCount returns the values for the title and the message of the alert that r raises for c.
// newest is the zero exchange if none is known.
func ForCount(r *rules.Rule, c *alerts.Count, newest *rules.Exchange) *Values {
	values := ForExchange(r, newest)
	values.count = c
	return values
}

// ForAlert returns the values for the message that says that a fired. url is where people find the
// alert; empty if the public URL is not configured.
func ForAlert(a *alerts.Instance, url string) *Values { return ForReason(a, notify.ReasonFired, url) }

// ForReason returns the values for a message about a that is sent for a reason, like [ForAlert].
func ForReason(a *alerts.Instance, reason notify.Reason, url string) *Values {
	return &Values{
		ruleID: a.RuleID.String(), ruleName: a.RuleName, severity: string(a.Severity), about: a.About,
		exchange: &a.Exchange, count: a.Count, alert: a, alertURL: url, reason: reason,
	}
}

// HasExample reports whether an alert has an exchange. An alert about a count has none if the
// newest that matched could not be read.
func HasExample(c *alerts.Count, e *rules.Exchange) bool {
	return c == nil || e.ExecutionID != ""
}

// lookup reads a variable.
type lookup func(*Values) string

type variable struct {
	Variable

	get lookup
}

const (
	attributePrefix = "exchange.attributes."
	labelPrefix     = "rule.labels."
	inputPrefix     = "input."
)

// Bounds of the values, in bytes.
const (
	maxNameBytes  = 1 << 10
	maxTextBytes  = 16 << 10
	maxStackBytes = 32 << 10
	// maxAddressBytes is more than the longest address takes, in characters of any length.
	maxAddressBytes = 8 << 10
)

func (v *Values) attribute(key string) string {
	return rules.CleanText(v.exchange.Attributes[key], maxNameBytes)
}

func (v *Values) label(key string) string { return rules.CleanText(v.about.Labels[key], maxNameBytes) }

// vocabulary returns every variable except labels and attributes.
func vocabulary() []variable {
	return slices.Concat(exchangeVariables(), countVariables(), ruleVariables(), alertVariables())
}

func exchangeVariables() []variable {
	inTexts := func(name, description string, get func(*rules.Exchange) string) variable {
		return variable{Variable{"exchange." + name, description, true}, func(v *Values) string {
			if !HasExample(v.count, v.exchange) {
				return ""
			}
			return get(v.exchange)
		}}
	}
	text := func(name, description string, limit int, get func(*rules.Exchange) string) variable {
		return inTexts(name, description, func(e *rules.Exchange) string { return rules.CleanText(get(e), limit) })
	}
	return []variable{
		text("application", "The application that ran the exchange", maxNameBytes, func(e *rules.Exchange) string { return e.Application }),
		text("route", "The route, job or request", maxNameBytes, func(e *rules.Exchange) string { return e.Route }),
		text("environment", "The environment, such as production", maxNameBytes, func(e *rules.Exchange) string { return e.Environment }),
		text("executionId", "The execution ID", maxNameBytes, func(e *rules.Exchange) string { return e.ExecutionID }),
		text("status", "COMPLETED or FAILED", maxNameBytes, func(e *rules.Exchange) string { return string(e.Status) }),
		inTexts("startTime", "When it started, RFC 3339 with nanoseconds, UTC", func(e *rules.Exchange) string { return Time(e.StartTimeNS) }),
		inTexts("endTime", "When it ended, in the format of startTime; empty if the source does not provide it", func(e *rules.Exchange) string {
			if e.EndTimeNS == nil {
				return ""
			}
			return Time(*e.EndTimeNS)
		}),
		inTexts("duration", "How long it took, with its unit: 12 ms, 1.234 s", func(e *rules.Exchange) string { return Duration(e.DurationNS) }),
		inTexts("durationMs", "How long it took, in milliseconds", func(e *rules.Exchange) string { return Milliseconds(e.DurationNS) }),
		text("errorType", "The type of the error; empty if there is none", maxNameBytes, func(e *rules.Exchange) string { return e.ErrorType }),
		text("errorMessage", "The error's message", maxTextBytes, func(e *rules.Exchange) string { return e.ErrorMessage }),
		text("errorStack", "The error's stack trace", maxStackBytes, func(e *rules.Exchange) string { return e.ErrorStack }),
		text("stackTop", "The first line of the stack that is not from a framework", maxNameBytes, func(e *rules.Exchange) string { return StackTop(e.ErrorStack) }),
		text("correlationId", "The ID that related exchanges share", maxNameBytes, func(e *rules.Exchange) string { return e.CorrelationID }),
	}
}

func countVariables() []variable {
	inTexts := func(name, description string, get func(*alerts.Count) string) variable {
		return variable{Variable{"count." + name, description + "; empty for an alert about one exchange", true}, func(v *Values) string {
			if v.count == nil {
				return ""
			}
			return get(v.count)
		}}
	}
	return []variable{
		inTexts("observed", "How many exchanges matched within the window; for durations, how many lasted at least as long as the threshold", func(c *alerts.Count) string { return strconv.FormatInt(c.Observed, 10) }),
		inTexts("value", "The value that is compared with the threshold, with its unit: 7, 12.5%, 2.4 s", CountValue),
		inTexts("threshold", "The threshold, with its unit: 5, 10%, 2 s", CountThreshold),
		inTexts("volume", "The number of exchanges from which a ratio or a percentile was calculated", func(c *alerts.Count) string { return measured(c, strconv.FormatInt(c.Volume, 10)) }),
		inTexts("percentile", "The percentile of a rule about durations, such as 95", func(c *alerts.Count) string {
			if c.Mode != rules.DurationInWindow {
				return ""
			}
			return strconv.Itoa(c.Percentile)
		}),
		inTexts("window", "The window, with its unit: 10 min", func(c *alerts.Count) string { return Seconds(c.WindowSeconds) }),
		inTexts("windowSeconds", "The window in seconds", func(c *alerts.Count) string { return strconv.Itoa(c.WindowSeconds) }),
		inTexts("group", "The group: the route, application, environment, error type or value of an attribute", func(c *alerts.Count) string { return rules.CleanText(c.Group, maxNameBytes) }),
	}
}

// CountValue formats what a rule measured.
func CountValue(c *alerts.Count) string {
	switch c.Mode { //nolint:exhaustive // the others count
	case rules.RatioInWindow:
		return ratio(c.Value(), c.Percent)
	case rules.DurationInWindow:
		return Duration(c.DurationNS)
	default:
		return strconv.FormatInt(c.Observed, 10)
	}
}

// CountThreshold formats the threshold of the measurement.
func CountThreshold(c *alerts.Count) string {
	switch c.Mode { //nolint:exhaustive // the others count
	case rules.RatioInWindow:
		return percentage(c.Percent, thresholdDecimals)
	case rules.DurationInWindow:
		return Duration(c.DurationMS * int64(time.Millisecond))
	default:
		return strconv.Itoa(c.Threshold)
	}
}

// measured returns a text that only measurements have, and counts do not.
func measured(c *alerts.Count, text string) string {
	if !c.Measured() {
		return ""
	}
	return text
}

// ratio writes a measured ratio: one decimal, or as many as its threshold has; three
// below 1%.
func ratio(measured, threshold float64) string {
	decimals := 1
	for decimals < thresholdDecimals && (measured < 1 || truncated(threshold, decimals) != truncated(threshold, thresholdDecimals)) {
		decimals++
	}
	return percentage(measured, decimals)
}

// thresholdDecimals is how many decimals the threshold of a rule may have.
const thresholdDecimals = 3

// percentage is cut and not rounded, so that what is below a threshold looks as if it were.
func percentage(percent float64, decimals int) string {
	return strconv.FormatFloat(truncated(percent, decimals), 'f', -1, 64) + "%"
}

func truncated(percent float64, decimals int) float64 {
	scale := math.Pow10(decimals)
	return math.Floor(percent*scale+1e-6) / scale
}

func ruleVariables() []variable {
	return []variable{
		{Variable{"rule.name", "The rule's name", true}, func(v *Values) string { return rules.CleanText(v.ruleName, maxNameBytes) }},
		{Variable{"rule.id", "The rule's ID", true}, func(v *Values) string { return v.ruleID }},
		{Variable{"rule.owner", "Who owns the rule, such as a team", true}, func(v *Values) string { return rules.CleanText(v.about.Owner, maxNameBytes) }},
		{Variable{"rule.runbookUrl", "The URL of the rule's runbook", true}, func(v *Values) string { return rules.CleanText(v.about.RunbookURL, maxAddressBytes) }},
		{Variable{"rule.note", "The rule's note", true}, func(v *Values) string { return rules.CleanText(v.about.Note, maxTextBytes) }},
	}
}

func alertVariables() []variable {
	inBody := func(name, description string, get func(*Values) string) variable {
		return variable{Variable{"alert." + name, description, false}, func(v *Values) string {
			if v.alert == nil {
				return ""
			}
			return get(v)
		}}
	}
	return []variable{
		{Variable{"alert.severity", "CRITICAL, WARNING or INFO", true}, func(v *Values) string { return v.severity }},
		inBody("id", "The alert's ID; the same in every message about the alert", func(v *Values) string { return v.alert.ID.String() }),
		inBody("title", "The alert's title", func(v *Values) string { return rules.CleanText(v.alert.Title, maxNameBytes) }),
		inBody("message", "The alert's message", func(v *Values) string { return rules.CleanText(v.alert.Message, maxTextBytes) }),
		inBody("firedAt", "When the alert was raised, RFC 3339, UTC", func(v *Values) string { return v.alert.FiredAt.UTC().Format(time.RFC3339Nano) }),
		inBody("url", "The URL of the alert; empty if no public URL is configured", func(v *Values) string { return v.alertURL }),
		inBody("reason", "Why the message is sent: FIRED, REMINDER, SNOOZE_ENDED, ESCALATED, ACKNOWLEDGED, RESOLVED or REOPENED", func(v *Values) string { return string(v.reason) }),
		inBody("resolution", "How the alert was resolved: the person who did it, or why Tocsin did; empty until then", func(v *Values) string { return Resolution(v.alert) }),
	}
}

// requestVariables are the variables of only [InPreset].
func requestVariables() []variable {
	of := func(name, description string, get func(*Request) string) variable {
		return variable{Variable{"event." + name, description, false}, func(v *Values) string {
			if v.request == nil {
				return ""
			}
			return get(v.request)
		}}
	}
	return []variable{
		of("key", "The key by which the receiver knows the alert: the same in every message about it", func(r *Request) string { return r.Key }),
		of("reference", "The receiver's own ID of what an earlier message opened, if the receiver's file captures it; empty if it is not known", func(r *Request) string { return r.Reference }),
		of("name", "fired, reminder, acknowledged, resolved, reopened or digest", func(r *Request) string { return r.Event }),
		of("word", "The event in words, such as Acknowledged", func(r *Request) string { return r.Word }),
		of("severity", "The severity in the receiver's own words, if these are texts", func(r *Request) string { return r.Severity }),
		of("by", "Who acknowledged, resolved or reopened the alert; empty if Tocsin did", func(r *Request) string { return rules.CleanText(r.By, maxNameBytes) }),
		of("time", "When it happened, RFC 3339, UTC", func(r *Request) string { return r.At.UTC().Format("2006-01-02T15:04:05.000Z") }),
		of("until", "When the alert ends by itself, RFC 3339, UTC: in the year 2199 if a message about its end follows", func(r *Request) string { return r.Until.UTC().Format(time.RFC3339) }),
		of("clock", "When it happened, as 2006-01-02 15:04:05, UTC", func(r *Request) string { return r.At.UTC().Format(time.DateTime) }),
	}
}

// input returns an input of the webhook.
func (v *Values) input(name string) string {
	if v.request == nil {
		return ""
	}
	return v.request.Inputs[name]
}

// Time formats an instant, in nanoseconds since the Unix epoch, as RFC 3339 with nine fractional
// digits in UTC.
func Time(ns int64) string {
	return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000000000Z07:00")
}

// Milliseconds formats nanoseconds as milliseconds, as a decimal number without loss.
func Milliseconds(ns int64) string {
	whole, rest := ns/1_000_000, ns%1_000_000
	if rest == 0 {
		return strconv.FormatInt(whole, 10)
	}
	sign := ""
	if ns < 0 {
		sign, whole, rest = "-", -whole, -rest
	}
	digits := strconv.FormatInt(1_000_000+rest, 10)[1:]
	for digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	return sign + strconv.FormatInt(whole, 10) + "." + digits
}

// Duration formats nanoseconds for people: "250 µs", "12 ms", "1.234 s", "2 min 5 s", "3 h 12 min".
func Duration(ns int64) string {
	if ns < 0 {
		return "-" + Duration(max(-ns, 0))
	}
	d := time.Duration(ns)
	switch {
	case d < time.Millisecond:
		return strconv.FormatInt(d.Microseconds(), 10) + " µs"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return strconv.FormatFloat(float64(d.Milliseconds())/1000, 'f', -1, 64) + " s"
	case d < time.Hour:
		return pair(d, time.Minute, " min", time.Second, " s")
	default:
		return pair(d, time.Hour, " h", time.Minute, " min")
	}
}

// Seconds formats a number of seconds like [Duration].
func Seconds(n int) string { return Duration(int64(n) * int64(time.Second)) }

func pair(d, large time.Duration, largeUnit string, small time.Duration, smallUnit string) string {
	text := strconv.FormatInt(int64(d/large), 10) + largeUnit
	if rest := d % large / small; rest > 0 {
		text += " " + strconv.FormatInt(int64(rest), 10) + smallUnit
	}
	return text
}
