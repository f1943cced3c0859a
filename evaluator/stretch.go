package evaluator

import "slices"

// stretch is a range of start times, fromNS inclusive, toNS exclusive.
type stretch struct{ fromNS, toNS int64 }

// runs joins buckets, each from a start time in it to its end, ascending, with
// gaps of at most so many buckets into ranges.
func runs(froms []int64, widthNS, gap int64) []stretch {
	var out []stretch
	for _, from := range froms {
		begin := floor(from, widthNS)
		if n := len(out); n > 0 && begin-out[n-1].toNS <= gap*widthNS {
			out[n-1].toNS = begin + widthNS
			continue
		}
		out = append(out, stretch{from, begin + widthNS})
	}
	return out
}

// cut parts ranges into some of a length at most, a multiple of a second, that begin
// at whole seconds but for the first.
func cut(ranges []stretch, lengthNS int64) []stretch {
	out := make([]stretch, 0, len(ranges))
	for _, r := range ranges {
		for end := floor(r.fromNS, secondNS) + lengthNS; end < r.toNS; end += lengthNS {
			out = append(out, stretch{r.fromNS, end})
			r.fromNS = end
		}
		out = append(out, r)
	}
	return out
}

// firstOfSeconds sorts start times in place and returns the first of each second.
func firstOfSeconds(starts []int64) []int64 {
	slices.Sort(starts)
	return slices.CompactFunc(starts, func(a, b int64) bool { return floor(a, secondNS) == floor(b, secondNS) })
}

func floor(ns, width int64) int64 { return ns - ((ns%width)+width)%width }

func ceil(ns, width int64) int64 { return -floor(-ns, width) }
