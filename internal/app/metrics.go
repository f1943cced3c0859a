package app

import (
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"tocsin/evaluator"
	"tocsin/internal/fault"
	"tocsin/internal/lease"
	"tocsin/internal/postgres"
	"tocsin/notify"
	"tocsin/notify/bus"
)

// metrics counts what this process does. Numbers over all replicas are measured in the database on
// each scrape.
type metrics struct {
	registry  *prometheus.Registry
	passes    *prometheus.HistogramVec
	commits   prometheus.Histogram
	detected  prometheus.Histogram
	lag       *prometheus.GaugeVec
	backlog   *prometheus.GaugeVec
	age       *prometheus.GaugeVec
	deferred  prometheus.Counter
	raised    *prometheus.CounterVec
	attempts  *prometheus.CounterVec
	calls     prometheus.Histogram
	fenced    prometheus.Counter
	unapplied prometheus.Counter
	wakeUps   *prometheus.CounterVec
	released  *prometheus.CounterVec
	unknown   prometheus.Counter
	deleted   *prometheus.CounterVec
	undeleted prometheus.Counter
	// suppressed counts messages that silences suppress.
	suppressed prometheus.Counter
	// emptySteps counts steps of escalations that notify nobody.
	emptySteps prometheus.Counter
}

// newMetrics returns the metrics of a process, labelled with its version.
func newMetrics(version string) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		passes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tocsin_pass_duration_seconds", Help: "How long this replica's passes over a partition took.", Buckets: durations(),
		}, []string{"partition"}),
		commits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tocsin_commit_duration_seconds", Help: "How long this replica's commits of a partition took.", Buckets: durations(),
		}),
		detected: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tocsin_detection_latency_seconds", Help: "Time from the end of an exchange to the commit of its alert, by the clock of this replica.",
			Buckets: []float64{0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30, 60, 300, 1800, 3600, 86400},
		}),
		lag: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tocsin_watermark_lag_seconds", Help: "How far the cursor of a partition was behind the watermark after this replica's last pass that could read the source.",
		}, []string{"partition"}),
		backlog: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tocsin_backlog_seconds", Help: "Start time behind the cursor of a partition that this replica still has to evaluate.",
		}, []string{"partition"}),
		age: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tocsin_backlog_age_seconds", Help: "Time since a partition of this replica last had nothing behind the cursor to evaluate; 0 if it has nothing.",
		}, []string{"partition"}),
		deferred: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tocsin_tenants_deferred_total", Help: "Tenants that used more than their share of a pass, so that some of their exchanges were deferred to later passes.",
		}),
		raised: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tocsin_alerts_raised_total", Help: "Alerts that this replica raised; late are those whose exchanges became visible behind the cursor.",
		}, []string{"late"}),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tocsin_attempts_total", Help: "Attempts of this replica to deliver a message, by verdict.",
		}, []string{"verdict"}),
		calls: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tocsin_attempt_duration_seconds", Help: "How long this replica's calls to receivers took.", Buckets: append(durations(), 30, 60),
		}),
		fenced: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tocsin_fenced_total", Help: "Writes that were refused because a lease had passed to another replica, or a rule had changed meanwhile.",
		}),
		released: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tocsin_dead_replica_leases_released_total", Help: "Leases of dead replicas that this replica released, by kind.",
		}, []string{"kind"}),
		unknown: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tocsin_attempts_unknown_total", Help: "Attempts of any replica whose outcome is unknown, and after which this replica made the next attempt; the message may have been sent twice.",
		}),
		deleted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tocsin_retention_deleted_total", Help: "Alerts and contents of messages that this replica deleted because their retention had expired.",
		}, []string{"what"}),
		undeleted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tocsin_retention_failures_total", Help: "Batches of expired data that this replica could not delete.",
		}),
		unapplied: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tocsin_outcomes_unapplied_total", Help: "Batches of outcomes that this replica stored, but did not apply to the circuit breakers and pauses of their webhooks.",
		}),
		emptySteps: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tocsin_escalation_steps_empty_total", Help: "Steps of escalations that this replica took and that notified nobody, because their webhooks and teams no longer exist, or the teams have no webhooks.",
		}),
		suppressed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tocsin_notifications_suppressed_total", Help: "Messages of this replica that a silence suppressed.",
		}),
	}
	m.wakeUps = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tocsin_wake_ups_total", Help: "Wake-ups of dispatchers that this replica published or received, could not read, or failed to publish or receive.",
	}, []string{"event"})
	panics := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "tocsin_panics_total", Help: "Panics from which this replica has recovered. Each is a bug in Tocsin, and ended only the call, pass, task or loop in which it happened.",
	}, func() float64 { return float64(fault.Panics()) })
	m.RetentionDeleted(0, 0)
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tocsin_build_info", Help: "Always 1; the labels are the version of this replica and that of Go.", ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(build, panics, m.calls, m.wakeUps, m.passes, m.commits, m.detected, m.lag, m.backlog, m.age, m.deferred, m.raised, m.attempts, m.fenced, m.unknown, m.released, m.deleted, m.undeleted, m.suppressed, m.emptySteps, m.unapplied, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	// So that each series exists before its first event.
	m.raised.WithLabelValues("false")
	m.raised.WithLabelValues("true")
	for _, e := range bus.Events() {
		m.wakeUps.WithLabelValues(string(e))
	}
	m.DeadReleased(lease.Released{})
	return m
}

