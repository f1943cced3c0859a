package app_test

import (
	"encoding/base64"
	"log/slog"
	"strings"
	"testing"

	"tocsin/internal/app"
)

// TestSettingsOfOpenTelemetryAreChecked has a variable of OpenTelemetry with which a replica that exports traces does not
// start.
func TestSettingsOfOpenTelemetryAreChecked(t *testing.T) {
	o := app.Options{
		PostgresURL: "postgres://127.0.0.1/x", ClickHouseURL: "http://127.0.0.1:8123", Logger: slog.New(slog.DiscardHandler),
		EncryptionKey: base64.StdEncoding.EncodeToString(make([]byte, 32)), Traces: app.TraceOptions{URL: "http://127.0.0.1:4318", Share: 1},
	}
	for value, good := range map[string]bool{"": true, "deployment.environment.name=test": true, "broken": false} {
		t.Setenv("OTEL_RESOURCE_ATTRIBUTES", value)
		if err := app.CheckOptions(o); (err == nil) != good || err != nil && !strings.Contains(err.Error(), "OTEL_RESOURCE_ATTRIBUTES") {
			t.Errorf("%q: %v", value, err)
		}
	}
	o.Traces.URL = ""
	if err := app.CheckOptions(o); err != nil {
		t.Errorf("without traces: %v", err)
	}
}
