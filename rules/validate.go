package rules

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/go-playground/validator/v10"

	"tocsin/internal/fault"
)

// Messages of the cross-field checks, shown unchanged next to the fields.
const (
	reNotifyNotApplicable    = "Rules about single exchanges send no reminders; leave it out"
	forDurationNotApplicable = "Rules about single exchanges fire at once; leave it out"
	countingNotApplicable    = "Rules about single exchanges do not count; leave it out"
	lookBackNotApplicable    = "Window rules evaluate their whole window each time; leave it out"
	thresholdNotApplicable   = "Only COUNT_IN_WINDOW and ABSENT_IN_WINDOW compare a number of exchanges; leave it out"
	ratioNotApplicable       = "Only RATIO_IN_WINDOW compares a ratio; leave it out"
	durationNotApplicable    = "Only DURATION_IN_WINDOW compares a duration; leave it out"
	volumeNotApplicable      = "A count needs no minimum volume; leave it out"
	thresholdRequired        = "Must be at least 1"
	windowRequired           = "Must be from 10 to 86400"
	intervalAboveWindow      = "Must not be longer than the window, because some exchanges would not be counted"
	percentRequired          = "Must be from 0.001 to 100, with at most three decimals"
	shortWindowRange         = "Must be from 10 to less than the window"
	percentileRequired       = "Must be one of 50, 95, 99"
	absenceNotApplicable     = "Only ABSENT_IN_WINDOW expects exchanges; leave it out"
	expectedNeedsGroup       = "Set groupBy, or leave it out"
	expectedRequired         = "List the expected groups, or set the number of days from which they are learned"
	expectedOrLearned        = "The groups are listed; leave it out, or remove the list"
	expectedOutside          = "The scope excludes this group, so it would always be missing; change the scope, or remove the group"
	errorTypeNotExpected     = "Error types cannot be expected; group by route, application, environment or attribute"
	attributeRequired        = "Name the attribute whose values are counted"
	attributeNotApplicable   = "Only groupBy ATTRIBUTE takes an attribute; leave it out"
	weekdaysRequired         = "Choose at least one weekday"
	windowAboveCalendar      = "Must be shorter than the hours of the calendar, because it would never lie within them"
	forAboveCalendar         = "Window and duration together must be shorter than the hours of the calendar, because the alert would never fire"
	timeOfDayRequired        = "Must be a time of day such as 08:00"
	timeZoneRequired         = "Must be a time zone such as Europe/Berlin"
	webhooksNotApplicable    = "The routing policy decides who is notified; remove the webhooks"
	nothingResolves          = "Only people resolve the alerts of this rule; set an age or evidence, or leave it out"
	resolutionNotApplicable  = "The alerts of this rule resolve when the condition no longer holds; leave it out"
	resolutionRequired       = "Set the age or the evidence by which alerts are resolved"
	evidenceNotApplicable    = "The rule alerts about exchanges that complete, so a completed exchange cannot be evidence; remove COMPLETED from the statuses, or leave it out"
	evidenceAttribute        = "Only ATTRIBUTE compares an attribute; leave it out"
	statusesRequired         = "Set which exchanges are measured: COMPLETED, FAILED or both"
)

// Validator checks definitions. It is safe for concurrent use.
type Validator struct{ validate *validator.Validate }

// NewValidator returns a validator with the rules of a [Definition].
func NewValidator() *Validator {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(func(f reflect.StructField) string {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return name
	})
	register := func(tag string, f func(string) bool) {
		if err := v.RegisterValidation(tag, func(fl validator.FieldLevel) bool { return f(fl.Field().String()) }); err != nil {
			panic(fmt.Sprintf("rules: register validation %q: %v", tag, err))
		}
	}
	register("text", func(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) })
	register("regexp", func(s string) bool { return expressionProblem(s) == "" })
	register("label", isLabel)
	register("address", isAddress)
	v.RegisterStructValidation(crossFields, Definition{})
	v.RegisterStructValidation(crossAttribute, AttributeMatch{})
	v.RegisterStructValidation(crossScope, Scope{})
	v.RegisterStructValidation(crossFilter, Filter{})
	v.RegisterStructValidation(crossCalendar, Calendar{})
	return &Validator{validate: v}
}

