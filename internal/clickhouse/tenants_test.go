package clickhouse_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"

	"tocsin/cursor"
	"tocsin/evaluator/source"
	"tocsin/internal/chtest"
	"tocsin/internal/clickhouse"
	"tocsin/rules"
)

// share returns the tenants whose hash is in a share.
func share(names []string, index, of uint32) source.Tenants {
	t := source.Tenants{Index: index, Of: of}
	for _, name := range names {
		if uint32(xxhash.Sum64String(name)%uint64(of)) == index {
			t.Names = append(t.Names, name)
		}
	}
	slices.Sort(t.Names)
	return t
}

// TestTenantsAreRead reads few tenants by name and many by their share, some of which have unusual
// names: each is read by its own partition and by no other.
func TestTenantsAreRead(t *testing.T) {
	db := chtest.New(t)
	ch := open(t, db)
	odd := []string{"", "a,b", "it's", `back\slash`, "Ærø", "tab\t", "{x:String}", "%", "a b"}
	for name, count := range map[string]int{"by name": 20, "by share": 3000} {
		t.Run(name, func(t *testing.T) {
			names := slices.Clone(odd)
			var rows []rules.Exchange
			for i := range count {
				names = append(names, name+strconv.Itoa(i)+strings.Repeat("x", 30))
			}
			at := base + int64(count)*1_000_000_000
			for i, tenant := range names {
				e := failed(at+int64(i), strconv.Itoa(i))
				e.TenantID = tenant
				rows = append(rows, e)
			}
			db.Insert(t, rows...)
			const of = 2
			var got []string
			for index := range uint32(of) {
				s := scan(cursor.Position{StartTimeNS: at - 1}, at+int64(len(rows)))
				s.Tenants, s.Limit = share(names, index, of), 10_000
				page, err := ch.Scan(t.Context(), s)
				if err != nil {
					t.Fatal(err)
				}
				o, err := ch.Observe(t.Context(), source.ObserveQuery{
					Tenants: s.Tenants, Statuses: s.Statuses, FromNS: at, ToNS: at + int64(len(rows)), WidthNS: 3600e9,
				})
				if err != nil {
					t.Fatal(err)
				}
				var counted uint64
				for _, f := range o.Fingerprints {
					counted += f.Count
				}
				if int(counted) != len(page.Exchanges) || len(page.Exchanges) != len(s.Tenants.Names) {
					t.Errorf("share %d of %d tenants: %d exchanges, %d counted", index, len(s.Tenants.Names), len(page.Exchanges), counted)
				}
				for _, e := range page.Exchanges {
					got = append(got, e.TenantID)
				}
			}
			slices.Sort(got)
			slices.Sort(names)
			if diff := cmp.Diff(names, got); diff != "" {
				t.Errorf("tenants that were read:\n%s", diff)
			}
		})
	}
}

// TestTheOneTenantOfATable reads a table without a column for the tenant.
func TestTheOneTenantOfATable(t *testing.T) {
	db := chtest.New(t)
	m := clickhouse.Exchanges()
	m.TenantID, m.Tenant = "", "acme"
	ch := openWith(t, db, m)
	db.Insert(t, failed(base, "a"))
	for tenant, want := range map[string]int{"acme": 1, "other": 0} {
		s := scan(cursor.Position{StartTimeNS: base - 1}, base+1)
		s.Tenants = tenants(tenant, "zebra")
		page, err := ch.Scan(t.Context(), s)
		if err != nil || len(page.Exchanges) != want || want > 0 && page.Exchanges[0].TenantID != "acme" {
			t.Errorf("%s reads %+v, %v; want %d", tenant, page.Exchanges, err, want)
		}
	}
}

// TestNoPositionIsCutInTwo has one execution id for many tenants, beginning in one nanosecond, and
// duplicate rows for some: a page contains them all, however small its limit.
func TestNoPositionIsCutInTwo(t *testing.T) {
	db := chtest.New(t)
	db.KeepRows(t)
	ch := open(t, db)
	var names []string
	var rows []rules.Exchange
	for i := range 50 {
		names = append(names, fmt.Sprintf("tenant-%02d", i))
		e := failed(base, "same")
		e.TenantID = names[i]
		rows = append(rows, e)
	}
	db.Insert(t, append(rows, failed(base, "before"), failed(base, "unlike"))...)
	db.Insert(t, rows[:5]...)
	s := scan(cursor.Position{StartTimeNS: base - 1}, base+10)
	s.Tenants = tenants(append(names, "default")...)
	slices.Sort(s.Tenants.Names)
	for _, c := range []struct {
		after       cursor.Position
		limit, want int
		more        bool
	}{
		{s.After, 1, 1, true},
		{s.After, 2, 1, true}, // and not a part of the next group
		{s.After, 56, 56, true},
		{s.After, 57, 57, false},
		{cursor.Position{StartTimeNS: base, ExecutionID: "before"}, 1, 55, true},
		{cursor.Position{StartTimeNS: base, ExecutionID: "before"}, 54, 55, true},
		{cursor.Position{StartTimeNS: base, ExecutionID: "before"}, 55, 55, true},
		{cursor.Position{StartTimeNS: base, ExecutionID: "same"}, 1, 1, false},
	} {
		s.After, s.Limit = c.after, c.limit
		page, err := ch.Scan(t.Context(), s)
		if err != nil || len(page.Exchanges) != c.want || page.More != c.more {
			t.Errorf("%d after %v: %d exchanges, more %v, %v; want %d, %v", c.limit, c.after, len(page.Exchanges), page.More, err, c.want, c.more)
		}
	}
}

