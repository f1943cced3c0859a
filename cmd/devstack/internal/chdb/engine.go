package chdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/google/uuid"
)

// tagSetting carries the number of a connection. The engine's list of processes shows changed settings, and this one
// means nothing here (there is no ODBC bridge) and is not one that a query would set.
const tagSetting = "odbc_bridge_connection_pool_size"

// LockFile is the file in a data directory on which the process that uses it holds the kernel's lock.
const LockFile = "engine.lock"

// firstTag lies above the setting's default and any value that a client could sensibly give.
const firstTag = 1_000_000

// killInterval is how often a cancelled statement is killed again until it ends: the first kill may come before the
// engine has put the statement into its list.
const killInterval = 50 * time.Millisecond

// Engine is the engine of this process, up and running. Its methods are safe for concurrent use.
type Engine struct {
	lib     *Library
	dataDir string
	// name is what displayName() returns: the identity of the data directory.
	name    string
	lock    *os.File
	anchor  *Conn
	lastTag atomic.Int64
}

// Start brings the engine up on a data directory, which it creates. A process can start one engine in its life. A data
// directory in use by another process is an error; a lock left by a killed one is none.
func (l *Library) Start(dataDir string) (*Engine, error) {
	dataDir, err := filepath.Abs(dataDir)
	if err != nil {
		return nil, fmt.Errorf("start ClickHouse engine: %w", err)
	}
	if err := os.MkdirAll(dataDir, 0o750); err != nil {
		return nil, fmt.Errorf("start ClickHouse engine: %w", err)
	}
	lock, err := lockDir(dataDir)
	if err != nil {
		return nil, fmt.Errorf("start ClickHouse engine: %w", err)
	}
	name, err := identity(dataDir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start ClickHouse engine: %w", err), lock.Close())
	}
	engine := &Engine{lib: l, dataDir: dataDir, name: name, lock: lock}
	engine.lastTag.Store(firstTag)
	engine.anchor, err = engine.Connect()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start ClickHouse engine on %s: is the directory writable, is there space?: %w", dataDir, err), lock.Close())
	}
	return engine, nil
}

// identity returns the identity of a data directory, which it makes at the first start.
// A server keeps one in a file of the same name; the library's own serverUUID() is zero.
func identity(dataDir string) (string, error) {
	path := filepath.Join(dataDir, "uuid")
	content, err := os.ReadFile(path)
	if err == nil {
		id, err := uuid.ParseBytes(bytes.TrimSpace(content))
		if err != nil {
			return "", fmt.Errorf("%s: %w: remove the file for a new identity", path, err)
		}
		return id.String(), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	id := uuid.NewString()
	// Whole or not at all, should the process be killed here.
	if err := os.WriteFile(path+".new", []byte(id+"\n"), 0o600); err != nil {
		return "", err
	}
	return id, os.Rename(path+".new", path)
}

// lockDir takes the kernel's lock on a file in the directory. The kernel drops it when the process ends, however it ends.
func lockDir(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, LockFile), os.O_CREATE|os.O_RDWR, 0o640)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("data directory %s is in use by another process", dir), file.Close())
	}
	return file, nil
}

// Connect opens a session. The caller closes it.
func (e *Engine) Connect() (*Conn, error) {
	tag := strconv.FormatInt(e.lastTag.Add(1), 10)
	// The library reads clickhouse-local's options; implicit_select would make it take "1" for a query, which a server refuses.
	// What follows the two hyphens is the server's configuration.
	args := []string{"chdb", "--path=" + e.dataDir, "--implicit_select=0", "--" + tagSetting + "=" + tag, "--", "--display_name=" + e.name}
	argv := make([]*byte, len(args))
	for i, arg := range args {
		argv[i] = unsafe.StringData(arg + "\x00")
	}
	var pins runtime.Pinner
	defer pins.Unpin()
	for _, arg := range argv {
		pins.Pin(arg)
	}
	pins.Pin(&argv[0])
	handle := e.lib.connect(int32(len(argv)), unsafe.Pointer(&argv[0]))
	if handle == nil || *handle == 0 {
		return nil, errors.New("the engine refused a connection")
	}
	return &Conn{engine: e, lib: e.lib, handle: handle, tag: tag}, nil
}

// Close stops the engine after every connection is closed; data on disk is complete. The process cannot start another.
func (e *Engine) Close() error {
	e.anchor.Close()
	return e.lock.Close()
}

// kill stops what runs on the connection with the tag, again and again until finished is closed.
func (e *Engine) kill(ctx context.Context, tag string, finished <-chan struct{}) {
	conn, err := e.Connect()
	if err != nil {
		return // Nothing can be done: the statement runs to its end.
	}
	defer conn.Close()
	repeat := time.NewTicker(killInterval)
	defer repeat.Stop()
	sql := "KILL QUERY WHERE Settings['" + tagSetting + "'] = '" + tag + "' ASYNC"
	for {
		// The statement's own context has ended. An error means that there was nothing to kill.
		_, _ = conn.Exec(context.WithoutCancel(ctx), Statement{SQL: sql})
		select {
		case <-finished:
			return
		case <-repeat.C:
		}
	}
}
