package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"tocsin/notify/bus"
)

// subscription reads as one consumer of the group.
type subscription struct {
	driver *Driver
	// reader has its own connection, which is closed to end a waiting read.
	reader *redis.Client
}

// Next takes over pending messages of others, and then waits for new ones.
func (s *subscription) Next(ctx context.Context) (bus.Batch, error) {
	defer context.AfterFunc(ctx, func() { _ = s.reader.Close() })()
	d := s.driver
	for {
		left, err := s.takeOver(ctx)
		if err != nil || len(left) > 0 {
			return s.batch(left), err
		}
		streams, err := s.reader.XReadGroup(ctx, &redis.XReadGroupArgs{
			Group: group, Consumer: d.Consumer, Streams: []string{d.Stream, ">"}, Count: batch,
			Block: min(d.ClaimAfter, longestBlock),
		}).Result()
		switch {
		case ctx.Err() != nil:
			return bus.Batch{}, ctx.Err()
		case errors.Is(err, redis.Nil):
			if err := s.forget(ctx); err != nil {
				return bus.Batch{}, err
			}
		case err != nil:
			return bus.Batch{}, fmt.Errorf("xreadgroup: %w", err)
		case len(streams) > 0 && len(streams[0].Messages) > 0:
			return s.batch(streams[0].Messages), nil
		}
	}
}

// answerTimeout bounds calls that do not wait for messages.
const answerTimeout = 5 * time.Second

// takeOver claims messages that any consumer read and did not acknowledge in time.
func (s *subscription) takeOver(ctx context.Context) ([]redis.XMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	d := s.driver
	messages, _, err := d.client.XAutoClaim(ctx, &redis.XAutoClaimArgs{
		Stream: d.Stream, Group: group, Consumer: d.Consumer, MinIdle: d.ClaimAfter, Start: "0-0", Count: batch,
	}).Result()
	if err != nil {
		return nil, fmt.Errorf("xautoclaim: %w", err)
	}
	return messages, nil
}

func (s *subscription) forget(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return s.driver.forget(ctx)
}

func (s *subscription) batch(messages []redis.XMessage) bus.Batch {
	k := kept{driver: s.driver}
	var payloads [][]byte
	for _, m := range messages {
		k.ids = append(k.ids, m.ID)
		// A message without the field is as malformed as an empty one.
		payload, _ := m.Values[field].(string)
		payloads = append(payloads, []byte(payload))
	}
	k.payloads = payloads
	return bus.Batch{Payloads: payloads, Kept: k}
}

// Close ends reading, and removes the consumer unless it holds messages that others are to take
// over.
func (s *subscription) Close(ctx context.Context) {
	_ = s.reader.Close()
	d := s.driver
	pending, err := d.client.XPendingExt(ctx, &redis.XPendingExtArgs{
		Stream: d.Stream, Group: group, Start: "-", End: "+", Count: 1, Consumer: d.Consumer,
	}).Result()
	if err == nil && len(pending) == 0 {
		_ = d.client.XGroupDelConsumer(ctx, d.Stream, group, d.Consumer).Err()
	}
}

// kept are the pending messages of a batch.
type kept struct {
	driver   *Driver
	ids      []string
	payloads [][]byte
}

// Ack acknowledges.
func (k kept) Ack(ctx context.Context) error {
	if err := k.driver.client.XAck(ctx, k.driver.Stream, group, k.ids...).Err(); err != nil {
		return fmt.Errorf("xack: %w", err)
	}
	return nil
}

// GiveBack publishes the messages again and acknowledges them, because a stream cannot take back a
// message from a consumer.
func (k kept) GiveBack(ctx context.Context) error {
	_, err := k.driver.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for _, payload := range k.payloads {
			p.XAdd(ctx, k.driver.add(payload))
		}
		p.XAck(ctx, k.driver.Stream, group, k.ids...)
		return nil
	})
	if err != nil {
		return fmt.Errorf("xadd and xack: %w", err)
	}
	return nil
}
