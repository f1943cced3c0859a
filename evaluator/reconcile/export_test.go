package reconcile

import "tocsin/rules"

// StateAt reports whether the windows that end in the step beginning at atNS are surely reached,
// and whether they are possibly reached, given cells of widthNS from fromNS on.
func StateAt(d *rules.Definition, cells []Cell, fromNS, toNS, widthNS, atNS, lateNS int64) (surely, possibly bool) {
	s := newSeries(fromNS, toNS, widthNS)
	for i := range cells {
		s.add(&cells[i])
	}
	s.sum()
	at := s.at(&bound{d.FireMode, int64(d.Threshold), d.Measure()}, d.WindowSeconds, atNS, widthNS, lateNS)
	return at.surely, at.possibly
}
