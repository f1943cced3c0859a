package reconcile

import "tocsin/rules"

// StateAt returns what is known of the windows that end in the step that begins at an instant,
// of cells of a width from an instant on.
func StateAt(d *rules.Definition, cells []Cell, fromNS, toNS, widthNS, atNS, lateNS int64) (surely, possibly bool) {
	s := newSeries(fromNS, toNS, widthNS)
	for i := range cells {
		s.add(&cells[i])
	}
	s.sum()
	at := s.at(&bound{d.FireMode, int64(d.Threshold), d.Measure()}, d.WindowSeconds, atNS, widthNS, lateNS)
	return at.surely, at.possibly
}
