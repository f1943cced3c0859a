//go:build unix

package torture

import (
	"cmp"
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
	// Form is what Tocsin runs on; Plain by default.
	Form Form
	// Exchanges is how many there are, and Length how long they keep coming.
	Exchanges int
	Length    time.Duration
	// Timeout is how long the end may take to come to rest, and a rule to alert all that is visible before it is disabled;
	// five minutes and the length by default, which a busy machine may need.
	Timeout time.Duration
	// WebhookTimeout bounds an attempt, 3 s by default.
	WebhookTimeout time.Duration
	// Replicas is how many processes of Tocsin there are, at most and by default three. The faults of those that there are
	// not are left out.
	Replicas int
	// Calm leaves out every fault and misdeed.
	Calm bool

	// LookBackOff gives rules a look-back of 0, and still demands what their look-back promises.
	LookBackOff bool

	Programs Programs
	// Devstack is the program that serves ClickHouse, ClickHouse its engine, PostgresBin the directory of Postgres.
	Devstack, ClickHouse, PostgresBin string
	// Dir is an empty directory for data and logs, which Postgres's user may enter.
	Dir string
	// Log gets a line for each thing that happens; nil is silence.
	Log io.Writer
	// Progress gets a line now and then that says how far the run has come; nil is silence.
	Progress func(string)
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

	postgres  *postgres
	pooler    *pooler
	disk      *disk
	source    *source
	receiver  *receiver
	replicas  []*replica
	disturbed disturbances
	tally     tally
	// editing is held while a person edits a rule, and by a failover that loses what was edited meanwhile.
	editing sync.Mutex
	// rested is when everything had come to rest; the zero time if it did not.
	rested time.Time

	// stopReplicas ends the replicas, and running waits for that.
	stopReplicas context.CancelFunc
	running      sync.WaitGroup

	printing sync.Mutex
}

// logf writes a line about what happens.
func (w *world) logf(format string, args ...any) {
	if w.options.Log == nil {
		return
	}
	w.printing.Lock()
	defer w.printing.Unlock()
	_, _ = fmt.Fprintf(w.options.Log, "%7.2fs  %s\n", w.elapsed().Seconds(), fmt.Sprintf(format, args...))
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
	if o.Timeout == 0 {
		o.Timeout = 5*time.Minute + o.Length
	}
	o.Replicas = min(cmp.Or(o.Replicas, replicas), replicas)
	w := &world{options: o, plan: newPlan(&o)}
	w.truth = &truth{exchanges: slices.Clone(w.plan.exchanges), seen: make([]span, len(w.plan.exchanges)), handled: map[string][]string{}, acknowledged: map[string]span{}}
	var starting errgroup.Group
	starting.Go(func() (err error) {
		if o.Form == FullDisk {
			if w.disk, err = newDisk(&o); err != nil {
				return err
			}
		}
		if w.postgres, err = startPostgres(ctx, &o); err != nil || o.Form != Pooler {
			return err
		}
		w.pooler, err = startPooler(ctx, &o, w.postgres.addresses()[0])
		return err
	})
	starting.Go(func() (err error) {
		w.source, err = startSource(ctx, &o)
		return err
	})
	starting.Go(func() (err error) {
		if w.receiver, err = startReceiver(&o); err != nil || o.Form != Receivers {
			return err
		}
		return w.receiver.addressPresets(o.Programs.Receivers, o.Dir)
	})
	if err := starting.Wait(); err != nil {
		return w, err
	}
	for i := range o.Replicas {
		program := o.Programs.Tocsin
		if i == jumping {
			program = o.Programs.Jumping
		}
		r, err := newReplica(&o, i, program, o.Dir, w)
		if r != nil {
			w.replicas = append(w.replicas, r)
		}
		if err != nil {
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
	if w.pooler != nil {
		migrate.Env = append(slices.Clip(migrate.Env), "TOCSIN_POSTGRES_URL="+postgresURL(w.postgres.addresses()[0]))
	}
	if said, err := migrate.CombinedOutput(); err != nil {
		return fmt.Errorf("tocsin migrate: %w: %s", err, said)
	}
	if err := w.postgres.query(ctx, func(conn *pgx.Conn) error { return recordClaims(ctx, conn) }); err != nil {
		return fmt.Errorf("record claims: %w", err)
	}
	ddl, err := exec.CommandContext(ctx, w.options.Programs.Tocsin, "source", "ddl").Output()
	if err != nil {
		return fmt.Errorf("tocsin source ddl: %w", err)
	}
	return w.source.prepare(ctx, string(ddl))
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
	w.logf("seed %d: %d exchanges within %v, %d faults", w.options.Seed, len(w.plan.exchanges), w.options.Length, len(w.plan.faults))
	all, working := errgroup.WithContext(ctx)
	all.Go(func() error { return w.writeAll(working) })
	if w.options.Progress != nil {
		go w.tellProgress(ctx)
	}
	all.Go(func() error { return operator.work(working) })
	all.Go(func() error { return w.breakAll(working) })
	if w.options.Form == Receivers {
		all.Go(func() error { return operator.handle(working) })
	}
	if w.options.Form.hasPolicy() {
		all.Go(func() error { return operator.keepSilence(working) })
	}
	if w.options.escalates() {
		all.Go(func() error { return operator.lookAfter(working) })
	}
	if w.options.Form.replays() && w.options.Exchanges >= enoughToCount {
		all.Go(func() error { return operator.replayAll(working) })
	}
	if w.options.Form.hasQuietHours() {
		all.Go(func() error { return operator.keepQuiet(working) })
	}
	if err := all.Wait(); err != nil {
		return err
	}
	if err := w.source.complete(ctx, len(w.truth.exchanges)); err != nil {
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
		r.postgres.close()
		r.clickHouse.close()
		errs = append(errs, r.log.Close())
	}
	if w.receiver != nil {
		errs = append(errs, w.receiver.stop(ctx))
	}
	if w.source != nil {
		errs = append(errs, w.source.stop(ctx))
	}
	if w.pooler != nil {
		errs = append(errs, w.pooler.stop(ctx))
	}
	if w.postgres != nil {
		errs = append(errs, w.postgres.stop(ctx))
	}
	if w.disk != nil {
		errs = append(errs, w.disk.unmount())
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
