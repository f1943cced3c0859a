package postgres

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"pgregory.net/rapid"

	"tocsin/internal/postgres/pgq"
	"tocsin/rules"
)

// TestArraysAreTheDriversOwn compares each array with what the driver's own codec, which is
// independent of ours, reads from it and writes for it.
func TestArraysAreTheDriversOwn(t *testing.T) {
	ours, drivers := pgtype.NewMap(), pgtype.NewMap()
	registerTypes(ours)
	id := uuid.MustParse("0197b2a4-0000-7000-8000-00ff7f80ffff")
	for name, try := range map[string]struct {
		oid   uint32
		value any
	}{
		"ids":        {pgtype.UUIDArrayOID, []uuid.UUID{id, uuid.Nil, uuid.Max}},
		"no ids":     {pgtype.UUIDArrayOID, []uuid.UUID{}},
		"null":       {pgtype.UUIDArrayOID, []uuid.UUID(nil)},
		"texts":      {pgtype.TextArrayOID, []string{"", "a", "ü\"{}, null", "NULL"}},
		"numbers":    {pgtype.Int8ArrayOID, []int64{0, -1, 1 << 62, -1 << 63}},
		"truths":     {pgtype.BoolArrayOID, []bool{true, false}},
		"documents":  {pgtype.JSONBArrayOID, [][]byte{[]byte(`{"a": "b"}`), []byte(`[]`)}},
		"none":       {pgtype.JSONBArrayOID, [][]byte{nil, []byte(`{}`), nil}},
		"heads":      {pgtype.JSONArrayOID, [][]byte{[]byte(`{"a": "b"}`), nil}},
		"small":      {pgtype.Int4ArrayOID, []int32{0, -1, 1 << 30, -1 << 31}},
		"bytes":      {pgtype.ByteaArrayOID, [][]byte{{0, 255}, nil, {}}},
		"an id":      {pgtype.UUIDOID, id},
		"id or null": {pgtype.UUIDOID, (*uuid.UUID)(nil)},
		"id, or not": {pgtype.UUIDOID, &id},
	} {
		own, err := ours.Encode(try.oid, pgtype.BinaryFormatCode, try.value, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		want, err := drivers.Encode(try.oid, pgtype.BinaryFormatCode, try.value, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, own); diff != "" {
			t.Errorf("%s: the driver's and ours differ:\n%s", name, diff)
		}
	}
}

// TestIDsAreRead reads ids in every form in which rows contain them.
func TestIDsAreRead(t *testing.T) {
	m := pgtype.NewMap()
	registerTypes(m)
	id := uuid.New()
	read := uuid.New()
	if err := m.Scan(pgtype.UUIDOID, pgx.BinaryFormatCode, id[:], &read); err != nil || read != id {
		t.Errorf("Scan = %v, %v, want %v", read, err, id)
	}
	if err := m.Scan(pgtype.UUIDOID, pgx.TextFormatCode, []byte(id.String()), &read); err != nil || read != id {
		t.Errorf("Scan of text = %v, %v, want %v", read, err, id)
	}
	if err := m.Scan(pgtype.UUIDOID, pgx.BinaryFormatCode, id[:7], &read); err == nil {
		t.Error("a part of an id was read")
	}
	may := &read
	if err := m.Scan(pgtype.UUIDOID, pgx.BinaryFormatCode, nil, &may); err != nil || may != nil {
		t.Errorf("Scan of null = %v, %v", may, err)
	}
	if err := m.Scan(pgtype.UUIDOID, pgx.BinaryFormatCode, id[:], &may); err != nil || *may != id {
		t.Errorf("Scan = %v, %v, want %v", may, err, id)
	}
	encoded, err := m.Encode(pgtype.UUIDArrayOID, pgx.BinaryFormatCode, []uuid.UUID{id, uuid.Nil}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var list []uuid.UUID
	if err := m.Scan(pgtype.UUIDArrayOID, pgx.BinaryFormatCode, encoded, &list); err != nil || !cmp.Equal(list, []uuid.UUID{id, uuid.Nil}) {
		t.Errorf("Scan of an array = %v, %v", list, err)
	}
}

// TestAStoredExchangeIsRead compares what is read of an exchange with what was written.
func TestAStoredExchangeIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, number := rapid.String(), rapid.Int64()
		raw := rules.Exchange{
			TenantID: text.Draw(t, "tenant"), StartTimeNS: number.Draw(t, "start"), ExecutionID: text.Draw(t, "execution"),
			Environment: text.Draw(t, "environment"), Application: text.Draw(t, "application"), Route: text.Draw(t, "route"),
			Status: rules.Status(text.Draw(t, "status")), EndTimeNS: rapid.Ptr(number, true).Draw(t, "end"), DurationNS: number.Draw(t, "duration"),
			ErrorType: text.Draw(t, "type"), ErrorMessage: text.Draw(t, "message"), ErrorStack: text.Draw(t, "stack"),
			CorrelationID: text.Draw(t, "correlation"), Attributes: rapid.MapOf(text, text).Draw(t, "attributes"),
		}
		e := raw.Clean()
		written, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		a, err := alertOf(pgq.Alert{Exchange: written}, "", []byte("{}"))
		if diff := cmp.Diff(e, a.Exchange, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("%s is read otherwise: %v\n%s", written, err, diff)
		}
	})
	if _, err := alertOf(pgq.Alert{Exchange: []byte(`{"startTimeNs": "1"}`)}, "", []byte("{}")); err == nil {
		t.Error("a text for a number is read")
	}
}
