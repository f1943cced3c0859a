package clickhouse

import (
	"context"
	"maps"
	"math"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// settings returns what every query is sent with beside its bounds: each setting that
// could make an answer mean something else than its statement says. A profile of the
// server may set any of them, mostly for people at a console, whom the first rows of an
// answer may serve better than none. All of them are as ClickHouse sets them by default,
// unless a comment says why not.
func settings() clickhouse.Settings {
	return clickhouse.Settings{
		// What exceeds a bound of the profile fails, rather than be cut short.
		"timeout_overflow_mode":      "throw",
		"timeout_overflow_mode_leaf": "throw",
		"read_overflow_mode":         "throw",
		"read_overflow_mode_leaf":    "throw",
		"result_overflow_mode":       "throw",
		"group_by_overflow_mode":     "throw",
		"sort_overflow_mode":         "throw",
		"distinct_overflow_mode":     "throw",
		"set_overflow_mode":          "throw",
		"join_overflow_mode":         "throw",
		"transfer_overflow_mode":     "throw",
		// No rows are left out of an answer, or added to it.
		"limit":    0,
		"offset":   0,
		"extremes": 0,
		// One row for what is counted, even of nothing, and a count rather than NULL.
		"empty_result_for_aggregation_by_empty_set": 0,
		"aggregate_functions_null_for_empty":        0,
		// Rows that are there twice are dealt with here; FINAL would read them all.
		"final": 0,
		// An answer of now, not one of before.
		"use_query_cache": 0,
		// NULL is in no list.
		"transform_null_in": 0,
		// Of a Distributed table: all shards, one replica of each, and the same one as
		// long as it is up, since another one may lag behind. By default any replica.
		"skip_unavailable_shards":       0,
		"max_parallel_replicas":         1,
		"distributed_group_by_no_merge": 0,
		"load_balancing":                "in_order",
	}
}

// bounded returns a context under which a query runs read-only, with its
// parameters, and fails rather than exceed its time, its number of rows or its bytes.
func (s *Source) bounded(ctx context.Context, q query, maxRows int) context.Context {
	all := settings()
	// 2 rather than 1, neither of which writes: a user whose profile says readonly = 2
	// may send what it has already, and no other value.
	all["readonly"] = 2
	all["max_execution_time"] = int(math.Ceil(s.timeout.Seconds()))
	all["max_result_rows"] = maxRows
	if q.maxBytes > 0 {
		all["max_result_bytes"] = q.maxBytes
	}
	return clickhouse.Context(ctx, clickhouse.WithParameters(maps.Clone(q.parameters)), clickhouse.WithSettings(all))
}
