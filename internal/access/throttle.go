package access

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// Throttle says how long to wait after failed attempts.
type Throttle struct {
	// Free is how many attempts need no pause.
	Free int
	// First is the pause after the next attempt; it doubles up to Most.
	First, Most time.Duration
	// Forget is the time without attempts after which everything is forgotten.
	Forget time.Duration
}

// AccountThrottle is for attempts on one account. Its longest pause is short: it prevents guessing,
// but does not lock a person out for long while somebody else tries passwords for the account.
func AccountThrottle() Throttle {
	return Throttle{Free: 5, First: time.Second, Most: time.Minute, Forget: 24 * time.Hour}
}

// AddressThrottle is for attempts from one address, behind which many people
// may be.
func AddressThrottle() Throttle {
	return Throttle{Free: 30, First: time.Second, Most: 5 * time.Minute, Forget: time.Hour}
}

// Wait returns how long after now the next attempt may be made; 0 if it may be made at once. A last
// attempt in the future counts as made now.
func (t Throttle) Wait(failures int, last, now time.Time) time.Duration {
	since := max(0, now.Sub(last))
	if failures < t.Free || since >= t.Forget {
		return 0
	}
	pause := t.First
	for i := t.Free; i < failures && pause < t.Most; i++ {
		pause *= 2
	}
	return max(0, min(pause, t.Most)-since)
}

// Counts returns the number of failures after one more.
func (t Throttle) Counts(failures int, last, now time.Time) int {
	if now.Sub(last) >= t.Forget {
		return 1
	}
	return failures + 1
}

// Subject is what attempts are counted by.
type Subject struct {
	Key      Hash
	Throttle Throttle
}

// AccountSubject counts attempts on the account with an e-mail address, whether it exists or not.
func AccountSubject(email string) Subject {
	return Subject{Key: sha256.Sum256([]byte("account\x00" + strings.ToLower(email))), Throttle: AccountThrottle()}
}

// AddressSubject counts attempts from an address. IPv6 addresses are counted by their /64, because
// the holder of one address usually has all of them.
func AddressSubject(address string) Subject {
	if ip, err := netip.ParseAddr(address); err == nil {
		ip = ip.Unmap().WithZone("")
		if ip.Is6() {
			address = netip.PrefixFrom(ip, 64).Masked().String()
		} else {
			address = ip.String()
		}
	}
	return Subject{Key: sha256.Sum256([]byte("address\x00" + address)), Throttle: AddressThrottle()}
}

// ThrottledError says that an attempt comes too early.
type ThrottledError struct{ Wait time.Duration }

// Error says how long to wait.
func (e *ThrottledError) Error() string {
	return fmt.Sprintf("too many attempts; try again in %v", e.Wait.Round(time.Second)+time.Second)
}
