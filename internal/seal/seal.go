// Package seal encrypts secrets at rest with AES-256-GCM and a random nonce. The associated data is
// the id of the key and the row that a secret belongs to, so that a sealed value that is copied to
// another row cannot be decrypted there.
//
// A sealed value is version (1 byte), key id (4 bytes), nonce (12 bytes), and ciphertext with its
// tag. Any of the keys decrypts; the first one encrypts. To rotate, put a new key first, reseal
// everything, and then remove the old one.
package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

const (
	version   = 1
	keyBytes  = 32
	idBytes   = 4
	headBytes = HeadBytes
)

// HeadBytes is the length of the head of a sealed value, which contains its format and its key id.
const HeadBytes = 1 + idBytes

// ErrSealed is wrapped by every error about a value that cannot be decrypted.
var ErrSealed = errors.New("encrypted value cannot be decrypted")

// Box encrypts and decrypts secrets. It is safe for concurrent use.
type Box struct{ keys []key }

type key struct {
	id   [idBytes]byte
	aead cipher.AEAD
}

// New returns a box with the keys in text: base64 of 32 bytes each, the sealing one first,
// separated by commas. Its error never contains a key.
func New(text string) (*Box, error) {
	var box Box
	for i, part := range strings.Split(text, ",") {
		raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(part))
		if err != nil || len(raw) != keyBytes {
			return nil, fmt.Errorf("key %d must be base64 of %d bytes, as printed by `openssl rand -base64 %d`", i+1, keyBytes, keyBytes)
		}
		block, err := aes.NewCipher(raw)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		k := key{aead: aead}
		sum := sha256.Sum256(raw)
		copy(k.id[:], sum[:])
		box.keys = append(box.keys, k)
	}
	return &box, nil
}

// Seal returns plain, sealed for row.
func (b *Box) Seal(plain []byte, row string) []byte {
	k := b.keys[0]
	head := append([]byte{version}, k.id[:]...)
	return k.aead.Seal(head, nil, plain, associated(head, row))
}

// Open decrypts what was sealed for row. Its error wraps [ErrSealed] and says
// whether the key is missing or the value is damaged or belongs elsewhere.
func (b *Box) Open(sealed []byte, row string) ([]byte, error) {
	if len(sealed) < headBytes || sealed[0] != version {
		return nil, fmt.Errorf("%w: the format of the value is unknown; run the version of Tocsin that stored it", ErrSealed)
	}
	head := sealed[:headBytes]
	for _, k := range b.keys {
		if !bytes.Equal(k.id[:], head[1:]) {
			continue
		}
		plain, err := k.aead.Open(nil, nil, sealed[headBytes:], associated(head, row))
		if err != nil {
			return nil, fmt.Errorf("%w: the value is damaged, or was encrypted for another row; restore the row from a backup", ErrSealed)
		}
		return plain, nil
	}
	return nil, fmt.Errorf("%w: its key %x is not among the configured keys; add the key that was in use when it was stored", ErrSealed, head[1:])
}

// KeyOf returns the id of the key that sealed a value; empty for a value of unknown format.
func KeyOf(sealed []byte) string {
	if len(sealed) < headBytes || sealed[0] != version {
		return ""
	}
	return hex.EncodeToString(sealed[1:headBytes])
}

// Keys returns the ids of the keys, the sealing one first. An id reveals nothing about its key. A
// nil box has none.
func (b *Box) Keys() []string {
	if b == nil {
		return nil
	}
	ids := make([]string, len(b.keys))
	for i, k := range b.keys {
		ids[i] = hex.EncodeToString(k.id[:])
	}
	return ids
}

func associated(head []byte, row string) []byte { return append(bytes.Clone(head), row...) }
