package api

import (
	"context"
	"fmt"
)

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
