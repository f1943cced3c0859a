// Package app connects all parts of a replica. It opens the stores and the source, passes them to
// the evaluator, the dispatcher and the API, runs these, and closes everything in reverse order.
//
// A replica runs any of the roles. A wake-up bus tells dispatchers of all replicas that
// notifications are waiting. Lost wake-ups do no harm, because dispatchers also poll.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/google/uuid"

	"tocsin/api"
	"tocsin/evaluator"
	"tocsin/evaluator/preview"
	"tocsin/evaluator/resolution"
	"tocsin/evaluator/window"
	"tocsin/internal/access"
	"tocsin/internal/clickhouse"
	"tocsin/internal/fault"
	"tocsin/internal/lease"
	"tocsin/internal/postgres"
	"tocsin/internal/retention"
	"tocsin/internal/seal"
	"tocsin/internal/tracing"
	"tocsin/notify"
	"tocsin/notify/bus"
	"tocsin/notify/dispatch"
	"tocsin/notify/preset"
	"tocsin/notify/refresh"
	"tocsin/notify/resend"
	"tocsin/notify/template"
	"tocsin/notify/webhook"
	"tocsin/web"
)

// App is one replica.
type App struct {
	options    Options
	replica    string
	listener   net.Listener
	server     *http.Server
	api        *api.Server
	evaluator  *evaluator.Evaluator
	dispatcher *dispatch.Dispatcher
	refresher  *refresh.Refresher
	resender   *resend.Resender
	member     *lease.Member
	bus        *bus.Bus
	// dispatchers wakes dispatchers; outbox is their store.
	dispatchers *dispatchers
	outbox      *postgres.Outbox
	sender      *webhook.Sender
	renderer    *webhook.Renderer
	receivers   *preset.Set
	metrics     *metrics
	// tracer is nil if tracing is off.
	tracer        *tracing.Tracer
	watch         *watch
	resolver      *resolution.Resolver
	deleter       *retention.Deleter
	samples       *postgres.Samples
	authenticator *access.Authenticator
	lifecycle     lifecycle
}

// New opens everything that the roles need and starts nothing. The database must be migrated. The
// caller closes the app.
func New(ctx context.Context, o Options) (app *App, err error) {
	o.applyDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("options: %w", err)
	}
	self := o.self()
	a := &App{options: o, replica: self.ID, metrics: newMetrics(o.Version)}
	a.options.Logger = o.Logger.With(slog.String("replica", a.replica))
	defer func() {
		if err != nil {
			err = errors.Join(err, a.lifecycle.close(ctx))
		}
	}()
	if err := a.openTraces(ctx); err != nil {
		return nil, err
	}
	box, err := seal.New(o.EncryptionKey)
	if err != nil {
		return nil, fmt.Errorf("TOCSIN_ENCRYPTION_KEY: %w", err)
	}
	schema, err := postgres.CheckSchema(ctx, o.PostgresURL)
	if err != nil {
		return nil, err
	}
	if schema.Newer() {
		a.options.Logger.WarnContext(ctx, "the database schema is newer than this program, and works with it; update this replica",
			slog.Int64("schema", schema.Version), slog.Int64("known", schema.Known))
	}
	db, err := postgres.Open(ctx, o.PostgresURL, box)
	if err != nil {
		return nil, err
	}
	a.lifecycle.add("postgres", func(context.Context) error { db.Close(); return nil })
	source, err := a.openEvaluated()
	if err != nil {
		return nil, err
	}
	if err := a.checkSource(ctx, source); err != nil {
		return nil, err
	}
	if err := a.openBus(db); err != nil {
		return nil, err
	}
	a.dispatchers = &dispatchers{bus: a.bus}
	a.member, err = lease.New(lease.Options{
		Store: replicas{db.Replicas(), a.dispatchers}, Replica: self, Timing: o.heartbeat(), Logger: a.options.Logger.With(slog.String("part", "lease")), Observer: a.metrics,
	})
	if err != nil {
		return nil, err
	}
	a.samples = db.Samples(a.options.heartbeat().DeadAfter)
	if err := a.openRetention(ctx, db); err != nil {
		return nil, err
	}
	if err := a.openOutgoing(); err != nil {
		return nil, err
	}
	if o.has(RoleDispatch) {
		if err := a.openDispatcher(db); err != nil {
			return nil, err
		}
	}
	if o.has(RoleEvaluate) {
		if err := a.openEvaluator(db, source); err != nil {
			return nil, err
		}
	}
	if err := a.openServer(ctx, db, source, box); err != nil {
		return nil, err
	}
	return a, nil
}

