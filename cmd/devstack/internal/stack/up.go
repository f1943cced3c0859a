//go:build unix

package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"

	"tocsin/cmd/devstack/internal/demo"
	"tocsin/cmd/devstack/internal/engines"
	"tocsin/cmd/devstack/internal/netport"
	"tocsin/cmd/devstack/internal/pgserver"
	"tocsin/cmd/devstack/internal/slackalike"
)

// database is the name of Tocsin's database in Postgres.
const database = "tocsin"

// UpOptions says how to run everything.
type UpOptions struct {
	// DataDir stores everything between starts.
	DataDir string
	// Reset first deletes the content of DataDir.
	Reset bool
	// Port is the port of the page, which must be free; 0 means that of the last start, or any.
	Port int
	// Tocsin is the program to run; empty means to build it from the checkout.
	Tocsin string
	// Rate is how many exchanges the demo traffic starts a second; 0 means no traffic.
	Rate float64
	// PostgresSettings are added to the server's, such as "work_mem=64MB".
	PostgresSettings []string
	// Terminal says that devstack's standard error is a terminal.
	Terminal bool
}

// up is what Up has started so far.
type up struct {
	opts    UpOptions
	console *Console
	data    *data
	engines engines.Engines
	ending  cleanups

	postgres   *pgserver.Server
	clickHouse *clickHouse
	traffic    *demo.Traffic
	slack      *webServer
	alike      *slackalike.Server
	tocsin     *tocsin
}

// Up runs Tocsin and everything around it until a signal comes, and then stops it in order; a
// second signal kills. A part that ends earlier is started again. ready gets the page's address
// when everything runs.
func Up(ctx context.Context, console *Console, opts UpOptions, ready func(url string)) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := newRelay(func(syscall.Signal) { cancel() })
	defer signals.stop()

	u := &up{opts: opts, console: console}
	defer func() {
		stopCtx, kill := context.WithTimeout(context.WithoutCancel(ctx), stopBound)
		defer kill()
		signals.to(func(syscall.Signal) { kill() })
		stopped := u.ending.run(stopCtx)
		if signals.received() != 0 && errors.Is(err, context.Canceled) {
			err = nil
		}
		err = errors.Join(err, stopped)
	}()

	if err := u.start(ctx); err != nil {
		return err
	}
	ready(u.entrance(ctx))
	<-ctx.Done()
	console.Sayf("stopping; press Ctrl-C again to kill")
	return nil
}

