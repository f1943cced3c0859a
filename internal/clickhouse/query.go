package clickhouse

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"tocsin/evaluator"
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
	statuses := make([]string, len(scan.Statuses))
	for i, s := range scan.Statuses {
		statuses[i] = "'" + string(s) + "'"
	}
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
			"statuses": "[" + strings.Join(statuses, ",") + "]",
			"limit":    strconv.Itoa(scan.Limit),
		},
	}
}
