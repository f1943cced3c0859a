package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tocsin/api"
	"tocsin/notify"
	"tocsin/rules"
)

func (b *bench) hook(name string, enabled bool) notify.Webhook {
	b.t.Helper()
	w, err := b.webhooks.Create(b.t.Context(), "acme", notify.Webhook{Name: name, Enabled: enabled})
	if err != nil {
		b.t.Fatal(err)
	}
	return w
}

func TestApplyNamesTheLineOfAnError(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.hook("ops", true)
	const good = `"name":"n","fireMode":"PER_EXCHANGE","severity":"INFO"`
	for body, want := range map[string]string{
		`{}`:                               "rules required",
		`{"rules":null}`:                   "rules null",
		`{"rules":[{}],"dryrun":true}`:     "dryrun unknown_field",
		`{"rules":[{` + good + `},{}]}`:    "rules[1].fireMode unknown_value, rules[1].name required, rules[1].severity unknown_value",
		`{"rules":[{` + good + `,"x":1}]}`: "rules[0].x unknown_field",
		`{"rules":[{` + good + `,"filter":{"statuses":["FAILED","GONE"]}}]}`:                                  "rules[0].filter.statuses[1] unknown_value",
		`{"rules":[{` + good + `},{` + good + `}]}`:                                                           "rules[1].name duplicate",
		`{"rules":[{` + good + `,"webhooks":["ops","gone"]}]}`:                                                "rules[0].webhooks[1] not_found",
		`{"rules":[{` + good + `,"webhooks":["ops","ops"]}]}`:                                                 "rules[0].webhooks unique",
		`{"rules":[{` + good + `,"webhooks":["ops"],"webhookIds":["0197a000-0000-7000-8000-000000000000"]}]}`: "rules[0].webhooks not_applicable",
		`{"rules":[{` + good + `,"titleTemplate":"{{"}]}`:                                                     "rules[0].titleTemplate template",
		`{"rules":[{` + good + `,"reNotifyMinutes":5}]}`:                                                      "rules[0].reNotifyMinutes not_applicable",
		`{"rules":[` + strings.Repeat(`{`+good+`},`, 5000) + `{` + good + `}]}`:                               "rules out_of_range",
	} {
		p := b.do("POST", "/api/v1/rules/apply", body).problem(400, "invalid")
		var got []string
		for _, f := range p.Errors {
			got = append(got, f.Field+" "+f.Code)
		}
		slices.Sort(got)
		if strings.Join(got, ", ") != want {
			t.Errorf("%.100s: %q, want %q", body, got, want)
		}
	}
	if all, _ := b.rules.All(t.Context(), "acme"); len(all) > 0 {
		t.Errorf("something was written: %v", all)
	}
}

func TestWebhooksAreBoundByName(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ops, off := b.hook("ops", true), b.hook("off", false)
	const rule = `{"name":"n","fireMode":"PER_EXCHANGE","severity":"INFO","webhooks":["off","ops"]}`
	made := into[api.Rule](b.do("POST", "/api/v1/rules", rule).want(201))
	if fmt.Sprint(made.WebhookIds) != fmt.Sprint([]any{off.ID, ops.ID}) {
		t.Errorf("bound: %v", made.WebhookIds)
	}
	if len(made.Warnings) != 1 || made.Warnings[0].Field != "webhooks[0]" || made.Warnings[0].Code != "disabled" {
		t.Errorf("warnings: %v", made.Warnings)
	}
	applied := into[api.RulesApplied](b.do("POST", "/api/v1/rules/apply", `{"rules":[`+strings.Replace(rule, `"off",`, "", 1)+`]}`).want(200))
	want := []api.RuleFieldChange{{Field: "webhooks", Before: []any{"off", "ops"}, After: []any{"ops"}}}
	if diff := cmp.Diff(want, applied.Rules[0].Changes); diff != "" {
		t.Errorf("changes (-want +got)\n%s", diff)
	}
	if got := strings.TrimSpace(b.do("GET", "/api/v1/rules/export", "").want(200).Body.String()); got != `{"rules":[{"fireMode":"PER_EXCHANGE","name":"n","severity":"INFO","webhooks":["ops"]}]}` {
		t.Errorf("exported: %s", got)
	}
}

