package storetest

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"tocsin/alerts"
	"tocsin/cursor"
	"tocsin/evaluator"
	"tocsin/evaluator/backlog"
	"tocsin/evaluator/ruleset"
	"tocsin/evaluator/watch"
	"tocsin/internal/retention"
	"tocsin/notify"
)

func laws() map[string]func(l *law) {
	return map[string]func(l *law){
		"a partition stays with its holder until the lease ends": func(l *law) {
			l.equal("b holds beside a", l.hold("b"), 0)
			token := l.at.Token
			l.Advance(leaseFor + time.Second)
			l.equal("b holds after the lease of a", l.hold("b"), 8)
			if l.at.Token == token {
				l.Error("another holder has the same token")
			}
			stale := l.batch(l.rule)
			stale.Token = token
			l.stale(stale)
		},
		"replicas that see each other share partitions": func(l *law) {
			l.beat("b")
			l.equal("b waits", l.hold("b"), 0)
			l.equal("a gives up", l.hold("a"), 4)
			l.equal("b takes", l.hold("b"), 4)
			l.must(l.Evaluation.Release(l.Context(), "b", []int{0, 1, 2, 3, 4, 5, 6, 7}))
			l.equal("a takes what b released", l.hold("a"), 8)
		},
		"a lease that was renewed is valid": func(l *law) {
			for range 4 {
				l.Advance(leaseFor * 2 / 3)
				l.equal("a holds", l.hold("a"), 8)
				l.equal("b holds", l.hold("b"), 0)
			}
		},
		"a replica that dies when the clock is set back holds nothing": func(l *law) {
			l.Advance(-time.Hour)
			l.beat("b")
			l.equal("b holds", l.hold("b"), 8)
		},
		"what a dead replica holds is released":                                  replicaDied,
		"what a replica holds that died when the clock was set back is released": replicaDiedAhead,
		"a commit from another checkpoint writes nothing": func(l *law) {
			for _, spoil := range []func(b *evaluator.Batch){
				func(b *evaluator.Batch) { b.Token++ },
				func(b *evaluator.Batch) { b.Revision-- },
				func(b *evaluator.Batch) { b.Revision++ },
				func(b *evaluator.Batch) { b.RulesRevision-- },
			} {
				l.commit(l.batch())
				b := l.batch(l.rule)
				spoil(&b)
				l.stale(b)
				l.equal("alert", l.Alert(b.Instances[0].ID), alerts.State(""))
			}
		},
		"a change of a rule makes commits by its former version stale": func(l *law) {
			b := l.batch(l.rule)
			l.rule.Name = "another name"
			_, err := l.UpdateRule(l.rule)
			l.must(err)
			l.stale(b)
			l.hold("a")
			l.commit(l.batch(l.rule))
		},
		"an alert is raised once, with its notifications": func(l *law) {
			b := l.batch(l.rule)
			done := l.commit(b)
			l.equal("alerts written", len(done.Inserted), 1)
			l.equal("notifications written", done.Notifications[l.webhook], 1)
			b.Revision = l.at.Revision
			done = l.commit(b)
			l.equal("alerts written again", len(done.Inserted), 0)
			l.equal("notifications written again", done.Notifications[l.webhook], 0)
			l.equal("claimed", len(l.claim("a", 8)), 1)
		},
		"a commit that is refused writes nothing": func(l *law) {
			b := l.batch(l.rule, l.rule)
			b.Notifications[1].WebhookID = uuid.UUID{9}
			if _, err := l.Evaluation.Commit(l.Context(), b); !errors.Is(err, evaluator.ErrRefused) {
				l.Errorf("Commit = %v, want ErrRefused", err)
			}
			l.equal("alerts", l.Alerts(), 0)
			l.commit(l.batch(l.rule)) // the revision has not moved
		},
		"progress is read as it was written": func(l *law) {
			b := l.batch()
			b.Cursor = &cursor.Position{StartTimeNS: 1_795_244_520_123_456_789, ExecutionID: "a|b\x00\xffé"}
			b.Backfill = &backlog.Mark{FromNS: -5, CursorNS: 7}
			b.Watch = watch.State{SinceNS: -1, UntilNS: 1_795_244_520_123_456_789, LateNS: 3, JudgedNS: 4, Shown: 5}
			until := cursor.Position{StartTimeNS: 12, ExecutionID: "z"}
			b.Backfills = []ruleset.Backfill{{RuleID: l.rule.ID, At: *b.Cursor, Until: &until, Failing: true, Refused: &cursor.Range{FromNS: -3, ToNS: 4}}}
			l.commit(b)
			l.hold("a")
			if *l.at.Cursor != *b.Cursor || *l.at.Backfill != *b.Backfill || l.at.Watch != b.Watch {
				l.Errorf("checkpoint %+v", l.at)
			}
			set := l.rules(0)
			if got := set.Backfills; len(got) != 1 || got[0].At != *b.Cursor || *got[0].Until != until || !got[0].Failing || got[0].Refused == nil || *got[0].Refused != *b.Backfills[0].Refused {
				l.Errorf("backfills %+v", got)
			}
			b = l.batch()
			b.Backfills = l.caughtUp()
			l.commit(b)
			l.equal("backfills left", len(l.rules(0).Backfills), 0)
		},
		"a rule that is armed begins by itself, behind its look-back": func(l *law) {
			set := l.rules(0)
			l.equal("rules", len(set.Rules), 1)
			l.equal("backfills", len(set.Backfills), 1)
			const hour = int64(time.Hour)
			l.equal("beginning", set.Backfills[0].At.StartTimeNS, l.rule.ArmedSinceNS-hour-backlog.WaitNS(hour))
			l.equal("until", set.Backfills[0].Until, (*cursor.Position)(nil))
		},
		"an edit of the scope has the former condition decide on what ended before": func(l *law) {
			was := l.rule
			l.rule.Scope.Applications = []string{"billing"}
			edited, err := l.UpdateRule(l.rule)
			l.must(err)
			set := l.rules(was.Version)
			r := set.Rules[0].Rule
			if len(r.Former) != 1 || r.Former[0].FromNS != was.ArmedSinceNS || r.Former[0].ToNS != edited.ArmedSinceNS || len(r.Former[0].Scope.Applications) != 0 {
				l.Errorf("former conditions %+v", r.Former)
			}
			if edited.ArmedSinceNS < was.ArmedSinceNS {
				l.Error("armed before it was")
			}
		},
		"an edit ends the failure of a rule, and what was refused with it": func(l *law) {
			b := l.batch()
			until := cursor.Position{StartTimeNS: 12}
			b.Backfills = []ruleset.Backfill{{RuleID: l.rule.ID, At: cursor.Position{StartTimeNS: 5}, Until: &until, Failing: true, Refused: &cursor.Range{FromNS: 3, ToNS: 4}}}
			b.Health = failing(l.rule.ID, "no")
			l.commit(b)
			l.rule.TitleTemplate = "another"
			_, err := l.UpdateRule(l.rule)
			l.must(err)
			set := l.rules(0)
			if got := set.Backfills; len(got) != 1 || got[0].Failing || got[0].Refused != nil || got[0].At != b.Backfills[0].At {
				l.Errorf("backfills %+v", got)
			}
		},
		"another text changes no condition": func(l *law) {
			was := l.rule
			l.rule.TitleTemplate = "another"
			edited, err := l.UpdateRule(l.rule)
			l.must(err)
			l.equal("armed since", edited.ArmedSinceNS, was.ArmedSinceNS)
			l.equal("former conditions", len(l.rules(1).Rules[0].Rule.Former), 0)
		},
		"a longer look-back of a rule that nothing was read for reaches as far before its arming": func(l *law) {
			from := func() int64 { return l.rules(0).Backfills[0].At.StartTimeNS }
			was, back := from(), int64(l.rule.LookBackSeconds)*int64(time.Second)
			l.Advance(time.Hour)
			l.rule.LookBackSeconds = 7200
			edited, err := l.UpdateRule(l.rule)
			l.must(err)
			l.rule = edited
			longer := 2 * int64(time.Hour)
			l.equal("it begins", from(), was-(longer+backlog.WaitNS(longer))+(back+backlog.WaitNS(back)))
			l.rule.LookBackSeconds = 3600
			_, err = l.UpdateRule(l.rule)
			l.must(err)
			l.equal("after a shorter one", from(), was-(longer+backlog.WaitNS(longer))+(back+backlog.WaitNS(back)))
		},
		"a longer look-back has the rule read what it reaches": func(l *law) {
			b := l.batch()
			b.Backfills = l.caughtUp()
			l.commit(b)
			from := func() int64 {
				set := l.rules(0)
				if len(set.Backfills) != 1 {
					return 0
				}
				if until := set.Backfills[0].Until; until != nil {
					l.Errorf("it reads no further than %v", *until)
				}
				return set.Backfills[0].At.StartTimeNS
			}
			edit := func(seconds int) {
				l.rule.LookBackSeconds = seconds
				edited, err := l.UpdateRule(l.rule)
				l.must(err)
				l.rule = edited
			}
			const hour = int64(time.Hour)
			edit(1800)
			l.equal("after a shorter one", from(), int64(0))
			edit(7200)
			first := b.Cursor.StartTimeNS - 2*hour - backlog.WaitNS(2*hour)
			l.equal("after a longer one", from(), first)
			edit(3600)
			edit(3700)
			l.equal("after others", from(), first)
			l.hold("a")
			b = l.batch()
			b.Backfill = &backlog.Mark{FromNS: 5, CursorNS: b.Cursor.StartTimeNS - 7*hour}
			b.Backfills = l.caughtUp()
			l.commit(b)
			edit(7200)
			l.equal("where the look-back is counted from before", from(), b.Cursor.StartTimeNS-9*hour-backlog.WaitNS(2*hour))
		},
		"disabling forgets, and enabling arms again": func(l *law) {
			before := l.at.RulesRevision
			_, err := l.EnableRule(l.rule.ID, false)
			l.must(err)
			set := l.rules(before)
			if len(set.Removed) != 1 || len(set.Rules) != 0 || len(set.Backfills) != 0 || set.Revision <= before {
				l.Errorf("after disabling: %+v", set)
			}
			again, err := l.EnableRule(l.rule.ID, true)
			l.must(err)
			if again.ArmedSinceNS <= l.rule.ArmedSinceNS {
				l.Error("it was not armed again")
			}
			set = l.rules(set.Revision)
			l.equal("rules", len(set.Rules), 1)
			l.equal("backfills", len(set.Backfills), 1)
		},
		"a failure is announced once, and its end once": func(l *law) {
			fail := func(problem string) int {
				b := l.batch()
				b.Health = failing(l.rule.ID, problem)
				return l.commit(b).Notifications[l.operators]
			}
			end := func(problem string) int {
				b := l.batch()
				b.Health = map[uuid.UUID]ruleset.Health{l.rule.ID: {Problem: problem}}
				return l.commit(b).Notifications[l.operators]
			}
			l.equal("announced", fail("no"), 1)
			l.equal("announced again", fail("no, no"), 0)
			l.equal("recorded", l.rules(0).Rules[0].Problem, "no, no")
			l.equal("its end", end("a text is a fallback"), 1)
			l.equal("its end again", end(""), 0)
			l.equal("recorded", l.rules(0).Rules[0].Problem, "")
			l.equal("the next failure", fail("no"), 1)
			l.rule.Name = "edited"
			_, err := l.UpdateRule(l.rule)
			l.must(err)
			l.hold("a")
			l.equal("the next failure after an edit", fail("no"), 1)
		},
		"the source's failure is announced once over all replicas": func(l *law) {
			failed := func(replica string, partition int) int {
				n, err := l.Evaluation.SourceFailed(l.Context(), replica, partition, "no")
				l.must(err)
				return n
			}
			recovered := func(partition int) int {
				n, err := l.Evaluation.SourceRecovered(l.Context(), partition)
				l.must(err)
				return n
			}
			announced := func() []int {
				holding, err := l.Evaluation.Hold(l.Context(), evaluator.HoldRequest{Replica: "a", LeaseFor: leaseFor})
				l.must(err)
				return holding.SourceFailed
			}
			l.equal("of a partition without tenants", failed("a", l.Partition+1), 0)
			l.equal("announced", len(announced()), 0)
			l.equal("by a", failed("a", l.Partition), 1)
			l.equal("by b", failed("b", l.Partition), 0)
			l.equal("announced", announced()[0], l.Partition)
			l.equal("the end of another partition's", recovered(l.Partition+1), 0)
			l.equal("the end", recovered(l.Partition), 1)
			l.equal("the end again", recovered(l.Partition), 0)
			l.equal("announced", len(announced()), 0)
			l.equal("announced again", failed("b", l.Partition), 1)
			l.equal("the end", recovered(l.Partition), 1)
		},
		"an alert whose exchange nothing reads any more goes, and never comes back": func(l *law) {
			const day = 24 * time.Hour
			old := l.batch()
			id := l.add(&old, &l.rule, 1, l.now.Add(-10*day).UnixNano())
			near := l.add(&old, &l.rule, 2, l.now.Add(-30*time.Minute).UnixNano())
			old.Notifications = nil
			old.Backfills = l.caughtUp()
			l.commit(old)
			l.must(l.Resolve(id))
			l.must(l.Resolve(near))
			l.Advance(2 * day)
			l.hold("a")
			result, err := l.Retention.Alerts(l.Context(), retention.Batch{Keep: day, Most: 100})
			l.must(err)
			l.equal("looked at", result.Looked, 2)
			l.equal("deleted", result.Deleted, 1)
			l.equal("the old alert", l.Alert(id), alerts.State(""))
			l.equal("the near alert", l.Alert(near), alerts.Resolved)
			again := l.batch()
			again.Instances = old.Instances[:1]
			l.equal("raised again", len(l.commit(again).Inserted), 0)
		},
		"an alert with a message to be delivered stays": func(l *law) {
			const day = 24 * time.Hour
			b := l.batch()
			id := l.add(&b, &l.rule, 1, l.now.Add(-10*day).UnixNano())
			b.Backfills = l.caughtUp()
			l.commit(b)
			l.must(l.Resolve(id))
			l.Advance(2 * day)
			l.hold("a")
			remove := func() int {
				result, err := l.Retention.Alerts(l.Context(), retention.Batch{Keep: day, Most: 100})
				l.must(err)
				return result.Deleted
			}
			l.equal("deleted", remove(), 0)
			l.settle("a", l.one("a"), notify.Outcome{Verdict: notify.VerdictDelivered, StatusCode: 200})
			l.equal("deleted after the delivery", remove(), 1)
		},
		"what a rule that is behind can still read stays": func(l *law) {
			const day = 24 * time.Hour
			b := l.batch()
			id := l.add(&b, &l.rule, 1, l.now.Add(-10*day).UnixNano())
			b.Notifications = nil
			b.Backfills = []ruleset.Backfill{{RuleID: l.rule.ID, At: cursor.Position{StartTimeNS: l.now.Add(-9 * day).UnixNano()}, Until: b.Cursor}}
			l.commit(b)
			l.must(l.Resolve(id))
			l.Advance(2 * day)
			result, err := l.Retention.Alerts(l.Context(), retention.Batch{Keep: day, Most: 100})
			l.must(err)
			l.equal("deleted", result.Deleted, 0)
		},
		"a message is claimed once, until its lease ends":                                                  deliveryClaimed,
		"a lost claim settles nothing except a success":                                                    deliveryFenced,
		"a renewal keeps a claim":                                                                          deliveryRenewed,
		"a claim names what its webhook no longer wants":                                                   deliveryChecked,
		"a retry becomes due later, and counts":                                                            deliveryRetried,
		"what cannot be rendered is rendered by the next attempt":                                          deliveryUnrendered,
		"the next attempt knows who has a message already":                                                 deliveryReached,
		"a message that is too old is not sent":                                                            deliveryTooOld,
		"the end of an alert is sent to a receiver that keeps state, however old":                          deliveryEndedLate,
		"later messages know what the receiver calls the alert":                                            deliveryReference,
		"the messages of an alert for a webhook go out in order":                                           deliveryOrdered,
		"a receiver that asks for a pause is held, and probed":                                             deliveryHeld,
		"what cannot be rendered ends, and is no probe":                                                    deliveryUnrenderable,
		"one that asks for pauses for too long exhausts messages":                                          deliveryHeldForLong,
		"what waits for other reasons does not end":                                                        deliveryOldWhenHeld,
		"a receiver that is not responding is left alone, and probed":                                      deliveryBroken,
		"a receiver that is gone is disabled":                                                              deliveryGone,
		"what is too much for a webhook is gathered":                                                       deliveryGathered,
		"a digest that is repeated keeps no others from being gathered":                                    deliveryGatheredBefore,
		"a body that nobody was sent is made again":                                                        deliveryNotMade,
		"a digest that is sent again goes before the end of what it lists":                                 deliveryGatheredAgain,
		"what fails again is announced again":                                                              deliveryFailsAgain,
		"a person sends a message again":                                                                   deliveryAgain,
		"a person gives a message up":                                                                      deliveryDiscarded,
		"an alert that holds its group stays":                                                              windowHeldStays,
		"each step of a window alert needs its state":                                                      windowSteps,
		"the end of a window alert reaches each webhook that was notified of it":                           windowEnd,
		"groups of a window rule are apart":                                                                windowGroups,
		"a silence suppresses messages while it is in force":                                               silenceInForce,
		"a silence suppresses what it is about":                                                            silenceMatches,
		"a silence suppresses nothing about Tocsin itself":                                                 silenceHealth,
		"what a silence suppressed is sent if a person says so":                                            silenceRetried,
		"a silence that ends sends one digest of what it suppressed":                                       silenceDigest,
		"a silence that is ended, or edited to end, sends its digest":                                      silenceDigestEnded,
		"a digest of a silence lists its window and nothing else":                                          silenceDigestSwitched,
		"each window of a silence sends its digest":                                                        silenceDigestRecurs,
		"a digest of a silence waits for its webhook":                                                      silenceDigestWaits,
		"retention keeps what an open digest of a silence lists":                                           silenceDigestKept,
		"quiet hours hold what is not critical":                                                            quietHeld,
		"what somebody looks after ends with quiet hours":                                                  quietHandled,
		"quiet hours end just after a snooze":                                                              quietSnoozed,
		"a snooze that ends within quiet hours has its reminder after them":                                quietReminded,
		"quiet hours end in one message about an alert":                                                    quietOnce,
		"the messages of an alert that quiet hours hold wait for each other":                               quietTogether,
		"messages that were given up notify nobody":                                                        quietUnheard,
		"a count resolves what quiet hours kept":                                                           quietWindow,
		"a webhook that was not notified of an alert is not notified of its end":                           quietEnds,
		"an edit of quiet hours moves their end":                                                           quietEdited,
		"quiet hours hold nothing about Tocsin itself":                                                     quietHealth,
		"a step waits while quiet hours hold a message":                                                    quietWaits,
		"steps count from when a webhook is notified":                                                      quietCounts,
		"steps count from when a person sends what is held":                                                quietSentEarly,
		"a step does not wait for quiet hours once they are passed":                                        quietSentLate,
		"a step does not wait for quiet hours that are no more":                                            quietCutShort,
		"a silence that recurs suppresses within its windows":                                              silenceRecurs,
		"a change of the routing policy makes commits stale":                                               policyChanges,
		"rules know the routing policy if they use it":                                                     policyRead,
		"how an alert was routed is stored with it":                                                        routedAlert,
		"an alert of a window rule keeps its route":                                                        routedWindow,
		"an alert escalates step by step":                                                                  escalatesByStep,
		"steps that are late each have their time":                                                         escalatesLate,
		"a step of what somebody looks after is skipped":                                                   escalationSkipped,
		"what is undone ends no escalation":                                                                escalationResumes,
		"an escalation resumes at the first step, whatever is undone later":                                escalationResumesFirst,
		"what has changed since is not undone":                                                             escalationUndone,
		"a replay starts no escalation":                                                                    escalationReplayed,
		"an alert of a window rule escalates while it fires":                                               escalationWindow,
		"an escalation that nobody needs any more is not sent":                                             escalationDiscarded,
		"who has not heard of an alert does not hear of its end":                                           escalationUnheard,
		"a webhook not notified of an alert is not notified of its end":                                    escalationNotMade,
		"an escalation that nobody needs any more is in no digest":                                         escalationGathered,
		"a silence suppresses escalations":                                                                 escalationSilenced,
		"a snooze ends in one reminder":                                                                    snoozeEnds,
		"a snooze that is no more ends in none":                                                            snoozeVoid,
		"a snooze that is extended began when it was first set":                                            snoozeExtended,
		"what is snoozed is not reminded of":                                                               snoozeQuiet,
		"an alert that is too old is resolved":                                                             resolvedByAge,
		"an alert is resolved by evidence once":                                                            resolvedByEvidence,
		"an edit of what resolves alerts voids what was found before":                                      resolutionEdited,
		"a rule whose alerts are resolved is taken by one replica":                                         resolutionTaken,
		"a webhook that was not notified of an alert by the end of quiet hours is not notified of its end": resolvedAfterQuiet,
		"a silence suppresses that an alert was resolved":                                                  resolvedInSilence,
		"a replay advances by commits, and raises nothing twice":                                           replayAdvances,
		"the digests of a replay wait for its end":                                                         replayDigests,
		"a replay that is cancelled raises nothing more":                                                   replayCancelled,
		"a change of what a rule raises stops its replay":                                                  replayStopped,
		"a replay waits, or fails":                                                                         replayFails,
		"a silence suppresses messages of a replay":                                                        replaySilenced,
	}
}

func (l *law) stale(b evaluator.Batch) {
	l.Helper()
	if _, err := l.Evaluation.Commit(l.Context(), b); !errors.Is(err, evaluator.ErrStale) {
		l.Fatalf("Commit = %v, want ErrStale", err)
	}
}

func (l *law) rules(after int64) ruleset.Changed {
	l.Helper()
	set, err := l.Evaluation.Rules(l.Context(), l.Partition, after)
	l.must(err)
	return set
}

// failing is the health of a rule that cannot be evaluated.
func failing(rule uuid.UUID, problem string) map[uuid.UUID]ruleset.Health {
	return map[uuid.UUID]ruleset.Health{rule: {Problem: problem, Failed: true}}
}
