package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"tocsin/internal/clickhouse"
	"tocsin/internal/postgres"
	"tocsin/internal/seal"
)

const (
	// leastPostgres is the oldest supported version of Postgres, in the form of server_version_num.
	leastPostgres = 140000
	// leastClickHouseYear and leastClickHouseMonth are the oldest supported version of ClickHouse.
	leastClickHouseYear, leastClickHouseMonth = 24, 3
	// lookTimeout bounds each part of an examination.
	lookTimeout = 15 * time.Second
	// clockTolerance is how far ClickHouse's clock may be ahead of Postgres's.
	clockTolerance = time.Minute
	// clockWarning is the difference of clocks from which there is a warning.
	clockWarning = 5 * time.Second
)

// Doctor checks everything that a replica with these options needs: settings, databases, schema,
// locks, clocks, table, retention, keys, wake-up bus, and whether receivers can be reached. It changes nothing; on
// the bus it sends one wake-up without an effect. It passes findings to report one by one. It reports
// whether a replica would work.
func Doctor(ctx context.Context, o Options, report func(clickhouse.Finding) error) (healthy bool, err error) {
	d := &examination{Options: o, healthy: true}
	d.applyDefaults()
	if err := CheckOptions(o); err != nil {
		for line := range strings.Lines(err.Error()) {
			d.add(clickhouse.Broken, "settings", strings.TrimSpace(line), "docs/settings.md describes each setting")
		}
	} else {
		d.add(clickhouse.OK, "settings", "valid", "")
	}
	parts := []func(ctx context.Context){d.postgres, d.pooler, d.locks, d.clickhouse, d.clocks, d.retention, d.keys, d.bus, d.egress}
	if !d.healthy {
		parts = nil
	}
	defer func() {
		if d.db != nil {
			d.db.Close()
		}
	}()
	for {
		for _, f := range d.findings {
			if err := report(f); err != nil {
				return false, err
			}
		}
		d.findings = nil
		if len(parts) == 0 {
			return d.healthy, ctx.Err()
		}
		within, cancel := context.WithTimeout(ctx, lookTimeout)
		parts[0](within)
		cancel()
		if ctx.Err() != nil {
			return false, fmt.Errorf("the examination was interrupted: %w", ctx.Err()) // which its last part may take for a fault
		}
		parts = parts[1:]
	}
}

// examination collects the findings of a doctor.
type examination struct {
	Options

	findings []clickhouse.Finding
	healthy  bool
	// db is nil unless Postgres has the right schema.
	db *postgres.DB
	// postgresAhead and clickhouseAhead are how far a database's clock is ahead of this machine's;
	// nil while unknown.
	postgresAhead, clickhouseAhead *ahead
	// receivers are the addresses of enabled webhooks. lacking has how many of these are for a preset that this machine
	// does not have, by its id.
	receivers []string
	lacking   map[string]int
}

func (d *examination) add(v clickhouse.Verdict, about, text, remedy string) {
	d.healthy = d.healthy && v != clickhouse.Broken
	d.findings = append(d.findings, clickhouse.Finding{Verdict: v, About: about, Text: text, Remedy: remedy})
}

// failed adds an error as a finding, with the remedy that ends the error, or another one if none does.
func (d *examination) failed(about string, err error, otherwise string) {
	text, remedy := apart(err.Error())
	d.add(clickhouse.Broken, about, text, cmp.Or(remedy, otherwise))
}

// apart splits the text of an error from the remedy after its last semicolon; "" if it has none.
func apart(text string) (what, remedy string) {
	if at := strings.LastIndex(text, "; "); at >= 0 {
		return text[:at], text[at+len("; "):]
	}
	return text, ""
}

// remedyPostgres is the remedy for an error of Postgres that has none of its own.
const remedyPostgres = "the log of Postgres shows more: correct what it names"

// server is what Postgres says about itself.
type server struct {
	number            int
	version           string
	standby           bool
	readOnly          bool
	fsync, syncCommit bool
	encoding          string
	now               time.Time
}

func (d *examination) postgres(ctx context.Context) {
	// This connects in the way of the product, whose errors explain themselves.
	schema, err := postgres.CheckSchema(ctx, d.PostgresURL)
	s, seen := d.askPostgres(ctx)
	if seen == nil {
		d.judgePostgres(s)
	}
	if err != nil {
		d.failed("postgres", err, remedyPostgres)
		return
	}
	if seen != nil {
		d.failed("postgres", seen, remedyPostgres)
		return
	}
	d.add(clickhouse.OK, "schema", fmt.Sprintf("version %d, this program knows %d", schema.Version, schema.Known), "")
	box, err := seal.New(d.EncryptionKey)
	if err != nil {
		d.failed("keys", err, "correct TOCSIN_ENCRYPTION_KEY")
		return
	}
	if d.db, err = postgres.Open(ctx, d.PostgresURL, box); err != nil {
		d.failed("postgres", err, remedyPostgres)
	}
}

