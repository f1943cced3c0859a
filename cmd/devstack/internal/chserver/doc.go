// Package chserver is ClickHouse's HTTP interface in front of the embedded engine (package chdb): what clickhouse-go,
// curl and the product see is a ClickHouse server on a loopback port.
//
// # Model
//
// [Run] owns the process: it opens the port, starts the engine on a data directory, and serves until its context ends.
// The engine can be started once in a process, and a crash inside it takes the process along: the parent runs this in a
// child, and kills and restarts it like any server. Nothing else should read the child's standard input.
//
// A request is: read URL and headers; take a fresh connection (or the session's); USE its database and SET all its
// settings in one statement, so that readonly binds only what follows; read the statement; run it; copy the result.
// Settings thus never reach another request, and readonly, max_execution_time and the like are the engine's own.
//
//   - The statement is the URL's query followed by the body. An INSERT with FORMAT or VALUES is recognised in the first
//     256 KiB and its data go to the engine as they arrive; other statements are read whole, up to 64 MiB.
//   - Results stream where the format allows it; the others (JSON, CSVWithNames, Parquet, Pretty …, totals) are built
//     in memory first.
//   - The first MiB of a result is held back (all of it with wait_end_of_query=1): an error until then has its own HTTP
//     status and X-ClickHouse-Exception-Code. A later one is in the body between __exception__ marks, and the
//     connection breaks off.
//   - Content-Encoding and Accept-Encoding (gzip, deflate, br, zstd, lz4) and ClickHouse's own compressed blocks
//     (compress=1, decompress=1; LZ4, LZ4HC, ZSTD, NONE) are understood.
//   - When the client goes away, or the server stops, the statement is killed.
//   - clickhouse-go's first question is answered here, since the engine writes the format Native at revision 0 only; the
//     answer names that revision for all that follows.
//
// # Failures
//
// An INSERT that was answered with 200 is stored and survives a kill of the process. One that broke off may have stored
// some of its blocks, as on a real server. When the context ends, running statements get Options.Grace to end, then are
// killed (code 394); then the engine closes. A data directory in use, a port taken and a missing library end Run at once.
//
// # What differs from a server
//
// serverUUID() is zero; displayName() names the data directory, so that each server of several has an identity, and keeps
// it over a restart. Any user and password are accepted; hence loopback only, and requests of foreign web pages are refused. query_id is
// echoed but unknown to the engine: KILL QUERY … WHERE query_id does not find it. In a session (session_id) the settings
// of a request stay for the next ones, and a GET is not made read-only. External tables, input(), INTO OUTFILE and FROM
// INFILE are refused with code 48, progress headers are not sent, and X-ClickHouse-Summary is missing from results that
// are longer than what is held back. The database "default" is clickhouse-local's: there a
// name that is no table is tried as the path of a file. Databases that are created are ordinary ones.
package chserver
