package chserver_test

import (
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/shopspring/decimal"
)

// compressions are the compression methods of the driver over HTTP.
func compressions() map[string]*clickhouse.Compression {
	return map[string]*clickhouse.Compression{
		"none":    nil,
		"lz4":     {Method: clickhouse.CompressionLZ4},
		"zstd":    {Method: clickhouse.CompressionZSTD, Level: 3},
		"gzip":    {Method: clickhouse.CompressionGZIP, Level: 3},
		"deflate": {Method: clickhouse.CompressionDeflate, Level: 3},
		"brotli":  {Method: clickhouse.CompressionBrotli, Level: 3},
	}
}

// everyType is a row with a column of every relevant type.
type everyType struct {
	I8   int8
	I16  int16
	I32  int32
	I64  int64
	U8   uint8
	U16  uint16
	U32  uint32
	U64  uint64
	F32  float32
	F64  float64
	S    string
	Low  string
	Opt  *string
	Time time.Time
	Day  time.Time
	Map  map[string]string
	Arr  []int64
	ID   uuid.UUID
	Dec  decimal.Decimal
	Enum string
	Tup  []any
	Bool bool
}

const createEveryType = `CREATE TABLE t (
	I8 Int8, I16 Int16, I32 Int32, I64 Int64, U8 UInt8, U16 UInt16, U32 UInt32, U64 UInt64, F32 Float32, F64 Float64,
	S String, Low LowCardinality(String), Opt Nullable(String), Time DateTime64(9, 'UTC'), Day Date, Map Map(String, String),
	Arr Array(Int64), ID UUID, Dec Decimal(18, 4), Enum Enum8('COMPLETED' = 1, 'FAILED' = 2), Tup Tuple(Int64, String), Bool Bool
) ENGINE = MergeTree ORDER BY (Time, U64)`

// rowAt returns the row with the given number.
func rowAt(i int) everyType {
	text := "text " + string(rune('a'+i%26)) + "\x00\n'\\🙂"
	row := everyType{
		I8: int8(i), I16: int16(-i), I32: int32(-i), I64: -int64(i) << 33, U8: uint8(i), U16: uint16(i), U32: uint32(i), U64: uint64(i),
		F32: float32(i) / 3, F64: float64(i) / 7, S: text, Low: text[:6],
		Time: time.Date(2026, 11, 21, 10, 0, 0, 123456789+i, time.UTC),
		Day:  time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC),
		Map:  map[string]string{"route": text, "": "empty"}, Arr: []int64{int64(i), -1},
		ID: uuid.NewSHA1(uuid.NameSpaceOID, []byte{byte(i), byte(i >> 8)}), Dec: decimal.New(int64(i)*12345, -4),
		Enum: "FAILED", Tup: []any{int64(i), text}, Bool: i%2 == 0,
	}
	if i%3 == 0 {
		row.Opt = &text
	}
	return row
}

// values returns the row's columns in order.
func (r everyType) values() []any {
	return []any{
		r.I8, r.I16, r.I32, r.I64, r.U8, r.U16, r.U32, r.U64, r.F32, r.F64,
		r.S, r.Low, r.Opt, r.Time, r.Day, r.Map, r.Arr, r.ID, r.Dec, r.Enum, r.Tup, r.Bool,
	}
}

// TestTypes writes up to 100,000 rows of every type in one batch and reads them back, with every compression.
func TestTypes(t *testing.T) {
	s := startServer(t, dataDir(t))
	for name, compression := range compressions() {
		t.Run(name, func(t *testing.T) {
			rows := 10_000
			if name == "none" || name == "lz4" {
				rows = 100_000
			}
			conn := s.database(t, func(o *clickhouse.Options) { o.Compression = compression })
			run(t, conn, createEveryType)
			if err := insertRows(t.Context(), conn, rows, func(i int) []any {
				return rowAt(i).values()
			}); err != nil {
				t.Fatal(err)
			}
			result, err := conn.Query(t.Context(), "SELECT * FROM t ORDER BY U64")
			if err != nil {
				t.Fatal(err)
			}
			i := 0
			for ; result.Next(); i++ {
				if i%1000 != 0 { // a comparison costs more than the row
					continue
				}
				var got everyType
				if err := result.ScanStruct(&got); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(rowAt(i), got); diff != "" {
					t.Fatalf("row %d (-want +got):\n%s", i, diff)
				}
			}
			if err := result.Err(); err != nil || i != rows {
				t.Fatalf("read %d rows, %v, want %d", i, err, rows)
			}
		})
	}
}
