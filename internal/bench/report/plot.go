package report

import (
	"encoding/xml"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// Measures of a plot in units of its view box: the width, the margin around everything, the lines
// above the bars and below them, and each bar with its name above it.
const (
	plotWidth = 760
	margin    = 16
	above     = 48
	below     = 30
	barPitch  = 42
	barThick  = 16
)

// plotStyle is the style of the project's diagrams (docs/pictures), in a light and a dark theme.
const plotStyle = `<style>
  .p{fill:#f6f8fa;stroke:#d0d7de}.a{stroke:#1f2328;stroke-width:1.3;fill:none}.g{stroke:#d0d7de}.m{stroke:#57606a;stroke-dasharray:5 4;stroke-width:1.3}
  text{font:14px system-ui,sans-serif;fill:#1f2328}.s{font-size:13px;fill:#57606a}.t{font-size:16px;font-weight:600}
  .ours{fill:#2672b8}.other{fill:#8c959f}.reached{fill:#2da44e}.missed{fill:#d1242f}
  @media (prefers-color-scheme:dark){.p{fill:#161b22;stroke:#30363d}.a{stroke:#c9d1d9}.g{stroke:#30363d}.m{stroke:#9198a1}text{fill:#e6edf3}.s{fill:#9198a1}` +
	`.ours{fill:#388bfd}.other{fill:#6e7681}.reached{fill:#238636}.missed{fill:#da3633}}
</style>
`

// bar of a plot: a value with what is to be written at its end. Its class names its colour.
type bar struct {
	name, label      string
	value, low, high float64
	class            string
}

// Plots writes the plots of a run into a directory, and returns their names. What
// was refused is not drawn.
func (r *Run) Plots(dir string) ([]string, error) {
	var names []string
	if bars := r.targets(); len(bars) > 0 {
		if err := draw(filepath.Join(dir, "targets.svg"), "How far each target is reached (1 is the target; more is better)", bars, true); err != nil {
			return nil, err
		}
		names = append(names, "targets.svg")
	}
	for i := range r.Results {
		result := &r.Results[i]
		if result.Refused != "" || len(result.Bars) == 0 {
			continue
		}
		var bars []bar
		for _, b := range result.Bars {
			class := "other"
			if strings.HasPrefix(b.Name, "Tocsin") {
				class = "ours"
			}
			bars = append(bars, bar{b.Name, Number(b.Median), b.Median, b.Low, b.High, class})
		}
		name := strings.ToLower(result.ID) + ".svg"
		if err := draw(filepath.Join(dir, name), result.ID+" "+result.Title+", "+result.BarsUnit, bars, false); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// targets makes a bar of each figure that has a bound. It is cut off at twice the
// target, so that one far better does not hide the others.
func (r *Run) targets() []bar {
	const most = 2
	var bars []bar
	for i := range r.Results {
		result := &r.Results[i]
		if result.Refused != "" {
			continue
		}
		for j := range result.Figures {
			f := &result.Figures[j]
			if f.Bound == nil || f.Bound.Value == 0 {
				continue
			}
			part := func(v float64) float64 {
				if f.Bound.AtMost {
					v, f := f.Bound.Value, max(v, 1e-9)
					return min(v/f, most)
				}
				return min(v/f.Bound.Value, most)
			}
			label, class := Number(f.Median)+suffix(f.Unit)+" ("+f.Bound.text(f.Unit)+")", "reached"
			if !f.Reached() {
				label, class = label+", not reached", "missed"
			}
			low, high := part(f.Low), part(f.High)
			bars = append(bars, bar{result.ID + " " + f.Name, label, part(f.Median), min(low, high), max(low, high), class})
		}
	}
	return bars
}

// draw draws horizontal bars, the first on top, with their spreads. With target, a line marks 1.
func draw(path, title string, bars []bar, target bool) error {
	most := 0.0
	for _, b := range bars {
		most = max(most, b.value, b.high)
	}
	if target {
		most = max(most, 1)
	}
	// A third of the width is for the labels at the ends of the bars.
	scale := (plotWidth - 2*margin) / (1.4 * max(most, 1e-9))
	at := func(v float64) float64 { return margin + v*scale }
	height := above + barPitch*len(bars) + below
	foot := height - below

	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" aria-labelledby=\"t\">\n<title id=\"t\">%s</title>\n%s", plotWidth, height, escape(title), plotStyle)
	fmt.Fprintf(&b, "<rect class=\"p\" x=\"1\" y=\"1\" width=\"%d\" height=\"%d\" rx=\"10\"/>\n", plotWidth-2, height-2)
	fmt.Fprintf(&b, "<text class=\"t\" x=\"%d\" y=\"28\">%s</text>\n", margin, escape(title))
	step := tickStep(most)
	for n := 0; float64(n)*step <= most*1.001; n++ {
		v := float64(n) * step
		fmt.Fprintf(&b, "<path class=\"g\" d=\"M%.1f %dV%d\"/><text class=\"s\" x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%s</text>\n", at(v), above-6, foot, at(v), foot+18, anchor(n), Number(v))
	}
	if target {
		fmt.Fprintf(&b, "<path class=\"m\" d=\"M%.1f %dV%d\"/>\n", at(1), above-6, foot)
	}
	for i, each := range bars {
		// The name is above the bar: beside it, it would need a width that depends on the reader's fonts.
		top := above + barPitch*i
		bar := top + 18
		middle := bar + barThick/2
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\">%s</text>\n", margin, top+13, escape(each.name))
		fmt.Fprintf(&b, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>", each.class, margin, bar, each.value*scale, barThick)
		if each.high > each.low {
			fmt.Fprintf(&b, "<path class=\"a\" d=\"M%.1f %dv8m0-4H%.1fm0-4v8\"/>", at(each.low), middle-4, at(each.high))
		}
		fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%d\">%s</text>\n", at(max(each.high, each.value))+6, middle+5, escape(each.label))
	}
	b.WriteString("</svg>\n")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil { //nolint:gosec // documentation
		return fmt.Errorf("draw %s: %w", path, err)
	}
	return nil
}

// anchor keeps the label of the first tick within the plot.
func anchor(tick int) string {
	if tick == 0 {
		return "start"
	}
	return "middle"
}

// tickStep returns 1, 2 or 5 times a power of ten, so that four to ten ticks reach to most.
func tickStep(most float64) float64 {
	if most <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(most/4)))
	for _, step := range []float64{5, 2} {
		if most/(step*power) >= 4 {
			return step * power
		}
	}
	return power
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder returns no error
	return b.String()
}
