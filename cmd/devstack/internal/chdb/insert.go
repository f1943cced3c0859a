package chdb

import (
	"context"
	"runtime"
	"unsafe"
)

// Insert is an open INSERT that takes its rows in chunks. It holds the connection until Close.
type Insert struct {
	conn   *Conn
	handle uintptr
}

// Insert begins an INSERT. The text ends before its FORMAT or VALUES clause; Statement.Format names the format of the
// data that follow.
func (c *Conn) Insert(ctx context.Context, stmt Statement) (*Insert, error) {
	if c.handle == nil {
		return nil, ErrClosed
	}
	var handle uintptr
	c.interruptible(ctx, func() { handle = c.call(c.lib.insert, stmt) })
	insert := &Insert{conn: c, handle: handle}
	if text := c.lib.insertError(handle); text != "" {
		insert.Close()
		return nil, newError(text)
	}
	return insert, nil
}

// Append hands over a chunk, cut anywhere; the engine copies it. It waits while the engine is behind. False means that
// the insert has failed: Commit tells why.
func (i *Insert) Append(ctx context.Context, data []byte) bool {
	if len(data) == 0 {
		return true
	}
	var pins runtime.Pinner
	defer pins.Unpin()
	pins.Pin(&data[0])
	var state int32
	i.conn.interruptible(ctx, func() {
		state = i.conn.lib.insertAppend(i.handle, unsafe.Pointer(&data[0]), uintptr(len(data)))
	})
	return state == 0
}

// Commit ends the data and waits until the rows are stored. After a nil error they are.
func (i *Insert) Commit(ctx context.Context) (Stats, error) {
	var result uintptr
	i.conn.interruptible(ctx, func() { result = i.conn.lib.insertDone(i.handle) })
	_, stats, err := i.conn.take(result)
	return stats, err
}

// Close frees the insert; without a Commit before, it abandons it: blocks that the engine has already cut off stay, as
// they do in a ClickHouse server. Closing twice is harmless.
func (i *Insert) Close() {
	if i.handle != 0 {
		i.conn.lib.insertFree(i.handle)
		i.handle = 0
	}
}
