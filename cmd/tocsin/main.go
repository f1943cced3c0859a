// Command tocsin watches exchanges in ClickHouse and raises exactly one alert,
// and one message, for each that matches a rule.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	api "tocsin/client"
	"tocsin/internal/app"
	"tocsin/internal/postgres"
	"tocsin/internal/retention"
)

// cli is the command line. Every flag can be given by its environment variable.
type cli struct {
	LogLevel  string `help:"Lowest level that is logged." enum:"debug,info,warn,error" default:"info" env:"TOCSIN_LOG_LEVEL"`
	LogFormat string `help:"Format of the log." enum:"text,json" default:"text" env:"TOCSIN_LOG_FORMAT"`
	// Settings is read before the others; see [settingsFile].
	Settings settingsFile `help:"YAML file with settings; each key is the name of a flag without its dashes. A flag or a variable overrides the file." env:"TOCSIN_CONFIG" placeholder:"FILE" name:"config"`

	Serve      serve           `cmd:"" help:"Run a replica: evaluate rules, deliver messages, and serve the API and the web application."`
	Migrate    migrate         `cmd:"" help:"Migrate the schema of the Postgres database to this version. It is safe to run at any time, also several times at once."`
	Export     filesExport     `cmd:"" help:"Write webhooks, users, teams, routes, rules, silences and views as YAML, without defaults and secrets, and with webhooks by name."`
	Diff       filesDiff       `cmd:"" help:"Print what apply would change. The exit code is 0 for no changes, 1 for changes, and 2 or more for an error."`
	Apply      filesApply      `cmd:"" help:"Create and update webhooks, users, teams, routes, rules, silences and views from files, after printing the changes. Entries that are not in the files stay as they are."`
	Schema     filesSchema     `cmd:"" help:"Print the JSON Schema of the files, for editors."`
	Rules      ruleFiles       `cmd:"" hidden:"" help:"The former names of export, diff, apply and schema."`
	Source     source          `cmd:"" help:"Check the table of exchanges, or print its DDL."`
	Receivers  receivers       `cmd:"" help:"List the receivers that webhooks can be for, such as PagerDuty, and check files that describe more of them."`
	Keys       keys            `cmd:"" help:"Show the keys that encrypt secrets, and replace an old one."`
	Users      users           `cmd:"" help:"Manage the people who may sign in, for example if nobody can."`
	Partitions partitions      `cmd:"" help:"Show and change how evaluation is divided among replicas."`
	Reconcile  reconcile       `cmd:"" help:"Compare alerts with the exchanges that match, and fail if an alert is missing."`
	Silence    silence         `cmd:"" help:"Suppress messages for a while."`
	Route      route           `cmd:"" help:"Test the routing policy: who is notified of which alerts."`
	Replay     replay          `cmd:"" help:"Evaluate a rule over a past time range again, and raise the alerts that are missing."`
	Explain    explainExchange `cmd:"" help:"Show for each rule why there is an alert about an exchange, or none."`
	Doctor     doctor          `cmd:"" help:"Check everything that a replica needs, and print a remedy for each problem."`
	Config     config          `cmd:"" help:"Check the settings."`

	Healthcheck healthcheck `cmd:"" help:"Ask the replica on this machine whether it is ready. The exit code is 1 if it is not."`
	Version     version     `cmd:"" help:"Print version, commit and schema."`
}

type database struct {
	PostgresURL string `help:"Postgres, such as postgres://user:password@host:5432/database." env:"TOCSIN_POSTGRES_URL" required:"" placeholder:"URL"`
}

