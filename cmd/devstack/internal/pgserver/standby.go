//go:build unix

package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// Copy makes a directory from which a standby of this server can start: a base backup. The standby
// fetches what the server writes meanwhile, so wal_keep_size must be large enough.
func (s *Server) Copy(ctx context.Context, to string) (err error) {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return fmt.Errorf("copy a Postgres cluster: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if _, err := conn.Exec(ctx, "SELECT pg_backup_start('standby', fast => true)"); err != nil {
		return fmt.Errorf("begin the base backup: %w", err)
	}
	who := currentAccount()
	if err := copyCluster(s.dir, to, who); err != nil {
		return fmt.Errorf("copy a Postgres cluster: %w", err)
	}
	var label string
	if err := conn.QueryRow(ctx, "SELECT labelfile FROM pg_backup_stop(wait_for_archive => false)").Scan(&label); err != nil {
		return fmt.Errorf("end the base backup: %w", err)
	}
	for name, text := range map[string]string{"backup_label": label, "standby.signal": ""} {
		if err := ownedFile(filepath.Join(to, name), strings.NewReader(text), who); err != nil {
			return fmt.Errorf("copy a Postgres cluster: %w", err)
		}
	}
	return nil
}

// Promote turns a standby into a primary and returns when it accepts writes.
func (s *Server) Promote(ctx context.Context) (err error) {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return fmt.Errorf("promote: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	var promoted bool
	if err := conn.QueryRow(ctx, "SELECT pg_promote()").Scan(&promoted); err != nil || !promoted {
		return fmt.Errorf("promote: %v, %w", promoted, err)
	}
	return nil
}

// Kill ends the server as a power failure does, together with the processes that the caller names:
// its own stopped processes would not notice the end. The content of its memory is lost.
func (s *Server) Kill(stopped ...int) error {
	errs := []error{syscall.Kill(s.PID(), syscall.SIGKILL)}
	for _, pid := range stopped {
		errs = append(errs, syscall.Kill(pid, syscall.SIGKILL))
	}
	<-s.Done()
	return errors.Join(errs...)
}

// copyCluster copies the files of a base backup. The server works meanwhile, so files appear and
// disappear.
func copyCluster(from, to string, who account) error {
	if err := ownedDir(to, who); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && path == from {
			return nil
		}
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return ownedDir(filepath.Join(to, relative), who)
		}
		if excluded(relative) {
			return nil
		}
		file, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		defer file.Close() //nolint:errcheck // read only
		return ownedFile(filepath.Join(to, relative), file, who)
	})
}

// excluded reports whether a base backup leaves out a file: files of the process, and files that
// the standby fetches or makes.
func excluded(relative string) bool {
	top, _, below := strings.Cut(filepath.ToSlash(relative), "/")
	switch top {
	case "postmaster.pid", "postmaster.opts":
		return true
	case "pg_wal", "pg_replslot", "pg_stat_tmp", "pg_notify", "pg_serial", "pg_snapshots", "pg_subtrans", "pg_dynshmem":
		return below
	default:
		return filepath.Base(relative) == "pg_internal.init"
	}
}

// ownedFile makes a file, private to the account.
func ownedFile(path string, content io.Reader, who account) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	if err == nil && who.credential != nil {
		err = file.Chown(who.uid, who.gid)
	}
	return errors.Join(err, file.Close())
}
