// Command bench measures Tocsin against what the machine can do and against comparable programs,
// and writes the results.
//
// It needs the databases that devstack starts, the program tocsin, and Linux, whose /proc shows
// what each process used:
//
//	make bench          everything, some 35 minutes, into docs/performance
//	make bench-quick    some minutes that show that everything works
//	make bench-redraw   the tables and plots again, from the results in docs/performance
//
// It is a module of its own, because the product does not need the programs that it is compared
// with. docs/performance.md describes how it measures.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"tocsin/internal/bench/child"
	"tocsin/internal/bench/lab"
	"tocsin/internal/bench/live"
	"tocsin/internal/bench/peers"
	"tocsin/internal/bench/product"
	"tocsin/internal/bench/receiver"
	"tocsin/internal/bench/report"
	"tocsin/internal/bench/speed"
	"tocsin/internal/bench/strain"
	"tocsin/internal/bench/trial"
)

type cli struct {
	Run      run       `cmd:"" default:"withargs" help:"Measure."`
	Redraw   redraw    `cmd:"" help:"Write the tables and plots of recorded results again."`
	Receiver receive   `cmd:"" hidden:"" help:"Be the receiver."`
	Post     postTask  `cmd:"" hidden:"" help:"Be the floor."`
	River    riverJob  `cmd:"" hidden:"" help:"Be River."`
	Outbox   outboxJob `cmd:"" hidden:"" help:"Be the bare outbox."`
}

type run struct {
	Only   []string `help:"Workloads to run, as B2,B4; all by default, and then nothing of a former run is kept." placeholder:"ID"`
	Quick  bool     `help:"Small and short: shows that everything works."`
	Trials int      `help:"Trials of what is compared; 5, or 1 in a quick run." placeholder:"N"`
	Soak   bool     `help:"Have the soak take half an hour instead of a minute or two."`
	Huge   bool     `help:"Have the history go up to 100,000,000 exchanges."`
	Tocsin string   `help:"The program tocsin." default:"../../bin/tocsin" type:"path"`
	Root   string   `help:"The checkout." default:"../.." type:"path"`
	Out    string   `help:"Directory for the results, where those of workloads that are not run stay; without it they are only printed." type:"path" placeholder:"DIR"`
}

// errNotWhole is returned if a workload was refused.
var errNotWhole = errors.New("some workloads were refused; their figures are worth nothing")

// Run measures.
func (r *run) Run(ctx context.Context) (err error) {
	began := time.Now()
	out := report.Run{Machine: report.Describe(ctx, r.Root, began)}
	chosen, err := r.chosen()
	if err != nil {
		return err
	}
	if r.Trials == 0 {
		r.Trials = 5
		if r.Quick {
			r.Trials = 1
		}
	}
	engines, err := product.Open(ctx, r.Tocsin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engines.Close(context.WithoutCancel(ctx))) }()
	m := &out.Machine
	m.Quick, m.Trials = r.Quick, r.Trials
	if m.Postgres, m.ClickHouse, err = engines.Versions(ctx); err != nil {
		return err
	}
	if m.Durable, err = engines.Durable(ctx); err != nil {
		return err
	}
	bench, end, err := r.bench(ctx, engines, m)
	if err != nil {
		return err
	}
	defer end()
	if r.Out != "" && len(r.Only) > 0 {
		former, err := report.Read(filepath.Join(r.Out, resultsJSON))
		if err != nil {
			return err
		}
		var again []string
		for _, each := range chosen {
			again = append(again, each.IDs...)
		}
		out.Keep(former, again)
	}
	fmt.Printf("%s, %d cores, load %.2f, commit %s\n", m.Processor, m.Cores, m.Load, m.Commit)
	refused := false
	for _, each := range chosen {
		results, err := measure(ctx, bench, each)
		if err != nil {
			return err
		}
		for i := range results {
			refused = refused || results[i].Refused != ""
			fmt.Print(results[i].Text())
		}
		out.Results = append(out.Results, results...)
		out.Sort()
		if r.Out == "" {
			continue
		}
		// After each workload, so that a run that is interrupted leaves its results so far.
		if err := write(&out, r.Out); err != nil {
			return err
		}
	}
	fmt.Printf("\n%d results in %.0f s\n", len(out.Results), time.Since(began).Seconds())
	if refused {
		return errNotWhole
	}
	return nil
}

func (r *run) chosen() ([]lab.Workload, error) {
	all := slices.Concat(speed.Workloads(), strain.Workloads(), live.Workloads())
	if len(r.Only) == 0 {
		return all, nil
	}
	known := map[string]bool{}
	var chosen []lab.Workload
	for _, each := range all {
		for _, id := range each.IDs {
			known[id] = true
		}
		if slices.ContainsFunc(each.IDs, func(id string) bool { return slices.Contains(r.Only, id) }) {
			chosen = append(chosen, each)
		}
	}
	for _, id := range r.Only {
		if !known[id] {
			return nil, fmt.Errorf("there is no workload %s", id)
		}
	}
	return chosen, nil
}