type serve struct {
	database
	sourceFlags
	accessFlags

	EncryptionKey     string          `help:"Key that encrypts webhook URLs and secrets: base64 of 32 bytes, as printed by 'openssl rand -base64 32'. Former keys may follow, separated by commas." env:"TOCSIN_ENCRYPTION_KEY" required:"" placeholder:"KEY"`
	Roles             []app.Role      `help:"What this replica does: api, evaluate, dispatch." default:"api,evaluate,dispatch" env:"TOCSIN_ROLES"`
	Listen            string          `help:"Address of the HTTP server." default:"127.0.0.1:8080" env:"TOCSIN_LISTEN"`
	PublicURL         string          `help:"URL at which people reach the server; links in messages begin with it." env:"TOCSIN_PUBLIC_URL" placeholder:"URL"`
	ExchangeURL       string          `help:"URL at which people see an exchange; it contains {executionId}, {correlationId}, {application}, {route}, {environment} or {tenantId}. Messages link to it." env:"TOCSIN_EXCHANGE_URL" placeholder:"URL"`
	OutgoingAllow     []network       `help:"Private networks that webhooks may call, such as 10.1.0.0/16." env:"TOCSIN_OUTGOING_ALLOW" placeholder:"CIDR,…"`
	OutgoingProxy     string          `help:"Forward proxy for calls of webhooks, such as http://proxy.example.com:3128." env:"TOCSIN_OUTGOING_PROXY" placeholder:"URL"`
	OutgoingNoProxy   string          `help:"Hosts, .suffixes and networks that are called without the proxy, separated by commas." env:"TOCSIN_OUTGOING_NO_PROXY" placeholder:"HOST,…"`
	OutgoingProxyDNS  bool            `help:"Let the proxy resolve names. The proxy then has to protect private networks." env:"TOCSIN_OUTGOING_PROXY_DNS" name:"outgoing-proxy-dns"`
	OutgoingCA        string          `help:"PEM file of certificates that verify receivers, in addition to those of the system." env:"TOCSIN_OUTGOING_CA" type:"existingfile" placeholder:"FILE"`
	DispatchSlots     int             `help:"How many calls of webhooks this replica makes at once." default:"256" env:"TOCSIN_DISPATCH_SLOTS" placeholder:"N"`
	SlackAPIURL       string          `help:"URL of Slack's Web API, for webhooks that post as a bot." default:"https://slack.com/api" env:"TOCSIN_SLACK_API_URL" placeholder:"URL" name:"slack-api-url"`
	Receivers         []string        `help:"Files that describe more receivers, or folders of such files; see 'tocsin receivers'." env:"TOCSIN_RECEIVERS" type:"existingpath" placeholder:"PATH,…"`
	TickInterval      time.Duration   `help:"Time between passes over a partition; at most half of TOCSIN_PARTITION_LEASE. If it is longer than 5s, each pass compares the whole look-back." default:"1s" env:"TOCSIN_TICK_INTERVAL"`
	Settle            time.Duration   `help:"How far evaluation stays behind ClickHouse's clock." default:"100ms" env:"TOCSIN_SETTLE"`
	PageSize          int             `help:"Maximum number of exchanges that are read at once." default:"1000" env:"TOCSIN_PAGE_SIZE"`
	PartitionLease    time.Duration   `help:"How long a partition stays with a replica that died; at least twice TOCSIN_TICK_INTERVAL. TOCSIN_CLAIM_FOR is the former name." default:"15s" env:"TOCSIN_PARTITION_LEASE,TOCSIN_CLAIM_FOR" aliases:"claim-for"`
	EvaluateWorkers   int             `help:"Maximum number of partitions that this replica evaluates at once." default:"8" env:"TOCSIN_EVALUATE_WORKERS" placeholder:"N"`
	Lease             time.Duration   `help:"How long a message stays with a replica that died." default:"30s" env:"TOCSIN_LEASE"`
	HeartbeatInterval time.Duration   `help:"Time between this replica's heartbeats." default:"10s" env:"TOCSIN_HEARTBEAT_INTERVAL"`
	DeadAfter         time.Duration   `help:"Time without a heartbeat after which a replica is dead and its leases are released; at least three heartbeat intervals." default:"1m" env:"TOCSIN_DEAD_AFTER"`
	DeadCheckInterval time.Duration   `help:"Time between searches for dead replicas. TOCSIN_REAP_INTERVAL is the former name." default:"30s" env:"TOCSIN_DEAD_CHECK_INTERVAL,TOCSIN_REAP_INTERVAL" aliases:"reap-interval"`
	RetrySchedule     []time.Duration `help:"Pauses after the first, second … failed attempt of a message; after the last one, the message is exhausted. Each pause is lengthened or shortened by up to a fifth. Some receivers have their own pauses." default:"1m,5m,30m,2h,24h" env:"TOCSIN_RETRY_SCHEDULE" placeholder:"PAUSE,…"`
	BreakerAfter      int             `help:"Consecutive unanswered attempts after which the circuit breaker of a webhook opens." default:"5" env:"TOCSIN_BREAKER_AFTER" placeholder:"N"`
	BreakerPause      time.Duration   `help:"Pause of an open circuit breaker before a probe; doubled after each probe that is not answered." default:"30s" env:"TOCSIN_BREAKER_PAUSE" placeholder:"PAUSE"`
	BreakerMaxPause   time.Duration   `help:"Longest pause before a probe." default:"10m" env:"TOCSIN_BREAKER_MAX_PAUSE" placeholder:"PAUSE"`
	Bus               app.BusProvider `help:"What wakes replicas when messages are due: postgres, redis, nats, or memory for a single process." default:"postgres" enum:"postgres,memory,redis,nats" env:"TOCSIN_BUS"`
	BusURL            string          `help:"Server of the wake-up bus: redis://… or nats://…. For postgres, another URL of the same database, if the first one leads through a pooler in transaction mode." env:"TOCSIN_BUS_URL" placeholder:"URL"`
	BusName           string          `help:"Name of the channel or stream of wake-ups." default:"tocsin-wake-ups" env:"TOCSIN_BUS_NAME"`
	BusLength         int             `help:"Maximum number of wake-ups that a stream keeps." default:"10000" env:"TOCSIN_BUS_LENGTH"`
	PollInterval      *time.Duration  `help:"Longest pause between reads of the outbox, if neither the bus nor a known due time ends it earlier. The default is 30s, or 1s with a bus in memory." env:"TOCSIN_POLL_INTERVAL" placeholder:"PAUSE"`
	ResolveInterval   time.Duration   `help:"Time between searches for alerts to resolve by age or by evidence." default:"30s" env:"TOCSIN_RESOLVE_INTERVAL"`
	ReconcileInterval time.Duration   `help:"Time between comparisons of exchanges with alerts, by one of all replicas." default:"10m" env:"TOCSIN_RECONCILE_INTERVAL"`
	RetentionAlerts   days            `help:"How long alerts are kept after they were resolved, with their messages." default:"90d" env:"TOCSIN_RETENTION_ALERTS" placeholder:"DAYS"`
	RetentionAttempts days            `help:"How long the contents of messages (the bodies that were sent, and the responses) are kept after the messages were settled." default:"30d" env:"TOCSIN_RETENTION_ATTEMPTS" placeholder:"DAYS"`
	RetentionInterval time.Duration   `help:"Time between deletions of data that is older than its retention, by one replica at a time. TOCSIN_SWEEP_INTERVAL is the former name." default:"1m" env:"TOCSIN_RETENTION_INTERVAL,TOCSIN_SWEEP_INTERVAL" aliases:"sweep-interval"`
	TracesURL         string          `help:"Collector to which traces are exported with OTLP over HTTP, such as http://collector:4318; without it, nothing is traced. OTEL_EXPORTER_OTLP_HEADERS and similar variables set headers and certificates." env:"TOCSIN_TRACES_URL" placeholder:"URL"`
	TracesShare       float64         `help:"Share of the traces that are exported, from 0 to 1. Passes that raise an alert or fail are always exported." default:"0.01" env:"TOCSIN_TRACES_SHARE" placeholder:"SHARE"`
	ShutdownDelay     time.Duration   `help:"How long requests are still accepted after a signal, while /readyz answers 503: the time that a load balancer needs to notice." default:"0s" env:"TOCSIN_SHUTDOWN_DELAY"`
	ShutdownTimeout   time.Duration   `help:"How long an orderly shutdown may take after that." default:"30s" env:"TOCSIN_SHUTDOWN_TIMEOUT"`
}

