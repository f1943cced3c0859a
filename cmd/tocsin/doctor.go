package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"tocsin/internal/app"
	"tocsin/internal/clickhouse"
)

// doctor has the flags of serve.
type doctor struct {
	serve
	serverFlags

	JSON     bool          `help:"Print the findings as JSON." name:"json"`
	SelfTest bool          `help:"Also follow an exchange through the running server at --url, to an alert and a message to --webhook. This needs exchanges that end continuously."`
	Webhook  uuid.UUID     `help:"ID of the webhook that gets the message of the self-test." placeholder:"ID"`
	Within   time.Duration `help:"How long the self-test waits for the alert, and then for the message." default:"1m"`
}

// Run examines and prints. A finding that keeps a replica from working is an error.
func (d *doctor) Run(ctx context.Context, out io.Writer) error {
	if d.SelfTest && (d.Webhook == uuid.Nil || d.Within <= 0) {
		return errors.New("--self-test needs --webhook, the ID of the webhook that gets the message, and a --within above 0")
	}
	o, err := d.replica(slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	findings := []clickhouse.Finding{}
	report := func(f clickhouse.Finding) error {
		findings = append(findings, f)
		if d.JSON {
			return nil
		}
		return printFinding(out, f)
	}
	healthy, err := app.Doctor(ctx, o, report)
	if err != nil {
		return err
	}
	var failed error
	if d.SelfTest {
		var f clickhouse.Finding
		if f, failed = d.selfTest(ctx); failed == nil {
			failed = report(f)
		} else {
			failed = explainRefusal(failed)
		}
		healthy = healthy && failed == nil && f.Verdict != clickhouse.Broken
	}
	if d.JSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(map[string]any{"healthy": healthy, "findings": findings}); err != nil {
			return err
		}
	}
	if failed != nil {
		return failed
	}
	if !healthy {
		return exitError{code: 1, err: errors.New("some checks failed; see above")}
	}
	return nil
}

func (d *doctor) selfTest(ctx context.Context) (clickhouse.Finding, error) {
	server, err := d.open()
	if err != nil {
		return clickhouse.Finding{}, err
	}
	const every = 200 * time.Millisecond
	return (&selfTest{api: server, webhook: d.Webhook, within: d.Within, every: every}).run(ctx)
}