// bench starts what all workloads share.
func (r *run) bench(ctx context.Context, engines *product.Engines, m *report.Machine) (*lab.Bench, func(), error) {
	other, err := child.Self("receiver")
	if err != nil {
		return nil, nil, err
	}
	end := func() { _ = other.Stop(5 * time.Second) }
	var at receiver.Listening
	err = other.Read(ctx, &at)
	if err == nil {
		engines.Authority, err = authorityFile(at.Authority)
	}
	if err != nil {
		end()
		return nil, nil, err
	}
	end = func() { _ = errors.Join(other.Stop(5*time.Second), os.Remove(engines.Authority)) }
	path, version := peers.FindAlertmanager(ctx)
	m.Peers = []string{"River " + riverVersion()}
	if path == "" {
		version = "no Alertmanager on this machine"
	}
	m.Peers = append(m.Peers, version)
	return &lab.Bench{
		Engines: engines, Receiver: receiver.Client{Base: at.Base, Hosts: at.Hosts, HTTP: &http.Client{}}, ReceiverPID: other.PID(), Alertmanager: path,
		Trials: r.Trials, Quick: r.Quick, Soak: r.Soak, Huge: r.Huge,
		Progress: func(text string) { fmt.Fprintln(os.Stderr, "  "+text) },
	}, end, nil
}

// authorityFile writes a certificate to a file for replicas.
func authorityFile(certificate string) (path string, err error) {
	file, err := os.CreateTemp("", "tocsin-bench-*.pem")
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(certificate)
	return file.Name(), errors.Join(err, file.Close())
}

func riverVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "of unknown version"
	}
	for _, d := range info.Deps {
		if d.Path == "github.com/riverqueue/river" {
			return d.Version
		}
	}
	return "of unknown version"
}

// mostRuns is how often a workload is run, at most, until the machine is quiet during it.
const mostRuns = 3

// measure runs a workload, and again if the machine was not quiet. An error of it refuses its
// results, and does not prevent the others from running; only the end of ctx does.
func measure(ctx context.Context, b *lab.Bench, w lab.Workload) ([]report.Result, error) {
	began := time.Now()
	var results []report.Result
	err := trial.ErrNotQuiet
	for run := 1; run <= mostRuns && errors.Is(err, trial.ErrNotQuiet); run++ {
		if run > 1 {
			b.Progress("again: " + err.Error())
		}
		fmt.Fprintf(os.Stderr, "%s %s\n", time.Now().UTC().Format("15:04:05"), strings.Join(w.IDs, ", "))
		results, err = w.Run(ctx, b)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if len(results) == 0 {
		results = []report.Result{{ID: strings.Join(w.IDs, ", "), Title: "not measured"}}
	}
	for i := range results {
		results[i].Took = time.Since(began)
		if err != nil {
			results[i].Refused = err.Error()
		}
	}
	return results, nil
}

// resultsJSON is the file from which a later run takes the results that it does not measure again.
const resultsJSON = "results.json"

// write writes the results into a directory.
func write(out *report.Run, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // documentation
		return err
	}
	plots, err := out.Plots(dir)
	if err != nil {
		return err
	}
	for name, to := range map[string]func(io.Writer) error{
		resultsJSON:  out.JSON,
		"results.md": func(w io.Writer) error { return out.Markdown(w, plots) },
	} {
		file, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := errors.Join(to(file), file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// redraw writes what is derived from results.json: results.md and the plots.
type redraw struct {
	Out string `help:"Directory of the results." type:"path" required:"" placeholder:"DIR"`
}

// Run measures nothing, and needs no databases.
func (r *redraw) Run() error {
	recorded, err := report.Read(filepath.Join(r.Out, resultsJSON))
	if err != nil {
		return err
	}
	if len(recorded.Results) == 0 {
		return fmt.Errorf("%s has no %s with results", r.Out, resultsJSON)
	}
	return write(recorded, r.Out)
}

type receive struct{}

// hosts is the number of receivers over TLS.
const hosts = 202

// Run is the receiver.
func (receive) Run(ctx context.Context, parent *child.Parent) error {
	server, at, err := receiver.Serve(ctx, receiver.New(time.Now), hosts)
	if err != nil {
		return err
	}
	if err := parent.Say(at); err != nil {
		return err
	}
	if err := parent.Wait(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return server.Close()
}

type postTask struct {
	Task string `arg:""`
}

// Run is the floor.
func (p *postTask) Run(ctx context.Context, parent *child.Parent) error {
	return do(ctx, parent, p.Task, peers.RunPost)
}

type riverJob struct {
	Task string `arg:""`
}

// Run is River.
func (r *riverJob) Run(ctx context.Context, parent *child.Parent) error {
	return do(ctx, parent, r.Task, peers.RunRiver)
}

type outboxJob struct {
	Task string `arg:""`
}

// Run is the bare outbox.
func (o *outboxJob) Run(ctx context.Context, parent *child.Parent) error {
	return do(ctx, parent, o.Task, peers.RunOutbox)
}

// do is what a child process of the benchmark does with its task.
func do[T any](ctx context.Context, parent *child.Parent, task string, run func(context.Context, *child.Parent, T) error) error {
	t, err := peers.ReadTask[T](task)
	if err != nil {
		return err
	}
	return run(ctx, parent, t)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var c cli
	k := kong.Parse(&c, kong.Name("bench"), kong.Description("Measures Tocsin."),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(child.NewParent(os.Stdin, os.Stdout)))
	if err := k.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}
