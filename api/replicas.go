package api

import (
	"context"
	"fmt"
	"time"
)

// Replicas lists the running processes.
type Replicas interface {
	// List returns every replica that has not left and was not forgotten, in the order in which
	// they started. Replicas belong to no tenant.
	List(ctx context.Context) ([]ReplicaRecord, error)
}

// ReplicaRecord is a replica as people see it.
type ReplicaRecord struct {
	ID, Host, Version string
	PID               int
	Roles             []string
	StartedAt, BeatAt time.Time
	// Silent is the time since the last heartbeat, by Postgres's clock.
	Silent time.Duration
	// Partitions are the partitions that the replica holds.
	Partitions []int
	// ClaimedRules is the number of enabled rules of these partitions. ClaimedNotifications is the
	// number of its leases on notifications.
	ClaimedRules, ClaimedNotifications int64
}

// ListReplicas answers GET /replicas.
func (s *server) ListReplicas(ctx context.Context, _ ListReplicasRequestObject) (ListReplicasResponseObject, error) {
	list, err := s.Replicas.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list replicas: %w", err)
	}
	items := make([]Replica, len(list))
	for i, r := range list {
		items[i] = Replica{
			ID: r.ID, Host: r.Host, Pid: int64(r.PID), Version: r.Version, Roles: r.Roles,
			StartedAt: r.StartedAt.UTC(), LastBeatAt: r.BeatAt.UTC(), LastBeatAgeSeconds: r.Silent.Seconds(),
			Alive:        r.Silent < s.DeadAfter,
			Partitions:   listed(r.Partitions),
			ClaimedRules: r.ClaimedRules, ClaimedNotifications: r.ClaimedNotifications,
		}
	}
	return ListReplicas200JSONResponse{Items: items}, nil
}
