package app_test

import (
	"net/http"
	"testing"

	"tocsin/rules"
)

// TestNotesOnAGroupAreThereWhenItFiresAgain lets the alert of a group end, lets retention delete it, and lets the rule
// fire again.
func TestNotesOnAGroupAreThereWhenItFiresAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	rule := s.counting(rules.Definition{GroupBy: rules.GroupByRoute})
	alertOf := func(group string) string {
		found := func() []string {
			return s.column(`select alert_id::text from alert where group_key = $1 and state = 'FIRING'`, group)
		}
		s.until("the rule has fired for "+group, func() bool { return len(found()) > 0 })
		return "/alerts/" + found()[0] + "/notes"
	}
	textsAt := func(path string) (texts []string) {
		items, _ := s.admin.must(http.StatusOK, http.MethodGet, path, nil).body["items"].([]any)
		for _, item := range items {
			text, _ := item.(map[string]any)["text"].(string)
			texts = append(texts, text)
		}
		return texts
	}
	s.failIn("import", "1", "2", "3")
	s.failIn("export", "4", "5", "6")
	first, other := alertOf("import"), alertOf("export")
	note := s.admin.must(http.StatusCreated, http.MethodPost, first, map[string]any{"text": "It peaks every Monday."}).text("id")
	s.admin.must(http.StatusCreated, http.MethodPost, first, map[string]any{"text": "Ask the ERP team."})
	s.admin.must(http.StatusNoContent, http.MethodDelete, "/alerts/issue/notes/"+note, nil)
	elsewhere := s.elsewhere()
	elsewhere.must(http.StatusNotFound, http.MethodGet, first, nil)
	elsewhere.must(http.StatusNotFound, http.MethodPost, first, map[string]any{"text": "x"})

	s.empty()
	s.until("the alerts have ended", func() bool {
		return len(s.column(`select alert_id::text from alert where group_key is not null and state <> 'RESOLVED'`)) == 0
	})
	s.exec(`delete from alert where group_key is not null`)
	s.admin.must(http.StatusNotFound, http.MethodGet, first, nil)
	s.failIn("import", "7", "8", "9")
	s.failIn("export", "10", "11", "12")
	again := alertOf("import")
	if got := textsAt(again); len(got) != 1 || got[0] != "Ask the ERP team." {
		t.Errorf("notes when it fired again: %q", got)
	}
	if got := textsAt(alertOf("export")); len(got) != 0 {
		t.Errorf("notes of another group: %q (%s)", got, other)
	}

	s.admin.must(http.StatusNoContent, http.MethodDelete, "/rules/"+rule.ID.String(), nil)
	if got := textsAt(again); len(got) != 0 {
		t.Errorf("notes on a deleted rule: %q", got)
	}
	s.admin.must(http.StatusConflict, http.MethodPost, again, map[string]any{"text": "x"})
}
