package speed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tocsin/evaluator"
	"tocsin/internal/bench/lab"
	"tocsin/internal/bench/product"
	"tocsin/internal/bench/report"
	"tocsin/internal/bench/trial"
)

const persistPage = 1000

// Sides of B1.
const (
	sideCommit = "Tocsin's commit"
	sideCopy   = "COPY"
	sideShape  = "COPY, indexed"
)

// persist is B1: pages of matches in one commit each, against COPY of the same
// rows. All sides begin with the values in the memory of this process, write the
// same rows of alert and notification, and commit each page durably.
func persist(ctx context.Context, b bench) ([]report.Result, error) {
	p := &persisting{bench: b, pages: lab.Either(b.Quick, 5, 30)}
	sides := []trial.Side{
		{Name: sideCommit, Run: p.commit},
		{Name: sideCopy, Floor: true, Run: p.copyBare},
		{Name: sideShape, Run: p.copyShaped},
	}
	defer p.close(ctx)
	runs, err := trial.Alternate(ctx, sides, b.Trials, b.Progress)
	rate := (*trial.Measure).Rate
	return []report.Result{{
		ID: "B1", Title: "Persist: pages of 1,000 matches, one commit each", Unit: "an alert with its notification",
		Floor: "COPY of the same rows of alert and notification into tables without indexes and constraints, one commit for every 1,000",
		Figures: []report.Figure{
			report.Of(sideCommit, "pairs/s", runs.Of(sideCommit, rate), nil),
			report.Of(sideCopy, "pairs/s", runs.Of(sideCopy, rate), nil),
			report.Of(sideShape+": into the real tables", "pairs/s", runs.Of(sideShape, rate), nil),
			report.Of("commit over COPY", "×", runs.Ratios(sideCommit, sideCopy), report.AtLeast(0.40)),
			report.Of("commit over COPY into the real tables", "×", runs.Ratios(sideCommit, sideShape), nil),
			report.Of("CPU of a commit, all processes", "µs", runs.Of(sideCommit, (*trial.Measure).Micros), nil),
		},
		Notes: []string{
			"The commit writes more than the floor: also the cursor, and the outbox from which dispatchers claim messages.", lab.CPUNotes(runs, sideCommit),
		},
		Bars: lab.Bars(runs, sides), BarsUnit: "pairs/s",
	}}, err
}

type persisting struct {
	bench
	pages int
	// world is that of the present trial, and rows what its commit wrote: the sides
	// that copy it run in the database in which it was committed.
	world  *product.World
	tables []copied
}

// copied is a table and its rows.
type copied struct {
	name    string
	columns []string
	rows    [][]any
}

func (p *persisting) close(ctx context.Context) {
	if p.world != nil {
		if err := p.world.Close(ctx); err != nil {
			p.Progress(err.Error())
		}
		p.world = nil
	}
}

// fresh makes a world for a trial. A commit wants one that is empty; what is
// copied must have been committed, by the commit of this trial or of the last.
func (p *persisting) fresh(ctx context.Context) error {
	p.close(ctx)
	world, err := p.Engines.NewWorld(ctx)
	if err != nil {
		return err
	}
	p.world = world
	hook, err := world.Hook(ctx, p.Receiver.URL("none"), 64, false)
	if err == nil {
		_, err = world.Rule(ctx, []uuid.UUID{hook})
	}
	return err
}

func (p *persisting) measure(work func(page int) error) (trial.Measure, error) {
	used, err := lab.Metered(map[string]int{"client": os.Getpid(), "Postgres": p.Engines.PostgresPID})
	if err != nil {
		return trial.Measure{}, err
	}
	began := time.Now()
	for page := range p.pages {
		if err := work(page); err != nil {
			return trial.Measure{}, err
		}
	}
	elapsed := time.Since(began)
	cpu, err := used()
	return trial.Whole(p.pages*persistPage, elapsed, cpu), err
}

