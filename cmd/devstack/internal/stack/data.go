//go:build unix

package stack

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tocsin/cmd/devstack/internal/filelock"
	"tocsin/cmd/devstack/internal/pgserver"
)

// What Up stores in its data directory.
const (
	lockFile      = "devstack.lock"
	settingsFile  = "devstack.json"
	keyFile       = "encryption.key"
	passwordFile  = "admin.password"
	tocsinPIDFile = "tocsin.pid"
	postgresDir   = "postgres"
	clickHouseDir = "clickhouse"
	slackJournal  = "slack.journal"
	logsDir       = "logs"
	binDir        = "bin"
)

// elsewhere is the directory of root's Postgres data if Postgres's user cannot enter the data
// directory.
const elsewhere = "/var/lib/tocsin-devstack"

// settings is what must stay the same between starts. A port of 0 has not been chosen yet.
type settings struct {
	PostgresPort   int `json:"postgresPort"`
	ClickHousePort int `json:"clickHousePort"`
	SlackPort      int `json:"slackPort"`
	// MailPort is the port of the mail server, MailboxPort that of the page that shows received
	// messages.
	MailPort    int `json:"mailPort"`
	MailboxPort int `json:"mailboxPort"`
	TocsinPort  int `json:"tocsinPort"`
	// Seeded says that the demo's rules were made once. If they are deleted, they are not made
	// again.
	Seeded bool `json:"seeded"`
	// BotWebhook is the id of the seeded webhook that posts as a bot. The Slack look-alike presses
	// its buttons.
	BotWebhook string `json:"botWebhook,omitempty"`
}

// data is the directory of one Up. It is locked while it is open.
type data struct {
	dir string
	// postgres is Postgres's directory. It is elsewhere if its user cannot enter dir.
	postgres string
	settings settings
	lock     *filelock.Lock
}

// openData locks the directory, and makes it if it is missing. It refuses a directory that contains
// anything that is not devstack's.
func openData(console *Console, path string) (*data, error) {
	dir, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open data directory: %w", err)
	}
	if err := refuseForeign(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("open data directory: %w: name another one with --data", err)
	}
	lock, err := filelock.Try(filepath.Join(dir, lockFile))
	if held, ok := errors.AsType[*filelock.HeldError](err); ok {
		return nil, fmt.Errorf("%s is in use by another devstack, process %d: stop that one, or name another directory with --data",
			dir, held.PID)
	}
	if err != nil {
		return nil, fmt.Errorf("open data directory: %w", err)
	}
	d := &data{dir: dir, lock: lock}
	if err := d.placePostgres(console); err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	return d, nil
}

func refuseForeign(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open data directory: %w: name another one with --data", err)
	}
	for _, entry := range entries {
		if entry.Name() == lockFile {
			return nil
		}
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s contains files that are not devstack's: name an empty or new directory with --data", dir)
	}
	return nil
}

func (d *data) placePostgres(console *Console) error {
	d.postgres = filepath.Join(d.dir, postgresDir)
	err := pgserver.Reachable(d.postgres)
	blocked, ok := errors.AsType[*pgserver.UnreachableError](err)
	if !ok {
		return err
	}
	sum := sha256.Sum256([]byte(d.dir))
	parent := filepath.Join(elsewhere, hex.EncodeToString(sum[:6]))
	if err := os.MkdirAll(parent, 0o711); err != nil {
		return fmt.Errorf("%w; nor is there another place: %w: name a directory with --data that every user may enter",
			blocked, err)
	}
	d.postgres = filepath.Join(parent, postgresDir)
	if err := pgserver.Reachable(d.postgres); err != nil {
		return err
	}
	console.Sayf("user %d, as whom Postgres runs because it refuses root, may not enter %s: its data is in %s",
		blocked.UID, blocked.Blocked, d.postgres)
	return nil
}

// reset removes what devstack stores, by name.
func (d *data) reset() error {
	paths := []string{d.postgres, d.postgres + ".new"}
	for _, name := range []string{
		postgresDir, clickHouseDir, slackJournal, logsDir, binDir, keyFile, settingsFile, tocsinPIDFile,
	} {
		paths = append(paths, d.path(name))
	}
	for _, path := range paths {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("reset %s: %w", d.dir, err)
		}
	}
	return nil
}

func (d *data) path(name string) string {
	return filepath.Join(d.dir, name)
}

func (d *data) readSettings() error {
	content, err := os.ReadFile(d.path(settingsFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	if err := json.Unmarshal(content, &d.settings); err != nil {
		return fmt.Errorf("read settings: %s: %w: delete the file, and ports are chosen again", d.path(settingsFile), err)
	}
	return nil
}

func (d *data) writeSettings() error {
	content, err := json.MarshalIndent(d.settings, "", "  ")
	if err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	return d.writeFile(settingsFile, append(content, '\n'), 0o644)
}

// encryptionKey returns the key with which Tocsin encrypts secrets: 32 bytes in base64. It is made
// at the first start.
func (d *data) encryptionKey() (string, error) {
	return d.secret(keyFile, func() string {
		var raw [32]byte
		// Read never fails.
		_, _ = rand.Read(raw[:])
		return base64.StdEncoding.EncodeToString(raw[:])
	})
}

// adminPassword returns the password of the demo's administrator. It is made at the first start.
func (d *data) adminPassword() (string, error) {
	return d.secret(passwordFile, func() string { return strings.ToLower(rand.Text()[:16]) })
}

// secret returns the content of a file that only its owner may read. It is made at the first start.
func (d *data) secret(name string, fresh func() string) (string, error) {
	content, err := os.ReadFile(d.path(name))
	if err == nil {
		return string(content), nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	made := fresh()
	return made, d.writeFile(name, []byte(made), 0o600)
}

// writeFile writes a file completely or not at all.
func (d *data) writeFile(name string, content []byte, mode os.FileMode) error {
	draft := d.path(name + ".new")
	if err := os.WriteFile(draft, content, mode); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.Rename(draft, d.path(name)); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func (d *data) close() error {
	return d.lock.Release()
}
