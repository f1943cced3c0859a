//go:build unix

package torture

import "slices"

// Some webhooks want digests as soon as a few notifications wait, so that many are gathered however fast the machine is.
func digestAbove(hook string) int {
	switch hook {
	case "b":
		return 2
	case operators:
		return 3
	default:
		return 0
	}
}

// checkDigests checks that each notification is sent by one message, and that a digest contains
// exactly the notifications that it gathered, according to what the receiver read. It returns the
// notifications that are in a digest.
func (w *world) checkDigests(report *Report, t *tables, came map[string][]request) map[string]bool {
	byID := map[string]notification{}
	members := map[string][]string{}
	gathered := map[string]bool{}
	for _, n := range t.notifications {
		byID[n.ID] = n
		if n.DigestID == "" {
			continue
		}
		gathered[n.ID] = true
		report.Gathered++
		members[n.DigestID] = append(members[n.DigestID], n.AlertID)
		requests := len(came[n.ID])
		forgotten, _ := w.forgotten(came[n.ID])
		// The outcome of a request that a failover has lost may be stored afterwards.
		if n.Own || requests > forgotten || len(t.attempts[n.ID]) > forgotten {
			report.find(notificationTwice, "notification %s to %s is sent by digest %s and by itself; requests %d, attempts %d",
				n.ID, n.Hook, n.DigestID, requests, len(t.attempts[n.ID]))
		}
	}
	for id, alerts := range members {
		digest, there := byID[id]
		if !there || digest.Reason != aDigest {
			report.find(wrongMessage, "digest %s of %d alerts is none", id, len(alerts))
			continue
		}
		slices.Sort(alerts)
		accepted := slices.ContainsFunc(came[id], func(r request) bool { return r.accepted })
		if !accepted {
			report.find(neverReceived, "digest %s to %s of %d alerts, %s", id, digest.Hook, len(alerts), digest.Status)
		}
		for _, r := range came[id] {
			if r.read && !slices.Equal(r.alertIDs, alerts) {
				report.find(wrongMessage, "digest %s to %s named %d alerts, and gathered %d", id, digest.Hook, len(r.alertIDs), len(alerts))
			}
		}
	}
	return gathered
}
