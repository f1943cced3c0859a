// Package chdb loads the ClickHouse engine as a C library (libchdb) and runs statements on it. The
// binding uses only dynamic loading: it builds with and without cgo, and nothing of the engine is
// linked into the program.
//
// # Model
//
// A [Library] is the loaded file. An [Engine] is the one engine that a process may start, on one
// data directory; it runs as long as a connection is open, so the Engine keeps one open. A [Conn]
// is a session: current database, settings and temporary tables belong to it. A connection costs
// about 0.1 ms, its first statement about 0.7 ms more, so callers open one for each piece of work
// and close it. So settings of different work do not mix.
//
// # What holds
//
//   - Connections run in parallel. One connection runs one statement at a time and is not safe for concurrent use.
//   - SELECT statements stream in blocks of some 65,000 rows ([Conn.Run]); everything else (DDL, SHOW, EXPLAIN,
//     INSERT … SELECT) is executed at once and handed over as one block. Each block of a stream is formatted again, so
//     formats with a head or a tail (JSON, CSVWithNames, Parquet …), totals and extremes come out garbled: those must be
//     asked for as [Statement.Whole], at the price of memory. [Streams] knows the formats that are safe.
//   - Streamed or not, a result in format Native is written at protocol revision 0.
//   - Asked for as a whole, a text may hold several statements; [Conn.CountStatements] tells.
//   - Rows are inserted through [Conn.Insert], in chunks, in any input format; memory stays bounded.
//   - Settings arrive by SET on the connection. readonly, max_execution_time, max_result_rows and the like are the
//     engine's own and honoured.
//   - A statement cannot be given a query id. To cancel one, the connection carries a unique number in a setting that
//     means nothing here, and KILL QUERY finds it by that; see [Conn].
//   - An insert that was acknowledged is in the page cache of the operating system: killing the process loses nothing.
//     The lock on the data directory is the kernel's and dies with its holder.
//
// # Failures
//
// A missing or foreign library is an error that names the file. Statements that the engine refuses
// are an [Error] with ClickHouse's own code and text. A crash inside the engine takes the process
// down: run it in a separate process.
package chdb
