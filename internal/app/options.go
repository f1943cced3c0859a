package app

import (
	"cmp"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"time"

	"tocsin/internal/clickhouse"
	"tocsin/internal/lease"
	"tocsin/internal/postgres"
	"tocsin/internal/retention"
	"tocsin/internal/tracing"
	"tocsin/notify"
	"tocsin/notify/dispatch"
	"tocsin/notify/webhook"
)

// Role is a part of the work of a replica.
type Role string

// The roles.
const (
	RoleAPI      Role = "api"
	RoleEvaluate Role = "evaluate"
	RoleDispatch Role = "dispatch"
)

// Roles returns every role.
func Roles() []Role { return []Role{RoleAPI, RoleEvaluate, RoleDispatch} }

// OutgoingProxy says through which proxy webhooks are called.
type OutgoingProxy = webhook.Proxy

// Breaker says when messages to a webhook are paused.
type Breaker = notify.BreakerPolicy

// Options configures an [App]. PostgresURL, ClickHouseURL, EncryptionKey and Logger are required.
type Options struct {
	PostgresURL   string
	ClickHouseURL string
	// Source says where exchanges are read, [clickhouse.Exchanges] by default.
	Source clickhouse.Mapping
	// EncryptionKey is base64 of 32 bytes; former keys may follow, separated by commas.
	EncryptionKey string
	// Roles are all roles by default.
	Roles []Role
	// Listen is the address of the HTTP server, "127.0.0.1:8080" by default.
	// Port 0 takes a free one; see [App.Addr].
	Listen string
	// PublicURL is the address of the server for people, used in links in messages.
	PublicURL string
	// ExchangeURL is the address of exchanges for people, used in links in messages; see
	// [webhook.CheckExchangeURL].
	ExchangeURL string
	// Access says who is let in.
	Access AccessOptions
	// OutgoingAllow are networks that webhooks may call although they are not public.
	OutgoingAllow []netip.Prefix
	// OutgoingCAs are used to verify receivers; those of the system by default.
	OutgoingCAs *x509.CertPool
	// OutgoingProxy is the forward proxy through which webhooks are called; none by default.
	OutgoingProxy webhook.Proxy
	// DispatchSlots is how many calls of webhooks this replica makes at once,
	// [dispatch.DefaultSlots] by default.
	DispatchSlots int
	// Receivers are files, or folders of files, of presets that operators add.
	Receivers []string
	// SlackAPIURL is the base URL of Slack's Web API, [webhook.DefaultSlackAPI] by default.
	SlackAPIURL string

	// TickInterval is the time between ticks, 1 s by default; at most half of PartitionLease, so that a lease survives one tick
	// that does not renew it.
	TickInterval time.Duration
	// Settle is how far behind ClickHouse's clock exchanges are evaluated.
	Settle time.Duration
	// PageSize is how many exchanges are read at once, 1,000 by default.
	PageSize int
	// PartitionLease is how long a replica keeps a partition without a commit, 15 s by default.
	PartitionLease time.Duration
	// Workers is how many partitions a replica evaluates at once, 8 by default.
	Workers int
	// Lease is how long a claim on a notification outlives its replica, 30 s by default.
	Lease time.Duration
	// HeartbeatInterval is the time between a replica's heartbeats, 10 s by default.
	HeartbeatInterval time.Duration
	// DeadAfter is the silence after which a replica's claims are released, 1 min
	// by default; at least three heartbeat intervals.
	DeadAfter time.Duration
	// DeadCheckInterval is the time between searches for dead replicas, 30 s by default.
	DeadCheckInterval time.Duration
	// RetrySchedule holds the pauses after the first, second … failed attempt of
	// a message, that of [notify.DefaultPolicy] by default.
	RetrySchedule []time.Duration
	// Breaker says when messages to a webhook are paused. Fields that are not set have the values
	// of [notify.DefaultPolicy].
	Breaker Breaker
	// Bus says how dispatchers are woken.
	Bus BusOptions
	// PollInterval is the longest pause between looks at the outbox: 30 s by default, 1 s with a
	// bus in memory. The pause ends earlier if a message is known to become due.
	PollInterval time.Duration
	// ResolveInterval is the time between searches for alerts that age or evidence resolves, 30 s by
	// default.
	ResolveInterval time.Duration
	// ReconcileInterval is the time between comparisons of exchanges with alerts, which one replica
	// makes, 10 min by default.
	ReconcileInterval time.Duration
	// Keep is how long data is kept after its end, 90 d for alerts and 30 d for the contents of
	// messages by default.
	Keep retention.Keep
	// RetentionInterval is the time between deletions of older data, 1 min by default.
	RetentionInterval time.Duration
	// ShutdownDelay is how long the HTTP server continues to accept connections while /readyz says
	// that it is about to end; 0 by default.
	ShutdownDelay time.Duration
	// ShutdownTimeout bounds the orderly end after that delay, 30 s by default.
	ShutdownTimeout time.Duration

	// Traces says where traces are exported.
	Traces TraceOptions

	Logger  *slog.Logger
	Clock   func() time.Time
	Version string
}

