//go:build unix

package torture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// Options says what to do to whom.
type Options struct {
	Seed uint64
	// Exchanges is how many there are, and Length how long they keep coming.
	Exchanges int
	Length    time.Duration
	// Patience is how long the end may take to come to rest, and a rule to alert all that is visible before it is disabled;
	// five minutes and the length by default, which a busy machine may need.
	Patience time.Duration
	// WebhookTimeout bounds an attempt, 3 s by default.
	WebhookTimeout time.Duration
	// Calm leaves out every fault and misdeed.
	Calm bool

	// LookBackOff gives rules a look-back of 0, and still demands what their look-back promises.
	LookBackOff bool
	// Sabotage is SQL that is run after the migration.
	Sabotage string

	Programs Programs
	// Devstack is the program that serves ClickHouse, ClickHouse its engine, PostgresBin the directory of Postgres.
	Devstack, ClickHouse, PostgresBin string
	// Dir is an empty directory for data and logs, which Postgres's user may enter.
	Dir string
	// Tell gets a line for each thing that happens; nil is silence.
	Tell io.Writer
}

// Run tortures once and reports what the checker found. The error says that the run itself did not work out.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	w, err := newWorld(ctx, o)
	defer func() { err = errors.Join(err, w.close(context.WithoutCancel(ctx))) }()
	if err != nil {
		return nil, err
	}
	if err := w.run(ctx); err != nil {
		return nil, err
	}
	err = w.postgres.query(ctx, func(conn *pgx.Conn) error {
		report, err = w.check(ctx, conn)
		return err
	})
	return report, err
}

// world is everything that runs.
type world struct {
	options Options
	plan    *plan
	truth   *truth
	began   time.Time

	postgres   *postgres
	clickHouse *clickHouse
	receiver   *receiver
	replicas   [replicas]*replica
	disturbed  disturbances

	// stopReplicas ends the replicas, and running waits for that.
	stopReplicas context.CancelFunc
	running      sync.WaitGroup

	telling sync.Mutex
}

// tell writes a line about what happens.
func (w *world) tell(format string, args ...any) {
	if w.options.Tell == nil {
		return
	}
	w.telling.Lock()
	defer w.telling.Unlock()
	_, _ = fmt.Fprintf(w.options.Tell, "%7.2fs  %s\n", w.elapsed().Seconds(), fmt.Sprintf(format, args...))
}

// elapsed is the time since the first exchange could end.
func (w *world) elapsed() time.Duration {
	if w.began.IsZero() {
		return 0
	}
	return time.Since(w.began)
}

// newWorld starts the engines, the receiver and the replicas. What it started is closed by close, also after an error.
func newWorld(ctx context.Context, o Options) (*world, error) {
	if o.Patience == 0 {
		o.Patience = 5*time.Minute + o.Length
	}
	w := &world{options: o, plan: newPlan(&o)}
	w.truth = &truth{exchanges: slices.Clone(w.plan.exchanges), seen: make([]span, len(w.plan.exchanges))}
	var starting errgroup.Group
	starting.Go(func() (err error) {
		w.postgres, err = startPostgres(ctx, o.PostgresBin, o.Dir)
		return err
	})
	starting.Go(func() (err error) {
		w.clickHouse, err = startClickHouse(ctx, o.Devstack, o.ClickHouse, o.Dir)
		return err
	})
	starting.Go(func() (err error) {
		w.receiver, err = startReceiver(&o)
		return err
	})
	if err := starting.Wait(); err != nil {
		return w, err
	}
	for i := range w.replicas {
		program := o.Programs.Tocsin
		if i == jumping {
			program = o.Programs.Jumping
		}
		var err error
		if w.replicas[i], err = newReplica(&o, i, program, o.Dir, w); err != nil {
			return w, err
		}
	}
	if err := w.migrate(ctx); err != nil {
		return w, err
	}
	w.startReplicas(ctx)
	return w, nil
}

// migrate makes the tables of both databases as the product says.
func (w *world) migrate(ctx context.Context) error {
	migrate := exec.CommandContext(ctx, w.options.Programs.Tocsin, "migrate")
	migrate.Env = w.replicas[0].env
	if said, err := migrate.CombinedOutput(); err != nil {
		return fmt.Errorf("tocsin migrate: %w: %s", err, said)
	}
	ddl, err := exec.CommandContext(ctx, w.options.Programs.Tocsin, "source", "ddl").Output()
	if err != nil {
		return fmt.Errorf("tocsin source ddl: %w", err)
	}
	if _, err := w.clickHouse.do(ctx, string(ddl), nil); err != nil {
		return err
	}
	if w.options.Sabotage == "" {
		return nil
	}
	return w.postgres.query(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, w.options.Sabotage)
		return err
	})
}

func (w *world) startReplicas(ctx context.Context) {
	ctx, w.stopReplicas = context.WithCancel(context.WithoutCancel(ctx))
	for _, r := range w.replicas {
		w.running.Go(func() { r.keep(ctx) })
	}
}

// run lets everything happen, brings it to rest and stops the replicas: the tables are what came out.
func (w *world) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	operator := &operator{
		w: w, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, hooks: map[string]string{},
	}
	if err := operator.begin(ctx); err != nil {
		return err
	}
	w.anchor(time.Now().Add(500 * time.Millisecond))
	go w.watchStalls(ctx)
	w.tell("seed %d: %d exchanges within %v, %d faults", w.options.Seed, len(w.plan.exchanges), w.options.Length, len(w.plan.faults))
	all, working := errgroup.WithContext(ctx)
	all.Go(func() error { return w.writeAll(working) })
	all.Go(func() error { return operator.work(working) })
	all.Go(func() error { return w.breakAll(working) })
	if err := all.Wait(); err != nil {
		return err
	}
	if err := w.checkSource(ctx); err != nil {
		return err
	}
	w.rest(ctx)
	w.stopReplicas()
	w.running.Wait()
	return ctx.Err()
}

// anchor turns instants since the beginning of the run into those since the Unix epoch.
func (w *world) anchor(began time.Time) {
	w.began = began
	for i := range w.truth.exchanges {
		w.truth.exchanges[i].startNS += began.UnixNano()
		w.truth.exchanges[i].endNS += began.UnixNano()
	}
}

// close ends what was started, and keeps the directory.
func (w *world) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if w.stopReplicas != nil {
		w.stopReplicas()
		w.running.Wait()
	}
	var errs []error
	for _, r := range w.replicas {
		if r == nil {
			continue
		}
		for _, p := range []*proxy{r.postgres, r.clickHouse} {
			if p != nil {
				p.close()
			}
		}
		errs = append(errs, r.log.Close())
	}
	if w.receiver != nil {
		errs = append(errs, w.receiver.stop(ctx))
	}
	if w.clickHouse != nil {
		errs = append(errs, w.clickHouse.stop(ctx))
	}
	if w.postgres != nil {
		errs = append(errs, w.postgres.stop(ctx))
	}
	return errors.Join(errs...)
}

// Scratch makes a directory for a run that Postgres's user may enter.
func Scratch() (string, error) {
	dir, err := os.MkdirTemp("/tmp", "tocsin-torture-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o711) //nolint:gosec // Postgres may run as another user, who passes through
}
