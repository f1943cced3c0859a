package access

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/sync/semaphore"

	"tocsin/internal/fault"
)

// Bounds of a password. The upper one is of bytes.
const (
	MinPasswordLength = 12
	MaxPasswordBytes  = 256
)

// CheckPassword returns what is wrong with a new password. It only requires a length: rules about
// digits and signs make passwords worse.
func CheckPassword(field, password, email string) []fault.Field {
	switch local, _, _ := strings.Cut(email, "@"); {
	case len(password) > MaxPasswordBytes || !utf8.ValidString(password):
		return []fault.Field{{Field: field, Code: "too_long", Message: fmt.Sprintf("Must be valid text of at most %d bytes", MaxPasswordBytes)}}
	case utf8.RuneCountInString(password) < MinPasswordLength:
		return []fault.Field{{Field: field, Code: "too_short", Message: fmt.Sprintf("Must have at least %d characters; a few words make a good password", MinPasswordLength)}}
	case strings.EqualFold(password, email) || len(local) >= MinPasswordLength && strings.EqualFold(password, local):
		return []fault.Field{{Field: field, Code: "guessable", Message: "Must not be the e-mail address"}}
	case strings.Trim(password, password[:1]) == "":
		return []fault.Field{{Field: field, Code: "guessable", Message: "Must not be a single repeated character"}}
	}
	return nil
}

// Cost is the cost of a hash.
type Cost struct {
	// Time is the number of passes, MemoryKiB the memory of each hash under way.
	Time, MemoryKiB uint32
	Threads         uint8
}

// DefaultCost takes about a tenth of a second and 32 MiB.
func DefaultCost() Cost { return Cost{Time: 3, MemoryKiB: 32 << 10, Threads: 1} }

// Hasher hashes passwords with Argon2id. It is safe for concurrent use, and computes only a few
// hashes at a time: the others wait.
type Hasher struct {
	cost  Cost
	slots *semaphore.Weighted
	// decoy is the hash to verify against if there is no account.
	decoy string
}

// NewHasher returns a hasher that computes at most atOnce hashes at a time.
func NewHasher(cost Cost, atOnce int) *Hasher {
	h := &Hasher{cost: cost, slots: semaphore.NewWeighted(int64(atOnce))}
	h.decoy = h.format(make([]byte, saltBytes), make([]byte, keyBytes))
	return h
}

const (
	saltBytes = 16
	keyBytes  = 32
	// The maximum cost of a stored hash; a hash with a higher cost is not accepted.
	maxMemoryKiB = 1 << 20
	maxTime      = 64
)

// Hash returns the hash of a password, with its parameters and a random salt.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	salt := make([]byte, saltBytes)
	// Read never fails.
	_, _ = rand.Read(salt)
	key, err := h.derive(ctx, password, salt, h.cost)
	if err != nil {
		return "", err
	}
	return h.format(salt, key), nil
}

// Verify reports whether password is the one that was hashed, and whether the cost of the hash
// differs from the cost of new hashes. An empty hash matches no password and takes as long as any
// other.
func (h *Hasher) Verify(ctx context.Context, hash, password string) (fits, outdated bool, err error) {
	known := hash != ""
	if !known {
		hash = h.decoy
	}
	cost, salt, want, err := parseHash(hash)
	if err != nil {
		return false, false, err
	}
	if len(password) > MaxPasswordBytes {
		password, known = "", false
	}
	key, err := h.derive(ctx, password, salt, cost)
	if err != nil {
		return false, false, err
	}
	fits = subtle.ConstantTimeCompare(key, want) == 1 && known
	return fits, cost != h.cost, nil
}

func (h *Hasher) derive(ctx context.Context, password string, salt []byte, cost Cost) ([]byte, error) {
	if err := h.slots.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("wait for a slot to hash a password: %w", err)
	}
	defer h.slots.Release(1)
	return argon2.IDKey([]byte(password), salt, cost.Time, cost.MemoryKiB, cost.Threads, keyBytes), nil
}

// format writes a hash in the form that other implementations also use.
func (h *Hasher) format(salt, key []byte) string {
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.cost.MemoryKiB, h.cost.Time, h.cost.Threads, encode(salt), encode(key))
}

func parseHash(hash string) (cost Cost, salt, key []byte, err error) {
	unreadable := errors.New("the stored hash of the password cannot be read")
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return cost, nil, nil, unreadable
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &cost.MemoryKiB, &cost.Time, &cost.Threads); err != nil {
		return cost, nil, nil, unreadable
	}
	salt, saltErr := base64.RawStdEncoding.DecodeString(parts[4])
	key, keyErr := base64.RawStdEncoding.DecodeString(parts[5])
	if saltErr != nil || keyErr != nil || len(key) != keyBytes || cost.Time < 1 || cost.Time > maxTime ||
		cost.Threads < 1 || cost.MemoryKiB > maxMemoryKiB {
		return cost, nil, nil, unreadable
	}
	return cost, salt, key, nil
}
