// Package chserver serves the embedded ClickHouse engine over ClickHouse's own HTTP protocol.
package chserver