// Definition returns an invalid-input fault with one entry for each field of d
// that cannot be accepted, or nil.
func (v *Validator) Definition(d *Definition) error {
	fields, err := v.Faults(d)
	if err != nil {
		return fmt.Errorf("validate rule: %w", err)
	}
	return fault.InvalidFields("the rule", fields)
}

// Faults returns the violations of the validation tags of a struct that uses parts of rules.
func (v *Validator) Faults(of any) ([]fault.Field, error) {
	err := v.validate.Struct(of)
	if err == nil {
		return nil, nil
	}
	broken, ok := errors.AsType[validator.ValidationErrors](err)
	if !ok {
		return nil, err
	}
	fields := make([]fault.Field, len(broken))
	for i, b := range broken {
		_, path, _ := strings.Cut(b.Namespace(), ".")
		fields[i] = fault.Field{Field: path, Code: code(b), Message: message(b)}
	}
	return fields, nil
}

// crossFields checks fields that depend on the fire mode, and on how receivers are chosen.
func crossFields(sl validator.StructLevel) {
	d := sl.Current().Interface().(Definition)
	report := func(wrong bool, value any, name, field, code, message string) {
		if wrong {
			sl.ReportError(value, name, field, code, message)
		}
	}
	report(d.UseRoutingPolicy && len(d.WebhookIDs) > 0, d.WebhookIDs, "webhookIds", "WebhookIDs", "not_applicable", webhooksNotApplicable)
	if d.FireMode == PerExchange {
		report(d.ReNotifyMinutes != 0, d.ReNotifyMinutes, "reNotifyMinutes", "ReNotifyMinutes", "not_applicable", reNotifyNotApplicable)
		report(d.ForDurationSeconds != 0, d.ForDurationSeconds, "forDurationSeconds", "ForDurationSeconds", "not_applicable", forDurationNotApplicable)
		report(d.Threshold != 0, d.Threshold, "threshold", "Threshold", "not_applicable", countingNotApplicable)
		report(d.WindowSeconds != 0, d.WindowSeconds, "windowSeconds", "WindowSeconds", "not_applicable", countingNotApplicable)
		report(d.GroupBy != GroupByNothing, d.GroupBy, "groupBy", "GroupBy", "not_applicable", countingNotApplicable)
		report(d.GroupByAttribute != "", d.GroupByAttribute, "groupByAttribute", "GroupByAttribute", "not_applicable", countingNotApplicable)
		report(d.NotifyOnResolve && d.Resolution == nil, d.NotifyOnResolve, "notifyOnResolve", "NotifyOnResolve", "not_applicable", nothingResolves)
	} else if d.FireMode.Windowed() {
		report(d.FireMode != RatioInWindow && d.FireMode != DurationInWindow && d.Threshold < 1, d.Threshold, "threshold", "Threshold", "out_of_range", thresholdRequired)
		report(d.WindowSeconds < 10, d.WindowSeconds, "windowSeconds", "WindowSeconds", "out_of_range", windowRequired)
		report(d.WindowSeconds >= 10 && d.IntervalSeconds > d.WindowSeconds, d.IntervalSeconds, "intervalSeconds", "IntervalSeconds", "out_of_range", intervalAboveWindow)
		report(d.LookBackSeconds != 0, d.LookBackSeconds, "lookBackSeconds", "LookBackSeconds", "not_applicable", lookBackNotApplicable)
		byAttribute := d.GroupBy == GroupByAttribute
		report(byAttribute && d.GroupByAttribute == "", d.GroupByAttribute, "groupByAttribute", "GroupByAttribute", "required", attributeRequired)
		report(!byAttribute && d.GroupByAttribute != "", d.GroupByAttribute, "groupByAttribute", "GroupByAttribute", "not_applicable", attributeNotApplicable)
	} else {
		return
	}
	crossMeasure(&d, report)
	crossAbsence(&d, report)
	crossResolution(&d, report)
}

