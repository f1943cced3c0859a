// Command dashboard writes the Grafana dashboard of Tocsin to standard output. Panels are described
// here briefly; everything else that Grafana requires is filled in.
//
// With -picture it draws the dashboard instead, with the answers of a real Prometheus to its
// queries. The picture is not made by Grafana.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

// panel is one graph or figure.
type panel struct {
	title, text string
	// kind is timeseries or stat.
	kind string
	unit string
	// width is in 24ths of the page.
	width   int
	queries []query
	// red is the value from which a figure is bad; 0 means none.
	red float64
}

type query struct{ expr, legend string }

// row is a group of panels with a heading.
type row struct {
	title  string
	panels []panel
}

func rows() []row {
	return []row{
		{"Overview", []panel{
			{"Alerts missing", "Exchanges that match a rule and have no alert, as the last reconciliation found. Must be 0.", "stat", "none", 4, one("max(tocsin_rule_missing{job=~\"$job\"})"), 1},
			{"Behind ClickHouse", "How far the slowest partition is behind ClickHouse's clock, or the time since its last commit.", "stat", "s", 4, one("max(tocsin_watermark_lag_seconds{job=~\"$job\"} or tocsin_commit_age_seconds{job=~\"$job\"})"), 60},
			{"Messages waiting", "Messages that are not delivered yet.", "stat", "none", 4, one("max(tocsin_outbox_depth{job=~\"$job\"})"), 0},
			{"Dead letters", "Messages that were refused permanently, or whose attempts ran out, and that nobody has handled.", "stat", "none", 4, one("max(tocsin_dead_letters{job=~\"$job\"})"), 1},
			{"Receivers not responding", "Webhooks whose circuit breaker is open, that were disabled, or whose key is missing.", "stat", "none", 4, one("max(tocsin_webhooks_open{job=~\"$job\"}) + max(tocsin_webhooks_off{job=~\"$job\"}) + max(tocsin_webhooks_locked{job=~\"$job\"})"), 1},
			{"Rules failing", "Rules that cannot be evaluated.", "stat", "none", 4, one("max(tocsin_rules_failing{job=~\"$job\"})"), 1},
		}},
		{"Detection", []panel{
			{"Alerts raised", "By whether the look-back found them behind the cursor.", "timeseries", "cps", 8, []query{
				{"sum by (late) (rate(tocsin_alerts_raised_total{job=~\"$job\"}[$__rate_interval]))", "late {{late}}"},
			}, 0},
			{"Detection latency", "From the end of an exchange to the commit of its alert.", "timeseries", "s", 8, quantiles("tocsin_detection_latency_seconds"), 0},
			{"Lag, by partition", "The distance of each partition from ClickHouse's clock.", "timeseries", "s", 8, []query{
				{"max by (partition) (tocsin_watermark_lag_seconds{job=~\"$job\"})", "partition {{partition}}"},
				{"max(tocsin_commit_age_seconds{job=~\"$job\"})", "age of the last commit"},
				{"max(tocsin_evaluation_lag_seconds{job=~\"$job\"})", "slowest rule"},
			}, 0},
			{"Backlog, by partition", "Start times in the past that must still be evaluated.", "timeseries", "s", 8, []query{
				{"max by (partition) (tocsin_backlog_seconds{job=~\"$job\"})", "partition {{partition}}"},
			}, 0},
			{"Pass duration", "One pass over a partition: observe, plan, evaluate, commit.", "timeseries", "s", 8, quantiles("tocsin_pass_duration_seconds"), 0},
			{"Commit duration", "The transaction that writes alerts, messages and checkpoint.", "timeseries", "s", 8, quantiles("tocsin_commit_duration_seconds"), 0},
		}},
		{"Delivery", []panel{
			{"Attempts", "By their outcome.", "timeseries", "cps", 8, []query{
				{"sum by (verdict) (rate(tocsin_attempts_total{job=~\"$job\"}[$__rate_interval]))", "{{verdict}}"},
			}, 0},
			{"Messages waiting", "How many, and the age of the oldest.", "timeseries", "none", 8, []query{{"max(tocsin_outbox_depth{job=~\"$job\"})", "messages"}}, 0},
			{"Age of the oldest message", "", "timeseries", "s", 8, one("max(tocsin_outbox_oldest_seconds{job=~\"$job\"})"), 0},
			{"Attempts of unknown outcome", "Each may have sent a message twice: a process ended between sending and storing.", "timeseries", "none", 8, []query{
				{"sum(increase(tocsin_attempts_unknown_total{job=~\"$job\"}[$__rate_interval]))", "attempts"},
			}, 0},
			{"Call duration", "How long calls to receivers took, whatever the response.", "timeseries", "s", 8, quantiles("tocsin_attempt_duration_seconds"), 0},
			{"Wake-ups", "Through the bus, by event.", "timeseries", "cps", 8, []query{
				{"sum by (event) (rate(tocsin_wake_ups_total{job=~\"$job\"}[$__rate_interval]))", "{{event}}"},
			}, 0},
		}},
		{"Operation", []panel{
			{"Replicas", "By state and by version.", "timeseries", "none", 6, []query{
				{"max by (state) (tocsin_replicas{job=~\"$job\"})", "{{state}}"}, {"count by (version) (tocsin_build_info{job=~\"$job\"})", "{{version}}"},
			}, 0},
			{"Processor", "Cores in use, by replica.", "timeseries", "none", 6, []query{
				{"rate(process_cpu_seconds_total{job=~\"$job\"}[$__rate_interval])", "{{instance}}"},
			}, 0},
			{"Memory", "Resident, by replica.", "timeseries", "bytes", 6, []query{{"process_resident_memory_bytes{job=~\"$job\"}", "{{instance}}"}}, 0},
			{"Goroutines", "By replica.", "timeseries", "none", 6, []query{{"go_goroutines{job=~\"$job\"}", "{{instance}}"}}, 0},
			{"Since the last reconciliation and retention pass", "Both run continuously; more than an hour is too long.", "timeseries", "s", 12, []query{
				{"time() - (max(tocsin_reconciled_timestamp_seconds{job=~\"$job\"}) > 0)", "reconciliation"},
				{"time() - (max(tocsin_retention_timestamp_seconds{job=~\"$job\"}) > 0)", "retention"},
			}, 0},
			{"Lost and failing", "Exchanges that became visible too late, failed batches of retention, and whether ClickHouse cannot be read.", "timeseries", "none", 12, []query{
				{"sum(max by (namespace, job) (increase(tocsin_late_dropped_total{job=~\"$job\"}[$__rate_interval])))", "too late"},
				{"sum(increase(tocsin_retention_failures_total{job=~\"$job\"}[$__rate_interval]))", "retention failures"},
				{"max(tocsin_source_failing{job=~\"$job\"})", "source failing"},
			}, 0},
			{"Taken over, late, backfilling", "Leases of dead replicas that were released, writes that were refused, tenants that took more than their share, rules with separate progress.", "timeseries", "none", 12, []query{
				{"sum(increase(tocsin_dead_replica_leases_released_total{job=~\"$job\"}[$__rate_interval]))", "leases released"},
				{"sum(increase(tocsin_fenced_total{job=~\"$job\"}[$__rate_interval]))", "writes refused"},
				{"sum(increase(tocsin_tenants_deferred_total{job=~\"$job\"}[$__rate_interval]))", "tenants deferred"},
				{"max(tocsin_rules_backfilling{job=~\"$job\"})", "rules backfilling"},
			}, 0},
		}},
	}
}

