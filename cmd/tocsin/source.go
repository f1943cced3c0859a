package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"tocsin/internal/clickhouse"
	"tocsin/internal/clickhouse/schema"
)

// sourceFlags say where exchanges are read.
type sourceFlags struct {
	ClickHouseURL   string            `help:"ClickHouse, such as clickhouse://user:password@host:9000/database, http:// or https://." env:"TOCSIN_CLICKHOUSE_URL" required:"" placeholder:"URL" name:"clickhouse-url"`
	ClickHouseTable string            `help:"Table of exchanges, instead of the one in the preset or the file." env:"TOCSIN_CLICKHOUSE_TABLE" placeholder:"TABLE" name:"clickhouse-table"`
	SourcePreset    clickhouse.Preset `help:"Mapping of the table: exchanges (the default) or otel_traces." env:"TOCSIN_SOURCE_PRESET" placeholder:"PRESET"`
	SourceFile      string            `help:"YAML file with the mapping of the table." env:"TOCSIN_SOURCE_FILE" placeholder:"FILE"`
	SourceTenant    string            `help:"Tenant of every exchange, instead of the one in the preset or the file." env:"TOCSIN_SOURCE_TENANT" placeholder:"TENANT"`
}

// mapping returns the mapping that the flags describe.
func (f *sourceFlags) mapping() (clickhouse.Mapping, error) {
	m, err := f.base()
	if err != nil {
		return clickhouse.Mapping{}, err
	}
	if f.ClickHouseTable != "" {
		m.Table = f.ClickHouseTable
	}
	if f.SourceTenant != "" {
		m.Tenant, m.TenantID = f.SourceTenant, ""
	}
	return m, m.Validate()
}

func (f *sourceFlags) base() (clickhouse.Mapping, error) {
	switch {
	case f.SourceFile != "" && f.SourcePreset != "":
		return clickhouse.Mapping{}, errors.New("give either --source-file or --source-preset; a file can name its preset itself, as in `preset: otel_traces`")
	case f.SourceFile != "":
		document, err := os.ReadFile(f.SourceFile)
		if err != nil {
			return clickhouse.Mapping{}, fmt.Errorf("--source-file or TOCSIN_SOURCE_FILE: %w", err)
		}
		return clickhouse.ParseMapping(f.SourceFile, document)
	case f.SourcePreset != "":
		m, err := f.SourcePreset.Mapping()
		if err != nil {
			return m, fmt.Errorf("--source-preset or TOCSIN_SOURCE_PRESET: %w", err)
		}
		return m, nil
	default:
		return clickhouse.Exchanges(), nil
	}
}

type source struct {
	Check check `cmd:"" help:"Check the mapping against the live table: types, sort key, what a pass reads, IDs, ends, and how late exchanges become visible."`
	DDL   ddl   `cmd:"" help:"Print the CREATE TABLE statement of the default source table." name:"ddl"`
}

type ddl struct{}

// Run prints the statement.
func (ddl) Run(out io.Writer) error {
	_, err := io.WriteString(out, schema.Exchanges)
	return err
}