// crossAbsence checks what a rule on absence expects.
func crossAbsence(d *Definition, report func(wrong bool, value any, name, field, code, message string)) {
	absent, grouped, listed := d.FireMode == AbsentInWindow, d.GroupBy != GroupByNothing, len(d.Expected) > 0
	other := absenceNotApplicable
	if d.FireMode == PerExchange {
		other = countingNotApplicable
	}
	report(!absent && listed, d.Expected, "expected", "Expected", "not_applicable", other)
	report(!absent && d.LearnDays != 0, d.LearnDays, "learnDays", "LearnDays", "not_applicable", other)
	report(!absent && d.Calendar != nil, d.Calendar, "calendar", "Calendar", "not_applicable", other)
	if !absent {
		return
	}
	report(d.GroupBy == GroupByErrorType, d.GroupBy, "groupBy", "GroupBy", "not_applicable", errorTypeNotExpected)
	report(!grouped && listed, d.Expected, "expected", "Expected", "not_applicable", expectedNeedsGroup)
	report(!grouped && d.LearnDays != 0, d.LearnDays, "learnDays", "LearnDays", "not_applicable", expectedNeedsGroup)
	report(grouped && !listed && d.LearnDays == 0, d.Expected, "expected", "Expected", "required", expectedRequired)
	report(listed && d.LearnDays != 0, d.LearnDays, "learnDays", "LearnDays", "not_applicable", expectedOrLearned)
	report(d.GroupBy == GroupByAttribute && d.LearnDays != 0 && d.Filter.leavesOutAll(d.GroupByAttribute), d.GroupByAttribute,
		"groupByAttribute", "GroupByAttribute", "contradiction", learnedFiltered)
	some, others := d.Scope.namesOf(d.GroupBy)
	leavesOut := d.Filter.leavesOut(d.GroupByAttribute)
	for i, name := range d.Expected {
		outside := !NameMatches(some, name) || len(others) > 0 && NameMatches(others, name)
		report(outside && name != "", name, fmt.Sprintf("expected[%d]", i), "Expected", "not_applicable", expectedOutside)
		filtered := d.GroupBy == GroupByAttribute && leavesOut(name)
		report(filtered && name != "", name, fmt.Sprintf("expected[%d]", i), "Expected", "not_applicable", expectedFiltered)
	}
	report(len(d.Filter.Statuses) == 0, d.Filter.Statuses, "filter.statuses", "Filter.Statuses", "required", statusesRequired)
	if c := d.Calendar; c != nil {
		longest, ends := c.longest()
		wide := ends && d.WindowSeconds >= longest
		report(wide, d.WindowSeconds, "windowSeconds", "WindowSeconds", "out_of_range", windowAboveCalendar)
		report(ends && !wide && d.WindowSeconds+d.ForDurationSeconds >= longest, d.ForDurationSeconds, "forDurationSeconds", "ForDurationSeconds", "out_of_range", forAboveCalendar)
	}
}

func crossCalendar(sl validator.StructLevel) {
	c := sl.Current().Interface().(Calendar)
	report := func(wrong bool, value any, name, field, code, message string) {
		if wrong {
			sl.ReportError(value, name, field, code, message)
		}
	}
	from, ok := timeOfDay(c.From)
	report(!ok || from == daySeconds, c.From, "from", "From", "time_of_day", timeOfDayRequired)
	_, ok = timeOfDay(c.To)
	report(!ok, c.To, "to", "To", "time_of_day", timeOfDayRequired)
	_, err := c.location()
	report(err != nil, c.TimeZone, "timeZone", "TimeZone", "time_zone", timeZoneRequired)
	report(len(c.Weekdays) == 0, c.Weekdays, "weekdays", "Weekdays", "required", weekdaysRequired)
}

