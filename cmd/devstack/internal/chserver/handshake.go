package chserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ClickHouse/ch-go/proto"

	"tocsin/cmd/devstack/internal/chdb"
)

// handshakeQuery is clickhouse-go's first query on a connection. It reads the answer at its own
// protocol revision, and everything later at the revision in the answer.
const handshakeQuery = "SELECT displayName(), version(), revision(), timezone()"

// nativeRevision is the revision at which the engine writes the format Native.
const nativeRevision = 0

// identity is what the engine says about itself.
type identity struct {
	displayName string
	version     string
	timezone    string
}

// readIdentity asks the engine.
func readIdentity(ctx context.Context, engine *chdb.Engine) (identity, error) {
	conn, err := engine.Connect()
	if err != nil {
		return identity{}, err
	}
	defer conn.Close()
	rows, err := conn.Run(ctx, chdb.Statement{
		SQL: "SELECT displayName(), version(), timezone()", Format: "JSONCompactEachRow", Whole: true,
	})
	if err != nil {
		return identity{}, err
	}
	data, err := rows.Next(ctx)
	if err != nil {
		return identity{}, errors.Join(err, rows.Close())
	}
	var fields [3]string
	if err := json.Unmarshal(bytes.TrimSpace(data), &fields); err != nil {
		return identity{}, fmt.Errorf("read the engine's version: %w", err)
	}
	return identity{displayName: fields[0], version: fields[1], timezone: fields[2]}, rows.Close()
}

// isHandshake recognises the query of a client that reads the answer at its own revision.
func (q *request) isHandshake(text string) bool {
	return q.revision > 0 && q.format == "Native" && strings.TrimSpace(text) == handshakeQuery
}

// writeHandshake answers with one block at the client's revision.
func (id identity) writeHandshake(w io.Writer, revision int) error {
	var displayName, version, timezone proto.ColStr
	displayName.Append(id.displayName)
	version.Append(id.version)
	timezone.Append(id.timezone)
	block := proto.Block{Info: proto.BlockInfo{BucketNum: -1}, Columns: 4, Rows: 1}
	var buffer proto.Buffer
	if err := block.EncodeBlock(&buffer, revision, []proto.InputColumn{
		{Name: "displayName()", Data: displayName},
		{Name: "version()", Data: version},
		{Name: "revision()", Data: proto.ColUInt32{nativeRevision}},
		{Name: "timezone()", Data: timezone},
	}); err != nil {
		return fmt.Errorf("encode handshake: %w", err)
	}
	_, err := w.Write(buffer.Buf)
	return err
}
