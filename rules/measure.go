package rules

import "math"

// Measure is what a RatioInWindow or DurationInWindow rule measures, in addition to its window.
type Measure struct {
	// Percent is the minimum ratio of a RatioInWindow rule in percent, at least 0.001, in steps of a
	// thousandth.
	Percent float64 `json:"percent,omitempty"`
	// ShortWindowSeconds is the length of a second window of a RatioInWindow rule, in which its
	// ratio must be reached as well. So the alert fires only while the problem lasts, and resolves
	// soon after it ends. 0 means no second window.
	ShortWindowSeconds int `json:"shortWindowSeconds,omitempty"`
	// Percentile is 50, 95 or 99. DurationMS is its bound in a DurationInWindow rule: this
	// percentage of the exchanges last no longer than its value.
	Percentile int   `json:"percentile,omitempty"`
	DurationMS int64 `json:"durationMs,omitempty"`
	// MinVolume is how many exchanges the window must at least contain, for a ratio or a percentile
	// to count.
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

// Thousandths returns a percentage in thousandths of a percent, in which ratios are compared
// exactly.
func Thousandths(percent float64) int64 { return int64(math.Round(percent * 1000)) }

// inThousandths reports whether a percentage has no digits beyond thousandths.
func inThousandths(percent float64) bool {
	return math.Abs(percent*1000-math.Round(percent*1000)) < 1e-6
}

// Rank returns which of n durations, in ascending order and counted from 1, is their percentile.
func Rank(percentile int, n int64) int64 { return (int64(percentile)*n + 99) / 100 }
