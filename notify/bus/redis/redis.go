// Package redis is the wake-up bus over a Redis stream (Redis 6.2 or newer, one
// server or the primary of several).
//
// All replicas read as one consumer group, so that each message wakes one of
// them. A message is pending with the replica that read it until it is
// acknowledged; what a replica that died left pending is taken over by another
// one after ClaimAfter. The stream is cut at about Length messages, read or
// not. A replica that ends removes its consumer; those of replicas that died
// are removed by the others after ForgetAfter.
//
// A server that lost the stream, or the group, is no failure that lasts: the
// next subscription makes both again.
package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"tocsin/notify/bus"
)

// Options configures a [Driver]. URL, Stream, Consumer and Length are required.
type Options struct {
	// URL is redis://user:password@host:6379/0, or rediss:// with TLS.
	URL    string
	Stream string
	// Consumer names this replica.
	Consumer string
	// Length is about how many messages the stream keeps.
	Length int
	// ClaimAfter is the time after which a message that was read and not
	// acknowledged is offered to another replica, 30 s by default.
	ClaimAfter time.Duration
	// ForgetAfter is the silence after which a consumer is removed, 1 h by default.
	ForgetAfter time.Duration
}

const (
	// group is the consumer group of all dispatchers.
	group = "dispatchers"
	// field holds the payload of a message.
	field = "wake_up"
	// batch is the most messages read at once. All of them cause one pass.
	batch = 100
	// longestBlock bounds a read that finds nothing.
	longestBlock = 5 * time.Second
)

// Driver adds to the stream and reads from it. It is safe for concurrent use.
type Driver struct {
	Options
	client *redis.Client
}

// New connects to nothing yet. Its error names the setting that cannot be
// used. The caller closes the driver.
func New(o Options) (*Driver, error) {
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	// The library prints failures that its caller has as errors.
	logging.Disable()
	if o.ClaimAfter == 0 {
		o.ClaimAfter = 30 * time.Second
	}
	if o.ForgetAfter == 0 {
		o.ForgetAfter = time.Hour
	}
	return &Driver{Options: o, client: redis.NewClient(config)}, nil
}

// CheckURL returns why a URL is not that of a server, or nil. It connects to nothing.
func CheckURL(address string) error {
	_, err := (&Options{URL: address}).config()
	return err
}

func (o *Options) config() (*redis.Options, error) {
	config, err := redis.ParseURL(o.URL)
	if err != nil {
		// The error may quote the URL, with its password.
		return nil, errors.New("TOCSIN_BUS_URL must have the form redis://user:password@host:6379/0")
	}
	config.ClientName = "tocsin"
	config.DialTimeout = 2 * time.Second
	// Whoever calls tries again, and knows how long.
	config.MaxRetries = -1
	config.DialerRetries = 1
	config.ContextTimeoutEnabled = true
	config.PoolSize = 2
	config.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return config, nil
}

// Close ends the connections.
func (d *Driver) Close() error { return d.client.Close() }

// Publish appends to the stream and cuts it.
func (d *Driver) Publish(ctx context.Context, payload []byte) error {
	if err := d.client.XAdd(ctx, d.add(payload)).Err(); err != nil {
		return fmt.Errorf("xadd: %w", err)
	}
	return nil
}

func (d *Driver) add(payload []byte) *redis.XAddArgs {
	return &redis.XAddArgs{Stream: d.Stream, MaxLen: int64(d.Length), Approx: true, Values: []any{field, payload}}
}

// Subscribe joins the group, which it makes when it is not there.
func (d *Driver) Subscribe(ctx context.Context) (bus.Subscription, error) {
	err := d.client.XGroupCreateMkStream(ctx, d.Stream, group, "$").Err()
	if err != nil && !strings.HasPrefix(err.Error(), "BUSYGROUP") {
		return nil, fmt.Errorf("xgroup create: %w", err)
	}
	if err := d.forget(ctx); err != nil {
		return nil, err
	}
	config, err := d.config()
	if err != nil {
		return nil, err
	}
	config.PoolSize = 1
	return &subscription{driver: d, reader: redis.NewClient(config)}, nil
}

// forget removes consumers that have been silent for long and hold nothing.
func (d *Driver) forget(ctx context.Context) error {
	consumers, err := d.client.XInfoConsumers(ctx, d.Stream, group).Result()
	if err != nil {
		return fmt.Errorf("xinfo consumers: %w", err)
	}
	for _, c := range consumers {
		if c.Name == d.Consumer || c.Pending > 0 || c.Idle < d.ForgetAfter {
			continue
		}
		// One that is alive after all is made again by its next read.
		if err := d.client.XGroupDelConsumer(ctx, d.Stream, group, c.Name).Err(); err != nil {
			return fmt.Errorf("xgroup delconsumer: %w", err)
		}
	}
	return nil
}
