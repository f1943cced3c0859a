package cursor_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tocsin/cursor"
)

func TestStringAndDecode(t *testing.T) {
	for name, c := range map[string]struct {
		position cursor.Position
		text     string
	}{
		"nanoseconds":   {cursor.Position{StartTimeNS: 1_795_244_520_123_456_789, ExecutionID: "a"}, "2026-11-21T07:02:00.123456789Z|a"},
		"whole seconds": {cursor.Position{StartTimeNS: 1_795_244_520_000_000_000, ExecutionID: "a"}, "2026-11-21T07:02:00.000000000Z|a"},
		"empty id":      {cursor.Position{StartTimeNS: 0}, "1970-01-01T00:00:00.000000000Z|"},
		"before 1970":   {cursor.Position{StartTimeNS: -1, ExecutionID: "x"}, "1969-12-31T23:59:59.999999999Z|x"},
		"bars in id":    {cursor.Position{StartTimeNS: 1, ExecutionID: "a|b|"}, "1970-01-01T00:00:00.000000001Z|a|b|"},
		"NUL in id":     {cursor.Position{StartTimeNS: 1, ExecutionID: "a\x00"}, "1970-01-01T00:00:00.000000001Z|hex:6100"},
		"reserved id":   {cursor.Position{StartTimeNS: 1, ExecutionID: "hex:61"}, "1970-01-01T00:00:00.000000001Z|hex:6865783a3631"},
		"first":         {cursor.Position{StartTimeNS: cursor.MinStartTimeNS}, "1900-01-01T00:00:00.000000000Z|"},
		"last":          {cursor.Position{StartTimeNS: cursor.MaxStartTimeNS}, "2262-04-11T23:47:16.854775807Z|"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.position.String(); got != c.text {
				t.Errorf("String() = %q, want %q", got, c.text)
			}
			got, err := cursor.Decode(c.text)
			if err != nil || got != c.position {
				t.Errorf("Decode(%q) = %+v, %v; want %+v", c.text, got, err, c.position)
			}
		})
	}
}

func TestDecodeOtherZones(t *testing.T) {
	got, err := cursor.Decode("2026-11-21T08:02:00.5+01:00|a")
	if err != nil {
		t.Fatal(err)
	}
	if want := cursor.At(time.Unix(1_795_244_520, 500_000_000)).StartTimeNS; got.StartTimeNS != want {
		t.Errorf("start time %d, want %d", got.StartTimeNS, want)
	}
}

func TestDecodeFailsClosed(t *testing.T) {
	for name, text := range map[string]string{
		"empty":               "",
		"no bar":              "2026-11-21T07:02:00Z",
		"no time":             "|a",
		"no zone":             "2026-11-21T07:02:00|a",
		"seconds since 1970":  "1795244520|a",
		"finer than ns":       "2026-11-21T07:02:00.1234567891Z|a",
		"finer, with a comma": "2026-11-21T07:02:00,1234567891Z|a",
		"before 1900":         "1899-12-31T23:59:59.999999999Z|a",
		"after int64":         "2262-04-11T23:47:16.854775808Z|a",
		"NUL":                 "2026-11-21T07:02:00Z|a\x00",
		"invalid UTF-8":       "2026-11-21T07:02:00Z|\xff",
		"bad hexadecimal":     "2026-11-21T07:02:00Z|hex:zz",
		"hashed id":           "2026-11-21T07:02:00Z|sha256:00",
		"blank before":        " 2026-11-21T07:02:00Z|a",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := cursor.Decode(text)
			if !errors.Is(err, cursor.ErrMalformed) || got != (cursor.Position{}) {
				t.Errorf("Decode(%q) = %+v, %v; want ErrMalformed", text, got, err)
			}
		})
	}
}

// rawID draws ids as hostile as a ClickHouse String allows.
func rawID() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[a-c|:]{0,4}`),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 8), func(b []byte) string { return string(b) }),
		rapid.Map(rapid.SampledFrom([]string{"hex:", "sha256:", "hex:00", "\xff", "\x00"}), func(s string) string { return s }),
		rapid.Map(rapid.IntRange(500, 520), func(n int) string { return strings.Repeat("x", n) }),
	)
}

func position() *rapid.Generator[cursor.Position] {
	return rapid.Custom(func(t *rapid.T) cursor.Position {
		return cursor.Position{
			StartTimeNS: rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(cursor.MinStartTimeNS, cursor.MaxStartTimeNS)).Draw(t, "ns"),
			ExecutionID: rawID().Draw(t, "id"),
		}
	})
}

func TestEveryPositionSurvivesItsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := position().Draw(t, "position")
		got, err := cursor.Decode(p.String())
		if err != nil || got != p {
			t.Fatalf("Decode(%q) = %+v, %v; want %+v", p.String(), got, err, p)
		}
	})
}

func TestOrderIsTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q, r := position().Draw(t, "p"), position().Draw(t, "q"), position().Draw(t, "r")
		if p.Compare(q) != -q.Compare(p) {
			t.Fatal("not antisymmetric")
		}
		if (p.Compare(q) == 0) != (p == q) {
			t.Fatal("equal in order but not in value, or the reverse")
		}
		ordered := []cursor.Position{p, q, r}
		slices.SortFunc(ordered, cursor.Position.Compare)
		if ordered[0].After(ordered[1]) || ordered[1].After(ordered[2]) || ordered[0].After(ordered[2]) {
			t.Fatal("not transitive")
		}
	})
}

func TestKeysAreCleanBoundedAndApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rawID().Draw(t, "a"), rawID().Draw(t, "b")
		ka, kb := cursor.Key(a), cursor.Key(b)
		if (a == b) != (ka == kb) {
			t.Fatalf("ids %q and %q have keys %q and %q", a, b, ka, kb)
		}
		if len(ka) > cursor.MaxKeyBytes || strings.ToValidUTF8(ka, "") != ka || strings.ContainsRune(ka, 0) {
			t.Fatalf("key %q cannot be stored", ka)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add("2026-11-21T07:02:00.123456789Z|a|b")
	f.Add("2026-11-21T07:02:00,5+01:00|hex:00")
	f.Add("|")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := cursor.Decode(text)
		if err != nil {
			return
		}
		again, err := cursor.Decode(p.String())
		if err != nil || again != p {
			t.Fatalf("Decode(%q) = %+v, which decodes again as %+v, %v", text, p, again, err)
		}
	})
}
