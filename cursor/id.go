package cursor

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxKeyBytes bounds what [Key] returns, well below the 2,704 bytes that an
// entry of a Postgres index may have.
const MaxKeyBytes = 512

// A source's String may contain any bytes. Postgres's text cannot contain NUL or invalid UTF-8, and
// an index entry must not be long. These prefixes mark an id that is stored in another form. An id
// that itself begins with one of them is stored in hexadecimal, so that no two ids ever share a
// stored form.
const (
	hexPrefix  = "hex:"
	hashPrefix = "sha256:"
)

// EncodeID returns an execution id as clean UTF-8 text: the id itself if possible, otherwise "hex:"
// and the hexadecimal form of its bytes. Different ids have different texts.
func EncodeID(id string) string {
	if utf8.ValidString(id) && !strings.ContainsRune(id, 0) &&
		!strings.HasPrefix(id, hexPrefix) && !strings.HasPrefix(id, hashPrefix) {
		return id
	}
	return hexPrefix + hex.EncodeToString([]byte(id))
}

// Key returns the text under which the alert of an execution is unique: [EncodeID], or "sha256:"
// and a hash if that is longer than [MaxKeyBytes].
func Key(id string) string {
	text := EncodeID(id)
	if len(text) <= MaxKeyBytes {
		return text
	}
	sum := sha256.Sum256([]byte(id))
	return hashPrefix + hex.EncodeToString(sum[:])
}

// IDOf returns the id that has a [Key]. known is false if the key is a hash.
func IDOf(key string) (id string, known bool) {
	id, err := decodeID(key)
	return id, err == nil
}

func decodeID(text string) (string, error) {
	if digits, found := strings.CutPrefix(text, hexPrefix); found {
		raw, err := hex.DecodeString(digits)
		if err != nil {
			return "", fmt.Errorf("execution id: %w", err)
		}
		return string(raw), nil
	}
	if EncodeID(text) != text {
		return "", errors.New("execution id is not clean text")
	}
	return text, nil
}
