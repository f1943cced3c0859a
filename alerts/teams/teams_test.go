package teams_test

import (
	"slices"
	"testing"

	"tocsin/alerts/teams"
)

func TestWhoIsInWhichTeam(t *testing.T) {
	list := teams.List{Teams: []teams.Team{
		{Name: "integration", Members: []string{"Ada@example.com"}},
		{Name: "platform", Groups: []string{"platform", "sre"}},
		{Name: "both", Members: []string{"ada@example.com"}, Groups: []string{"sre"}},
		{Name: "empty"},
	}}
	for name, try := range map[string]struct {
		email  string
		groups []string
		want   []string
	}{
		"by hand":       {"ada@EXAMPLE.com", nil, []string{"integration", "both"}},
		"by a group":    {"bo@example.com", []string{"sre", "other"}, []string{"platform", "both"}},
		"by both":       {"ada@example.com", []string{"sre"}, []string{"integration", "platform", "both"}},
		"in none":       {"cy@example.com", []string{"SRE", "Platform"}, nil},
		"nobody at all": {"", nil, nil},
	} {
		if got := list.Of(try.email, try.groups); !slices.Equal(got, try.want) {
			t.Errorf("%s: %q, want %q", name, got, try.want)
		}
	}
}
