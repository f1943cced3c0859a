package clickhouse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"tocsin/evaluator/source"
	"tocsin/evaluator/window/counting"
	"tocsin/rules"
)

// newestMost is how many exchanges, with their stacks, one query for newest exchanges reads. It reads fewer where these are
// larger than a scan may hold.
const newestMost = 100

// newestQuery reads the newest counted exchanges of groups of windows.
func newestQuery(m *Mapping, windows []counting.NewestQuery) (query, error) {
	queries := make([]counting.Query, len(windows))
	for i := range windows {
		queries[i] = windows[i].Query
		groups := windows[i].Groups
		queries[i].StartFromNS = groups[0].NewestStartNS
		for _, g := range groups {
			queries[i].StartFromNS = min(queries[i].StartFromNS, g.NewestStartNS)
		}
	}
	r, err := m.windowRows(queries, func(b *builder, number int) string {
		w := &windows[number]
		key := ""
		if w.Grouping.By == rules.GroupByAttribute {
			key = b.text("group_key", w.Grouping.Attribute)
		}
		list := make([]string, len(w.Groups))
		for i, g := range w.Groups {
			n := strconv.Itoa(i)
			list[i] = fmt.Sprintf("(%s, %s, %s)", b.text("group_"+n, g.Group), b.integer("ended_"+n, g.NewestEndedNS), b.integer("start_"+n, g.NewestStartNS))
		}
		return fmt.Sprintf("(%s, tocsin_ended, toUnixTimestamp64Nano(%s)) IN (%s)", m.group(w.Grouping.By, key), operand(m.StartTime), strings.Join(list, ", "))
	})
	if err != nil {
		return query{}, fmt.Errorf("read newest exchanges: %w", err)
	}
	return query{parameters: r.parameters, sql: fmt.Sprintf(`
WITH %s AS tocsin_ended
SELECT
    %s,
    %s
FROM %s
ORDER BY tocsin_window, %s DESC
LIMIT 1 BY tocsin_window, %s`, m.ended(), codeWindow, strings.Join(m.columns(), ",\n    "), r.from, operand(m.ExecutionID), r.group)}, nil
}

// group returns the expression by which a rule groups. key is the key of the attribute.
func (m *Mapping) group(by rules.GroupBy, key string) string {
	switch by {
	case rules.GroupByRoute:
		return operand(m.Route)
	case rules.GroupByApplication:
		return operand(m.Application)
	case rules.GroupByEnvironment:
		return operand(m.Environment)
	case rules.GroupByErrorType:
		return textOf(m.ErrorType)
	case rules.GroupByAttribute:
		return m.attributeGroup(key)
	case rules.GroupByNothing:
	}
	return "''"
}

// attributeGroup returns the value of [rules.AttributeGroup] for the attribute with a key. If a key
// occurs several times, the last value counts, as in a Go map. A missing attribute is like an empty
// one.
func (m *Mapping) attributeGroup(key string) string {
	value := fmt.Sprintf("mapValues(%[1]s)[arrayLastIndex(tocsin_key -> tocsin_key = %[2]s, mapKeys(%[1]s))]", m.attributes(), key)
	return fmt.Sprintf("arrayMap(tocsin_value -> if(length(tocsin_value) <= %d, tocsin_value, concat('%s', lower(hex(SHA256(tocsin_value))))), [%s])[1]",
		rules.MaxGroupBytes, rules.LongGroupPrefix, value)
}

// wanted identifies a group whose newest exchange is wanted.
type wanted struct{ window, group int }

// Newest returns the newest counted exchanges of groups of windows.
func (s *Source) Newest(ctx context.Context, windows []counting.NewestQuery) ([][]rules.Exchange, error) {
	newest := make([][]rules.Exchange, len(windows))
	var all []wanted
	for i := range windows {
		groups := windows[i].Groups
		newest[i] = make([]rules.Exchange, len(groups))
		own := make([]wanted, len(groups))
		for n := range groups {
			own[n] = wanted{i, n}
		}
		// A query reads from the start of the earliest of its exchanges.
		slices.SortFunc(own, func(a, b wanted) int {
			return cmp.Compare(groups[a.group].NewestStartNS, groups[b.group].NewestStartNS)
		})
		all = append(all, own...)
	}
	for some := range slices.Chunk(all, newestMost) {
		if err := s.readNewest(ctx, windows, some, newest); err != nil {
			return nil, fmt.Errorf("read newest exchanges: %w", err)
		}
	}
	return newest, nil
}

// readNewest fills in the exchanges of some groups.
func (s *Source) readNewest(ctx context.Context, windows []counting.NewestQuery, some []wanted, newest [][]rules.Exchange) error {
	var asked []counting.NewestQuery
	// numbers holds the number of each window that is asked about; places holds where its groups
	// belong.
	var numbers []int
	places := map[int]map[string]int{}
	for _, want := range some {
		if len(numbers) == 0 || numbers[len(numbers)-1] != want.window {
			numbers = append(numbers, want.window)
			asked = append(asked, counting.NewestQuery{Query: windows[want.window].Query})
			places[want.window] = map[string]int{}
		}
		g := windows[want.window].Groups[want.group]
		last := &asked[len(asked)-1]
		last.Groups = append(last.Groups, g)
		places[want.window][g.Group] = want.group
	}
	q, err := newestQuery(&s.mapping, asked)
	if err != nil {
		return err
	}
	middle := len(some) / 2
	if middle > 0 {
		q.maxBytes = s.scanBytes
	}
	err = source.ErrTooMuch
	if middle == 0 || q.size() <= maxStatement {
		err = s.each(ctx, q, len(some), func(rows driver.Rows) error {
			var number uint16
			e, err := readExchange(numbered{rows, &number})
			if err != nil {
				return err
			}
			of := numbers[number]
			e.TenantID = windows[of].TenantID
			if at, ok := places[of][windows[of].Grouping.Of(&e)]; ok {
				newest[of][at] = e
			}
			return nil
		})
	}
	if middle == 0 || !errors.Is(err, source.ErrTooMuch) {
		return err
	}
	if err := s.readNewest(ctx, windows, some[:middle], newest); err != nil {
		return err
	}
	return s.readNewest(ctx, windows, some[middle:], newest)
}

// numbered is rows of exchanges with a number in front.
type numbered struct {
	driver.Rows

	number *uint16
}

// Scan reads the number, and the other columns into dest.
func (n numbered) Scan(dest ...any) error { return n.Rows.Scan(append([]any{n.number}, dest...)...) }
