package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// shown is the part of the dashboard that the picture uses.
type shown struct {
	Panels []struct {
		Type, Title string
		GridPos     struct{ X, Y, W, H float64 }
		Targets     []struct{ Expr, LegendFormat string }
		FieldConfig struct {
			Defaults struct {
				Unit       string
				Thresholds struct{ Steps []struct{ Value *float64 } }
			}
		}
	}
}

const (
	// column and unit are the width and height of a cell of Grafana's grid, in pixels.
	column, unit = 60.0, 30.0
	gap          = 4.0
	footer       = 30.0
)

const style = `<style>
text { font-family: system-ui, sans-serif; font-size: 12px; fill: #24292f } .quiet { fill: #6e7781; font-size: 11px } .title { font-weight: 600 } .row { font-size: 15px; font-weight: 600 }
.figure { font-size: 34px; font-weight: 600; fill: #1a7f37 } .bad { fill: #cf222e } .page { fill: #f6f8fa } .panel { fill: #ffffff; stroke: #d0d7de } .grid { stroke: #eaeef2 } .line { fill: none; stroke-width: 1.5 }
.c0 { stroke: #0969da; fill: #0969da } .c1 { stroke: #bc4c00; fill: #bc4c00 } .c2 { stroke: #1a7f37; fill: #1a7f37 } .c3 { stroke: #8250df; fill: #8250df }
.c4 { stroke: #9a6700; fill: #9a6700 } .c5 { stroke: #bf3989; fill: #bf3989 } .c6 { stroke: #1b7c83; fill: #1b7c83 } .c7 { stroke: #57606a; fill: #57606a }
polyline.line { fill: none } text.legend { stroke: none }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .quiet { fill: #8b949e } .figure { fill: #3fb950 } .bad { fill: #f85149 } .page { fill: #010409 } .panel { fill: #0d1117; stroke: #30363d } .grid { stroke: #21262d } }
</style>
`

// hues is the number of colours for lines.
const hues = 8

// draw sends all queries of the dashboard to a Prometheus and draws the answers where Grafana
// would.
func draw(ctx context.Context, prometheus string, span time.Duration) ([]byte, error) {
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return nil, err
	}
	var board shown
	if err := json.Unmarshal(text.Bytes(), &board); err != nil {
		return nil, fmt.Errorf("read dashboard: %w", err)
	}
	to := time.Now()
	from := to.Add(-span)
	width, height := pageWidth*column, 0.0
	var out bytes.Buffer
	for i := range board.Panels {
		p := &board.Panels[i]
		x, y, w, h := p.GridPos.X*column, p.GridPos.Y*unit, p.GridPos.W*column, p.GridPos.H*unit
		height = max(height, y+h)
		title := html.EscapeString(p.Title)
		if p.Type == "row" {
			fmt.Fprintf(&out, "<text class=\"row\" x=\"%g\" y=\"%g\">%s</text>\n", x+gap, y+unit-9, title)
			continue
		}
		fmt.Fprintf(&out, "<rect class=\"panel\" x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" rx=\"4\"/><text class=\"title\" x=\"%g\" y=\"%g\">%s</text>\n",
			x+gap, y+gap, w-2*gap, h-2*gap, x+14, y+24, title)
		var lines []line
		for _, target := range p.Targets {
			found, err := asked(ctx, prometheus, strings.NewReplacer("$__rate_interval", "1m", "$job", ".+").Replace(target.Expr), from, to)
			if err != nil {
				return nil, err
			}
			for _, l := range found {
				l.labels["legend"] = legend(target.LegendFormat, l.labels)
				lines = append(lines, l)
			}
		}
		say := sayings(p.FieldConfig.Defaults.Unit)
		if p.Type == "stat" {
			var bad *float64
			if steps := p.FieldConfig.Defaults.Thresholds.Steps; len(steps) > 1 {
				bad = steps[1].Value
			}
			figure(&out, lines, x, y, say, bad)
			continue
		}
		graph(&out, lines, plot{x: x + 64, y: y + 36, w: w - 84, h: h - 96, from: seconds64(from), to: seconds64(to)}, say)
	}
	var whole bytes.Buffer
	fmt.Fprintf(&whole, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" role=\"img\" aria-label=\"The dashboard of Tocsin with real data\">\n", width, height+footer, width, height+footer)
	whole.WriteString(style)
	fmt.Fprintf(&whole, "<rect class=\"page\" width=\"%g\" height=\"%g\"/>\n", width, height+footer)
	whole.Write(out.Bytes())
	fmt.Fprintf(&whole, "<text class=\"quiet\" x=\"%g\" y=\"%g\">The queries of deploy/grafana/tocsin.json, answered by a Prometheus that scraped a running Tocsin. Drawn by make dashboard-picture, not by Grafana.</text>\n</svg>\n", gap, height+footer-10)
	return whole.Bytes(), nil
}

