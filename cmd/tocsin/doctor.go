package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"

	"tocsin/internal/app"
	"tocsin/internal/clickhouse"
)

// doctor takes what serve takes.
type doctor struct {
	serve

	JSON bool `help:"Print the findings as JSON." name:"json"`
}

// Run examines and prints. What keeps a replica from working is an error.
func (d *doctor) Run(ctx context.Context, out io.Writer) error {
	o, err := d.replica(slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	findings := []clickhouse.Finding{}
	healthy, err := app.Doctor(ctx, o, func(f clickhouse.Finding) error {
		findings = append(findings, f)
		if d.JSON {
			return nil
		}
		return printFinding(out, f)
	})
	if err != nil {
		return err
	}
	if d.JSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(map[string]any{"healthy": healthy, "findings": findings}); err != nil {
			return err
		}
	}
	if !healthy {
		return exitError{code: 1, err: fmt.Errorf("a replica does not work with these settings; see above")}
	}
	return nil
}
