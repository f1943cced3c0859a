package app_test

import (
	"log/slog"
	"strings"
	"testing"

	"tocsin/internal/app"
	"tocsin/internal/chtest"
	"tocsin/internal/clickhouse"
	"tocsin/internal/pgtest"
)

// TestStartLooksAtTheSource checks what a replica does about a source that does not match its
// mapping: a table may still be created, but a wrong type does not change by itself.
func TestStartLooksAtTheSource(t *testing.T) {
	ch, pgURL := chtest.New(t), pgtest.URL(t)
	absent, odd := clickhouse.Exchanges(), clickhouse.Exchanges()
	absent.Table = "later"
	odd.ExecutionID = "start_time"
	for name, c := range map[string]struct {
		url            string
		source         clickhouse.Mapping
		refused, warns string
	}{
		"as it should be":       {url: ch.URL, source: clickhouse.Exchanges()},
		"a table that may come": {url: ch.URL, source: absent, warns: "the table of exchanges cannot be read yet"},
		"no ClickHouse yet":     {url: "http://127.0.0.1:1/x", source: clickhouse.Exchanges(), warns: "the source of exchanges cannot be checked yet"},
		"a wrong type": {
			url: ch.URL, source: odd,
			refused: "execution_id: start_time is DateTime64(9, 'UTC'); it must be String; set execution_id to toString(start_time)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			logged := &log{}
			a, err := app.New(t.Context(), app.Options{
				PostgresURL: pgURL, ClickHouseURL: c.url, Source: c.source, EncryptionKey: key, Listen: "127.0.0.1:0", Roles: []app.Role{app.RoleEvaluate},
				Logger: slog.New(slog.NewTextHandler(logged, nil)),
			})
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Fatalf("err = %v, want %q in it", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := a.Close(t.Context()); err != nil {
				t.Error(err)
			}
			warned := strings.Contains(logged.String(), "level=WARN")
			if warned != (c.warns != "") || !strings.Contains(logged.String(), c.warns) {
				t.Errorf("logged: %s", logged)
			}
		})
	}
}