// headroom is how much the heap may grow beyond Go's own limit, in bytes. A replica uses about 10
// MB, and most of what it allocates is garbage once its message is sent. With the 10 MB that Go
// would allow, a busy replica would collect many times a second, although the next collection would
// find the same garbage. A share of the memory in use, such as a higher GOGC, would be too much
// with very many rules.
const headroom = 24 << 20

// Run serves until a signal.
func (s *serve) Run(ctx context.Context, logger *slog.Logger) error {
	// Go counts the ballast as memory in use. It is never written to, so it takes no memory. make
	// would write zeros to pages that were used before; a builder does not.
	var ballast strings.Builder
	ballast.Grow(headroom)
	defer runtime.KeepAlive(&ballast)
	o, err := s.replica(logger)
	if err != nil {
		return err
	}
	if err := app.CheckOptions(o); err != nil {
		return err
	}
	if err := app.CheckPooling(ctx, o); err != nil {
		return err
	}
	replica, err := app.New(ctx, o)
	if err != nil {
		return err
	}
	err = replica.Run(ctx)
	return errors.Join(err, replica.Close(context.WithoutCancel(ctx)))
}

// replica returns the options of a replica from the settings. It reads the files that they name,
// and does not connect.
func (s *serve) replica(logger *slog.Logger) (app.Options, error) {
	if err := s.zeros(); err != nil {
		return app.Options{}, err
	}
	mapping, err := s.mapping()
	if err != nil {
		return app.Options{}, err
	}
	who, err := s.options()
	if err != nil {
		return app.Options{}, err
	}
	roots, err := rootsOf(s.OutgoingCA)
	if err != nil {
		return app.Options{}, err
	}
	return app.Options{
		Access:      who,
		PostgresURL: s.PostgresURL, ClickHouseURL: s.ClickHouseURL, Source: mapping,
		EncryptionKey: s.EncryptionKey, Roles: s.Roles, Listen: s.Listen, PublicURL: s.PublicURL, ExchangeURL: s.ExchangeURL, OutgoingAllow: prefixes(s.OutgoingAllow),
		Receivers: s.Receivers, SlackAPIURL: s.SlackAPIURL, OutgoingCAs: roots, DispatchSlots: s.DispatchSlots,
		OutgoingProxy: app.OutgoingProxy{URL: s.OutgoingProxy, Except: s.OutgoingNoProxy, Resolves: s.OutgoingProxyDNS},
		TickInterval:  s.TickInterval, Settle: s.Settle, PageSize: s.PageSize, PartitionLease: s.PartitionLease, Workers: s.EvaluateWorkers, Lease: s.Lease,
		HeartbeatInterval: s.HeartbeatInterval, DeadAfter: s.DeadAfter, DeadCheckInterval: s.DeadCheckInterval,
		Breaker:       app.Breaker{Threshold: s.BreakerAfter, Pause: s.BreakerPause, MaxPause: s.BreakerMaxPause},
		RetrySchedule: s.RetrySchedule, PollInterval: valueOf(s.PollInterval),
		Bus:             app.BusOptions{Provider: s.Bus, URL: s.BusURL, Name: s.BusName, Length: s.BusLength},
		ResolveInterval: s.ResolveInterval, ReconcileInterval: s.ReconcileInterval, RetentionInterval: s.RetentionInterval,
		Keep:          retention.Keep{Alerts: time.Duration(s.RetentionAlerts), Contents: time.Duration(s.RetentionAttempts)},
		ShutdownDelay: s.ShutdownDelay, ShutdownTimeout: s.ShutdownTimeout,
		Traces: app.TraceOptions{URL: s.TracesURL, Share: s.TracesShare},
		Logger: logger, Clock: time.Now, Version: buildVersion(),
	}, nil
}