// durations are histogram buckets for durations of milliseconds, in seconds.
func durations() []float64 {
	return []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}
}

// Passed counts a pass over a partition.
func (m *metrics) Passed(partition int, r evaluator.Result) {
	name := strconv.Itoa(partition)
	if r.Observed {
		m.passes.WithLabelValues(name).Observe(r.Took.Seconds())
		m.lag.WithLabelValues(name).Set(r.Lag.Seconds())
		m.backlog.WithLabelValues(name).Set(r.Backlog.Seconds())
		m.age.WithLabelValues(name).Set(r.BacklogAge.Seconds())
	}
	if r.Resting {
		m.GaveUp(partition) // nothing can be late
	}
	m.raised.WithLabelValues(strconv.FormatBool(true)).Add(float64(r.Late))
	m.raised.WithLabelValues(strconv.FormatBool(false)).Add(float64(r.Alerts - r.Late))
	m.fenced.Add(float64(r.Stale))
	m.deferred.Add(float64(r.Deferred))
	m.Suppressed(r.Suppressed)
}

// GaveUp removes the series of a partition that this replica does not hold any more.
func (m *metrics) GaveUp(partition int) {
	name := strconv.Itoa(partition)
	m.lag.DeleteLabelValues(name)
	m.backlog.DeleteLabelValues(name)
	m.age.DeleteLabelValues(name)
}

// Committed counts a commit of a partition.
func (m *metrics) Committed(t evaluator.Timing) {
	m.commits.Observe(t.Commit.Seconds())
	for _, ns := range t.DetectedNS {
		m.detected.Observe(time.Duration(ns).Seconds())
	}
}

// Attempted counts an attempt.
func (m *metrics) Attempted(v notify.Verdict) { m.attempts.WithLabelValues(v.String()).Inc() }

// timed returns a sender that measures its calls.
func (m *metrics) timed(s notify.Sender) notify.Sender { return timedSender{s, m.calls} }

type timedSender struct {
	notify.Sender

	calls prometheus.Observer
}

// Send makes an attempt.
func (s timedSender) Send(ctx context.Context, d *notify.Delivery) notify.Outcome {
	o := s.Sender.Send(ctx, d)
	if o.Duration > 0 { // otherwise no call was made
		s.calls.Observe(o.Duration.Seconds())
	}
	return o
}

// WakeUp counts an event of a wake-up.
func (m *metrics) WakeUp(e bus.Event) { m.wakeUps.WithLabelValues(string(e)).Inc() }

// Suppressed counts messages that a silence suppressed.
func (m *metrics) Suppressed(messages int) { m.suppressed.Add(float64(messages)) }

// Fenced counts a claim that was lost.
func (m *metrics) Fenced() { m.fenced.Inc() }

// Unapplied counts outcomes that were not applied to their webhooks.
func (m *metrics) Unapplied() { m.unapplied.Inc() }

// DeadReleased counts the leases of a dead replica that were released.
func (m *metrics) DeadReleased(held lease.Released) {
	m.released.WithLabelValues("partition").Add(float64(held.Partitions))
	m.released.WithLabelValues("notification").Add(float64(held.Notifications))
}

// Unknown counts an attempt that has no outcome and is made again.
func (m *metrics) Unknown() { m.unknown.Inc() }

// RetentionDeleted counts what retention deleted.
func (m *metrics) RetentionDeleted(alerts, contents int) {
	m.deleted.WithLabelValues("alerts").Add(float64(alerts))
	m.deleted.WithLabelValues("contents").Add(float64(contents))
}

