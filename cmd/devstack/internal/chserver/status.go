package chserver

import (
	"fmt"
	"net/http"
	"strings"

	"tocsin/cmd/devstack/internal/chdb"
)

// Codes of ClickHouse that this front raises itself.
const (
	codeBadArguments     = 36
	codeNotImplemented   = 48
	codeSyntaxError      = 62
	codeUnknownSetting   = 115
	codeQueryIsTooLarge  = 229
	codeCannotDecompress = 271
	codeSessionNotFound  = 372
	codeSessionIsLocked  = 373
)

// exception makes an error in the form of the engine's errors.
func exception(code int, name, message string) *chdb.Error {
	return &chdb.Error{Code: code, Text: fmt.Sprintf("Code: %d. DB::Exception: %s. (%s)", code, message, name)}
}

// httpStatus is the HTTP status with which a ClickHouse server answers an exception of this code.
func httpStatus(code int) int {
	switch code {
	case 194: // a password is required
		return http.StatusUnauthorized
	case 192, 193, 497, 512, 516: // unknown user, wrong password, access denied, role not granted, not authenticated
		return http.StatusForbidden
	case
		6, 25, 26, 27, 38, 41, 72, 376, 441, 675, 676, // cannot parse text, date, number, UUID, address …
		8, 15, 44, // no such column, duplicate column, illegal column
		codeBadArguments, 427, // bad regular expression
		37, 123, 167, 168, 223, // syntax tree unknown, too deep, too big, unexpected
		codeSyntaxError, 53, 117, 321: // type mismatch, incorrect data, value out of range
		return http.StatusBadRequest
	case
		60, 46, 47, 50, 56, 81, // unknown table, function, identifier, type, storage, database
		63, 73, 78, 152, 336, 511, // unknown aggregate, format, query, direction, engine, role
		codeUnknownSetting:
		return http.StatusNotFound
	case codeQueryIsTooLarge:
		return http.StatusRequestEntityTooLarge
	case codeNotImplemented:
		return http.StatusNotImplemented
	case 76, 209, 439: // cannot open a file, socket timeout, cannot schedule a task
		return http.StatusServiceUnavailable
	case 381: // a length is required
		return http.StatusLengthRequired
	case 159: // max_execution_time exceeded
		return http.StatusRequestTimeout
	case 779: // unsupported media type
		return http.StatusUnsupportedMediaType
	default:
		return http.StatusInternalServerError
	}
}

// contentType is the media type of a format.
func contentType(format string) string {
	switch {
	case strings.HasPrefix(format, "TabSeparated"), strings.HasPrefix(format, "TSV"):
		return "text/tab-separated-values; charset=UTF-8"
	case strings.HasPrefix(format, "CSV"):
		return "text/csv; charset=UTF-8"
	case strings.HasSuffix(format, "EachRow"):
		return "application/x-ndjson; charset=UTF-8"
	case strings.HasPrefix(format, "JSON"):
		return "application/json; charset=UTF-8"
	case format == "Native", strings.HasPrefix(format, "RowBinary"), format == "Parquet", strings.HasPrefix(format, "Arrow"):
		return "application/octet-stream"
	default:
		return "text/plain; charset=UTF-8"
	}
}
