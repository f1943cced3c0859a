package clickhouse

import (
	"context"
	"maps"
	"math"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// settings returns the settings of every query, in addition to its bounds: each setting that could
// change the meaning of a statement. A profile of the server may set any of them, usually for
// people at a console, who may prefer the first rows of an answer to none. All of them have
// ClickHouse's default value, unless a comment says why not.
func settings() clickhouse.Settings {
	return clickhouse.Settings{
		// A query that exceeds a bound of the profile fails instead of being cut short.
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
		// No rows are left out of an answer or added to it.
		"limit":    0,
		"offset":   0,
		"extremes": 0,
		// A count returns one row, even of nothing, and 0 instead of NULL.
		"empty_result_for_aggregation_by_empty_set": 0,
		"aggregate_functions_null_for_empty":        0,
		// The statements handle duplicate rows themselves; FINAL would read all of them.
		"final": 0,
		// No cached answers.
		"use_query_cache": 0,
		// NULL is in no list.
		"transform_null_in": 0,
		// For a Distributed table: all shards, one replica of each, and always the same replica
		// while it is up, because another one may lag behind. The default is any replica.
		"skip_unavailable_shards":       0,
		"max_parallel_replicas":         1,
		"distributed_group_by_no_merge": 0,
		"load_balancing":                "in_order",
		// A replica that answers slowly is waited for, instead of asking another one beside it.
		"use_hedged_requests": 0,
	}
}

// bounded returns a context for a query. The query runs read-only with its parameters, and fails
// instead of exceeding its time, its number of rows or its bytes.
func (s *Source) bounded(ctx context.Context, q query, maxRows int) context.Context {
	all := settings()
	// 2 instead of 1; neither allows writes. A user whose profile has readonly = 2 may send this
	// value, and no other one.
	all["readonly"] = 2
	all["max_execution_time"] = int(math.Ceil(s.timeout.Seconds()))
	all["max_result_rows"] = maxRows
	if q.maxBytes > 0 {
		all["max_result_bytes"] = q.maxBytes
	}
	return clickhouse.Context(ctx, clickhouse.WithParameters(maps.Clone(q.parameters)), clickhouse.WithSettings(all))
}