// RetentionFailed counts a batch that could not be deleted.
func (m *metrics) RetentionFailed() { m.undeleted.Inc() }

// gaugesTimeout bounds the measurement for one request.
const gaugesTimeout = 5 * time.Second

// handler answers /metrics with the counters and the measurements. While the database does not
// answer, measurements are absent.
func (m *metrics) handler(store *postgres.Reconciliation, deadAfter time.Duration, logger *slog.Logger) http.Handler {
	options := promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), gaugesTimeout)
		defer cancel()
		all := prometheus.Gatherers{m.registry}
		measured, err := store.Gauges(ctx, deadAfter)
		if err != nil {
			logger.WarnContext(ctx, "gauges missing from /metrics, because Postgres did not answer them; run tocsin doctor if this repeats", slog.Any("error", err))
		} else {
			all = append(all, gauges(measured))
		}
		promhttp.HandlerFor(all, options).ServeHTTP(w, r)
	})
}

// gauges returns the measurements.
func gauges(measured postgres.Gauges) prometheus.Gatherer {
	registry := prometheus.NewRegistry()
	for _, g := range []struct {
		name, help string
		value      float64
	}{
		{"tocsin_rule_missing", "Exchanges that match a rule and have no alert, as found by the last or the running reconciliation of all rules; must be 0.", float64(measured.Missing)},
		{"tocsin_reconciled_rules", "Rules that the last reconciliation of all rules compared.", float64(measured.ReconciledRules)},
		{"tocsin_reconciled_timestamp_seconds", "When rules were last compared, in seconds since the Unix epoch; 0 before the first time.", measured.ReconciledAt},
		{"tocsin_reconciled_since_timestamp_seconds", "Time since which every rule has been compared, in seconds since the Unix epoch; 0 before the first time.", measured.ReconciledSince},
		{"tocsin_retention_timestamp_seconds", "When a retention pass of any replica last finished, in seconds since the Unix epoch; 0 before the first.", measured.RetentionAt},
		{"tocsin_evaluation_lag_seconds", "How far the slowest partition, or rule that can be evaluated, is behind the present.", measured.Slowest.Seconds()},
		{"tocsin_commit_age_seconds", "Time since the oldest last commit of a partition, among partitions with rules that can be evaluated; 0 if there is none.", measured.CommitAge.Seconds()},
		{"tocsin_rules_backfilling", "Enabled rules with separate progress: new, failing, or deferred.", float64(measured.Backfills)},
		{"tocsin_outbox_depth", "Messages that are not settled yet: counted up to 10,000, an estimate beyond that.", float64(measured.OutboxDepth)},
		{"tocsin_outbox_oldest_seconds", "Age of the oldest message that is not settled yet; 0 when there is none.", measured.OutboxOldest.Seconds()},
		{"tocsin_webhooks_open", "Enabled webhooks whose circuit breaker is open, because their receiver is not responding.", float64(measured.OpenBreakers)},
		{"tocsin_source_failing", "1 while the source of exchanges is announced as failing.", number(measured.SourceFailing)},
		{"tocsin_rules_failing", "Rules that cannot be evaluated.", float64(measured.RulesFailing)},
		{"tocsin_dead_letters", "Dead letters: messages that were refused or exhausted, and neither sent again nor discarded.", float64(measured.DeadLetters)},
		{"tocsin_webhooks_off", "Webhooks that Tocsin disabled, because their receiver is gone or no longer accepts their messages.", float64(measured.WebhooksOff)},
		{"tocsin_webhooks_locked", "Webhooks whose secrets this replica cannot decrypt, because it does not have the key.", float64(measured.WebhooksLocked)},
	} {
		gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: g.name, Help: g.help})
		gauge.Set(g.value)
		registry.MustRegister(gauge)
	}
	replicas := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "tocsin_replicas", Help: "Replicas by state; dead ones are forgotten after an hour.",
	}, []string{"state"})
	replicas.WithLabelValues("alive").Set(float64(measured.ReplicasAlive))
	replicas.WithLabelValues("dead").Set(float64(measured.ReplicasDead))
	registry.MustRegister(replicas)
	lateDropped := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "tocsin_late_dropped_total", Help: "Exchanges that match a rule and have no alert because they ran longer than it looks back, or provably became visible later (up to an hour beyond it), as counted by reconciliation; a replay can still raise their alerts. Every replica has the same total.",
	})
	lateDropped.Add(float64(measured.LateDropped))
	registry.MustRegister(lateDropped)
	return registry
}

// number returns 1 for true, and 0 for false.
func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
