package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

const (
	secretBytes = 32
	codeBytes   = 10
	// TokenPrefix begins every token, so that scanners for leaked secrets recognise it.
	TokenPrefix = "tcn_"
	hintLength  = 4
)

func encoding() *base32.Encoding { return base32.StdEncoding.WithPadding(base32.NoPadding) }

// Hash is the stored form of a secret.
type Hash [sha256.Size]byte

// HashOf returns the hash of a secret.
func HashOf(secret string) Hash { return sha256.Sum256([]byte(secret)) }

// NewSecret returns a secret of 256 random bits for a session or a link.
func NewSecret() string { return random(secretBytes) }

// NewToken returns a token and its hint.
func NewToken() (token, hint string) {
	token = TokenPrefix + random(secretBytes)
	return token, token[len(token)-hintLength:]
}

// PlausibleToken reports whether text has the form of a token. Other texts are not looked up.
func PlausibleToken(text string) bool {
	secret, found := strings.CutPrefix(text, TokenPrefix)
	return found && PlausibleSecret(secret)
}

// PlausibleSecret reports whether text has the form of a secret.
func PlausibleSecret(text string) bool {
	raw, err := encoding().DecodeString(strings.ToUpper(text))
	return err == nil && len(raw) == secretBytes && text == strings.ToLower(text)
}

// NewCode returns a code of 80 random bits that a person can type.
func NewCode() string {
	text := random(codeBytes)
	var groups []string
	for ; len(text) > 0; text = text[4:] {
		groups = append(groups, text[:4])
	}
	return strings.Join(groups, "-")
}

// CleanCode returns a code in the form of [NewCode], however it was typed.
func CleanCode(typed string) string {
	text := strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyz234567", r) {
			return r
		}
		return -1
	}, strings.ToLower(typed))
	var groups []string
	for ; len(text) > 4; text = text[4:] {
		groups = append(groups, text[:4])
	}
	return strings.Join(append(groups, text), "-")
}

func random(bytes int) string {
	raw := make([]byte, bytes)
	// Read never fails.
	_, _ = rand.Read(raw)
	return strings.ToLower(encoding().EncodeToString(raw))
}

// LinkURL returns the page on which a link is redeemed. The secret is in the fragment, which
// browsers do not send: no log and no proxy sees it. If the public URL is not known, LinkURL
// returns a path.
func LinkURL(public, secret string) string {
	return strings.TrimSuffix(public, "/") + "/sign-in#" + secret
}
