package demo

import (
	"context"
	"fmt"
	"time"

	"tocsin/internal/clickhouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Table is a writer of the exchanges table over ClickHouse's HTTP protocol.
type Table struct {
	conn driver.Conn
}

// OpenTable parses a URL such as http://default:@127.0.0.1:8123/default. It does not connect. The
// caller closes the table.
func OpenTable(url string) (*Table, error) {
	options, err := clickhouse.ParseDSN(url)
	if err != nil {
		return nil, fmt.Errorf("read ClickHouse URL: %w", err)
	}
	options.DialTimeout = 3 * time.Second
	options.ReadTimeout = 30 * time.Second
	conn, err := clickhouse.Open(options)
	if err != nil {
		return nil, fmt.Errorf("open ClickHouse: %w", err)
	}
	return &Table{conn: conn}, nil
}

// Close ends the connections.
func (t *Table) Close() error { return t.conn.Close() }

// Create creates the table if it does not exist.
func (t *Table) Create(ctx context.Context) error {
	if err := t.conn.Exec(ctx, schema.Exchanges); err != nil {
		return fmt.Errorf("create table of exchanges: %w", err)
	}
	return nil
}

// Empty reports whether the table has no row.
func (t *Table) Empty(ctx context.Context) (bool, error) {
	var held uint8
	if err := t.conn.QueryRow(ctx, "SELECT toUInt8(count() > 0) FROM (SELECT 1 FROM exchanges LIMIT 1)").Scan(&held); err != nil {
		return false, fmt.Errorf("look into table of exchanges: %w", err)
	}
	return held == 0, nil
}

// Insert writes the rows, in order, in one statement. After an error some of
// them may be there nevertheless.
func (t *Table) Insert(ctx context.Context, rows []Row) error {
	batch, err := t.conn.PrepareBatch(ctx, `INSERT INTO exchanges (tenant_id, start_time, environment, application_id, route_id,
		execution_id, end_time, duration, status, error_type, error_message, error_stack, correlation_id, attributes)`)
	if err != nil {
		return fmt.Errorf("prepare insert of %d exchanges: %w", len(rows), err)
	}
	defer func() { _ = batch.Close() }() // of no effect after Send
	for _, r := range rows {
		var end *time.Time
		if !r.EndTime.IsZero() {
			end = &r.EndTime
		}
		if err := batch.Append(Tenant, r.StartTime, r.Environment, r.Application, r.Route, r.ExecutionID, end,
			uint64(r.Duration), r.Status, r.ErrorType, r.ErrorMessage, r.ErrorStack, r.CorrelationID, r.Attributes); err != nil {
			return fmt.Errorf("encode exchange %s: %w", r.ExecutionID, err)
		}
	}
	if err := batch.Send(); err != nil {
		return fmt.Errorf("insert %d exchanges: %w", len(rows), err)
	}
	return nil
}