// openTraces opens the exporter of traces, if there is one, and adds trace ids to the log.
func (a *App) openTraces(ctx context.Context) (err error) {
	if a.options.Traces.URL == "" {
		return nil
	}
	a.options.Logger = slog.New(tracing.Handler(a.options.Logger.Handler()))
	a.tracer, err = tracing.New(ctx, tracing.Options{
		URL: a.options.Traces.URL, Share: a.options.Traces.Share, Replica: a.replica, Version: a.options.Version, Logger: a.options.Logger,
	})
	if err != nil {
		return err
	}
	a.lifecycle.add("traces", func(ctx context.Context) error { a.tracer.Close(ctx); return nil })
	return nil
}

// openOutgoing makes what makes and sends messages.
func (a *App) openOutgoing() error {
	out, err := a.options.outgoing()
	if err != nil {
		return err
	}
	a.receivers, a.sender, a.renderer = out.receivers, out.sender, out.renderer
	a.lifecycle.add("webhook sender", func(context.Context) error { a.sender.Close(); return nil })
	return nil
}

func (a *App) openDispatcher(db *postgres.DB) error {
	policy := notify.DefaultPolicy()
	policy.Schedule, policy.Breaker = a.options.RetrySchedule, a.options.Breaker
	a.outbox = db.Outbox()
	var err error
	sender := a.metrics.timed(a.sender)
	if a.tracer != nil {
		sender = a.tracer.Sender(sender)
	}
	a.dispatcher, err = dispatch.New(dispatch.Options{
		Store: a.outbox, Slots: a.options.DispatchSlots, Renderer: a.renderer, Sender: sender, WakeUps: a.bus.WakeUps(),
		Logger: a.options.Logger.With(slog.String("part", "dispatcher")), Clock: a.options.Clock, Replica: a.replica,
		Lease: a.options.Lease, DeadAfter: a.options.heartbeat().DeadAfter, Poll: a.options.PollInterval, Policy: policy, Schedule: a.receivers.Schedule, Observer: a.metrics,
	})
	if err != nil {
		return err
	}
	a.dispatchers.own = a.dispatcher
	a.resender, err = resend.New(resend.Options{
		Store: a.outbox, Receivers: a.sender, Presets: a.receivers.Speaking(preset.ProtocolAlertmanager),
		Due: func(ctx context.Context, webhook uuid.UUID, messages int) {
			a.dispatchers.notified(ctx, map[uuid.UUID]int{webhook: messages})
		},
		Logger: a.options.Logger.With(slog.String("part", "resender")),
	})
	if err != nil {
		return err
	}
	a.refresher, err = refresh.New(refresh.Options{
		Store: db.Slack(), Renderer: a.renderer, Sender: a.sender, Clock: a.options.Clock, Poll: min(a.options.PollInterval, time.Second),
		Logger: a.options.Logger.With(slog.String("part", "refresher")),
	})
	return err
}

func (a *App) openEvaluator(db *postgres.DB, source *clickhouse.Source) error {
	texts, err := template.NewTexts()
	if err != nil {
		return err
	}
	a.watch = newWatch(db.Reconciliation(), source, a.options.ReconcileInterval, a.options.Keep.Alerts, a.options.Logger.With(slog.String("part", "reconciliation")))
	resolutions := db.Resolution()
	resolutions.Notified, resolutions.Suppressed, resolutions.Keyed = a.dispatchers.notified, a.metrics.Suppressed, a.receivers.Keyed()
	a.resolver = &resolution.Resolver{
		Store: resolutions, Source: source, Interval: a.options.ResolveInterval, Logger: a.options.Logger.With(slog.String("part", "resolution")),
	}
	logger := a.options.Logger.With(slog.String("part", "evaluator"))
	o := evaluator.Options{
		Source: source, Store: db.Evaluation(a.options.heartbeat().DeadAfter), Publisher: a.dispatchers, Texts: texts, Observer: a.metrics,
		Windows: window.New(window.Options{Source: source, Texts: texts, Logger: logger}),
		Logger:  logger, Clock: a.options.Clock, Replica: a.replica,
		Interval: a.options.TickInterval, Settle: a.options.Settle, PageSize: a.options.PageSize,
		LeaseFor: a.options.PartitionLease, Workers: a.options.Workers,
	}
	if a.tracer != nil {
		o.Begin, o.Source, o.Store, o.Windows = a.tracer.Pass, a.tracer.Source(o.Source), a.tracer.Store(o.Store), a.tracer.Windows(o.Windows)
	}
	a.evaluator, err = evaluator.New(o)
	return err
}