// zeros refuses a zero if [app.Options] would replace it by the default, which is not what its
// author means.
func (s *serve) zeros() error {
	var errs []error
	for _, setting := range []struct {
		name string
		zero bool
	}{
		{"TOCSIN_TICK_INTERVAL", s.TickInterval == 0},
		{"TOCSIN_PAGE_SIZE", s.PageSize == 0},
		{"TOCSIN_PARTITION_LEASE", s.PartitionLease == 0},
		{"TOCSIN_EVALUATE_WORKERS", s.EvaluateWorkers == 0},
		{"TOCSIN_LEASE", s.Lease == 0},
		{"TOCSIN_HEARTBEAT_INTERVAL", s.HeartbeatInterval == 0},
		{"TOCSIN_DEAD_AFTER", s.DeadAfter == 0},
		{"TOCSIN_DEAD_CHECK_INTERVAL", s.DeadCheckInterval == 0},
		{"TOCSIN_BREAKER_AFTER", s.BreakerAfter == 0},
		{"TOCSIN_BREAKER_PAUSE", s.BreakerPause == 0},
		{"TOCSIN_BREAKER_MAX_PAUSE", s.BreakerMaxPause == 0},
		{"TOCSIN_DISPATCH_SLOTS", s.DispatchSlots == 0},
		{"TOCSIN_BUS_LENGTH", s.BusLength == 0},
		{"TOCSIN_POLL_INTERVAL", s.PollInterval != nil && *s.PollInterval == 0},
		{"TOCSIN_RESOLVE_INTERVAL", s.ResolveInterval == 0},
		{"TOCSIN_RECONCILE_INTERVAL", s.ReconcileInterval == 0},
		{"TOCSIN_RETENTION_ALERTS", s.RetentionAlerts == 0},
		{"TOCSIN_RETENTION_ATTEMPTS", s.RetentionAttempts == 0},
		{"TOCSIN_RETENTION_INTERVAL", s.RetentionInterval == 0},
		{"TOCSIN_SHUTDOWN_TIMEOUT", s.ShutdownTimeout == 0},
		{"TOCSIN_SESSION_IDLE", s.SessionIdle == 0},
		{"TOCSIN_SESSION_LIFETIME", s.SessionLifetime == 0},
	} {
		if setting.zero {
			errs = append(errs, fmt.Errorf("%s must not be 0; leave it out for the default", setting.name))
		}
	}
	return errors.Join(errs...)
}

