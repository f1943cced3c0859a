package peers

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"tocsin/internal/bench/child"
)

// River is the job queue in Postgres; each of its jobs is the same POST.
type River struct {
	// Database is the URL of an empty database.
	Database string
	Post     Post
	// Workers is how many jobs may run at once; the number of connections is the same as for all
	// sides.
	Workers int
}

// postArgs are the arguments of a job: what is to be sent, as in Tocsin's record.
type postArgs struct {
	ID   string `json:"id"`
	Body string `json:"body"`
}

// Kind names the job.
func (postArgs) Kind() string { return "post" }

type postWorker struct {
	river.WorkerDefaults[postArgs]
	post   Post
	client *http.Client
}

// Work sends the message.
func (w *postWorker) Work(ctx context.Context, job *river.Job[postArgs]) error {
	p := w.post
	p.Sample.Body = []byte(job.Args.Body)
	return p.one(ctx, w.client, job.Args.ID)
}

// RunRiver is River in its own process: it inserts the jobs, is ready, waits for
// its parent, starts to work, and works until its parent wants it to end.
//
// The settings are the ones by which River's own bench command reaches its
// rates: many workers, since each fetch takes as many jobs as workers are free;
// the least pause between fetches; and the batch completer, which is the
// driver's default. Jobs are inserted by COPY, before.
func RunRiver(ctx context.Context, parent *child.Parent, r River) (err error) {
	pool, err := pgxpool.New(ctx, r.Database)
	if err != nil {
		return err
	}
	defer pool.Close()
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate River: %w", err)
	}
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, &postWorker{post: r.Post, client: newClient()}); err != nil {
		return err
	}
	client, err := river.NewClient(driver, &river.Config{
		Logger:            slog.New(slog.DiscardHandler),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: r.Workers}},
		FetchCooldown:     time.Millisecond,
		FetchPollInterval: 10 * time.Millisecond,
		Workers:           workers,
	})
	if err != nil {
		return err
	}
	if err := insertJobs(ctx, client, r.Post); err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, "analyze"); err != nil {
		return err
	}
	if err := parent.Say(struct{}{}); err != nil {
		return err
	}
	if err := parent.Wait(); err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	if err := untilEnd(parent); err != nil {
		return err
	}
	return client.StopAndCancel(ctx)
}

func insertJobs[T any](ctx context.Context, client *river.Client[T], p Post) error {
	const page = 5000
	var jobs []river.InsertManyParams
	for n := range p.Count {
		jobs = append(jobs, river.InsertManyParams{Args: postArgs{ID: strconv.Itoa(n), Body: string(p.Sample.Body)}})
		if len(jobs) == page || n == p.Count-1 {
			if _, err := client.InsertManyFast(ctx, jobs); err != nil {
				return fmt.Errorf("insert jobs: %w", err)
			}
			jobs = jobs[:0]
		}
	}
	return nil
}

// RiverWorkers is the number of workers with which River was fastest.
const RiverWorkers = 500

// RiverDone counts the jobs that River has completed.
const RiverDone = `select count(*) from river_job where state = 'completed'`

// StartRiver starts River in a process of its own, with all jobs inserted.
func StartRiver(ctx context.Context, r River) (*child.Process, error) {
	return startWith(ctx, "river", r)
}
