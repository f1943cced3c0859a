package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os/user"
	"text/tabwriter"
	"time"

	"tocsin/internal/access"
	"tocsin/internal/postgres"
)

// partitions are the commands for the distribution of tenants over partitions.
type partitions struct {
	List    partitionsList    `cmd:"" default:"withargs" help:"List partitions: how far each is behind, which replica holds it, and how many tenants' rules it evaluates."`
	Tenants partitionsTenants `cmd:"" help:"List tenants, furthest behind first: the partition of each, and how far its rules are behind."`
	Teams   partitionsTeams   `cmd:"" help:"List teams, furthest behind first: the owners of enabled rules, and how far these are behind."`
	Isolate partitionsIsolate `cmd:"" help:"Isolate a tenant in a separate partition, so that it neither delays others nor is delayed by them."`
	Join    partitionsJoin    `cmd:"" help:"End the separate partition of a tenant."`
	Count   partitionsCount   `cmd:"" help:"Change the number of partitions that the tenants are distributed over."`
}

// withPartitions opens the database while f runs.
func withPartitions(ctx context.Context, url string, f func(*postgres.Partitions) error) error {
	if _, err := postgres.CheckSchema(ctx, url); err != nil {
		return err
	}
	db, err := postgres.Open(ctx, url, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	return f(db.Partitions())
}

// asOperator makes the audit log of a tenant name the user of this machine.
func asOperator(ctx context.Context, tenant, operation string) context.Context {
	who := access.Actor{
		Tenant: tenant, Kind: "program", Name: operation, Via: "command", Operation: operation, ObjectKind: "tenant", ObjectID: tenant,
	}
	if u, err := user.Current(); err == nil {
		who.Name += ", by " + u.Username
	}
	return access.As(ctx, who)
}

type partitionsList struct{ database }

// Run prints a table.
func (p *partitionsList) Run(ctx context.Context, out io.Writer) error {
	return withPartitions(ctx, p.PostgresURL, func(store *postgres.Partitions) error {
		list, err := store.List(ctx)
		if err != nil {
			return err
		}
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		if _, err := fmt.Fprintln(table, "PARTITION\tSHARE\tTENANTS\tRULES\tCURSOR\tLAG\tBACKFILL FROM\tREPLICA"); err != nil {
			return err
		}
		for i := range list {
			if err := printPartition(table, &list[i]); err != nil {
				return err
			}
		}
		return table.Flush()
	})
}

func printPartition(out io.Writer, p *postgres.Partition) error {
	share := fmt.Sprintf("%d of %d", p.Index, p.Of)
	if p.Of == 0 {
		share = "only " + shown(p.Tenant)
	}
	at, lag, backfill := "-", "-", "-"
	switch {
	case p.CursorErr != nil:
		at = "cannot be read"
	case p.Cursor != nil:
		at, lag = p.Cursor.StartTime().Format(time.RFC3339Nano), p.Lag.Round(time.Millisecond).String()
	}
	if p.Backfill != nil {
		backfill = time.Unix(0, p.Backfill.FromNS).UTC().Format(time.RFC3339)
	}
	_, err := fmt.Fprintf(out, "%d\t%s\t%d\t%d\t%s\t%s\t%s\t%s\n", p.Number, share, p.Tenants, p.Rules, at, lag, backfill, shown(cmp.Or(p.Owner, "-")))
	return err
}

type partitionsTenants struct{ database }

// Run prints a table.
func (p *partitionsTenants) Run(ctx context.Context, out io.Writer) error {
	return withPartitions(ctx, p.PostgresURL, func(store *postgres.Partitions) error {
		list, err := store.Tenants(ctx)
		if err != nil {
			return err
		}
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		if _, err := fmt.Fprintln(table, "TENANT\tPARTITION\tRULES\tBACKFILLING\tLAG\tREPLICA"); err != nil {
			return err
		}
		for _, t := range list {
			if _, err := fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%s\t%s\n", shown(t.Tenant), t.Partition, t.Rules, t.Backfilling, lagText(t.Lag), shown(cmp.Or(t.Owner, "-"))); err != nil {
				return err
			}
		}
		return table.Flush()
	})
}

func lagText(lag *time.Duration) string {
	if lag == nil {
		return "-"
	}
	return lag.Round(time.Millisecond).String()
}

type partitionsTeams struct{ database }

// Run prints a table.
func (p *partitionsTeams) Run(ctx context.Context, out io.Writer) error {
	return withPartitions(ctx, p.PostgresURL, func(store *postgres.Partitions) error {
		list, err := store.Teams(ctx)
		if err != nil {
			return err
		}
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		if _, err := fmt.Fprintln(table, "TENANT\tTEAM\tRULES\tBACKFILLING\tLAG"); err != nil {
			return err
		}
		for _, t := range list {
			if _, err := fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\n", shown(t.Tenant), shown(cmp.Or(t.Team, "-")), t.Rules, t.Backfilling, lagText(t.Lag)); err != nil {
				return err
			}
		}
		return table.Flush()
	})
}

type partitionsIsolate struct {
	database
	Tenant string `arg:"" help:"The tenant."`
}

// Run isolates a tenant.
func (p *partitionsIsolate) Run(ctx context.Context, out io.Writer) error {
	return withPartitions(ctx, p.PostgresURL, func(store *postgres.Partitions) error {
		number, err := store.Isolate(asOperator(ctx, p.Tenant, "tocsin partitions isolate"), p.Tenant)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "Partition %d evaluates the rules of %s from now on, and nothing else.\n", number, p.Tenant)
		return err
	})
}

type partitionsJoin struct {
	database
	Tenant string `arg:"" help:"The tenant."`
}

// Run makes a tenant share a partition.
func (p *partitionsJoin) Run(ctx context.Context, out io.Writer) error {
	return withPartitions(ctx, p.PostgresURL, func(store *postgres.Partitions) error {
		number, err := store.Join(asOperator(ctx, p.Tenant, "tocsin partitions join"), p.Tenant)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "Partition %d evaluates the rules of %s from now on, together with those of others.\n", number, p.Tenant)
		return err
	})
}

type partitionsCount struct {
	database
	Number int `arg:"" help:"The number of partitions, 1 to 1024. Choose more than there are replicas, so that the replicas can share them."`
}

// Run changes the number of partitions.
func (p *partitionsCount) Run(ctx context.Context, out io.Writer) error {
	return withPartitions(ctx, p.PostgresURL, func(store *postgres.Partitions) error {
		if err := store.Count(ctx, p.Number); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "The tenants are distributed over %d partitions from now on. Replicas take them over within seconds.\n", p.Number)
		return err
	})
}
