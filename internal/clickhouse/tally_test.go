package clickhouse_test

import (
	"testing"

	"tocsin/internal/chtest"
	"tocsin/internal/windowtest"
	"tocsin/rules"
)

// TestTallyLaw checks what the simulation's model of ClickHouse does as well.
func TestTallyLaw(t *testing.T) {
	db := chtest.New(t)
	windowtest.TallyLaw(t, open(t, db), func(list ...rules.Exchange) { db.Insert(t, list...) })
}
