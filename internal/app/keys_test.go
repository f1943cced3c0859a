package app_test

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"tocsin/api"
	"tocsin/internal/postgres"
	"tocsin/internal/seal"
)

// TestKeysAreRotated re-encrypts secrets that were encrypted with an old key, while one of them is
// edited: afterwards the old key is no longer needed.
func TestKeysAreRotated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range names(120) {
		w.webhook(name)
	}
	first := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{9}, 32))
	open := func(keys string) *postgres.DB {
		t.Helper()
		box, err := seal.New(keys)
		if err != nil {
			t.Fatal(err)
		}
		db, err := postgres.Open(t.Context(), w.pgURL, box)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		return db
	}
	both := open(first + "," + key)
	uses := func(db *postgres.DB) (list []api.KeyUse) {
		t.Helper()
		list, err := db.Keys(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			list[i].Key = ""
		}
		return list
	}
	if got := uses(both); !slices.Equal(got, []api.KeyUse{{Configured: true, Active: true}, {Secrets: 120, Configured: true}}) {
		t.Errorf("before: %+v", got)
	}
	if got := uses(open(first)); !slices.Equal(got, []api.KeyUse{{Configured: true, Active: true}, {Secrets: 120}}) {
		t.Errorf("without the old key: %+v", got)
	}
	if done, err := open(first).Reseal(t.Context()); err != nil || done.Resealed != 0 || len(done.Unreadable) != 120 {
		t.Errorf("without the old key: %d sealed again, %d not decrypted, %v", done.Resealed, len(done.Unreadable), err)
	}
	before := w.column(`select version || ' ' || updated_at::text from webhook order by name`)
	if done, err := both.Reseal(t.Context()); err != nil || done.Resealed != 120 || len(done.Unreadable) > 0 {
		t.Errorf("%+v, %v", done, err)
	}
	if done, err := both.Reseal(t.Context()); err != nil || done.Resealed != 0 {
		t.Errorf("again: %+v, %v", done, err)
	}
	w.wantColumn("nobody's edit is refused for it", `select version || ' ' || updated_at::text from webhook order by name`, before...)
	if got := uses(both); !slices.Equal(got, []api.KeyUse{{Secrets: 120, Configured: true, Active: true}, {Configured: true}}) {
		t.Errorf("after: %+v", got)
	}
	hooks, err := open(first).Webhooks().List(t.Context(), tenant, api.NamePage{Limit: 200})
	if err != nil || len(hooks) != 120 || hooks[0].URL == "" || hooks[0].Sealed != nil {
		t.Errorf("with the new key alone: %d webhooks, %v", len(hooks), err)
	}
}

// TestKeysCommands runs the commands with which an old key is retired.
func TestKeysCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.webhook("ops")
	first := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{9}, 32))
	keys := func(command, keys string) (string, int) {
		t.Helper()
		return w.command("keys", command, "--encryption-key", keys)
	}
	for _, step := range []struct {
		command, keys string
		code          int
		want          []string
	}{
		{"status", first + "," + key, 0, []string{"encrypts", "still in use; run: tocsin keys reseal"}},
		{"status", first, 0, []string{"encrypts", "missing; add it to TOCSIN_ENCRYPTION_KEY"}},
		{"reseal", first, 1, []string{"Encrypted again: 0", "not all secrets could be decrypted"}},
		{"status", "nonsense", 1, []string{"TOCSIN_ENCRYPTION_KEY"}},
		{"reseal", first + "," + key, 0, []string{"Encrypted again: 1", "no longer needed; remove it from TOCSIN_ENCRYPTION_KEY"}},
		{"reseal", first, 0, []string{"Encrypted again: 0"}},
	} {
		out, code := keys(step.command, step.keys)
		for _, part := range step.want {
			if code != step.code || !strings.Contains(out, part) {
				t.Errorf("keys %s: exit %d, want %d and …%s…: %s", step.command, code, step.code, part, out)
			}
		}
		if strings.Contains(out, first) || strings.Contains(out, key) {
			t.Errorf("keys %s shows a key: %s", step.command, out)
		}
	}
}