// TestObserve compares fingerprints with what was written, in buckets that a split divides, and the
// clock with the server's.
func TestObserve(t *testing.T) {
	const width = int64(1e9)
	db := chtest.New(t)
	db.KeepRows(t)
	ch := open(t, db)
	const second = base / width * width
	db.Insert(t, failed(second, "a"), failed(second+5, "b"), failed(second+6, "c"), failed(second+width, "d"), failed(second+2*width+9, "e"))
	q := source.ObserveQuery{
		Tenants: tenants("default"), Statuses: []rules.Status{rules.Failed}, FromNS: second, ToNS: second + 2*width + 9, WidthNS: width,
	}
	observe := func(q source.ObserveQuery) (map[int64]uint64, map[int64]uint64) {
		t.Helper()
		before := db.Now(t)
		o, err := ch.Observe(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if o.Server == "" || o.NowNS < before || o.NowNS > db.Now(t) {
			t.Errorf("server %q, clock %d; asked at %d", o.Server, o.NowNS, before)
		}
		counts, sums := map[int64]uint64{}, map[int64]uint64{}
		for _, f := range o.Fingerprints {
			counts[f.FromNS], sums[f.FromNS] = f.Count, f.Checksum
		}
		return counts, sums
	}
	counts, sums := observe(q)
	if diff := cmp.Diff(map[int64]uint64{second: 3, second + width: 1}, counts); diff != "" {
		t.Error(diff)
	}
	for split, want := range map[int64]map[int64]uint64{
		second + 6:         {second: 2, second + 6: 1, second + width: 1},
		second + width:     {second: 3, second + width: 1},
		second + width + 1: {second: 3, second + width: 1},
		second + 7:         {second: 3, second + width: 1},
	} {
		q := q
		q.SplitNS = split
		got, parts := observe(q)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("split at %d:\n%s", split-second, diff)
		}
		if split == second+6 && parts[second]+parts[second+6] != sums[second] {
			t.Errorf("the checksums of two parts do not add up: %v, want %d", parts, sums[second])
		}
	}
	// Duplicate rows differ from a single one, until they are merged.
	db.Insert(t, failed(second+5, "b"))
	if twice, changed := observe(q); twice[second] != 4 || changed[second] == sums[second] {
		t.Errorf("a row that is there twice: %v, %v", twice, changed)
	}
	// The watermark ends the range.
	now := db.Now(t)
	db.Insert(t, failed(now-10*width, "past"), failed(now+3600*width, "ahead"))
	q.FromNS, q.ToNS, q.WidthNS = now-20*width, 0, 7200*width
	for settle, want := range map[int64]int{0: 1, 15 * width: 0} {
		q.SettleNS = settle
		counts, _ := observe(q)
		var n int
		for _, c := range counts {
			n += int(c)
		}
		if n != want {
			t.Errorf("up to %d ns before the clock: %v, want %d", settle, counts, want)
		}
	}
	q.FromNS, q.ToNS = 5, 5
	if counts, _ := observe(q); len(counts) != 0 {
		t.Errorf("an empty range holds %v", counts)
	}
}

// TestRowCountsKeepTheOrderOfTheirRanges queries more ranges than fit into a statement.
func TestRowCountsKeepTheOrderOfTheirRanges(t *testing.T) {
	db := chtest.New(t)
	var rows []rules.Exchange
	for i := range int64(40) {
		for j := range i {
			rows = append(rows, failed(base+i*1000+j, fmt.Sprint(i, j)))
		}
	}
	db.Insert(t, rows...)
	var ranges []cursor.Range
	var want []uint64
	for i := range int64(700) {
		ranges = append(ranges, cursor.Range{FromNS: base + (699-i)*1000, ToNS: base + (700-i)*1000})
		want = append(want, 0)
		if 699-i < 40 {
			want[i] = uint64(699 - i)
		}
	}
	for n, part := range map[string][]cursor.Range{"many": ranges, "one": ranges[660:661], "none": nil} {
		got, err := open(t, db).RowCounts(t.Context(), source.RowCountQuery{Tenants: tenants("default", "other"), Ranges: part})
		expected := want[:len(part)]
		if n == "one" {
			expected = want[660:661]
		}
		if err != nil || got.Server == "" || !slices.Equal(got.Counts, expected) {
			t.Errorf("%s: %v, %v; want %v", n, got, err, expected)
		}
	}
}
