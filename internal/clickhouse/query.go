package clickhouse

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"tocsin/evaluator"
	"tocsin/rules"
)

// maxStackBytes bounds what is read of a stack: it is shown, never matched.
const maxStackBytes = 32 << 10

// query is a statement and its server-side parameters.
//
// Every value is a typed parameter, never text of the statement. Instants
// travel as integer nanoseconds, because a time.Time would be bound in whole
// seconds; strings as hexadecimal, because a source may hold any bytes and
// hexadecimal is the same in every transport.
type query struct {
	sql        string
	parameters map[string]string
}

// scanQuery reads a range in order. The bound is written as a disjunction: the
// tuple form (start_time, execution_id) > (…) is equivalent, but ClickHouse
// then reads every granule of the tenant instead of those of the range.
func scanQuery(table string, scan evaluator.Scan) query {
	return query{
		sql: fmt.Sprintf(`
SELECT
    tenant_id,
    toUnixTimestamp64Nano(start_time),
    execution_id,
    environment,
    application_id,
    route_id,
    status,
    toUnixTimestamp64Nano(end_time),
    duration,
    error_type,
    error_message,
    left(error_stack, %d),
    correlation_id,
    attributes
FROM %s
WHERE tenant_id = unhex({tenant:String})
  AND (start_time > fromUnixTimestamp64Nano({after:Int64}, 'UTC')
       OR (start_time = fromUnixTimestamp64Nano({after:Int64}, 'UTC') AND execution_id > unhex({after_id:String})))
  AND start_time < fromUnixTimestamp64Nano({before:Int64}, 'UTC')
  AND status IN {statuses:Array(String)}
ORDER BY start_time, execution_id
LIMIT {limit:UInt64}`, maxStackBytes, table),
		parameters: map[string]string{
			"tenant":   hex.EncodeToString([]byte(scan.TenantID)),
			"after":    strconv.FormatInt(scan.After.StartTimeNS, 10),
			"after_id": hex.EncodeToString([]byte(scan.After.ExecutionID)),
			"before":   strconv.FormatInt(scan.BeforeNS, 10),
			"statuses": statusArray(scan.Statuses),
			"limit":    strconv.Itoa(scan.Limit),
		},
	}
}

// fingerprintQuery counts and sums the exchanges of a range by status and
// bucket. Rows that are there twice are counted twice, until they are merged;
// either way a bucket in which something is new differs from before.
func fingerprintQuery(table string, q evaluator.FingerprintQuery) query {
	return query{
		sql: fmt.Sprintf(`
SELECT
    status,
    intDiv(toUnixTimestamp64Nano(start_time), {width:Int64}) AS bucket,
    count(),
    groupBitXor(cityHash64(execution_id))
FROM %s
WHERE tenant_id = unhex({tenant:String})
  AND start_time >= fromUnixTimestamp64Nano({from:Int64}, 'UTC')
  AND start_time < fromUnixTimestamp64Nano({to:Int64}, 'UTC')
  AND status IN {statuses:Array(String)}
GROUP BY status, bucket`, table),
		parameters: map[string]string{
			"tenant":   hex.EncodeToString([]byte(q.TenantID)),
			"from":     strconv.FormatInt(q.FromNS, 10),
			"to":       strconv.FormatInt(q.ToNS, 10),
			"width":    strconv.FormatInt(q.WidthNS, 10),
			"statuses": statusArray(q.Statuses),
		},
	}
}

func statusArray(statuses []rules.Status) string {
	quoted := make([]string, len(statuses))
	for i, s := range statuses {
		quoted[i] = "'" + string(s) + "'"
	}
	return "[" + strings.Join(quoted, ",") + "]"
}
