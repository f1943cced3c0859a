package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tocsin/api"
	"tocsin/internal/lease"
	"tocsin/internal/postgres/pgq"
)

// Replicas stores the rows of replicas.
type Replicas struct{ db *DB }

// Replicas returns the store of replicas.
func (db *DB) Replicas() *Replicas { return &Replicas{db} }

// Beat writes a heartbeat.
func (s *Replicas) Beat(ctx context.Context, replica lease.Replica) error {
	return s.db.leaseQueries.ReplicaBeat(ctx, pgq.ReplicaBeatParams{
		ReplicaID: replica.ID, Host: replica.Host, Pid: int32(replica.PID), Version: replica.Version, Roles: replica.Roles,
	})
}

// ReleaseDead releases the partitions and the notifications that dead replicas hold, in one statement
// each, and deletes the rows of replicas to forget. If it returns an error, it still returns what
// it did. If no replica is dead, it is one statement.
func (s *Replicas) ReleaseDead(ctx context.Context, request lease.DeadRequest) (lease.DeadResult, error) {
	var result lease.DeadResult
	silent, err := s.db.queries.ReplicaSilent(ctx, pgq.ReplicaSilentParams{DeadAfter: request.DeadAfter, Self: request.Self})
	if err != nil {
		return result, fmt.Errorf("find dead replicas: %w", err)
	}
	if !silent {
		return result, nil
	}
	of := func(replica string) *lease.Released {
		i := slices.IndexFunc(result.Released, func(r lease.Released) bool { return r.Replica == replica })
		if i < 0 {
			i = len(result.Released)
			result.Released = append(result.Released, lease.Released{Replica: replica})
		}
		return &result.Released[i]
	}
	partitions, err := s.db.queries.ReplicaReleasePartitions(ctx, pgq.ReplicaReleasePartitionsParams{
		DeadAfter: request.DeadAfter, Self: request.Self,
	})
	for _, row := range partitions {
		of(row.ReplicaID).Partitions = int(row.Partitions)
	}
	if err != nil {
		return result, fmt.Errorf("release partitions: %w", err)
	}
	notifications, err := s.db.queries.ReplicaReleaseNotifications(ctx, pgq.ReplicaReleaseNotificationsParams{
		DeadAfter: request.DeadAfter, Self: request.Self,
	})
	for _, row := range notifications {
		held := of(row.ReplicaID)
		held.Notifications += int(row.Claims)
		held.Webhooks = append(held.Webhooks, row.WebhookID)
	}
	if err != nil {
		return result, fmt.Errorf("release notifications: %w", err)
	}
	forgotten, err := s.db.queries.ReplicaForget(ctx, pgq.ReplicaForgetParams{
		ForgetAfter: request.ForgetAfter, Self: request.Self,
	})
	result.Forgotten = int(forgotten)
	if err != nil {
		return result, fmt.Errorf("delete dead replicas: %w", err)
	}
	return result, nil
}

// Leave releases what a replica holds and deletes its row.
func (s *Replicas) Leave(ctx context.Context, id string) (lease.Released, error) {
	released := lease.Released{Replica: id}
	err := s.db.inTx(ctx, func(q *pgq.Queries) error {
		partitions, err := q.ReplicaReleaseOwnPartitions(ctx, id)
		if err != nil {
			return fmt.Errorf("release partitions: %w", err)
		}
		notifications, err := q.ReplicaReleaseOwnNotifications(ctx, id)
		if err != nil {
			return fmt.Errorf("release notifications: %w", err)
		}
		released = lease.Released{Replica: id, Partitions: int(partitions)}
		for _, row := range notifications {
			released.Notifications += int(row.Claims)
			released.Webhooks = append(released.Webhooks, row.WebhookID)
		}
		return q.ReplicaLeave(ctx, id)
	})
	return released, err
}

// List returns every replica that has a row, in the order in which they started.
func (s *Replicas) List(ctx context.Context) ([]api.ReplicaRecord, error) {
	rows, err := s.db.queries.ReplicaList(ctx)
	if err != nil {
		return nil, fmt.Errorf("list replicas: %w", err)
	}
	list := make([]api.ReplicaRecord, len(rows))
	for i, row := range rows {
		list[i] = api.ReplicaRecord{
			ID: row.Replica.ReplicaID, Host: row.Replica.Host, PID: int(row.Replica.Pid), Version: row.Replica.Version, Roles: row.Replica.Roles,
			StartedAt: row.Replica.StartedAt, BeatAt: row.Replica.BeatAt,
			Silent:       time.Duration(row.SilentSeconds * float64(time.Second)),
			Partitions:   numbers(row.Partitions),
			ClaimedRules: row.ClaimedRules, ClaimedNotifications: row.ClaimedNotifications,
		}
	}
	return list, nil
}

func numbers(list []int32) []int {
	partitions := make([]int, len(list))
	for i, number := range list {
		partitions[i] = int(number)
	}
	return partitions
}
