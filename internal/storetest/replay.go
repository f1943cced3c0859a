package storetest

import (
	"time"

	"github.com/google/uuid"

	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/evaluator/ruleset"
	"tocsin/notify"
	"tocsin/rules"
)

// replay begins a replay of the last hour for the rule, and returns it as the evaluator reads it.
func (l *law) replay(messages ruleset.ReplayMessages) ruleset.Replay {
	l.Helper()
	l.hold("a")
	from := l.now.Add(-time.Hour).UnixNano()
	l.must(l.StartReplay(l.rule.ID, from, l.now.UnixNano(), messages))
	l.hold("a")
	list := l.replays()
	if len(list) != 1 || list[0].RuleID != l.rule.ID || list[0].At != (cursor.Position{StartTimeNS: from}) || list[0].Messages != messages {
		l.Fatalf("replays %+v", list)
	}
	return list[0]
}

func (l *law) replays() []ruleset.Replay {
	l.Helper()
	set, err := l.Evaluation.Rules(l.Context(), l.Partition, 0)
	l.must(err)
	return set.Replays
}

// replayTo returns a commit of a replay that reaches a position, with some alerts, and the ids of
// their notifications.
func (l *law) replayTo(p ruleset.Replay, atNS int64, alerts int) (b evaluator.Batch, messages []uuid.UUID) {
	l.Helper()
	b = l.batch()
	for range alerts {
		l.next++
		l.add(&b, &l.rule, l.next, p.At.StartTimeNS+int64(l.next))
		messages = append(messages, b.Notifications[len(b.Notifications)-1].ID)
	}
	p.At = cursor.Position{StartTimeNS: atNS, ExecutionID: "e"}
	b.Replay = &ruleset.ReplayStep{Replay: p, Matched: alerts}
	return b, messages
}

func replayAdvances(l *law) {
	p := l.replay(ruleset.ReplayEach)
	middle := p.ToNS - time.Minute.Nanoseconds()
	b, messages := l.replayTo(p, middle, 2)
	l.equal("to be sent", l.commit(b).Notifications[l.webhook], 2)
	l.is(messages[0], notify.Pending)
	l.equal("is at", l.replays()[0].At, b.Replay.At)
	again := l.batch()
	again.Instances, again.Notifications, again.Replay = b.Instances, b.Notifications, b.Replay
	done := l.commit(again)
	l.equal("raised again", len(done.Inserted)+done.Notifications[l.webhook], 0)
	matched, raised, state := l.Replay(p.ID)
	l.equal("matched", matched, 4)
	l.equal("raised", raised, 2)
	l.equal("state", state, "RUNNING")
	b, _ = l.replayTo(p, p.ToNS, 0)
	l.commit(b)
	l.equal("left", len(l.replays()), 0)
	_, _, state = l.Replay(p.ID)
	l.equal("state", state, "DONE")
}

func replayDigests(l *law) {
	p := l.replay(ruleset.ReplayDigest)
	b, first := l.replayTo(p, p.At.StartTimeNS+1, 2)
	l.equal("to be sent", l.commit(b).Notifications[l.webhook], 0)
	b, second := l.replayTo(p, p.At.StartTimeNS+2, 1)
	l.commit(b)
	l.is(first[0], notify.Pending)
	l.Advance(time.Hour)
	l.equal("claimed while it is under way", len(l.claim("a", 8)), 0)
	l.hold("a")
	b, _ = l.replayTo(p, p.ToNS, 0)
	l.equal("to be sent at its end", l.commit(b).Notifications[l.webhook], 1)
	d := l.one("a")
	l.equal("digest", d.NotificationID, notify.ID(p.ID, l.webhook, notify.ReasonDigest, 0))
	if d.Digest == nil || d.Digest.Size != 3 {
		l.Fatalf("digest %+v, want one of 3", d.Digest)
	}
	l.settle("a", d, delivered())
	for _, id := range append(first, second...) {
		l.is(id, notify.Delivered, "DELIVERED")
	}
	l.equal("left", len(l.claim("a", 8)), 0)
}

func replayCancelled(l *law) {
	p := l.replay(ruleset.ReplayDigest)
	if l.StartReplay(l.rule.ID, p.At.StartTimeNS, p.ToNS, ruleset.ReplayNone) == nil {
		l.Error("a second replay of the rule began")
	}
	b, messages := l.replayTo(p, p.At.StartTimeNS+1, 1)
	l.commit(b)
	b, _ = l.replayTo(p, p.At.StartTimeNS+2, 1)
	l.must(l.CancelReplay(l.rule.ID, p.ID))
	l.stale(b) // it was read before
	l.hold("a")
	late, _ := l.replayTo(p, p.At.StartTimeNS+2, 1)
	l.stale(late) // its end has not been read
	l.equal("left", len(l.replays()), 0)
	l.is(messages[0], notify.Pending)
	l.equal("sent", l.one("a").NotificationID, notify.ID(p.ID, l.webhook, notify.ReasonDigest, 0))
	_, raised, state := l.Replay(p.ID)
	l.equal("raised", raised, 1)
	l.equal("state", state, "CANCELLED")
	l.must(l.StartReplay(l.rule.ID, p.At.StartTimeNS, p.ToNS, ruleset.ReplayNone))
}

func replayStopped(l *law) {
	p := l.replay(ruleset.ReplayEach)
	l.rule.Name = "another name"
	var err error
	l.rule, err = l.UpdateRule(l.rule)
	l.must(err)
	l.equal("under way after an edit of a text", len(l.replays()), 1)
	l.rule.Filter.Statuses = []rules.Status{rules.Completed}
	l.rule, err = l.UpdateRule(l.rule)
	l.must(err)
	_, _, state := l.Replay(p.ID)
	l.equal("state after another condition", state, "STOPPED")
	l.Advance(time.Second)
	p = l.replay(ruleset.ReplayEach)
	_, err = l.EnableRule(l.rule.ID, false)
	l.must(err)
	_, _, state = l.Replay(p.ID)
	l.equal("state of a rule that is disabled", state, "STOPPED")
	if l.StartReplay(l.rule.ID, p.At.StartTimeNS, p.ToNS, ruleset.ReplayNone) == nil {
		l.Error("a replay of a disabled rule began")
	}
}

func replayFails(l *law) {
	p := l.replay(ruleset.ReplayEach)
	b, _ := l.replayTo(p, p.At.StartTimeNS, 0)
	b.Replay.Problem = "the source is away"
	l.commit(b)
	l.equal("under way", len(l.replays()), 1)
	b, _ = l.replayTo(p, p.At.StartTimeNS, 0)
	b.Replay.Problem, b.Replay.Failed = "no", true
	l.commit(b)
	_, _, state := l.Replay(p.ID)
	l.equal("state", state, "FAILED")
	l.equal("left", len(l.replays()), 0)
}

func replaySilenced(l *law) {
	p := l.replay(ruleset.ReplayDigest)
	id := l.silence("one", 0, orders())
	l.hold("a")
	b, messages := l.replayTo(p, p.At.StartTimeNS+1, 1)
	l.equal("suppressed", l.commit(b).Suppressed, 1)
	l.equal("suppressed by", l.SuppressedBy(messages[0]), id)
	b, _ = l.replayTo(p, p.ToNS, 0)
	l.equal("to be sent", l.commit(b).Notifications[l.webhook], 0)
	l.equal("claimed", len(l.claim("a", 8)), 0)
}
