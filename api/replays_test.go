package api_test

import (
	"strings"
	"testing"
	"time"

	"tocsin/api"
)

// TestReplays holds what is asked of the store, and what is told of its answer.
func TestReplays(t *testing.T) {
	b := newBench(t)
	rule := into[api.Rule](b.do("POST", "/api/v1/rules", ruleBody).want(201))
	path := "/api/v1/rules/" + rule.ID.String() + "/replays"
	const span = `"from":"2026-02-01T00:00:00.000000001Z","to":"2026-02-02T00:00:00Z"`
	told := into[api.RuleReplayPreview](b.do("POST", path+"/preview", "{"+span+"}").want(200))
	if told.Existing != 1 || told.Preview.Alerts != 3 || told.Preview.From.Nanosecond() != 1 || b.past.compared[0].RuleID != rule.ID {
		t.Errorf("preview %+v of %+v", told, b.past.compared[0])
	}
	begun := into[api.RuleReplay](b.do("POST", path, `{`+span+`,"messages":"DIGEST"}`).want(201))
	if begun.State != "RUNNING" || begun.Messages != "DIGEST" || begun.CreatedBy == "" || begun.EndedAt != nil || !begun.At.Equal(begun.From) {
		t.Errorf("begun %+v", begun)
	}
	list := into[api.RuleReplayList](b.do("GET", path, "").want(200))
	if len(list.Items) != 1 || list.Items[0].ID != begun.ID || list.Floor == nil {
		t.Errorf("list %+v", list)
	}
	over := into[api.RuleReplay](b.do("POST", "/api/v1/replays/"+begun.ID.String()+"/cancel", "").want(200))
	if over.State != "CANCELLED" || over.EndedAt == nil || over.EndedBy == nil {
		t.Errorf("cancelled %+v", over)
	}
	b.do("POST", "/api/v1/replays/"+rule.ID.String()+"/cancel", "").want(404)
	b.do("POST", "/api/v1/rules/"+begun.ID.String()+"/replays", `{`+span+`,"messages":"EACH"}`).want(404)
	b.do("POST", "/api/v1/rules/"+begun.ID.String()+"/replays/preview", "{"+span+"}").want(404)
	b.do("GET", "/api/v1/rules/"+begun.ID.String()+"/replays", "").want(404)
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for body, field := range map[string]string{
		`{` + span + `,"messages":"SOME"}`:                                              "messages",
		`{"from":"2026-02-02T00:00:00Z","to":"2026-02-02T00:00:00Z","messages":"NONE"}`: "to",
		`{"from":"2020-02-02T00:00:00Z","to":"2026-02-02T00:00:00Z","messages":"NONE"}`: "to",
		`{"from":"0001-01-01T00:00:00Z","to":"2026-02-02T00:00:00Z","messages":"NONE"}`: "from",
		`{"from":"2026-02-02T00:00:00Z","to":"` + later + `","messages":"NONE"}`:        "to",
	} {
		if got := b.do("POST", path, body).problem(400, "invalid"); len(got.Errors) != 1 || got.Errors[0].Field != field {
			t.Errorf("%s: %+v, want something about %s", body, got, field)
		}
	}
	counts := strings.Replace(ruleBody, "PER_EXCHANGE", "COUNT_IN_WINDOW", 1)
	counts = strings.Replace(counts, "{", `{"threshold":1,"windowSeconds":60,`, 1)
	counts = strings.Replace(counts, "Failed orders", "counts", 1)
	windowed := into[api.Rule](b.do("POST", "/api/v1/rules", counts).want(201))
	b.do("POST", "/api/v1/rules/"+windowed.ID.String()+"/replays/preview", "{"+span+"}").problem(409, "conflict")
}
