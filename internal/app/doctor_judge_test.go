package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"tocsin/internal/clickhouse"
)

func TestDoctorJudgesVersionsAndClocks(t *testing.T) {
	t.Parallel()
	postgres := func(change func(*server)) func(*examination) {
		s := server{number: 180004, version: "18.4 (Debian)", fsync: true, syncCommit: true, encoding: "UTF8"}
		change(&s)
		return func(d *examination) { d.judgePostgres(s) }
	}
	clock := func(postgres, clickhouse time.Duration) func(*examination) {
		return func(d *examination) {
			d.postgresAhead, d.clickhouseAhead = &ahead{by: postgres}, &ahead{by: clickhouse}
			d.clocks(t.Context())
		}
	}
	version := func(v string) func(*examination) { return func(d *examination) { d.judgeClickHouse(v) } }
	const synchronise, newer = "synchronise the clocks, for example with NTP", "run ClickHouse 24.3 or newer"
	for name, c := range map[string]struct {
		look         func(*examination)
		want         clickhouse.Verdict
		text, remedy string
	}{
		"Postgres 18":      {postgres(func(*server) {}), clickhouse.OK, "version 18.4", ""},
		"Postgres 14":      {postgres(func(s *server) { s.number, s.version = 140000, "14.0" }), clickhouse.OK, "version 14.0", ""},
		"Postgres 13":      {postgres(func(s *server) { s.number, s.version = 130022, "13.22" }), clickhouse.Broken, "version 13.22", "run Postgres 14 or newer"},
		"a standby":        {postgres(func(s *server) { s.standby = true }), clickhouse.Broken, "version 18.4, which accepts no writes: a standby, or a read-only database", "name every server in TOCSIN_POSTGRES_URL and add target_session_attrs=read-write"},
		"Latin 1":          {postgres(func(s *server) { s.encoding = "LATIN1" }), clickhouse.Broken, "the database is encoded as LATIN1, which cannot store every error message", "create the database with encoding UTF8"},
		"ClickHouse 26.7":  {version("26.7.3.1"), clickhouse.OK, "version 26.7.3.1", ""},
		"ClickHouse 24.3":  {version("24.3.1.2672"), clickhouse.OK, "version 24.3.1.2672", ""},
		"ClickHouse 24.12": {version("24.12.1.1"), clickhouse.OK, "version 24.12.1.1", ""},
		"ClickHouse 24.2":  {version("24.2.3.70"), clickhouse.Broken, "version 24.2.3.70", newer},
		"ClickHouse 23.8":  {version("23.8.16.40"), clickhouse.Broken, "version 23.8.16.40", newer},
		"ClickHouse is slow": {func(d *examination) {
			d.clickhouseFailed("clickhouse", fmt.Errorf("ask: %w", context.DeadlineExceeded))
		}, clickhouse.Broken, "ask: context deadline exceeded", "ClickHouse is not responding in time: look for other load on it, and at the network between it and this machine"},
		"ClickHouse does not even greet": {func(d *examination) {
			d.clickhouseFailed("clickhouse", fmt.Errorf("handshake: %w", &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}))
		}, clickhouse.Broken, "handshake: read tcp: i/o timeout", "ClickHouse is not responding in time: look for other load on it, and at the network between it and this machine"},
		"ClickHouse is away": {func(d *examination) { d.clickhouseFailed("clickhouse", errors.New("refused")) }, clickhouse.Broken, "refused", "make sure that ClickHouse runs at TOCSIN_CLICKHOUSE_URL, and that user, password and database are right"},
		"ClickHouse refuses the user": {func(d *examination) {
			d.clickhouseFailed("clickhouse", fmt.Errorf("ask: %w", &clickhouse.RefusedError{Code: 164, Text: "read-only", Remedy: "give the user a profile"}))
		}, clickhouse.Broken, "ask: ClickHouse refused the query: code 164: read-only", "give the user a profile"},
		"ClickHouse refuses the query": {func(d *examination) {
			d.clickhouseFailed("source", &clickhouse.RefusedError{Code: 1, Text: "odd; very"})
		}, clickhouse.Broken, "ClickHouse refused the query: code 1: odd; very", "ClickHouse's table system.query_log shows the query: correct what the error names"},
		"the bus is away":       {func(d *examination) { d.judgeBus(errors.New("dial: refused")) }, clickhouse.Broken, ": dial: refused; without the bus, messages wait for up to TOCSIN_POLL_INTERVAL", remedyBus},
		"the bus is elsewhere":  {func(d *examination) { d.judgeBus(errors.New("silent: late; lead it there")) }, clickhouse.Broken, ": silent: late; without the bus, messages wait for up to TOCSIN_POLL_INTERVAL", "lead it there"},
		"a version of its own":  {version("cloud"), clickhouse.OK, "version cloud", ""},
		"equal clocks":          {clock(0, 0), clickhouse.OK, "offset from Postgres's clock: ClickHouse none, this machine none", ""},
		"all but equal clocks":  {clock(-2*time.Second, 2*time.Second), clickhouse.OK, "offset from Postgres's clock: ClickHouse 4s ahead, this machine 2s ahead", ""},
		"ClickHouse ahead":      {clock(0, 10*time.Second), clickhouse.Warn, "offset from Postgres's clock: ClickHouse 10s ahead, this machine none", synchronise},
		"ClickHouse far ahead":  {clock(time.Second, 2*time.Minute), clickhouse.Broken, "offset from Postgres's clock: ClickHouse 1m59s ahead, this machine 1s behind; nothing is evaluated while ClickHouse is more than a minute ahead", synchronise},
		"ClickHouse far behind": {clock(0, -time.Hour), clickhouse.Warn, "offset from Postgres's clock: ClickHouse 1h0m0s behind, this machine none", synchronise},
		"both far ahead of us":  {clock(time.Hour, time.Hour), clickhouse.Warn, "offset from Postgres's clock: ClickHouse none, this machine 1h0m0s behind", synchronise},
		"both a little ahead":   {clock(30*time.Second, 30*time.Second), clickhouse.OK, "offset from Postgres's clock: ClickHouse none, this machine 30s behind", ""},
	} {
		d := &examination{healthy: true}
		c.look(d)
		if len(d.findings) != 1 || d.healthy == (c.want == clickhouse.Broken) {
			t.Errorf("%s: %+v, healthy %v", name, d.findings, d.healthy)
			continue
		}
		if f := d.findings[0]; f.Verdict != c.want || f.Text != c.text || f.Remedy != c.remedy {
			t.Errorf("%s: %s %q → %q, want %s %q → %q", name, f.Verdict, f.Text, f.Remedy, c.want, c.text, c.remedy)
		}
	}
}
