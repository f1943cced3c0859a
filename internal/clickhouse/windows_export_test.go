package clickhouse

import (
	"maps"
	"slices"
	"strings"

	"tocsin/evaluator/window"
)

// WindowStatements returns the statements for windows with their parameters: the tally,
// the count by conditions, and the newest exchanges.
func WindowStatements(m Mapping, t window.TallyQuery, windows []window.NewestQuery) (string, error) {
	queries := make([]window.Query, len(windows))
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
	var texts []string
	for _, q := range []query{tallyQuery(&m, t), count, newest} {
		text := strings.TrimPrefix(q.sql, "\n") + "\n"
		for _, name := range slices.Sorted(maps.Keys(q.parameters)) {
			text += "-- " + name + " = " + q.parameters[name] + "\n"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n"), nil
}
