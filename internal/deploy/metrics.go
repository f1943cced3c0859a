package deploy

// Metrics returns the names of Tocsin's metrics, and of those of the client library that rules and
// dashboard use. Histograms also exist with the suffixes _bucket, _sum and _count.
func Metrics() []string {
	return append([]string{
		"tocsin_alerts_raised_total", "tocsin_attempt_duration_seconds", "tocsin_attempts_total", "tocsin_attempts_unknown_total", "tocsin_backlog_seconds",
		"tocsin_build_info", "tocsin_commit_age_seconds", "tocsin_commit_duration_seconds", "tocsin_dead_letters", "tocsin_detection_latency_seconds",
		"tocsin_evaluation_lag_seconds", "tocsin_fenced_total", "tocsin_late_dropped_total", "tocsin_outbox_depth", "tocsin_outbox_oldest_seconds",
		"tocsin_pass_duration_seconds", "tocsin_dead_replica_leases_released_total", "tocsin_reconciled_timestamp_seconds", "tocsin_replicas", "tocsin_rule_missing",
		"tocsin_rules_backfilling", "tocsin_rules_failing", "tocsin_source_failing", "tocsin_retention_failures_total", "tocsin_retention_timestamp_seconds",
		"tocsin_tenants_deferred_total", "tocsin_wake_ups_total", "tocsin_watermark_lag_seconds", "tocsin_webhooks_locked", "tocsin_webhooks_off", "tocsin_webhooks_open",
		"go_goroutines", "process_cpu_seconds_total", "process_resident_memory_bytes",
	}, NotShown()...)
}

// NotShown returns the metrics that no panel shows: people look them up when another figure leads
// there.
func NotShown() []string {
	return []string{
		"tocsin_backlog_age_seconds", "tocsin_escalation_steps_empty_total", "tocsin_notifications_suppressed_total", "tocsin_outcomes_unapplied_total", "tocsin_panics_total", "tocsin_reconciled_rules", "tocsin_reconciled_since_timestamp_seconds", "tocsin_retention_deleted_total", "process_start_time_seconds",
	}
}