// crossMeasure checks the fields of each mode with a window.
func crossMeasure(d *Definition, report func(wrong bool, value any, name, field, code, message string)) {
	ratio, duration := d.FireMode == RatioInWindow, d.FireMode == DurationInWindow
	other := func(message string) string {
		if d.FireMode == PerExchange {
			return countingNotApplicable
		}
		return message
	}
	report((ratio || duration) && d.Threshold != 0, d.Threshold, "threshold", "Threshold", "not_applicable", thresholdNotApplicable)
	report(ratio && (Thousandths(d.Percent) < 1 || !inThousandths(d.Percent)), d.Percent, "percent", "Percent", "out_of_range", percentRequired)
	report(!ratio && d.Percent != 0, d.Percent, "percent", "Percent", "not_applicable", other(ratioNotApplicable))
	report(ratio && d.Filter.all(), d.Filter.Statuses, "filter.statuses", "Filter.Statuses", "contradiction", alwaysAll)
	short := d.ShortWindowSeconds
	report(ratio && short != 0 && d.WindowSeconds >= 10 && (short < 10 || short >= d.WindowSeconds), short, "shortWindowSeconds", "ShortWindowSeconds", "out_of_range", shortWindowRange)
	report(!ratio && short != 0, short, "shortWindowSeconds", "ShortWindowSeconds", "not_applicable", other(ratioNotApplicable))
	report(duration && d.Percentile == 0, d.Percentile, "percentile", "Percentile", "unknown_value", percentileRequired)
	report(!duration && d.Percentile != 0, d.Percentile, "percentile", "Percentile", "not_applicable", other(durationNotApplicable))
	report(duration && d.DurationMS < 1, d.DurationMS, "durationMs", "DurationMS", "out_of_range", thresholdRequired)
	report(!duration && d.DurationMS != 0, d.DurationMS, "durationMs", "DurationMS", "not_applicable", other(durationNotApplicable))
	report((ratio || duration) && d.MinVolume < 1, d.MinVolume, "minVolume", "MinVolume", "out_of_range", thresholdRequired)
	report(!ratio && !duration && d.MinVolume != 0, d.MinVolume, "minVolume", "MinVolume", "not_applicable", other(volumeNotApplicable))
	longest := d.Filter.MaxDurationMS
	report(duration && longest != nil && d.DurationMS > *longest, d.DurationMS, "durationMs", "DurationMS", "contradiction", durationAboveMaximum)
	shortest := d.Filter.MinDurationMS
	report(duration && shortest != nil && d.DurationMS >= 1 && d.DurationMS <= *shortest && (longest == nil || *shortest <= *longest),
		d.DurationMS, "durationMs", "DurationMS", "contradiction", durationAlways)
	report(duration && len(d.Filter.Statuses) == 0, d.Filter.Statuses, "filter.statuses", "Filter.Statuses", "required", statusesRequired)
}

func crossAttribute(sl validator.StructLevel) {
	a := sl.Current().Interface().(AttributeMatch)
	report := func(wrong bool, value any, name, field, code, message string) {
		if wrong {
			sl.ReportError(value, name, field, code, message)
		}
	}
	switch a.Op {
	case AttributeExists:
		report(a.Value != "", a.Value, "value", "Value", "not_applicable", "EXISTS takes no value; leave it out or use EQUALS")
	case AttributeIn:
		report(a.Value != "", a.Value, "value", "Value", "not_applicable", "IN takes a list; enter the values in values")
		report(len(a.Values) == 0, a.Values, "values", "Values", "required", "")
	case AttributeMatches:
		report(expressionProblem(a.Value) != "", a.Value, "value", "Value", "regexp", "")
	case AttributeGreaterThan, AttributeAtLeast, AttributeLessThan, AttributeAtMost:
		report(Number(a.Value) == nil, a.Value, "value", "Value", "number", "Must be a decimal number, such as 100 or 0.5, with at most 18 digits on each side of the point")
	case AttributeEquals:
	}
	report(a.Op != AttributeIn && len(a.Values) > 0, a.Values, "values", "Values", "not_applicable", "Only IN takes a list; enter the value in value")
}

func code(b validator.FieldError) string {
	switch b.Tag() {
	case "min", "max":
		return "out_of_range"
	case "oneof":
		return "unknown_value"
	default:
		return b.Tag()
	}
}

func message(b validator.FieldError) string {
	switch b.Tag() {
	case "required":
		return cmp.Or(b.Param(), "Must not be empty")
	case "min":
		return "Must be at least " + b.Param()
	case "max":
		return "Must be at most " + b.Param() + unit(b)
	case "oneof":
		return "Must be one of " + strings.ReplaceAll(b.Param(), " ", ", ")
	case "unique":
		return "Must not contain the same entry twice"
	case "text":
		return "Must be valid UTF-8 text without NUL"
	case "label":
		return "Must start with a letter, followed by up to 62 letters, digits, _, . or -"
	case "address":
		return "Must be a URL such as https://wiki.example/orders"
	case "regexp":
		return expressionProblem(fmt.Sprint(b.Value()))
	default:
		return b.Param()
	}
}

// unit returns the unit of a bound.
func unit(b validator.FieldError) string {
	switch b.Kind() { //nolint:exhaustive // every other kind is a number, which counts itself
	case reflect.String:
		return " characters"
	case reflect.Slice, reflect.Map:
		return " entries"
	default:
		return ""
	}
}