func (p *persisting) commit(ctx context.Context, _ int) (trial.Measure, error) {
	if err := p.fresh(ctx); err != nil {
		return trial.Measure{}, err
	}
	committer, err := p.world.Committer(ctx)
	if err != nil {
		return trial.Measure{}, err
	}
	batches := make([]evaluator.Batch, p.pages)
	for i := range batches {
		batches[i] = committer.Page(persistPage)
	}
	m, err := p.measure(func(page int) error { return committer.Commit(ctx, batches[page]) })
	if err != nil {
		return m, err
	}
	// What the commit says of itself is not believed.
	n, err := p.world.Number(ctx, "select least((select count(*) from alert), (select count(*) from notification))")
	m.Recorded = int(n)
	return m, errors.Join(err, p.read(ctx))
}

// read keeps what was committed.
func (p *persisting) read(ctx context.Context) error {
	p.tables = nil
	for _, name := range []string{"alert", "notification"} {
		columns, selected, err := p.columns(ctx, name)
		if err != nil {
			return err
		}
		rows, err := p.world.Pool.Query(ctx, "select "+selected+" from "+name)
		if err != nil {
			return err
		}
		values, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
		if err != nil {
			return err
		}
		p.tables = append(p.tables, copied{name, columns, values})
	}
	return nil
}

// columns returns the columns of a table that are stored and not generated, as a
// list and for a select; documents as text, so that they are not parsed here.
func (p *persisting) columns(ctx context.Context, table string) (names []string, selected string, err error) {
	rows, err := p.world.Pool.Query(ctx, `
		select column_name::text, data_type = 'jsonb' from information_schema.columns
		where table_schema = 'public' and table_name = $1 and is_generated = 'NEVER' order by ordinal_position`, table)
	if err != nil {
		return nil, "", err
	}
	var name string
	var document bool
	var list []string
	_, err = pgx.ForEachRow(rows, []any{&name, &document}, func() error {
		names = append(names, name)
		if document {
			name += "::text"
		}
		list = append(list, name)
		return nil
	})
	return names, strings.Join(list, ", "), err
}

func (p *persisting) copyBare(ctx context.Context, _ int) (trial.Measure, error) {
	if err := p.ensure(ctx); err != nil {
		return trial.Measure{}, err
	}
	for _, t := range p.tables {
		if err := p.world.Exec(ctx, fmt.Sprintf("drop table if exists bare_%[1]s; create table bare_%[1]s (like %[1]s)", t.name)); err != nil {
			return trial.Measure{}, err
		}
	}
	return p.copyInto(ctx, "bare_")
}

// copyShaped copies into the very tables, emptied before.
func (p *persisting) copyShaped(ctx context.Context, _ int) (trial.Measure, error) {
	if err := p.ensure(ctx); err != nil {
		return trial.Measure{}, err
	}
	for _, t := range slices.Backward(p.tables) {
		if err := p.world.Exec(ctx, "truncate "+t.name+" cascade"); err != nil {
			return trial.Measure{}, err
		}
	}
	return p.copyInto(ctx, "")
}

// ensure makes the rows of a commit, where a trial begins with the copies.
func (p *persisting) ensure(ctx context.Context) error {
	if p.world != nil {
		return nil
	}
	_, err := p.commit(ctx, 0)
	return err
}

func (p *persisting) copyInto(ctx context.Context, prefix string) (trial.Measure, error) {
	m, err := p.measure(func(page int) error {
		return pgx.BeginFunc(ctx, p.world.Pool, func(tx pgx.Tx) error {
			for _, t := range p.tables {
				rows := t.rows[page*persistPage : (page+1)*persistPage]
				if _, err := tx.CopyFrom(ctx, pgx.Identifier{prefix + t.name}, t.columns, pgx.CopyFromRows(rows)); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return m, err
	}
	n, err := p.world.Number(ctx, fmt.Sprintf("select least((select count(*) from %salert), (select count(*) from %snotification))", prefix, prefix))
	m.Recorded = int(n)
	return m, err
}
