package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"time"

	"tocsin/internal/postgres"
	"tocsin/notify/bus"
	"tocsin/notify/bus/memory"
	"tocsin/notify/bus/nats"
	busofpostgres "tocsin/notify/bus/postgres"
	"tocsin/notify/bus/redis"
)

// BusProvider carries wake-ups between replicas.
type BusProvider string

// The providers. Memory reaches only its own process.
const (
	BusPostgres BusProvider = "postgres"
	BusMemory   BusProvider = "memory"
	BusRedis    BusProvider = "redis"
	BusNATS     BusProvider = "nats"
)

// BusProviders returns every provider.
func BusProviders() []BusProvider { return []BusProvider{BusPostgres, BusMemory, BusRedis, BusNATS} }

// BusOptions says how dispatchers are woken. The zero value is Postgres.
type BusOptions struct {
	// Provider is [BusPostgres] by default.
	Provider BusProvider
	// URL is required by Redis and NATS. For Postgres it is Options.PostgresURL by
	// default; another one to the same database is needed where that leads
	// through a pooler in transaction mode.
	URL string
	// Name is that of the channel, or of the stream: letters, digits, - and _, at
	// most 60; "tocsin-wake-ups" by default.
	Name string
	// Length is the most messages that a stream keeps, 10,000 by default.
	Length int
}

func (o *BusOptions) applyDefaults(postgresURL string) {
	if o.Provider == "" {
		o.Provider = BusPostgres
	}
	if o.URL == "" && o.Provider == BusPostgres {
		o.URL = postgresURL
	}
	if o.Name == "" {
		o.Name = "tocsin-wake-ups"
	}
	if o.Length == 0 {
		o.Length = 10_000
	}
}

// poll is the longest pause of a dispatcher that the bus wakes. What happens in
// other processes does not reach the one in memory.
func (o *BusOptions) poll() time.Duration {
	if o.Provider == BusMemory {
		return time.Second
	}
	return 30 * time.Second
}

func (o *BusOptions) validate() error {
	var errs []error
	if !slices.Contains(BusProviders(), o.Provider) {
		errs = append(errs, fmt.Errorf("TOCSIN_BUS: unknown provider %q; it must be postgres, memory, redis or nats", o.Provider))
	}
	if o.URL == "" && (o.Provider == BusRedis || o.Provider == BusNATS) {
		errs = append(errs, fmt.Errorf("TOCSIN_BUS_URL is not set; TOCSIN_BUS=%s needs the URL of its server", o.Provider))
	}
	if o.URL != "" && o.Provider == BusRedis {
		errs = append(errs, redis.CheckURL(o.URL))
	}
	if o.URL != "" && o.Provider == BusNATS {
		errs = append(errs, nats.CheckURL(o.URL))
	}
	if o.URL != "" && o.Provider == BusMemory {
		errs = append(errs, errors.New("TOCSIN_BUS_URL is set, but TOCSIN_BUS=memory has no server; remove one of them"))
	}
	if !regexp.MustCompile(`^[A-Za-z0-9_-]{1,60}$`).MatchString(o.Name) {
		errs = append(errs, errors.New("TOCSIN_BUS_NAME must be 1 to 60 letters, digits, - and _"))
	}
	if o.Length < 1 {
		errs = append(errs, errors.New("TOCSIN_BUS_LENGTH must be at least 1"))
	}
	return errors.Join(errs...)
}

// openBus opens the bus and connects to nothing yet: a server that is away must
// not keep a replica from starting.
func (a *App) openBus(db *postgres.DB) error {
	driver, err := a.busDriver(db, a.options.Bus.Name)
	if err != nil {
		return err
	}
	a.bus = bus.New(bus.Options{Driver: driver, Logger: a.options.Logger.With(slog.String("part", "wake-up bus")), Observer: a.metrics})
	return nil
}

func (a *App) busDriver(db *postgres.DB, name string) (bus.Driver, error) {
	o := a.options.Bus
	switch o.Provider {
	case BusMemory:
		return memory.New(), nil
	case BusRedis:
		driver, err := redis.New(redis.Options{URL: o.URL, Stream: name, Consumer: a.replica, Length: o.Length})
		if err != nil {
			return nil, err
		}
		a.lifecycle.add("wake-up bus", func(context.Context) error { return driver.Close() })
		return driver, nil
	case BusNATS:
		driver, err := nats.New(nats.Options{URL: o.URL, Stream: name, Replica: a.replica, Length: o.Length})
		if err != nil {
			return nil, err
		}
		a.lifecycle.add("wake-up bus", func(context.Context) error { return driver.Close() })
		return driver, nil
	case BusPostgres:
	}
	return busofpostgres.New(busofpostgres.Options{URL: o.URL, Channel: name, Notifier: db})
}