// TraceOptions say where traces are exported, and how many.
type TraceOptions struct {
	// URL is a collector that accepts OTLP over HTTP; empty means that no traces are exported.
	URL string
	// Share is the share of the traces that are exported, from 0 to 1.
	Share float64
}

// leastLease is the least [Options.PartitionLease]: a pass reads for a third of it.
const leastLease = 300 * time.Millisecond

func (o *Options) applyDefaults() {
	if len(o.Roles) == 0 {
		o.Roles = Roles()
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:8080"
	}
	o.Access.applyDefaults()
	o.TickInterval = cmp.Or(o.TickInterval, time.Second)
	if o.PartitionLease == 0 {
		o.PartitionLease = 15 * time.Second
	}
	if len(o.RetrySchedule) == 0 {
		o.RetrySchedule = notify.DefaultPolicy().Schedule
	}
	usual := notify.DefaultPolicy().Breaker
	o.Breaker.Threshold = cmp.Or(o.Breaker.Threshold, usual.Threshold)
	o.Breaker.Pause = cmp.Or(o.Breaker.Pause, usual.Pause)
	o.Breaker.MaxPause = cmp.Or(o.Breaker.MaxPause, max(usual.MaxPause, o.Breaker.Pause))
	o.Breaker.Jitter = cmp.Or(o.Breaker.Jitter, usual.Jitter)
	o.Bus.applyDefaults(o.PostgresURL)
	if o.PollInterval == 0 {
		o.PollInterval = o.Bus.poll()
	}
	if o.ResolveInterval == 0 {
		o.ResolveInterval = 30 * time.Second
	}
	if o.ReconcileInterval == 0 {
		o.ReconcileInterval = 10 * time.Minute
	}
	if o.Keep.Alerts == 0 {
		o.Keep.Alerts = retention.DefaultAlerts
	}
	if o.Keep.Contents == 0 {
		o.Keep.Contents = min(retention.DefaultContents, o.Keep.Alerts)
	}
	if o.ShutdownTimeout == 0 {
		o.ShutdownTimeout = 30 * time.Second
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Version == "" {
		o.Version = "dev"
	}
}

func (o *Options) validate() error {
	var errs []error
	for _, required := range []struct{ value, name string }{
		{o.PostgresURL, "TOCSIN_POSTGRES_URL"}, {o.ClickHouseURL, "TOCSIN_CLICKHOUSE_URL"}, {o.EncryptionKey, "TOCSIN_ENCRYPTION_KEY"},
	} {
		if required.value == "" {
			errs = append(errs, fmt.Errorf("%s is not set", required.name))
		}
	}
	if o.Logger == nil {
		errs = append(errs, errors.New("no logger"))
	}
	for _, r := range o.Roles {
		if !slices.Contains(Roles(), r) {
			errs = append(errs, fmt.Errorf("TOCSIN_ROLES: unknown role %q; the roles are api, evaluate and dispatch", r))
		}
	}
	if err := o.Bus.validate(); err != nil {
		errs = append(errs, err)
	}
	if o.Bus.Provider == BusPostgres && o.Bus.URL != o.PostgresURL {
		errs = append(errs, postgres.CheckURL("TOCSIN_BUS_URL", o.Bus.URL))
	}
	if err := o.Access.validate(); err != nil {
		errs = append(errs, err)
	}
	if o.ClickHouseURL != "" {
		errs = append(errs, clickhouse.CheckURL(o.ClickHouseURL))
	}
	for _, bounded := range []struct {
		value int64
		name  string
	}{
		{int64(o.TickInterval), "TOCSIN_TICK_INTERVAL"},
		{int64(o.Settle), "TOCSIN_SETTLE"},
		{int64(o.PageSize), "TOCSIN_PAGE_SIZE"},
		{int64(o.Workers), "TOCSIN_EVALUATE_WORKERS"},
		{int64(o.PollInterval), "TOCSIN_POLL_INTERVAL"},
		{int64(o.ResolveInterval), "TOCSIN_RESOLVE_INTERVAL"},
		{int64(o.ReconcileInterval), "TOCSIN_RECONCILE_INTERVAL"},
		{int64(o.RetentionInterval), "TOCSIN_RETENTION_INTERVAL"},
		{int64(o.ShutdownDelay), "TOCSIN_SHUTDOWN_DELAY"},
		{int64(o.ShutdownTimeout), "TOCSIN_SHUTDOWN_TIMEOUT"},
		{int64(o.DispatchSlots), "TOCSIN_DISPATCH_SLOTS"},
	} {
		if bounded.value < 0 {
			errs = append(errs, fmt.Errorf("%s must not be negative", bounded.name))
		}
	}
	if o.PartitionLease < leastLease {
		errs = append(errs, fmt.Errorf("TOCSIN_PARTITION_LEASE is %v; it must be at least %v", o.PartitionLease, leastLease))
	}
	if o.PartitionLease/2 < o.TickInterval {
		errs = append(errs, fmt.Errorf("TOCSIN_TICK_INTERVAL is %v, but TOCSIN_PARTITION_LEASE is %v: leases are renewed once in an interval, so they could expire between passes; "+
			"raise TOCSIN_PARTITION_LEASE to at least %v, or lower TOCSIN_TICK_INTERVAL to at most %v", o.TickInterval, o.PartitionLease, 2*o.TickInterval, o.PartitionLease/2))
	}
	if o.Lease != 0 && o.Lease < dispatch.LeastLease {
		errs = append(errs, fmt.Errorf("TOCSIN_LEASE is %v; it must be at least %v", o.Lease, dispatch.LeastLease))
	}
	for i, pause := range o.RetrySchedule {
		if pause <= 0 {
			errs = append(errs, fmt.Errorf("TOCSIN_RETRY_SCHEDULE: pause %d is %v; it must be positive", i+1, pause))
		}
	}
	if err := o.Breaker.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("TOCSIN_BREAKER_AFTER, TOCSIN_BREAKER_PAUSE and TOCSIN_BREAKER_MAX_PAUSE: %w", err))
	}
	if err := o.Keep.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("TOCSIN_RETENTION_ALERTS and TOCSIN_RETENTION_ATTEMPTS: %w", err))
	}
	if o.Traces.URL != "" {
		if err := tracing.Check(o.Traces.URL, o.Traces.Share); err != nil {
			errs = append(errs, fmt.Errorf("TOCSIN_TRACES_URL and TOCSIN_TRACES_SHARE: %w", err))
		}
	}
	if err := o.heartbeat().Validate(); err != nil {
		errs = append(errs, fmt.Errorf("TOCSIN_HEARTBEAT_INTERVAL, TOCSIN_DEAD_AFTER and TOCSIN_DEAD_CHECK_INTERVAL: %w", err))
	}
	return errors.Join(errs...)
}

func (o *Options) heartbeat() lease.Timing {
	return lease.Timing{Interval: o.HeartbeatInterval, DeadAfter: o.DeadAfter, DeadCheckInterval: o.DeadCheckInterval}.WithDefaults()
}

func (o *Options) has(r Role) bool { return slices.Contains(o.Roles, r) }

// self describes this process. Its id contains the host, the process id and a random part, so that
// a reused process id is a different replica.
func (o *Options) self() lease.Replica {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	var random [3]byte
	_, _ = rand.Read(random[:])
	r := lease.Replica{Host: host, PID: os.Getpid(), Version: o.Version}
	r.ID = fmt.Sprintf("%s-%d-%s", r.Host, r.PID, hex.EncodeToString(random[:]))
	for _, role := range o.Roles {
		r.Roles = append(r.Roles, string(role))
	}
	return r
}
