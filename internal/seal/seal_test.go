package seal_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"tocsin/internal/seal"
)

func keyOf(b byte) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32)) }

func box(t *testing.T, keys string) *seal.Box {
	t.Helper()
	b, err := seal.New(keys)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSealedValueOpensOnlyForItsRow(t *testing.T) {
	b := box(t, keyOf(1))
	sealed := b.Seal([]byte("https://hooks.example/secret"), "webhook/1")
	if bytes.Contains(sealed, []byte("secret")) {
		t.Fatal("the sealed value shows its content")
	}
	plain, err := b.Open(sealed, "webhook/1")
	if err != nil || string(plain) != "https://hooks.example/secret" {
		t.Fatalf("Open = %q, %v", plain, err)
	}
	if _, err := b.Open(sealed, "webhook/2"); !errors.Is(err, seal.ErrSealed) {
		t.Fatalf("opened for another row: %v", err)
	}
	for i := range sealed {
		damaged := bytes.Clone(sealed)
		damaged[i] ^= 1
		if _, err := b.Open(damaged, "webhook/1"); !errors.Is(err, seal.ErrSealed) {
			t.Fatalf("opened with byte %d changed: %v", i, err)
		}
	}
	if bytes.Equal(sealed, b.Seal([]byte("https://hooks.example/secret"), "webhook/1")) {
		t.Fatal("sealing twice gave the same value: the nonce is not random")
	}
}

func TestRotation(t *testing.T) {
	old := box(t, keyOf(1)).Seal([]byte("x"), "row")
	both := box(t, keyOf(2)+", "+keyOf(1))
	if plain, err := both.Open(old, "row"); err != nil || string(plain) != "x" {
		t.Fatalf("Open with the old key kept = %q, %v", plain, err)
	}
	if _, err := box(t, keyOf(2)).Open(both.Seal([]byte("y"), "row"), "row"); err != nil {
		t.Fatalf("the first key does not seal: %v", err)
	}
	if _, err := box(t, keyOf(2)).Open(old, "row"); err == nil || !strings.Contains(err.Error(), "not among the configured keys") {
		t.Fatalf("Open without the old key = %v", err)
	}
}

func TestBadKeysAreRefusedUnshown(t *testing.T) {
	for _, text := range []string{"", "c2hvcnQ=", "not base64 at all!", keyOf(1) + ","} {
		if _, err := seal.New(text); err == nil || (text != "" && strings.Contains(err.Error(), text)) {
			t.Errorf("New(%q) = %v", text, err)
		}
	}
}
