package clickhouse

import (
	"maps"
	"slices"
	"strings"

	"tocsin/evaluator/watch"
	"tocsin/evaluator/window/counting"
)

// WindowStatements returns the statements for windows with their parameters: tallies,
// the count by conditions, the newest exchanges, when exchanges ended, and the count
// of further windows.
func WindowStatements(m Mapping, tallies []counting.TallyQuery, windows []counting.NewestQuery, further [][]counting.Query, arrivals watch.ArrivalsQuery) (string, error) {
	queries := make([]counting.Query, len(windows))
	for i := range windows {
		queries[i] = windows[i].Query
	}
	count, err := windowsQuery(&m, queries)
	if err != nil {
		return "", err
	}
	newest, err := newestQuery(&m, windows)
	if err != nil {
		return "", err
	}
	var all []query
	for _, t := range tallies {
		all = append(all, tallyQuery(&m, t))
	}
	all = append(all, count, newest, endedQuery(&m, arrivals))
	for _, some := range further {
		q, err := windowsQuery(&m, some)
		if err != nil {
			return "", err
		}
		all = append(all, q)
	}
	var texts []string
	for _, q := range all {
		text := strings.TrimPrefix(q.sql, "\n") + "\n"
		for _, name := range slices.Sorted(maps.Keys(q.parameters)) {
			text += "-- " + name + " = " + q.parameters[name] + "\n"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n"), nil
}

// MiddleOf returns where windows may be split into two statements; 0 if they must not be.
func MiddleOf(windows []counting.Query) int { return middleOf(windows) }