func one(expr string) []query { return []query{{expr, ""}} }

// quantiles returns the median and the 99th percentile of a histogram.
func quantiles(histogram string) []query {
	rate := fmt.Sprintf("sum by (le) (rate(%s_bucket{job=~\"$job\"}[$__rate_interval]))", histogram)
	return []query{{"histogram_quantile(0.5, " + rate + ")", "p50"}, {"histogram_quantile(0.99, " + rate + ")", "p99"}}
}

type object = map[string]any

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "dashboard:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	const minutes = 10
	picture := flag.String("picture", "", "file to draw the dashboard into, as SVG")
	ask := flag.String("prometheus", "", "URL of a Prometheus that has scraped Tocsin")
	scrape := flag.String("scrape", "", "address of a Tocsin that a Prometheus of its own scrapes first")
	span := flag.Duration("for", minutes*time.Minute, "time that the picture shows")
	flag.Parse()
	if *picture == "" {
		return write(os.Stdout)
	}
	if (*ask == "") == (*scrape == "") {
		return errors.New("give either -prometheus or -scrape")
	}
	if *scrape != "" {
		address, stop, err := watch(ctx, *scrape, *span)
		if err != nil {
			return err
		}
		defer stop()
		*ask = address
	}
	text, err := draw(ctx, *ask, *span)
	if err != nil {
		return err
	}
	return os.WriteFile(*picture, text, 0o644)
}

