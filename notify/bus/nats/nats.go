// Package nats is the wake-up bus over NATS with JetStream.
//
// All replicas pull from one durable consumer, so that each message wakes one of
// them. A message that is not acknowledged within AckWait is offered again, to
// any of them. The stream keeps at most Length messages, each for a minute, in
// memory: what is older helps nobody, and what is lost is found by polling.
//
// The connection is made anew for as long as it takes. A server that lost the
// stream is no failure that lasts: the next subscription, or the next message,
// makes it again.
package nats

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tocsin/notify/bus"
)

// Options configures a [Driver]. URL, Stream, Replica and Length are required.
type Options struct {
	// URL is nats://user:password@host:4222, or tls:// with TLS; several may be
	// given, separated by commas.
	URL string
	// Stream names the stream and its subject: letters, digits, - and _.
	Stream string
	// Replica names the connection.
	Replica string
	// Length is the most messages that the stream keeps.
	Length int
	// AckWait is the time after which a message that was not acknowledged is
	// offered again, 30 s by default.
	AckWait time.Duration
}

const (
	// durable is the consumer of all dispatchers.
	durable = "dispatchers"
	maxAge  = time.Minute
	// pull is how long one request for a message stands; its heartbeat tells a
	// server that has forgotten it.
	pull, heartbeat = 20 * time.Second, 5 * time.Second
)

// Driver publishes to the stream and pulls from it. It is safe for concurrent use.
type Driver struct {
	Options
	conn   *nats.Conn
	stream jetstream.JetStream
}

// New begins to connect, and does not wait for it. Its error names the setting
// that cannot be used. The caller closes the driver.
func New(o Options) (*Driver, error) {
	if o.AckWait == 0 {
		o.AckWait = 30 * time.Second
	}
	if err := CheckURL(o.URL); err != nil {
		return nil, err
	}
	conn, err := nats.Connect(o.URL, nats.Name("tocsin "+o.Replica), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(), nats.Timeout(2*time.Second), nats.ReconnectWait(250*time.Millisecond),
		nats.ReconnectJitter(100*time.Millisecond, 500*time.Millisecond),
		// While the server is away publishing fails at once.
		nats.ReconnectBufSize(-1),
		nats.PingInterval(10*time.Second), nats.MaxPingsOutstanding(2),
		// Failures are seen where they matter; by default they are printed.
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		return nil, errURL
	}
	stream, err := jetstream.New(conn)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("JetStream: %w", err)
	}
	return &Driver{Options: o, conn: conn, stream: stream}, nil
}

// errURL does not quote the URL, which may hold a password.
var errURL = errors.New("TOCSIN_BUS_URL is not a URL of NATS, as nats://user:password@host:4222")

// CheckURL returns why a URL is not that of a server, or of several with commas between them, or nil. It connects to nothing.
func CheckURL(addresses string) error {
	for address := range strings.SplitSeq(addresses, ",") {
		address = strings.TrimSpace(address)
		if !strings.Contains(address, "://") {
			address = "nats://" + address
		}
		u, err := url.Parse(address)
		if err != nil || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) || u.Hostname() == "" {
			return errURL
		}
	}
	return nil
}

// Close ends the connection.
func (d *Driver) Close() error {
	d.conn.Close()
	return nil
}

// Publish returns when the stream has the message.
func (d *Driver) Publish(ctx context.Context, payload []byte) error {
	_, err := d.stream.Publish(ctx, d.Stream, payload, jetstream.WithRetryAttempts(0))
	if errors.Is(err, jetstream.ErrNoStreamResponse) {
		if err := d.makeStream(ctx); err != nil {
			return err
		}
		_, err = d.stream.Publish(ctx, d.Stream, payload)
	}
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	return nil
}

func (d *Driver) makeStream(ctx context.Context) error {
	_, err := d.stream.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: d.Stream, Description: "Wake-ups of Tocsin", Subjects: []string{d.Stream},
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld, Storage: jetstream.MemoryStorage,
		MaxMsgs: int64(d.Length), MaxAge: maxAge, MaxMsgSize: 4096,
	})
	if err != nil {
		return fmt.Errorf("make stream: %w", err)
	}
	return nil
}

// Subscribe joins the consumer, which it makes when it is not there.
func (d *Driver) Subscribe(ctx context.Context) (bus.Subscription, error) {
	if !d.conn.IsConnected() {
		return nil, errors.Join(nats.ErrDisconnected, d.conn.LastError())
	}
	if err := d.makeStream(ctx); err != nil {
		return nil, err
	}
	consumer, err := d.stream.CreateOrUpdateConsumer(ctx, d.Stream, jetstream.ConsumerConfig{
		Durable: durable, Description: "Replicas of Tocsin", DeliverPolicy: jetstream.DeliverNewPolicy,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: d.AckWait, MaxDeliver: -1,
	})
	if err != nil {
		return nil, fmt.Errorf("make consumer: %w", err)
	}
	away := d.conn.StatusChanged(nats.DISCONNECTED, nats.RECONNECTING, nats.CLOSED)
	return &subscription{conn: d.conn, consumer: consumer, away: away}, nil
}

// subscription pulls for one replica.
type subscription struct {
	conn     *nats.Conn
	consumer jetstream.Consumer
	// away says that the connection was lost, and with it the request for a message.
	away chan nats.Status
}

// Next pulls one message.
func (s *subscription) Next(ctx context.Context) (bus.Batch, error) {
	for {
		message, err := s.pull(ctx)
		switch {
		case err == nil:
			return bus.Batch{Payloads: [][]byte{message.Data()}, Kept: kept{message}}, nil
		case ctx.Err() != nil:
			return bus.Batch{}, ctx.Err()
		case !errors.Is(err, nats.ErrTimeout) && !errors.Is(err, context.DeadlineExceeded):
			return bus.Batch{}, fmt.Errorf("pull: %w", err)
		}
	}
}

func (s *subscription) pull(ctx context.Context) (jetstream.Msg, error) {
	// The caller may end the pull, but not shorten what the server is asked for.
	request, cancel := context.WithTimeout(context.WithoutCancel(ctx), pull)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	batch, err := s.consumer.Fetch(1, jetstream.FetchContext(request), jetstream.FetchHeartbeat(heartbeat))
	if err != nil {
		return nil, err
	}
	select {
	case message := <-batch.Messages():
		switch {
		case message != nil:
			return message, nil
		case batch.Error() != nil:
			return nil, batch.Error()
		default:
			return nil, nats.ErrTimeout
		}
	case <-s.away:
		return nil, nats.ErrDisconnected
	}
}

// Close ends pulling. A message that the server sends to nobody any more is
// offered again after AckWait.
func (s *subscription) Close(context.Context) { s.conn.RemoveStatusListener(s.away) }

// kept is what is not acknowledged.
type kept struct{ message jetstream.Msg }

// Ack acknowledges, and waits for the server to have it.
func (k kept) Ack(ctx context.Context) error {
	if err := k.message.DoubleAck(ctx); err != nil {
		return fmt.Errorf("ack: %w", err)
	}
	return nil
}

// GiveBack offers the message again, at once.
func (k kept) GiveBack(context.Context) error {
	if err := k.message.Nak(); err != nil {
		return fmt.Errorf("nak: %w", err)
	}
	return nil
}