// valueOf returns the value of a flag without a default, or zero.
func valueOf[T any](given *T) (value T) {
	if given != nil {
		value = *given
	}
	return value
}

type migrate struct{ database }

// Run migrates.
func (m *migrate) Run(ctx context.Context, logger *slog.Logger) error {
	if err := app.CheckMigrationPooling(ctx, m.PostgresURL); err != nil {
		return err
	}
	return postgres.Migrate(ctx, m.PostgresURL, logger)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	var c cli
	parser := newParser(&c, kong.BindTo(ctx, (*context.Context)(nil)), kong.BindTo(os.Stdout, (*io.Writer)(nil)))
	k, err := parser.Parse(os.Args[1:])
	parser.FatalIfErrorf(naming(err))
	logger := newLogger(os.Stderr, c.LogLevel, c.LogFormat)
	warnOfUnread(ctx, logger, parser)
	if err := k.Run(logger); err != nil {
		code := 1
		if exit, ok := errors.AsType[exitError](err); ok {
			code, err = exit.code, exit.err
		}
		_, asks := reflect.TypeAssert[interface {
			open() (*api.ClientWithResponses, error)
		}](k.Selected().Target.Addr())
		switch {
		case err == nil:
		case asks && c.LogFormat == "text": // a command for people
			parser.Errorf("%s", err)
		default:
			logger.ErrorContext(ctx, "stopped", slog.Any("error", err))
		}
		stop()
		os.Exit(code) //nolint:gocritic // stop has been called
	}
}

func newParser(c *cli, options ...kong.Option) *kong.Kong {
	return kong.Must(c, append(options, kong.Name("tocsin"), kong.ShortUsageOnError(),
		kong.Description("Raises exactly one alert, and one message, for each exchange that matches a rule."))...)
}

// misuse is an error about the command line with other words.
type misuse struct {
	error
	text string
}

func (m misuse) Error() string { return m.text }

func (m misuse) Unwrap() error { return m.error }

// naming adds the environment variable to each flag that an error reports as missing, and says plainly that a value is missing.
func naming(err error) error {
	wrong, ok := errors.AsType[*kong.ParseError](err)
	if !ok {
		return err
	}
	text := strings.Replace(err.Error(), `expected value value but got "EOL" (<EOL>)`, "the value is missing", 1)
	for _, f := range wrong.Context.Flags() {
		if f.Required && !f.Set && len(f.Envs) > 0 {
			text = strings.Replace(text, f.Summary(), f.Summary()+" or "+f.Envs[0], 1)
		}
	}
	return misuse{err, text}
}

// exitError ends the process with its own exit code.
type exitError struct {
	code int
	// err is nil if the code says enough.
	err error
}

func (e exitError) Error() string { return fmt.Sprint("exit ", e.code, ": ", e.err) }

func (e exitError) Unwrap() error { return e.err }

func newLogger(out io.Writer, level, format string) *slog.Logger {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		least = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: least}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(out, options))
	}
	return slog.New(slog.NewTextHandler(out, options))
}
