package rules

import "math"

// Measure is what a RatioInWindow or DurationInWindow rule measures, beside its window.
type Measure struct {
	// Percent is the least share of a RatioInWindow rule, of a hundred, from 0.001 on, in
	// thousandths.
	Percent float64 `json:"percent,omitempty"`
	// ShortWindowSeconds is the length of a second window of a RatioInWindow rule, in
	// which its share must be reached as well: the alert fires only while things are bad
	// now, and resolves soon after they get better. 0 is no second window.
	ShortWindowSeconds int `json:"shortWindowSeconds,omitempty"`
	// Percentile, of 50, 95 and 99, is the one that DurationMS bounds in a DurationInWindow
	// rule: of a hundred exchanges as many last no longer than its value.
	Percentile int   `json:"percentile,omitempty"`
	DurationMS int64 `json:"durationMs,omitempty"`
	// MinVolume is how many exchanges the window must hold, at least, for either to count.
	MinVolume int `json:"minVolume,omitempty"`
}

// Measure returns what d measures.
func (d *Definition) Measure() Measure {
	return Measure{
		Percent: d.Percent, ShortWindowSeconds: d.ShortWindowSeconds, Percentile: d.Percentile, DurationMS: d.DurationMS, MinVolume: d.MinVolume,
	}
}

// SetMeasure is the reverse of [Definition.Measure].
func (d *Definition) SetMeasure(m Measure) {
	d.Percent, d.ShortWindowSeconds, d.Percentile, d.DurationMS, d.MinVolume = m.Percent, m.ShortWindowSeconds, m.Percentile, m.DurationMS, m.MinVolume
}

// Thousandths returns a percentage in thousandths of a percent, in which shares are
// compared exactly.
func Thousandths(percent float64) int64 { return int64(math.Round(percent * 1000)) }

// inThousandths reports whether a percentage has no digits beyond thousandths.
func inThousandths(percent float64) bool {
	return math.Abs(percent*1000-math.Round(percent*1000)) < 1e-6
}

// Rank returns which of n durations, from the shortest on and counted from 1, is their
// percentile.
func Rank(percentile int, n int64) int64 { return (int64(percentile)*n + 99) / 100 }
