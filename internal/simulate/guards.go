package simulate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tocsin/internal/simulate/model"
)

// Removal takes a guard away, to show that the simulation notices. A guard of Postgres is a
// switch of its model; one of the product is removed from a copy of its source.
type Removal struct {
	Name string
	// Guard is a guard of the model; empty for one of the product.
	Guard model.Guard
	// ByLaw says that the law of stores notices. What the simulation does never needs the
	// guard, which stands for what settings, clocks and edits may bring.
	ByLaw bool
	// Digests says that nothing but seeds with digests of silences needs it.
	Digests bool
	// Routed says that nothing but seeds with routing policies needs it, Quiet that nothing but seeds with quiet
	// hours does, Resolves that nothing but seeds whose rules resolve alerts does, Events that nothing but seeds whose webhooks
	// choose events does.
	Routed, Quiet, Resolves, Events bool
	// Tests is the package whose tests notice, because the simulation seldom needs the guard; empty for
	// none.
	Tests string
	// File is a source file of the product, Edits what is replaced in it, each found once.
	File  string
	Edits [][2]string
}

// Removals returns all guards that can be taken away.
func Removals() []Removal {
	var list []Removal
	for _, g := range []model.Guard{
		model.AlertOnce, model.CommitRevision, model.CommitAtomic, model.KnownNotNotified,
		model.ClaimExclusive, model.ClaimBegins, model.SettleToken, model.UnknownRecorded, model.BodyFrozen,
		model.DigestMoves, model.ArmedBySource, model.FormerConditions,
		model.RetentionReach, model.RetentionWaiting, model.RetryLeavesClaims,
		model.SilencesObeyed, model.SilencesTenant, model.SilencesEnd, model.PolicyChangesRules,
	} {
		list = append(list, Removal{Name: string(g), Guard: g})
	}
	for _, g := range []model.Guard{
		model.EscalationLocked, model.EscalationMoves, model.EscalationSkips, model.EscalationSnoozed, model.EscalationResumes,
		model.EscalationDiscarded, model.SnoozeLocked, model.SnoozeEnds, model.SnoozeVoid,
	} {
		list = append(list, Removal{Name: string(g), Guard: g, Routed: true})
	}
	for _, g := range []model.Guard{model.QuietHeld, model.QuietCritical, model.QuietHealth, model.QuietLocked, model.QuietMoved} {
		list = append(list, Removal{Name: string(g), Guard: g, Quiet: true})
	}
	for _, g := range []model.Guard{model.SilenceDigestsPlanned} {
		list = append(list, Removal{Name: string(g), Guard: g, Digests: true})
	}
	for _, g := range []model.Guard{model.EscalationWaits, model.EscalationCounts} {
		list = append(list, Removal{Name: string(g), Guard: g, Routed: true, Quiet: true})
	}
	list = append(list, Removal{Name: string(model.EndsHeard), Guard: model.EndsHeard, Resolves: true})
	for _, g := range []model.Guard{model.EventsNotified, model.EventsExpire} {
		list = append(list, Removal{Name: string(g), Guard: g, Events: true})
	}
	for _, g := range []model.Guard{
		// The revision fences most of what the token does; an edit seldom overtakes a commit
		// that its exchanges depend on. The last line takes hundreds of seeds.
		model.CommitToken, model.CommitRules,
		model.RetentionRaises, model.RetentionObeyed, model.FreshToken, model.LeaseExclusive, model.LateSuccess, model.ProbeFirst,
		model.MessagesInOrder, model.WindowOnce, model.StepFrom, model.LongerLookBack, model.ReplayOver,
		// Between two windows of a silence lies a day, in which due digests are looked for.
		model.SilenceDigestsRecur, model.SilenceDigestsEnd,
		model.ClaimToken, model.OwnBeginning, model.ReplaysEscalateNothing, model.EscalationByStep,
		model.ResolvedOnce, model.EditVoidsProof, model.MarkOfEvidence, model.QuietTogether,
	} {
		list = append(list, Removal{Name: string(g), Guard: g, ByLaw: true})
	}
	edit := func(name, file string, edits ...[2]string) {
		list = append(list, Removal{Name: name, File: file, Edits: edits})
	}
	edit("memory-of-another-revision", "evaluator/partition.go", [2]string{"c.RulesRevision < p.at.RulesRevision {\n\t\tp.forget()\n", "c.RulesRevision < p.at.RulesRevision {\n"})
	edit("same-server", "evaluator/read.go", [2]string{"if page.Server == server {", "if page.Server != \"\" {"})
	edit("backfill-mark", "evaluator/commit.go", [2]string{"b.Backfill = p.backlog.Mark(next.judged, next.server)", "b.Backfill = nil"})
	edit("changes-behind-the-cursor", "evaluator/backlog/observe.go", [2]string{"b.left[at] = bucket{seen: now, server: server, seenNS: watermarkNS}", "b.judged[at] = now"})
	edit("source-clock-ahead", "evaluator/observe.go", [2]string{"ahead > mostAhead {", "ahead > 1000*mostAhead {"})
	edit("derived-alert-id", "alerts/id.go", [2]string{"\"crypto/sha256\"", "\"crypto/rand\"\n\t\"crypto/sha256\""},
		[2]string{"h.Write(rule[:])", "_, _ = rand.Read(rule[:4])\n\th.Write(rule[:])"})
	edit("stored-route", "evaluator/window/steps.go", [2]string{"if open != nil && open.Routing != nil {", "if false && open.Routing != nil {"})
	edit("absence-waits-for-what-is-late", "evaluator/watch/watch.go", [2]string{"max(lateLeastNS, s.Watch.LateNS)", "max(lateLeastNS, 0*s.Watch.LateNS)"})
	edit("absence-remembers-lateness", "evaluator/watch/watch.go", [2]string{"known.late = append(known.late, lateness{at.LateNS, now})", "known.late = append(known.late, lateness{0, now})"})
	edit("no-absence-in-a-pause", "evaluator/window/absence.go", [2]string{" || it.CutNS() < p.seen.Watch.SinceNS,", ","})
	edit("tally-inexact", "evaluator/window/counting/sums.go", [2]string{"if slices.Contains(answer.Inexact, some[0].TenantID) {", "if len(answer.Inexact) > len(windows) {"})
	edit("tally-that-takes-long", "evaluator/window/counting/tally.go", [2]string{"p.remember(q.key)\n", "_ = q.key\n"})
	edit("tally-of-a-window", "evaluator/window/counting/sums.go", [2]string{"t.FromNS < w.CutNS() || ", ""})
	edit("derived-notification-id", "notify/id.go", [2]string{"\"crypto/sha256\"", "\"crypto/rand\"\n\t\"crypto/sha256\""},
		[2]string{"hash := sha256.Sum256(key)", "_, _ = rand.Read(key[:4])\n\thash := sha256.Sum256(key)"})
	edit("failing-rule-goes-back", "evaluator/exception.go", [2]string{"At: p.judgedBy(r), Failing: true, Refused", "At: *p.at.Cursor, Failing: true, Refused"})
	edit("refused-by-halves", "evaluator/commit.go", [2]string{"	if err := p.isolate(ctx, &f, ids, err, failed); err != nil {\n		return err\n	}\n", ""})
	edit("armed-since", "rules/judge.go", [2]string{"if ended >= j.armedSinceNS {", "if ended > 0 {"})
	edit("rules-of-another-revision", "evaluator/partition.go", [2]string{"p.rules.Revision == p.at.RulesRevision && p.confirmed == p.at.RulesRevision && !p.reload", "p.rules.Revision > 0"})
	edit("quiet-one-message", "notify/quiet.go", [2]string{"send[i] = !m.Handled && !fires", "send[i] = !m.Handled"})
	edit("quiet-handled", "notify/quiet.go", [2]string{"send[i] = !m.Handled && !fires", "send[i] = !fires"})
	edit("quiet-not-notified", "notify/quiet.go", [2]string{"send[i] = notified", "send[i] = true"})
	edit("steps-in-order", "alerts/routing.go", [2]string{"return a.AfterMinutes - b.AfterMinutes", "return b.AfterMinutes - a.AfterMinutes"})
	edit("evidence-began-later", "evaluator/resolution/evidence.go", [2]string{"c == nil || c.StartTimeNS <= a.EndedNS ||", "c == nil ||"})
	edit("evidence-behind-the-mark", "evaluator/resolution/evidence.go", [2]string{"r.Searched.ToNS-min(max(r.LookBack, leastBehind), mostBehind).Nanoseconds())", "r.Searched.ToNS)"})
	edit("lease-kept", "notify/dispatch/leases.go", [2]string{"			k.renewAll(ctx)\n", ""})
	edit("claim-asked-about", "notify/dispatch/attempt.go", [2]string{"	delivery.Claim = func() error { return d.leases.check(claimOf(delivery)) }\n", ""})
	edit("known-to-have-arrived", "notify/dispatch/attempt.go", [2]string{"	if arrived {\n		// Storing", "	if arrived && a.delivery == nil {\n		// Storing"})
	edit("retention-margin", "internal/retention/retention.go", [2]string{"return atNS - max(lookBack, keep).Nanoseconds() - marginNS", "return atNS + marginNS - marginNS"})
	list = append(list,
		Removal{Name: "replay-keeps-messages", Tests: "tocsin/evaluator", File: "evaluator/replay.go", Edits: [][2]string{{"case r.Wants(e) && (", "case r.Version < 0 && ("}}},
		Removal{Name: "counted-instants", Tests: "tocsin/evaluator/window", File: "evaluator/window/steps.go", Edits: [][2]string{{"					it.changes[i].keepInstants(&newest[next])\n", ""}}},
		Removal{Name: "panic-is-behind-nobody", Tests: "tocsin/evaluator", File: "evaluator/commit.go", Edits: [][2]string{{"return f.panicked[r.ID] })", "return false })"}}},
		Removal{Name: "check-before-the-call", Tests: "tocsin/notify/dispatch", File: "notify/dispatch/attempt.go", Edits: [][2]string{{"for _, webhook := range claimed.Unwanted {", "for _, webhook := range claimed.Unwanted[:0] {"}}},
	)
	return list
}

// Overlay writes the file without its guard into a directory, and returns what the go
// command's flag -overlay takes.
func (r *Removal) Overlay(root, dir string) (string, error) {
	path := filepath.Join(root, r.File)
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the file of a guard: %w", err)
	}
	changed := string(text)
	for _, e := range r.Edits {
		if n := strings.Count(changed, e[0]); n != 1 {
			return "", fmt.Errorf("guard %s: %s holds %d times %q, want once: bring the list of guards in line", r.Name, r.File, n, e[0])
		}
		changed = strings.Replace(changed, e[0], e[1], 1)
	}
	copied := filepath.Join(dir, filepath.Base(r.File))
	if err := os.WriteFile(copied, []byte(changed), 0o600); err != nil {
		return "", fmt.Errorf("write a copy without the guard: %w", err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	text = fmt.Appendf(nil, `{"Replace": {%q: %q}}`, path, copied)
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return "", fmt.Errorf("write the overlay: %w", err)
	}
	return overlay, nil
}
