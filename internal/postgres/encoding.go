package postgres

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// registerTypes lets a connection encode ids, and the arrays in which pages of rows travel, without
// reflection. The driver would format each id as text and parse that again, which costs more than
// the rest of a commit does in this process.
func registerTypes(m *pgtype.Map) {
	m.RegisterType(&pgtype.Type{Name: "uuid", OID: pgtype.UUIDOID, Codec: idCodec{}})
	registerArray(m, pgtype.UUIDArrayOID, pgtype.UUIDOID, binaryForm[uuid.UUID]{
		size: func(uuid.UUID) int { return 16 },
		add:  func(buf []byte, v uuid.UUID) []byte { return append(buf, v[:]...) },
	})
	registerArray(m, pgtype.TextArrayOID, pgtype.TextOID, binaryForm[string]{
		size: func(v string) int { return len(v) },
		add:  func(buf []byte, v string) []byte { return append(buf, v...) },
	})
	registerArray(m, pgtype.Int8ArrayOID, pgtype.Int8OID, binaryForm[int64]{
		size: func(int64) int { return 8 },
		add:  func(buf []byte, v int64) []byte { return binary.BigEndian.AppendUint64(buf, uint64(v)) },
	})
	registerArray(m, pgtype.Int4ArrayOID, pgtype.Int4OID, binaryForm[int32]{
		size: func(int32) int { return 4 },
		add:  func(buf []byte, v int32) []byte { return binary.BigEndian.AppendUint32(buf, uint32(v)) },
	})
	registerArray(m, pgtype.BoolArrayOID, pgtype.BoolOID, binaryForm[bool]{
		size: func(bool) int { return 1 },
		add: func(buf []byte, v bool) []byte {
			if v {
				return append(buf, 1)
			}
			return append(buf, 0)
		},
	})
	const jsonbVersion = 1
	null := func(v []byte) bool { return v == nil }
	registerArray(m, pgtype.JSONBArrayOID, pgtype.JSONBOID, binaryForm[[]byte]{
		size: func(v []byte) int { return 1 + len(v) },
		add:  func(buf, v []byte) []byte { return append(append(buf, jsonbVersion), v...) },
		null: null,
	})
	registerArray(m, pgtype.JSONArrayOID, pgtype.JSONOID, binaryForm[[]byte]{
		size: func(v []byte) int { return len(v) },
		add:  func(buf, v []byte) []byte { return append(buf, v...) },
		null: null,
	})
	registerArray(m, pgtype.ByteaArrayOID, pgtype.ByteaOID, binaryForm[[]byte]{
		size: func(v []byte) int { return len(v) },
		add:  func(buf, v []byte) []byte { return append(buf, v...) },
		null: null,
	})
}

// binaryForm is how Postgres receives a value. Null says which values are null; it is nil if none
// is.
type binaryForm[T any] struct {
	size func(v T) int
	add  func(buf []byte, v T) []byte
	null func(v T) bool
}

// idCodec is the driver's codec of uuid that also knows [uuid.UUID].
type idCodec struct{ pgtype.UUIDCodec }

func (c idCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := value.(uuid.UUID); ok && format == pgtype.BinaryFormatCode {
		return idPlan{}
	}
	return c.UUIDCodec.PlanEncode(m, oid, format, value)
}

func (c idCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if _, ok := target.(*uuid.UUID); ok && format == pgtype.BinaryFormatCode {
		return idPlan{}
	}
	return c.UUIDCodec.PlanScan(m, oid, format, target)
}

// idPlan encodes and scans ids in binary form.
type idPlan struct{}

func (idPlan) Encode(value any, buf []byte) ([]byte, error) {
	id := value.(uuid.UUID) //nolint:forcetypeassert // planned for this type alone
	return append(buf, id[:]...), nil
}

func (idPlan) Scan(src []byte, target any) error {
	id := target.(*uuid.UUID) //nolint:forcetypeassert // planned for this type alone
	if src == nil {
		*id = uuid.Nil
		return nil
	}
	if len(src) != len(id) {
		return fmt.Errorf("a uuid of %d bytes", len(src))
	}
	copy(id[:], src)
	return nil
}

// arrayCodec is the driver's codec of an array that also knows []T.
type arrayCodec[T any] struct {
	*pgtype.ArrayCodec
	form binaryForm[T]
}

func registerArray[T any](m *pgtype.Map, oid, elementOID uint32, form binaryForm[T]) {
	element, _ := m.TypeForOID(elementOID)
	m.RegisterType(&pgtype.Type{
		Name: "_" + element.Name, OID: oid, Codec: arrayCodec[T]{&pgtype.ArrayCodec{ElementType: element}, form},
	})
}

func (c arrayCodec[T]) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := value.([]T); ok && format == pgtype.BinaryFormatCode {
		return c
	}
	return c.ArrayCodec.PlanEncode(m, oid, format, value)
}

// Encode appends an array of one dimension as Postgres receives it; nil is null.
func (c arrayCodec[T]) Encode(value any, buf []byte) ([]byte, error) {
	list := value.([]T) //nolint:forcetypeassert // planned for this type alone
	if list == nil {
		return nil, nil
	}
	const dimensions, lowerBound, isNull = 1, 1, math.MaxUint32
	nulls := uint32(0)
	if c.form.null != nil && slices.ContainsFunc(list, c.form.null) {
		nulls = 1
	}
	const headBytes, lengthBytes = 20, 4
	bytes := headBytes + lengthBytes*len(list)
	for _, v := range list {
		bytes += c.form.size(v)
	}
	buf = slices.Grow(buf, bytes)
	for _, field := range []uint32{dimensions, nulls, c.ElementType.OID, uint32(len(list)), lowerBound} {
		buf = binary.BigEndian.AppendUint32(buf, field)
	}
	for _, v := range list {
		if nulls > 0 && c.form.null(v) {
			buf = binary.BigEndian.AppendUint32(buf, isNull)
			continue
		}
		buf = c.form.add(binary.BigEndian.AppendUint32(buf, uint32(c.form.size(v))), v)
	}
	return buf, nil
}
