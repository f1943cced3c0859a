package template

import (
	"strings"
	"unicode/utf8"
)

// nearest returns the known name that was probably meant by name, or "".
func nearest(name string, known []variable, scope Scope) string {
	if utf8.RuneCountInString(name) > 60 {
		return ""
	}
	lower := strings.ToLower(name)
	best, least := "", max(2, len(name)/4)+1
	for _, k := range known {
		if scope == InTexts && !k.InTexts {
			continue
		}
		candidate := strings.ToLower(k.Name)
		_, last, _ := strings.Cut(candidate, ".")
		d := min(distance(lower, candidate), 1+distance(lower, last))
		if d < least {
			best, least = k.Name, d
		}
	}
	return best
}

// distance is the number of characters to insert, delete or replace to turn a into b.
func distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range from {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range to {
			change := diagonal
			if x != y {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(to)]
}
