package chdb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Library is a loaded libchdb. It is never unloaded.
type Library struct {
	path string

	version  func() string
	signals  func(enabled int32)
	connect  func(argc int32, argv unsafe.Pointer) *uintptr
	close    func(conn *uintptr)
	shutdown func() int32
	classify func(conn uintptr, sql unsafe.Pointer, sqlLen uintptr, database unsafe.Pointer, databaseLen uintptr, out *analysis) int32

	query  statementFunc
	stream statementFunc
	fetch  func(conn, stream uintptr) uintptr
	cancel func(conn, stream uintptr)

	insert       statementFunc
	insertAppend func(insert uintptr, data unsafe.Pointer, size uintptr) int32
	insertDone   func(insert uintptr) uintptr
	insertCancel func(insert uintptr)
	insertError  func(insert uintptr) string
	insertFree   func(insert uintptr)

	resultFree         func(result uintptr)
	resultBuffer       func(result uintptr) *byte
	resultLength       func(result uintptr) uintptr
	resultError        func(result uintptr) string
	resultRows         func(result uintptr) uint64
	resultBytes        func(result uintptr) uint64
	resultReadRows     func(result uintptr) uint64
	resultReadBytes    func(result uintptr) uint64
	resultWrittenRows  func(result uintptr) uint64
	resultWrittenBytes func(result uintptr) uint64
}

// statementFunc is the shape that the query, stream and insert functions share: text, format and parameters, each with
// its length.
type statementFunc func(
	conn uintptr,
	sql unsafe.Pointer, sqlLen uintptr,
	format unsafe.Pointer, formatLen uintptr,
	names, nameLens, values, valueLens unsafe.Pointer,
	count uintptr,
) uintptr

// analysis mirrors chdb_query_analysis_v1.
type analysis struct {
	structSize     uint32
	statementCount uint32
	_              uint32 // flags
	_              uint32 // class of the query
}

// Open loads the library at path. The error names the path and, if it is known, the remedy.
func Open(path string) (*Library, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open ClickHouse library: %s does not exist: install the engines first", path)
	} else if err != nil {
		return nil, fmt.Errorf("open ClickHouse library: %w", err)
	}
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("open ClickHouse library %s on %s/%s: %w", path, runtime.GOOS, runtime.GOARCH, err)
	}
	lib := &Library{path: path}
	for name, target := range lib.symbols() {
		address, err := purego.Dlsym(handle, name)
		if err != nil {
			return nil, fmt.Errorf("open ClickHouse library %s: no function %s: another version is needed: %w", path, name, err)
		}
		purego.RegisterFunc(target, address)
	}
	// The process keeps its own signal handlers: Go's, which turn SIGSEGV into a stack trace and SIGTERM into a channel.
	lib.signals(0)
	return lib, nil
}

// symbols maps the library's functions to the fields that call them.
func (l *Library) symbols() map[string]any {
	return map[string]any{
		"chdb_version":                     &l.version,
		"chdb_set_signal_handlers_enabled": &l.signals,
		"chdb_connect":                     &l.connect,
		"chdb_close_conn":                  &l.close,
		"chdb_shutdown":                    &l.shutdown,
		"chdb_classify_query_n":            &l.classify,
		"chdb_query_with_params_n":         &l.query,
		"chdb_stream_query_with_params_n":  &l.stream,
		"chdb_stream_fetch_result":         &l.fetch,
		"chdb_stream_cancel_query":         &l.cancel,
		"chdb_stream_insert_with_params_n": &l.insert,
		"chdb_stream_append":               &l.insertAppend,
		"chdb_stream_done":                 &l.insertDone,
		"chdb_stream_cancel_insert":        &l.insertCancel,
		"chdb_stream_insert_error":         &l.insertError,
		"chdb_destroy_insert_stream":       &l.insertFree,
		"chdb_destroy_query_result":        &l.resultFree,
		"chdb_result_buffer":               &l.resultBuffer,
		"chdb_result_length":               &l.resultLength,
		"chdb_result_error":                &l.resultError,
		"chdb_result_rows_read":            &l.resultRows,
		"chdb_result_bytes_read":           &l.resultBytes,
		"chdb_result_storage_rows_read":    &l.resultReadRows,
		"chdb_result_storage_bytes_read":   &l.resultReadBytes,
		"chdb_result_rows_written":         &l.resultWrittenRows,
		"chdb_result_bytes_written":        &l.resultWrittenBytes,
	}
}

// Version is the version of the library, for example "26.7.3".
func (l *Library) Version() string { return l.version() }

// Path is the file that was loaded.
func (l *Library) Path() string { return l.path }