// TestWhatIsExportedIsWhatWasSaid stores random definitions, exports them, and applies the export
// to another store: both then contain the same.
func TestWhatIsExportedIsWhatWasSaid(t *testing.T) {
	t.Parallel()
	here, there := newBench(t), newBench(t)
	for _, name := range []string{"a", "b #ops"} {
		here.hook(name, true)
		there.hook(name, true)
	}
	ids := map[string]string{}
	for _, w := range there.webhooks.rows {
		ids[w.Name] = w.ID.String()
	}
	rapid.Check(t, func(rt *rapid.T) {
		name := "rule " + rapid.StringMatching(`[a-z]{30}`).Draw(rt, "name")
		d := anyDefinition(rt, name)
		for _, w := range here.webhooks.rows {
			if rapid.Bool().Draw(rt, "bound") {
				d.WebhookIDs = append(d.WebhookIDs, w.ID)
			}
		}
		made, err := here.rules.Create(t.Context(), "acme", d)
		if err != nil {
			rt.Fatal(err)
		}
		exported := here.do("GET", "/api/v1/rules/export", "").want(200).Body.String()
		if err := here.rules.Delete(t.Context(), "acme", made.ID); err != nil {
			rt.Fatal(err)
		}
		there.do("POST", "/api/v1/rules/apply", exported).want(200)
		all, _ := there.rules.All(t.Context(), "acme")
		at := slices.IndexFunc(all, func(r rules.Rule) bool { return r.Name == name })
		got := all[at].Definition
		for i, id := range d.WebhookIDs {
			w, _ := here.webhooks.Get(t.Context(), "acme", id)
			if got.WebhookIDs[i].String() != ids[w.Name] {
				rt.Errorf("webhook %s became %s", w.Name, got.WebhookIDs[i])
			}
		}
		got.WebhookIDs, d.WebhookIDs = nil, nil
		want, _ := json.Marshal(d)
		if is, _ := json.Marshal(got); string(is) != string(want) {
			rt.Errorf("stored %s\nwant   %s", is, want)
		}
	})
}

