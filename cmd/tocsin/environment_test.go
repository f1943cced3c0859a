package main

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
)

func TestMisspeltVariableIsReported(t *testing.T) {
	known := variables(newParser(&cli{}).Model.Node)
	for _, name := range []string{"TOCSIN_LOG_LEVEL", "TOCSIN_TICK_INTERVAL", "TOCSIN_OIDC_CLIENT_SECRET", "TOCSIN_TOKEN", "TOCSIN_TENANT"} {
		if !slices.Contains(known, name) {
			t.Errorf("%s is not known", name)
		}
	}
	for name, want := range map[string][]unread{
		"TOCSIN_TICKINTERVAL":       {{"TOCSIN_TICKINTERVAL", "TOCSIN_TICK_INTERVAL"}},
		"TOCSIN_POSTGRES_DSN":       {{"TOCSIN_POSTGRES_DSN", "TOCSIN_POSTGRES_URL"}},
		"TOCSIN_RETENTION_ALERT":    {{"TOCSIN_RETENTION_ALERT", "TOCSIN_RETENTION_ALERTS"}},
		"TOCSIN_BUSS":               {{"TOCSIN_BUSS", "TOCSIN_BUS"}},
		"TOCSIN_":                   {{"TOCSIN_", ""}},
		"TOCSIN_COLOUR":             {{"TOCSIN_COLOUR", ""}},
		"TOCSIN_TICK_INTERVAL":      nil,
		"TOCSIN_TEST_POSTGRES_URL":  nil,
		"TOCSIN_DEVSTACK_CHDB":      nil,
		"TOCSIN_BIN":                nil,
		"TOCSIN_SERVICE_PORT_HTTP":  nil,
		"TOCSIN_PORT":               nil,
		"TOCSIN_PORT_8080_TCP_ADDR": nil,
		"TOCSIN_API_PORT":           nil,
		"TOCSIN_OTHER_PORT":         {{"TOCSIN_OTHER_PORT", ""}},
		"TICKINTERVAL":              nil,
		"NOT_TOCSIN_TICKINTERVAL":   nil,
	} {
		environment := []string{"TOCSIN_SERVICE_HOST=10.0.0.1", "TOCSIN_API_SERVICE_HOST=10.0.0.2", "PATH=/bin", name + "=s3cret=s3cret"}
		if got := unreadOf(environment, known); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestAMisspeltVariableIsLoggedWithoutItsValue checks that a secret under a wrong name is not
// logged.
func TestAMisspeltVariableIsLoggedWithoutItsValue(t *testing.T) {
	t.Setenv("TOCSIN_TICKINTERVAL", "s3cret")
	t.Setenv("TOCSIN_COLOUR", "s3cret")
	var log strings.Builder
	warnOfUnread(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), newParser(&cli{}))
	for _, part := range []string{"level=WARN", "name=TOCSIN_TICKINTERVAL nearest=TOCSIN_TICK_INTERVAL", "name=TOCSIN_COLOUR\n"} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("%q is not in the log:\n%s", part, log.String())
		}
	}
	if strings.Contains(log.String(), "s3cret") {
		t.Errorf("the log tells a value:\n%s", log.String())
	}
}
