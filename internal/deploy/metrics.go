package deploy

// Metrics returns the names of the metrics that rules and dashboard may use. Those of a histogram end in _bucket, _sum
// and _count as well.
func Metrics() []string {
	return []string{
		"tocsin_alerts_raised_total", "tocsin_attempts_total", "tocsin_attempts_unknown_total", "tocsin_backlog_seconds", "tocsin_commit_age_seconds", "tocsin_commit_duration_seconds",
		"tocsin_dead_letters", "tocsin_detection_latency_seconds", "tocsin_late_dropped_total", "tocsin_outbox_depth", "tocsin_outbox_oldest_seconds",
		"tocsin_pass_duration_seconds", "tocsin_reconciled_timestamp_seconds", "tocsin_replicas", "tocsin_rule_missing", "tocsin_rules_failing",
		"tocsin_source_failing", "tocsin_sweep_failures_total", "tocsin_swept_timestamp_seconds", "tocsin_wake_ups_total", "tocsin_watermark_lag_seconds",
		"tocsin_webhooks_locked", "tocsin_webhooks_off", "tocsin_webhooks_open",
		// Of the client library.
		"go_goroutines", "process_start_time_seconds", "process_cpu_seconds_total", "process_resident_memory_bytes",
	}
}