// write writes the dashboard in Grafana's format.
func write(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(dashboard())
}

const (
	// pageWidth is the width of a dashboard.
	pageWidth = 24
	// statHeight and graphHeight are the heights of panels.
	statHeight, graphHeight = 4, 8
)

func dashboard() object {
	var panels []object
	id, y := 0, 0
	add := func(o object, x, width, height int) {
		id++
		o["id"], o["gridPos"] = id, object{"x": x, "y": y, "w": width, "h": height}
		panels = append(panels, o)
	}
	for _, r := range rows() {
		add(object{"type": "row", "title": r.title, "collapsed": false, "panels": []any{}}, 0, pageWidth, 1)
		y++
		x, height := 0, 0
		for _, p := range r.panels {
			if x+p.width > pageWidth {
				x, y = 0, y+height
			}
			height = graphHeight
			if p.kind == "stat" {
				height = statHeight
			}
			add(p.object(), x, p.width, height)
			x += p.width
		}
		y += height
	}
	return object{
		"uid": "tocsin", "title": "Tocsin", "tags": []string{"tocsin"}, "schemaVersion": 41, "version": 1, "editable": true, "graphTooltip": 1,
		"time": object{"from": "now-6h", "to": "now"}, "refresh": "30s", "timezone": "browser", "panels": panels,
		"templating": object{"list": []object{
			{"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus", "hide": 0},
			{
				"type": "query", "name": "job", "label": "Job", "datasource": source(), "query": object{"query": "label_values(tocsin_outbox_depth, job)", "refId": "job"},
				"refresh": 2, "includeAll": true, "multi": true, "allValue": ".+", "current": object{"text": "All", "value": "$__all"}, "hide": 0,
			},
		}},
		"annotations": object{"list": []any{}},
	}
}

func source() object { return object{"type": "prometheus", "uid": "${datasource}"} }

func (p panel) object() object {
	var targets []object
	for i, q := range p.queries {
		targets = append(targets, object{"refId": string(rune('A' + i)), "datasource": source(), "expr": q.expr, "legendFormat": q.legend, "range": true})
	}
	steps := []object{{"color": "green", "value": nil}}
	if p.red > 0 {
		steps = append(steps, object{"color": "red", "value": p.red})
	}
	options := object{"legend": object{"displayMode": "list", "placement": "bottom"}, "tooltip": object{"mode": "multi", "sort": "desc"}}
	if p.kind == "stat" {
		options = object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "colorMode": "value", "graphMode": "area"}
	}
	return object{
		"type": p.kind, "title": p.title, "description": p.text, "datasource": source(), "targets": targets, "options": options,
		"fieldConfig": object{
			"defaults":  object{"unit": p.unit, "min": 0, "thresholds": object{"mode": "absolute", "steps": steps}},
			"overrides": []any{},
		},
	}
}