func (d *examination) askPostgres(ctx context.Context) (s server, err error) {
	conn, err := d.connect(ctx)
	if err != nil {
		return s, err
	}
	defer closeConn(ctx, conn)
	before := time.Now()
	err = conn.QueryRow(ctx, `select current_setting('server_version_num')::int, current_setting('server_version'), pg_is_in_recovery(),
		current_setting('transaction_read_only')::bool, current_setting('fsync')::bool, current_setting('synchronous_commit') <> 'off',
		current_setting('server_encoding'), clock_timestamp()`, pgx.QueryExecModeSimpleProtocol).
		Scan(&s.number, &s.version, &s.standby, &s.readOnly, &s.fsync, &s.syncCommit, &s.encoding, &s.now)
	if err != nil {
		return s, fmt.Errorf("read the version and settings of Postgres: %w", err)
	}
	d.postgresAhead = aheadOf(before, time.Now(), s.now)
	return s, nil
}

func (d *examination) connect(ctx context.Context) (*pgx.Conn, error) {
	pool, err := pgxpool.ParseConfig(d.PostgresURL)
	if err != nil {
		return nil, errors.New("TOCSIN_POSTGRES_URL cannot be read; it must have the form postgres://user:password@host:5432/database")
	}
	conn, err := pgx.ConnectConfig(ctx, pool.ConnConfig)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return conn, nil
}

func (d *examination) judgePostgres(s server) {
	version, _, _ := strings.Cut(s.version, " ")
	switch {
	case s.number < leastPostgres:
		d.add(clickhouse.Broken, "postgres", "version "+version, "run Postgres 14 or newer")
	case s.standby || s.readOnly:
		d.add(clickhouse.Broken, "postgres", "version "+version+", which accepts no writes: a standby, or a read-only database",
			"name every server in TOCSIN_POSTGRES_URL and add target_session_attrs=read-write")
	case s.encoding != "UTF8":
		d.add(clickhouse.Broken, "postgres", "the database is encoded as "+s.encoding+", which cannot store every error message", "create the database with encoding UTF8")
	default:
		d.add(clickhouse.OK, "postgres", "version "+version, "")
	}
	if !s.fsync {
		d.add(clickhouse.Warn, "postgres", "fsync is off: a crash of the machine can destroy the database", "set fsync = on")
	}
	if !s.syncCommit {
		d.add(clickhouse.Warn, "postgres", "synchronous_commit is off: a crash loses the last commits, including what people did in them", "set synchronous_commit = on")
	}
}

// retention compares how long alerts are kept with how far rules look back.
func (d *examination) retention(ctx context.Context) {
	if d.db == nil {
		return
	}
	if err := checkLookBacks(ctx, d.db, d.Keep); err != nil {
		d.failed("retention", err, remedyPostgres)
		return
	}
	d.add(clickhouse.OK, "retention", "alerts are kept for longer than rules look back", "")
}

func (d *examination) pooler(ctx context.Context) {
	found, err := FindPooler(ctx, d.PostgresURL)
	if _, unreached := errors.AsType[*pgconn.ConnectError](err); unreached {
		return // Reported above.
	}
	if err != nil {
		d.failed("pooler", err, "the logs of the pooler and of Postgres show more: correct what they name")
		return
	}
	if err := CheckPooling(ctx, d.Options); err != nil {
		for line := range strings.Lines(err.Error()) {
			text, remedy := apart(strings.TrimSpace(line))
			d.add(clickhouse.Broken, "pooler", text, remedy)
		}
		return
	}
	switch found.Mode {
	case PoolingNone:
		d.add(clickhouse.OK, "pooler", "none", "")
	case PoolingSession:
		d.add(clickhouse.OK, "pooler", "in session mode", "")
	case PoolingTransaction:
		d.add(clickhouse.Warn, "pooler", "in transaction mode, which suits tocsin serve", remedyMigrate)
	}
}

