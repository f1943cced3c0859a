package clickhouse_test

import (
	"fmt"
	"strings"
	"testing"

	"tocsin/cursor"
	"tocsin/evaluator/source"
	"tocsin/internal/chtest"
	"tocsin/internal/clickhouse"
	"tocsin/rules"
)

// TestManyTenantsFitIntoAnAddress reads for thousands of tenants without a share, as a pass does that defers one of
// them. ClickHouse refuses a parameter in an address of more than 128 KiB.
func TestManyTenantsFitIntoAnAddress(t *testing.T) {
	db := chtest.New(t)
	ch := open(t, db)
	var names []string
	for i := range 4000 {
		names = append(names, fmt.Sprintf("%04d-%s", i, strings.Repeat("tenant", 5)))
	}
	for name, value := range clickhouse.TenantParameters(clickhouse.Exchanges(), source.Tenants{Names: names}) {
		if len(value) > 64<<10 {
			t.Errorf("the parameter %s has %d bytes", name, len(value))
		}
	}
	first, last, other := failed(base, "first"), failed(base+1, "last"), failed(base+2, "other")
	first.TenantID, last.TenantID, other.TenantID = names[0], names[len(names)-1], "other"
	db.Insert(t, first, last, other)
	page, err := ch.Scan(t.Context(), source.Scan{
		Tenants: source.Tenants{Names: names}, Statuses: []rules.Status{rules.Failed}, After: cursor.Position{StartTimeNS: base - 1}, BeforeNS: base + 10, Limit: 10,
	})
	if err != nil || len(page.Exchanges) != 2 || page.Exchanges[0].ExecutionID != "first" || page.Exchanges[1].ExecutionID != "last" {
		t.Errorf("%+v, %v", page.Exchanges, err)
	}
}
