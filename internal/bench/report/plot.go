package report

import (
	"fmt"
	"image/color"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// Width and the height of each bar of a plot.
const (
	plotWidth = 20 * vg.Centimeter
	barHeight = 1.1 * vg.Centimeter
	barThick  = 0.4 * vg.Centimeter
)

func paint(r, g, b uint8) color.Color { return color.RGBA{R: r, G: g, B: b, A: 255} }

// bar of a plot: a value with what is to be written at its end.
type bar struct {
	name, label      string
	value, low, high float64
	color            color.Color
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
			c := paint(0x9a, 0xa5, 0xb1)
			if strings.HasPrefix(b.Name, "Tocsin") {
				c = paint(0x22, 0x6f, 0xb5)
			}
			bars = append(bars, bar{b.Name, Number(b.Median), b.Median, b.Low, b.High, c})
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
			c := paint(0x2b, 0x8a, 0x3e)
			if !f.Reached() {
				c = paint(0xc9, 0x2a, 0x2a)
			}
			low, high := part(f.Low), part(f.High)
			bars = append(bars, bar{
				result.ID + " " + f.Name, Number(f.Median) + suffix(f.Unit) + " (" + f.Bound.text(f.Unit) + ")",
				part(f.Median), min(low, high), max(low, high), c,
			})
		}
	}
	return bars
}

// draw draws horizontal bars, the first on top.
func draw(path, title string, bars []bar, target bool) error {
	slices.Reverse(bars)
	p := plot.New()
	p.Title.Text = title
	p.Title.TextStyle.Font.Variant = "Sans"
	p.Title.TextStyle.Font.Size = font.Points(12)
	p.Title.Padding = vg.Points(8)
	p.BackgroundColor = color.White

	p.HideY()
	var names, values plotter.XYLabels
	for i, b := range bars {
		at := float64(i)
		chart, err := plotter.NewBarChart(plotter.Values{b.value}, barThick)
		if err != nil {
			return fmt.Errorf("draw %s: %w", path, err)
		}
		chart.Horizontal, chart.XMin, chart.Color, chart.LineStyle.Width = true, at, b.color, 0
		spread, err := plotter.NewXErrorBars(errorsOf(b, i))
		if err != nil {
			return fmt.Errorf("draw %s: %w", path, err)
		}
		p.Add(chart, spread)
		// Names are above their bars: beside them they would need a width that
		// depends on the reader's fonts.
		names.XYs, names.Labels = append(names.XYs, plotter.XY{X: 0, Y: at + 0.36}), append(names.Labels, b.name)
		values.XYs, values.Labels = append(values.XYs, plotter.XY{X: max(b.high, b.value), Y: at - 0.04}), append(values.Labels, b.label)
		p.X.Max = max(p.X.Max, 1.35*max(b.high, b.value))
	}
	for _, labels := range []plotter.XYLabels{names, values} {
		texts, err := plotter.NewLabels(labels)
		if err != nil {
			return fmt.Errorf("draw %s: %w", path, err)
		}
		for i := range texts.TextStyle {
			texts.TextStyle[i].YAlign, texts.TextStyle[i].Font.Variant = -0.4, "Sans"
		}
		texts.Offset.X = vg.Points(4)
		p.Add(texts)
	}
	p.X.Min = -0.02 * p.X.Max
	p.Y.Min, p.Y.Max = -0.5, float64(len(bars))-0.3
	p.X.Tick.Label.Font.Variant = "Sans"
	if target {
		line, err := plotter.NewLine(plotter.XYs{{X: 1, Y: p.Y.Min}, {X: 1, Y: p.Y.Max}})
		if err != nil {
			return fmt.Errorf("draw %s: %w", path, err)
		}
		line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		p.Add(line)
	}
	if err := p.Save(plotWidth, 2.2*vg.Centimeter+barHeight*vg.Length(len(bars)), path); err != nil {
		return fmt.Errorf("draw %s: %w", path, err)
	}
	return nil
}

type spread struct {
	plotter.XYs
	plotter.XErrors
}

func errorsOf(b bar, at int) spread {
	return spread{
		XYs:     plotter.XYs{{X: b.value, Y: float64(at)}},
		XErrors: plotter.XErrors{{Low: b.value - b.low, High: b.high - b.value}},
	}
}