func (d *examination) clickhouse(ctx context.Context) {
	source, err := clickhouse.Open(clickhouse.Options{URL: d.ClickHouseURL, Mapping: d.Source, Version: d.Version})
	if err != nil {
		d.failed("clickhouse", err, "correct TOCSIN_CLICKHOUSE_URL and the mapping of the source")
		return
	}
	defer source.Close() //nolint:errcheck // nothing is pending on it
	version, err := source.ServerVersion(ctx)
	if err != nil {
		d.clickhouseFailed("clickhouse", err)
		return
	}
	d.judgeClickHouse(version)
	before := time.Now()
	ns, err := source.Now(ctx)
	if err != nil {
		d.clickhouseFailed("clickhouse", err)
		return
	}
	d.clickhouseAhead = aheadOf(before, time.Now(), time.Unix(0, ns))
	report, err := source.CheckMapping(ctx)
	if err != nil {
		d.clickhouseFailed("source", err)
		return
	}
	broken := false
	for _, f := range report.Findings {
		if f.Verdict != clickhouse.OK {
			broken = true
			d.add(f.Verdict, "source", f.About+": "+f.Text, f.Remedy)
		}
	}
	if !broken {
		d.add(clickhouse.OK, "source", "table "+report.Table+" fits; `tocsin source check` also measures its delay and its cost", "")
	}
}

// clickhouseFailed adds an error of ClickHouse, or of the connection to it, as a finding.
func (d *examination) clickhouseFailed(about string, err error) {
	// A connection over the native protocol has a deadline of its own.
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		d.add(clickhouse.Broken, about, err.Error(), "ClickHouse is not responding in time: look for other load on it, and at the network between it and this machine")
		return
	}
	if refused, ok := errors.AsType[*clickhouse.RefusedError](err); ok {
		d.add(clickhouse.Broken, about, strings.TrimSuffix(err.Error(), "; "+refused.Remedy),
			cmp.Or(refused.Remedy, "ClickHouse's table system.query_log shows the query: correct what the error names"))
		return
	}
	d.failed(about, err, "make sure that ClickHouse runs at TOCSIN_CLICKHOUSE_URL, and that user, password and database are right")
}

func (d *examination) judgeClickHouse(version string) {
	var year, month int
	if n, err := fmt.Sscanf(version, "%d.%d", &year, &month); n == 2 && err == nil && (year < leastClickHouseYear || year == leastClickHouseYear && month < leastClickHouseMonth) {
		d.add(clickhouse.Broken, "clickhouse", "version "+version, fmt.Sprintf("run ClickHouse %d.%d or newer", leastClickHouseYear, leastClickHouseMonth))
		return
	}
	d.add(clickhouse.OK, "clickhouse", "version "+version, "")
}

// ahead is how far a clock is ahead of this machine's. The clock was read at some instant between the question
// and its answer, so the difference is uncertain by off, half of the time between them.
type ahead struct{ by, off time.Duration }

// aheadOf compares what a clock showed, for which this machine asked at one instant and had the answer at another.
func aheadOf(asked, answered, read time.Time) *ahead {
	half := answered.Sub(asked) / 2
	return &ahead{read.Sub(asked.Add(half)), half}
}

func (d *examination) clocks(context.Context) {
	if d.postgresAhead != nil && d.clickhouseAhead != nil {
		d.compareClocks(*d.postgresAhead, *d.clickhouseAhead)
	}
}

// compareClocks finds a difference only where it is greater than the time that the answers took.
func (d *examination) compareClocks(postgres, clickHouse ahead) {
	between, here := clickHouse.by-postgres.by, -postgres.by
	off := postgres.off + clickHouse.off
	text := fmt.Sprintf("offset from Postgres's clock: ClickHouse %s, this machine %s", offset(between), offset(here))
	if off >= clockWarning/10 {
		text += fmt.Sprintf(" (uncertain by %s, because the databases answer slowly)", off.Round(100*time.Millisecond))
	}
	const remedy = "synchronise the clocks, for example with NTP"
	switch {
	case between-off > clockTolerance:
		d.add(clickhouse.Broken, "clocks", text+"; nothing is evaluated while ClickHouse is more than a minute ahead", remedy)
	case between.Abs()-off > clockWarning || here.Abs()-postgres.off > clockTolerance:
		d.add(clickhouse.Warn, "clocks", text, remedy)
	default:
		d.add(clickhouse.OK, "clocks", text, "")
	}
}

func offset(ahead time.Duration) string {
	rounded := ahead.Round(time.Millisecond)
	switch cmp.Compare(rounded, 0) {
	case 1:
		return rounded.String() + " ahead"
	case -1:
		return (-rounded).String() + " behind"
	}
	return "none"
}