func seconds64(at time.Time) float64 {
	return float64(at.UnixMilli()) / float64(time.Second/time.Millisecond)
}

// legend fills the labels of a line into Grafana's format.
func legend(format string, labels map[string]string) string {
	return regexp.MustCompile(`{{(\w+)}}`).ReplaceAllStringFunc(format, func(name string) string { return labels[strings.Trim(name, "{}")] })
}

// figure draws the last value of a line, and marks a bad value.
func figure(out *bytes.Buffer, lines []line, x, y float64, say func(float64) string, bad *float64) {
	text, class := "No data", "quiet"
	if len(lines) > 0 && len(lines[0].points) > 0 {
		value := lines[0].points[len(lines[0].points)-1].value
		text, class = say(value), "figure"
		if bad != nil && value >= *bad {
			class += " bad"
		}
	}
	fmt.Fprintf(out, "<text class=%q x=\"%g\" y=\"%g\">%s</text>\n", class, x+14, y+3*unit, html.EscapeString(text))
}

// plot is the area where lines are drawn, and the time range that it shows.
type plot struct{ x, y, w, h, from, to float64 }

func graph(out *bytes.Buffer, lines []line, p plot, say func(float64) string) {
	top := 0.0
	for _, l := range lines {
		for _, at := range l.points {
			top = max(top, at.value)
		}
	}
	step := nice(top)
	top = step * max(1, math.Ceil(top/step))
	for value := 0.0; value <= top+step/2; value += step {
		y := p.y + p.h*(1-value/top)
		fmt.Fprintf(out, "<line class=\"grid\" x1=\"%g\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\"/><text class=\"quiet\" text-anchor=\"end\" x=\"%g\" y=\"%.1f\">%s</text>\n",
			p.x, p.x+p.w, y, y, p.x-6, y+4, html.EscapeString(say(value)))
	}
	const marks = 4
	for i := range marks {
		at := p.from + (p.to-p.from)*(float64(i)+0.5)/marks
		fmt.Fprintf(out, "<text class=\"quiet\" text-anchor=\"middle\" x=\"%.1f\" y=\"%g\">%s</text>\n",
			p.x+p.w*(at-p.from)/(p.to-p.from), p.y+p.h+17, time.Unix(int64(at), 0).UTC().Format("15:04:05"))
	}
	x := p.x - 50
	for i, l := range lines {
		var points strings.Builder
		for _, at := range l.points {
			fmt.Fprintf(&points, "%.1f,%.1f ", p.x+p.w*(at.at-p.from)/(p.to-p.from), p.y+p.h*(1-at.value/top))
		}
		fmt.Fprintf(out, "<polyline class=\"line c%d\" points=%q/>\n", i%hues, strings.TrimSpace(points.String()))
		name := l.labels["legend"]
		const letter = 6.6
		wide := 24 + letter*float64(len(name))
		if name == "" || x+wide > p.x+p.w+10 {
			continue
		}
		fmt.Fprintf(out, "<rect class=\"c%d\" x=\"%.1f\" y=\"%g\" width=\"10\" height=\"3\"/><text class=\"quiet\" x=\"%.1f\" y=\"%g\">%s</text>\n",
			i%hues, x, p.y+p.h+36, x+14, p.y+p.h+41, html.EscapeString(name))
		x += wide
	}
}

// nice returns the step of an axis for about four steps.
func nice(top float64) float64 {
	const steps = 4
	if top <= 0 {
		return 1
	}
	base := math.Pow10(int(math.Floor(math.Log10(top / steps))))
	for _, factor := range []float64{1, 2, 5} {
		if base*factor*steps >= top {
			return base * factor
		}
	}
	return base * 10
}

// sayings returns a function that formats values of one of Grafana's units.
func sayings(grafana string) func(float64) string {
	number := func(v float64) string {
		if v == math.Trunc(v) {
			return strconv.FormatFloat(v, 'f', 0, 64)
		}
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	switch grafana {
	case "s":
		return func(v float64) string {
			switch {
			case v == 0:
				return "0 s"
			case v < 1:
				return number(v*1000) + " ms"
			case v < 120:
				return number(v) + " s"
			default:
				return number(v/60) + " min"
			}
		}
	case "cps":
		return func(v float64) string { return number(v) + "/s" }
	case "bytes":
		return func(v float64) string { return strconv.FormatFloat(v/(1<<20), 'f', 0, 64) + " MiB" }
	default:
		return number
	}
}