// anyDefinition returns a random valid definition.
func anyDefinition(t *rapid.T, name string) rules.Definition {
	text := rapid.StringMatching(`[a-zäöü \n:#'"{}\-]{1,20}`)
	other := rapid.StringMatching(`X[a-zäöü \n:#'"{}\-]{0,20}`) // what is left out is not what is asked for
	plain := rapid.StringMatching(`[a-z* \n:#'"\-]{1,20}`)
	d := rules.Definition{
		Name: name, Enabled: rapid.Bool().Draw(t, "enabled"), FireMode: rapid.SampledFrom(rules.FireModes()).Draw(t, "mode"),
		Severity: rapid.SampledFrom([]rules.Severity{rules.Info, rules.Warning, rules.Critical}).Draw(t, "severity"),
		Scope:    rules.Scope{Routes: rapid.SliceOfN(text, 0, 2).Draw(t, "routes"), NotRoutes: rapid.SliceOfN(other, 0, 2).Draw(t, "not routes")},
		Filter: rules.Filter{
			ErrorMessageContains: text.Draw(t, "contains"), NotErrorTypes: rapid.SliceOfN(text, 0, 2).Draw(t, "not error types"),
			ErrorMessageNotContains: rapid.SliceOfN(other, 0, 2).Draw(t, "contains not"), ErrorMessageNotMatches: rapid.SliceOfN(rapid.Just("Xa+"), 0, 2).Draw(t, "matches not"),
		},
		MessageTemplate: plain.Draw(t, "message"), IntervalSeconds: rapid.IntRange(1, 10).Draw(t, "interval"),
	}
	if rapid.Bool().Draw(t, "explained") {
		d.Labels = map[string]string{"team": "x" + text.Draw(t, "label"), "a.b": "y"}
		d.Owner, d.RunbookURL, d.Note = text.Draw(t, "owner"), "https://wiki.example/x?y=1#z", text.Draw(t, "note")
	}
	if rapid.Bool().Draw(t, "bounded") {
		least := rapid.Int64Range(0, 8_999_999_999_999).Draw(t, "least")
		d.Filter.MinDurationMS = &least
		d.Filter.Attributes = []rules.AttributeMatch{
			{Key: "k", Not: rapid.Bool().Draw(t, "not"), Op: rules.AttributeEquals, Value: text.Draw(t, "value")},
			{Key: "l", Op: rules.AttributeIn, Values: rapid.SliceOfN(text, 1, 3).Draw(t, "values")},
			{Key: "m", Op: rules.AttributeAtMost, Value: rapid.SampledFrom([]string{"0", "-1.5", "1e3"}).Draw(t, "number")},
		}
		d.Targets = []rules.Target{{Kind: rules.TargetTeam, Name: "x" + text.Draw(t, "target")}}
	}
	if d.FireMode == rules.PerExchange {
		d.LookBackSeconds = rapid.SampledFrom([]int{0, 60, rules.DefaultLookBackSeconds}).Draw(t, "look back")
		return d
	}
	d.WindowSeconds, d.GroupBy = rapid.IntRange(20, 99).Draw(t, "window"), rapid.SampledFrom([]rules.GroupBy{rules.GroupByNothing, rules.GroupByRoute}).Draw(t, "group")
	switch d.FireMode {
	case rules.RatioInWindow:
		d.Percent, d.MinVolume = float64(rapid.IntRange(1, 100_000).Draw(t, "thousandths"))/1000, rapid.IntRange(1, 9).Draw(t, "volume")
		d.ShortWindowSeconds = rapid.SampledFrom([]int{0, 10}).Draw(t, "short window")
	case rules.DurationInWindow:
		d.Filter.Statuses = []rules.Status{rules.Completed, rules.Failed}
		d.Percentile, d.MinVolume = rapid.SampledFrom([]int{50, 95, 99}).Draw(t, "percentile"), rapid.IntRange(1, 9).Draw(t, "volume")
		least := int64(0)
		if d.Filter.MinDurationMS != nil {
			least = *d.Filter.MinDurationMS
		}
		d.DurationMS = rapid.Int64Range(least+1, 9_000_000_000_000).Draw(t, "duration")
	case rules.AbsentInWindow:
		d.Filter.Statuses, d.Threshold = []rules.Status{rules.Completed}, rapid.IntRange(1, 9).Draw(t, "threshold")
		if d.GroupBy != rules.GroupByNothing && rapid.Bool().Draw(t, "listed") {
			d.Expected = rapid.SliceOfNDistinct(rapid.StringMatching(`x[a-zäöü :#'"{}\-]{1,20}`), 1, 3, rapid.ID).Draw(t, "expected")
			d.Scope.Routes, d.Scope.NotRoutes = nil, []string{"never *"} // expected routes have to be within the scope
		} else if d.GroupBy != rules.GroupByNothing {
			d.LearnDays = rapid.IntRange(1, 14).Draw(t, "learn")
		}
		if rapid.Bool().Draw(t, "by calendar") {
			d.Calendar = &rules.Calendar{
				TimeZone: rapid.SampledFrom([]string{"UTC", "Europe/Berlin"}).Draw(t, "zone"), Weekdays: []rules.Weekday{"MON", "SUN"},
				From: "08:30", To: rapid.SampledFrom([]string{"17:00", "24:00", "06:00"}).Draw(t, "to"),
			}
		}
	case rules.CountInWindow, rules.PerExchange:
		d.Threshold = rapid.IntRange(1, 9).Draw(t, "threshold")
	}
	d.NotifyOnResolve, d.ReNotifyMinutes = rapid.Bool().Draw(t, "tell"), rapid.IntRange(0, 5).Draw(t, "again")
	d.ForDurationSeconds = rapid.IntRange(0, 5).Draw(t, "for")
	return d
}
