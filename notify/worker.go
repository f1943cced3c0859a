package notify

import "time"

const (
	// atWork is how long after the last attempt that it began a replica counts itself
	// among those that work on a backlog: longer than it is told of others.
	atWork = 2 * time.Second
	// leaveFor is how long a backlog on which others are found at work each time is
	// left to them.
	leaveFor = 30 * time.Second
)

// mine returns what is due without the backlogs that are left to other replicas.
func (g *gate) mine(due []Limits, replica string, now time.Time) []Limits {
	g.mu.Lock()
	defer g.mu.Unlock()
	mine := make([]Limits, 0, len(due))
	for i := range due {
		l := g.lane(due[i].WebhookID)
		if l.left = l.stocks(&due[i]) && l.leaves(due[i].Worker, replica, now); !l.left {
			mine = append(mine, due[i])
		}
	}
	return mine
}

// leaves tells whether a backlog is left to whom it is told to be worked on by. Of
// those at work the first by name goes on, so that not all leave it to one another.
func (l *lane) leaves(worker, replica string, now time.Time) bool {
	switch {
	case worker == "":
		l.since = time.Time{}
		return false
	case worker == replica, replica < worker && now.Sub(l.began) < atWork:
		return false
	}
	if l.since.IsZero() {
		l.since = now
	}
	return now.Sub(l.since) < leaveFor
}
