package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"tocsin/internal/clickhouse"
)

// check is the command that compares a mapping with its table.
type check struct {
	sourceFlags

	Window  time.Duration `help:"Time before now whose exchanges are examined." default:"1h"`
	Watch   time.Duration `help:"How long to watch for new exchanges, to measure their delay if no column contains it; 0 means not at all." default:"30s"`
	Settle  time.Duration `help:"How far evaluation stays behind ClickHouse's clock." default:"100ms" env:"TOCSIN_SETTLE"`
	Timeout time.Duration `help:"Time limit of one query." default:"30s"`
	JSON    bool          `help:"Print the report as JSON." name:"json"`
}

// Run checks and reports. A finding that keeps rules from being evaluated is an error.
func (c *check) Run(ctx context.Context, out io.Writer) error {
	if c.Window <= 0 || c.Watch < 0 || c.Settle < 0 || c.Timeout <= 0 {
		return errors.New("--window and --timeout must be positive, --watch and --settle must not be negative")
	}
	mapping, err := c.mapping()
	if err != nil {
		return err
	}
	source, err := clickhouse.Open(clickhouse.Options{URL: c.ClickHouseURL, Mapping: mapping, QueryTimeout: c.Timeout, Version: buildVersion()})
	if err != nil {
		return err
	}
	progress := progressLine(os.Stderr, c.Watch)
	report, err := source.Check(ctx, clickhouse.CheckOptions{Window: c.Window, Watch: c.Watch, Settle: c.Settle, Progress: progress.show})
	progress.end()
	if _, refused := errors.AsType[*clickhouse.RefusedError](err); err != nil && !refused && len(report.Findings) == 0 {
		err = fmt.Errorf("ClickHouse cannot be reached at TOCSIN_CLICKHOUSE_URL: %w; check that it runs there, and that user, password and database are right", err)
	}
	err = errors.Join(err, source.Close())
	if c.JSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		err = errors.Join(err, encoder.Encode(report))
	} else {
		err = errors.Join(err, printReport(out, &report))
	}
	if err == nil && report.Broken() {
		err = errors.New("rules cannot be evaluated on this source; see ✗ above")
	}
	return err
}

func printReport(out io.Writer, r *clickhouse.Report) error {
	if _, err := fmt.Fprintf(out, "Table %s\n", r.Table); err != nil {
		return err
	}
	for _, f := range r.Findings {
		if err := printFinding(out, f); err != nil {
			return err
		}
	}
	return nil
}

func printFinding(out io.Writer, f clickhouse.Finding) error {
	sign := map[clickhouse.Verdict]string{clickhouse.OK: "✓", clickhouse.Warn: "!", clickhouse.Broken: "✗"}[f.Verdict]
	if _, err := fmt.Fprintf(out, "%s %-14s %s\n", sign, f.About, f.Text); err != nil || f.Remedy == "" {
		return err
	}
	_, err := fmt.Fprintf(out, "  %-14s → %s\n", "", f.Remedy)
	return err
}

// progress shows the progress of a watch on a terminal, once a second.
type progress struct {
	out   io.Writer
	watch time.Duration
	next  time.Duration
	shown bool
}

// progressLine returns a progress that shows nothing if out is not a terminal.
func progressLine(out *os.File, watch time.Duration) *progress {
	info, err := out.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return &progress{out: io.Discard, watch: watch}
	}
	return &progress{out: out, watch: watch}
}

func (p *progress) show(elapsed time.Duration, rows int) {
	if elapsed < p.next {
		return
	}
	p.next, p.shown = elapsed+time.Second, true
	_, _ = fmt.Fprintf(p.out, "\rwatching: %s of %s, %d rows ", elapsed.Truncate(time.Second), p.watch, rows)
}

func (p *progress) end() {
	if p.shown {
		_, _ = fmt.Fprint(p.out, "\r\033[K")
	}
}
