package clickhouse

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"tocsin/rules"
)

// endColumn is the index of the end in [Mapping.columns]. groupArray leaves out NULL, so noEnd is
// written in its place; it is before [earliest].
const (
	endColumn = 6
	noEnd     = math.MinInt64
)

// arrays is the answer to a [pageQuery]: the columns of [Mapping.columns] and the tenant,
// one element for each exchange.
type arrays struct {
	starts                                []int64
	ids, environments, applications       []string
	routes, statuses                      []string
	ends                                  []int64
	durations                             []uint64
	errorTypes, messages, stacks, related []string
	attributes                            []map[string]string
	tenants                               []string
}

// destinations returns where the columns are read into, in their order.
func (a *arrays) destinations() []any {
	return []any{
		&a.starts, &a.ids, &a.environments, &a.applications, &a.routes, &a.statuses, &a.ends, &a.durations,
		&a.errorTypes, &a.messages, &a.stacks, &a.related, &a.attributes, &a.tenants,
	}
}

// exchanges returns the rows in the order of their positions.
func (a *arrays) exchanges() ([]rules.Exchange, error) {
	for _, column := range a.destinations() {
		if n := reflect.ValueOf(column).Elem().Len(); n != len(a.starts) {
			return nil, fmt.Errorf("clickhouse: a column has %d rows, another one %d", n, len(a.starts))
		}
	}
	list := make([]rules.Exchange, len(a.starts))
	for i := range list {
		e := &list[i]
		*e = rules.Exchange{
			TenantID: a.tenants[i], StartTimeNS: a.starts[i], ExecutionID: a.ids[i], Environment: a.environments[i],
			Application: a.applications[i], Route: a.routes[i], Status: rules.Status(a.statuses[i]),
			DurationNS: int64(min(a.durations[i], math.MaxInt64)), ErrorType: a.errorTypes[i], ErrorMessage: a.messages[i],
			ErrorStack: a.stacks[i], CorrelationID: a.related[i], Attributes: a.attributes[i],
		}
		if a.ends[i] != noEnd {
			e.EndTimeNS = &a.ends[i]
		}
	}
	// groupArray keeps the order of its input only if that is one stream.
	byPosition := func(x, y rules.Exchange) int { return x.Position().Compare(y.Position()) }
	if !slices.IsSortedFunc(list, byPosition) {
		slices.SortStableFunc(list, byPosition)
	}
	return list, nil
}
