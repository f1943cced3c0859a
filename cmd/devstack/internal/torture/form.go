//go:build unix

package torture

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Form is the environment in which Tocsin runs, with the faults that are possible in it.
type Form string

// The forms.
const (
	// Plain is one Postgres and one ClickHouse.
	Plain Form = "plain"
	// AsynchronousStandby loses confirmed commits: the standby takes over without them.
	AsynchronousStandby Form = "async-standby"
	// SynchronousStandby fails over as well, and loses nothing.
	SynchronousStandby Form = "sync-standby"
	// LaggingReplica has a second ClickHouse, which gets every row later, and a proxy that uses
	// both in turn.
	LaggingReplica Form = "lagging-replica"
	// Pooler has PgBouncer, in transaction mode, in front of Postgres.
	Pooler Form = "pooler"
	// FullDisk has Postgres on a small disk that fills up.
	FullDisk Form = "full-disk"
	// Receivers notifies five services at once, each through its preset.
	Receivers Form = "receivers"
)

// Forms lists all forms, with descriptions.
func Forms() []Form {
	return []Form{Plain, AsynchronousStandby, SynchronousStandby, LaggingReplica, Pooler, FullDisk, Receivers}
}

// About describes a form in a line.
func (f Form) About() string {
	return map[Form]string{
		Plain:               "one Postgres, one ClickHouse",
		AsynchronousStandby: "Postgres fails over to a standby that lacks the commits of the last seconds",
		SynchronousStandby:  "Postgres fails over to a standby that has every confirmed commit",
		LaggingReplica:      "two ClickHouse servers, asked in turn, one of which gets every row 1 to 4 s later",
		Pooler:              "PgBouncer in transaction mode before Postgres (needs pgbouncer)",
		FullDisk:            "Postgres on a small disk that fills up (needs Linux and root)",
		Receivers:           "PagerDuty, Jira Service Management, Slack, e-mail and Jira notified in addition to generic webhooks",
	}[f]
}

// Needs returns what is missing for a form to run here; nil means nothing.
func (f Form) Needs() error {
	switch f {
	case Pooler:
		if _, err := exec.LookPath(poolerProgram); err != nil {
			return errors.New("the program pgbouncer is missing: install the package pgbouncer")
		}
	case FullDisk:
		if runtime.GOOS != "linux" || os.Geteuid() != 0 {
			return errors.New("a small disk can be mounted by root on Linux alone")
		}
	case Plain, AsynchronousStandby, SynchronousStandby, LaggingReplica, Receivers:
	default:
		var known []string
		for _, each := range Forms() {
			known = append(known, string(each))
		}
		return fmt.Errorf("there is no form %q: it is one of %s", f, strings.Join(known, ", "))
	}
	return nil
}

// Exchanges is the default number of exchanges of a run: fewer if each alert has many messages.
func (f Form) Exchanges() int {
	if f == Receivers {
		return 20_000
	}
	return 100_000
}

func (f Form) hasStandby() bool { return f == AsynchronousStandby || f == SynchronousStandby }

// faults are those that only this form has, evenly distributed, some seconds apart.
func (f Form) faults(random *rand.Rand, length time.Duration) []fault {
	special := map[Form]kind{AsynchronousStandby: failOver, SynchronousStandby: failOver, Pooler: crashPooler, FullDisk: fillDisk}[f]
	if special == "" {
		return nil
	}
	count := max(int(length/everySoManyFaults), 1)
	var out []fault
	for i := range count {
		at := 0.1 + 0.8*(float64(i)+0.5+0.4*(random.Float64()-0.5))/float64(count)
		out = append(out, fault{
			atNS: int64(at * float64(length)), kind: special, length: time.Duration(500e6 + random.Int64N(2000e6)),
		})
	}
	slices.SortStableFunc(out, func(a, b fault) int { return cmp.Compare(a.atNS, b.atNS) })
	return out
}

const everySoManyFaults = 6 * time.Second