// start starts everything, in the order of dependencies.
func (u *up) start(ctx context.Context) (err error) {
	if u.data, err = openData(u.console, u.opts.DataDir); err != nil {
		return err
	}
	u.ending.add("data directory", func(context.Context) error { return u.data.close() })
	if err := evictTocsin(ctx, u.data); err != nil {
		return err
	}
	if err := checkPort(u.opts.Port); err != nil {
		return err
	}
	if u.opts.Reset {
		if err := u.data.reset(); err != nil {
			return err
		}
	}
	if err := u.data.readSettings(); err != nil {
		return err
	}
	u.engines, err = bringEngines(ctx, u.console, u.opts.Terminal)
	if err != nil {
		return err
	}
	if err := u.startDatabases(ctx); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{
		u.prepareSource, u.startSlack, u.startMailbox, u.startTocsin, u.seed, u.connectButtons, u.startTraffic,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// checkPort returns what is wrong with a requested port.
func checkPort(port int) error {
	if port == 0 {
		return nil
	}
	err := netport.Available(port)
	switch {
	case err == nil:
		return nil
	case netport.Taken(err):
		return fmt.Errorf("port %d is taken: name another one with --port, or none for any", port)
	default:
		return fmt.Errorf("port %d cannot be used: %w: name another one with --port", port, err)
	}
}

func (u *up) startDatabases(ctx context.Context) error {
	program, err := self()
	if err != nil {
		return err
	}
	postgresLog, err := u.openLog("postgres.log")
	if err != nil {
		return err
	}
	clickHouseLog, err := u.openLog("clickhouse.log")
	if err != nil {
		return err
	}
	var postgres, click *supervisor
	var starting errgroup.Group
	starting.Go(func() (err error) {
		postgres, u.postgres, err = supervisePostgres(ctx, u.console, pgserver.Options{
			BinDir:   u.engines.PostgresBin,
			DataDir:  u.data.postgres,
			Port:     u.data.settings.PostgresPort,
			Settings: u.opts.PostgresSettings,
			Log:      postgresLog,
		})
		return err
	})
	starting.Go(func() (err error) {
		click, u.clickHouse, err = superviseClickHouse(ctx, u.console, clickHouseOptions{
			Self:    program,
			Library: u.engines.ChDB,
			DataDir: u.data.path(clickHouseDir),
			Port:    u.data.settings.ClickHousePort,
			Log:     clickHouseLog,
		})
		return err
	})
	err = starting.Wait()
	if postgres != nil {
		u.ending.add("Postgres", postgres.Stop)
	}
	if click != nil {
		u.ending.add("ClickHouse", click.Stop)
	}
	if err != nil {
		return err
	}
	u.data.settings.PostgresPort = u.postgres.Port()
	u.data.settings.ClickHousePort = u.clickHouse.port
	if err := u.data.writeSettings(); err != nil {
		return err
	}
	u.console.Sayf("Postgres on 127.0.0.1:%d", u.postgres.Port())
	u.console.Sayf("ClickHouse on 127.0.0.1:%d", u.clickHouse.port)
	return u.postgres.CreateDatabase(ctx, database)
}

func (u *up) startTocsin(ctx context.Context) error {
	program, err := findTocsin(ctx, u.console, u.opts.Tocsin, u.data.path(binDir))
	if err != nil {
		return err
	}
	port := u.opts.Port
	if port == 0 {
		if port, err = netport.Free(u.data.settings.TocsinPort); err != nil {
			return fmt.Errorf("start tocsin: %w", err)
		}
	}
	key, err := u.data.encryptionKey()
	if err != nil {
		return err
	}
	password, err := u.data.adminPassword()
	if err != nil {
		return err
	}
	log, err := u.openLog("tocsin.log")
	if err != nil {
		return err
	}
	u.tocsin = &tocsin{
		path: program, port: port, data: u.data, log: log,
		env: withVariables(os.Environ(), map[string]string{
			"TOCSIN_POSTGRES_URL":   u.postgres.URL(database),
			"TOCSIN_CLICKHOUSE_URL": u.clickHouse.url(),
			"TOCSIN_LISTEN":         "127.0.0.1:" + strconv.Itoa(port),
			"TOCSIN_PUBLIC_URL":     "http://127.0.0.1:" + strconv.Itoa(port),
			"TOCSIN_ENCRYPTION_KEY": key,
			"TOCSIN_ACCESS":         "sign-in",
			"TOCSIN_ADMIN_EMAIL":    demoAdmin,
			"TOCSIN_ADMIN_PASSWORD": password,
			"TOCSIN_SLACK_API_URL":  u.slack.url() + "/api",
			// The Slack look-alike and the mail server are on loopback, which Tocsin does not call
			// by default.
			"TOCSIN_OUTGOING_ALLOW": "127.0.0.0/8,::1/128",
		}),
	}
	if err := u.tocsin.migrate(ctx); err != nil {
		return err
	}
	supervised, err := supervise(ctx, u.console, "tocsin", u.tocsin.serve)
	if err != nil {
		return err
	}
	u.ending.add("tocsin", supervised.Stop)
	u.console.Sayf("tocsin on 127.0.0.1:%d", port)
	u.data.settings.TocsinPort = port
	return u.data.writeSettings()
}

// openLog opens a log that is closed when everything has stopped.
func (u *up) openLog(name string) (*os.File, error) {
	file, err := openLog(u.data.path(logsDir), name)
	if err != nil {
		return nil, err
	}
	u.ending.add(name, func(context.Context) error { return file.Close() })
	return file, nil
}

// withVariables returns env with some variables set.
func withVariables(env []string, values map[string]string) []string {
	var result []string
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if _, set := values[name]; !set {
			result = append(result, entry)
		}
	}
	for name, value := range values {
		result = append(result, name+"="+value)
	}
	return result
}