// openServer listens, whatever the roles are: every replica answers probes and Prometheus.
func (a *App) openServer(ctx context.Context, db *postgres.DB, source *clickhouse.Source, box *seal.Box) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", a.options.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w; choose another address with --listen or TOCSIN_LISTEN", err)
	}
	a.listener = listener
	a.lifecycle.add("listener", func(context.Context) error {
		if err := listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	o := api.Options{
		Metrics: a.metrics.handler(db.Reconciliation(), a.options.heartbeat().DeadAfter, a.options.Logger), MetricsToken: a.options.Access.MetricsToken,
		// Without ClickHouse, people can still handle alerts, and messages are delivered.
		Checks:        []api.Check{{Name: "postgres", Required: true, Ask: db.Ping}, {Name: "clickhouse", Ask: source.Ping}},
		ListenAddress: listener.Addr().String(), PublicURL: a.options.PublicURL, TrustedProxies: a.options.Access.TrustedProxies,
		Log: a.options.Logger.With(slog.String("part", "api")), Now: a.options.Clock,
	}
	if a.options.has(RoleAPI) {
		err = a.openAPI(ctx, db, box, &o)
	} else {
		a.api, err = api.NewMonitor(o) //nolint:contextcheck // requests bring their own contexts
	}
	if err != nil {
		return err
	}
	a.server = &http.Server{
		Handler:           a.api,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		// Streams of events set their own deadlines.
		WriteTimeout:   time.Minute,
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: 64 << 10,
		ErrorLog:       slog.NewLogLogger(a.options.Logger.Handler(), slog.LevelDebug),
	}
	return nil
}

// openAPI adds the options of the API to those of the endpoints of every replica.
func (a *App) openAPI(ctx context.Context, db *postgres.DB, box *seal.Box, o *api.Options) (err error) {
	at, err := netip.ParseAddrPort(a.listener.Addr().String())
	if err != nil {
		return fmt.Errorf("address of the listener: %w", err)
	}
	if err := a.options.checkOpen(at.String(), at.Addr()); err != nil {
		return err
	}
	if a.authenticator, err = a.openAuthenticator(ctx, db); err != nil {
		return err
	}
	elsewhere, err := a.openElsewhere(db, box)
	if err != nil {
		return err
	}
	// Requests of people may take all connections. Evaluation has others.
	source, err := a.openSource("clickhouse of the API", clickhouse.Options{})
	if err != nil {
		return err
	}
	who := a.options.Access
	record := record{db.Record(a.sender.Head), a.dispatchers}
	texts, err := template.NewTexts()
	if err != nil {
		return err
	}
	inbox := db.Inbox()
	inbox.Notified, inbox.Suppressed = a.dispatchers.notified, a.metrics.Suppressed
	silences := db.Silences()
	silences.TakesDigests = a.receivers.TakesDigests
	o.Rules, o.Webhooks, o.Silences, o.Routing = db.Rules(), webhooks{db.Webhooks(), a.dispatchers}, silences, db.Routing()
	o.Inbox, o.Handling, o.Bulk, o.Reading, o.Folder, o.Issues, o.Activity, o.Missed = inbox, inbox, inbox, inbox, inbox, inbox, inbox, inbox
	o.Teams, o.Views, o.Clock = db.Teams(), db.Views(), db.Clock
	o.InboxStates, o.Notifications, o.Status, o.Past = db.InboxStates(a.options.Clock), record, record, a.samples
	o.Previewer = &preview.Previewer{Source: source, Texts: texts, Settle: a.options.Settle, Clock: a.options.Clock}
	o.Exchanges, o.Explainer, o.Texts, o.Renderer, o.ExchangeURL = source, db.Rules(), texts, a.renderer, a.renderer.ExchangeURL
	o.Sender, o.Slack, o.SlackCaller, o.Receivers = a.sender, db.Slack(), a.sender, a.receivers
	o.Reconciler = newReconciler(db.Reconciliation(), source, 0, a.options.Keep.Alerts)
	o.Authenticator, o.Users, o.Tokens, o.Audit, o.SingleSignOn = a.authenticator, db.Accounts(), db.Tokens(), db.Audit(), elsewhere
	o.Tenant, o.Identify, o.Open = who.Tenant, who.identify(), who.Mode == AccessOpen
	o.Replicas, o.Keys, o.DeadAfter, o.ReplicaID, o.Version = db.Replicas(), db, a.options.heartbeat().DeadAfter, a.replica, a.options.Version
	o.CheckRule, o.CheckWebhook, o.Web = a.checkRule, a.checkWebhook, web.Handler()
	a.api, err = api.New(*o) //nolint:contextcheck // requests bring their own contexts
	return err
}

// checkWebhook returns what is wrong with a webhook that is about to be saved.
func (a *App) checkWebhook(w *notify.Webhook) []fault.Field {
	if w.Preset != "" {
		fields := append(webhook.CheckPreset(a.receivers, w), webhook.CheckHeaders(w.Headers)...)
		return append(fields, webhook.CheckCertificate(w)...)
	}
	fields := webhook.CheckTarget(w)
	fields = append(fields, webhook.CheckHeaders(w.Headers)...)
	fields = append(fields, webhook.CheckSecret(w.SigningSecret)...)
	fields = append(fields, webhook.CheckCertificate(w)...)
	return append(fields, webhook.CheckBody(w.Kind, w.BodyTemplate)...)
}

// Addr returns the address of the HTTP server. Without the role api it answers only /healthz,
// /readyz and /metrics.
func (a *App) Addr() string { return a.listener.Addr().String() }

// Run does the work of the roles until ctx ends or one of them fails. Then it lets work under way
// complete: the current tick is committed, attempts are settled, and requests are answered. The
// replica sends heartbeats until then, and leaves when nothing is under way. Work that did not end
// in time keeps its claims, because it may still complete.
func (a *App) Run(ctx context.Context) error {
	asked := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	alive, leave := context.WithCancel(context.WithoutCancel(ctx))
	var parts, member sync.WaitGroup
	member.Go(func() { a.keep(alive, "heartbeats", a.member.Run) })
	defer member.Wait()
	defer leave()
	keep := func(loop string, run func(context.Context)) { parts.Go(func() { a.keep(ctx, loop, run) }) }
	keep("retention", a.deleter.Run)
	keep("samples", a.sample)
	if a.evaluator != nil {
		keep("evaluator", a.evaluator.Run)
		keep("reconciliation", a.watch.run)
		keep("resolution", a.resolver.Run)
	}
	sending, stopSending := context.WithCancel(context.WithoutCancel(ctx))
	var sender sync.WaitGroup
	sender.Go(func() { a.keep(sending, "wake-ups sent", a.bus.Send) })
	// This still sends the wake-ups of the last tick, and of what is released at the end.
	defer sender.Wait()
	defer stopSending()
	if a.dispatcher != nil {
		keep("wake-ups received", a.bus.Listen)
		keep("dispatcher", a.dispatcher.Run)
		keep("regular tasks", a.runTasks)
		keep("refresher", a.refresher.Run)
		keep("resender", a.resender.Run)
	}
	if a.authenticator != nil {
		keep("expired sessions", func(ctx context.Context) { a.authenticator.Purge(ctx, a.options.Access.AuditRetention) })
	}
	var serveErr error
	parts.Go(func() {
		if err := a.server.Serve(a.listener); !errors.Is(err, http.ErrServerClosed) {
			serveErr = fmt.Errorf("serve: %w", err)
			cancel()
		}
	})
	a.options.Logger.InfoContext(ctx, "running", slog.String("address", a.Addr()), slog.Any("roles", a.options.Roles),
		slog.String("version", a.options.Version))
	<-ctx.Done()
	if asked.Err() != nil {
		a.drain(ctx)
	}
	end, done := context.WithTimeout(context.WithoutCancel(ctx), a.options.ShutdownTimeout)
	defer done()
	a.options.Logger.InfoContext(end, "stopping")
	err := errors.Join(a.shutdownServer(end), wait(end, &parts))
	leave()
	member.Wait()
	if err == nil {
		if err := a.member.Leave(end); err != nil {
			a.options.Logger.WarnContext(end, "leases of messages not released; other replicas take over the messages when the leases expire", slog.Any("error", err))
		}
	}
	return errors.Join(err, serveErr)
}

// afterPanic is how long a loop that panicked rests.
const afterPanic = time.Second

// keep runs a loop until ctx ends. A loop that panics starts again: without it the replica would do
// only a part of its work, and if it ended instead, the next replica would panic over the same row.
// It starts once more if ctx has ended meanwhile, because loops clean up at their end.
func (a *App) keep(ctx context.Context, loop string, run func(context.Context)) {
	for last := false; !last; {
		last = ctx.Err() != nil
		err := fault.Guard(func() error { run(ctx); return nil })
		if err == nil {
			return
		}
		a.options.Logger.ErrorContext(ctx, "loop panicked; unless the process ends, it starts again", slog.String("loop", loop), slog.Any("error", err), fault.Stack(err))
		select {
		case <-ctx.Done():
		case <-time.After(afterPanic):
		}
	}
}

// drain keeps the server answering while load balancers notice that it is about to end.
func (a *App) drain(ctx context.Context) {
	a.api.Drain()
	if a.options.ShutdownDelay > 0 && a.options.has(RoleAPI) {
		a.options.Logger.InfoContext(ctx, "shutting down; requests are still accepted", slog.Duration("delay", a.options.ShutdownDelay))
		<-time.After(a.options.ShutdownDelay)
	}
}

func (a *App) shutdownServer(ctx context.Context) error {
	streams := a.api.Shutdown(ctx)
	if err := errors.Join(streams, a.server.Shutdown(ctx)); err != nil {
		return errors.Join(fmt.Errorf("shut down HTTP server: %w", err), a.server.Close())
	}
	return nil
}

// Close closes everything, in the reverse order of opening.
func (a *App) Close(ctx context.Context) error { return a.lifecycle.close(ctx) }
