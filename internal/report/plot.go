package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The plots are small multiples: panels narrow enough for a phone, which stand
// beside one another where there is room. Their unit is the pixel, so text has
// its size on every screen. Each candidate has one colour, one dash and one
// marker in all of them, and its name at its line or bar instead of a legend.
const (
	panelWidth  = 340
	panelHeight = 236
	barHeight   = 30
	textSize    = 12
	smallText   = 11
)

// panel is one drawing with its heading.
type panel struct {
	Title, Sub string
	SVG        string
	Says       string // what it shows, for those who do not see it
}

var sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

// blank is a plot without decoration.
func blank() *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	p.TextHandler = anchored{text.Plain{Fonts: font.DefaultCache}}
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Color, a.Tick.Color = inkGrid, inkGrid
		a.LineStyle.Width, a.Tick.LineStyle.Width = 1, 1
		a.Tick.Length, a.Padding = 0, 0
		a.Tick.Label.Color = inkMuted
		a.Tick.Label.Font = font.From(sans, smallText)
		a.Tick.Label.Handler, a.Label.TextStyle.Handler = p.TextHandler, p.TextHandler
	}
	return p
}

func style(p *plot.Plot, i ink, size vg.Length, x draw.XAlignment, y draw.YAlignment) draw.TextStyle {
	return draw.TextStyle{Color: i, Font: font.From(sans, size), XAlign: x, YAlign: y, Handler: p.TextHandler}
}

// drawing is a plotter that is a function.
type drawing func(c draw.Canvas, p *plot.Plot)

func (d drawing) Plot(c draw.Canvas, p *plot.Plot) { d(c, p) }

// bar is one candidate of a bar panel.
type bar struct {
	name    string
	ink     int
	value   float64
	lo, hi  float64 // lowest and highest repetition
	text    string  // the value as it is written
	hollow  bool    // no evidence
	missing string  // said instead of a bar
}

// bars draws horizontal bars, the first one on top, with the value at the end of
// each and the range of the repetitions as a whisker. A mark, such as a target,
// is a dashed line through all of them.
func bars(title, sub string, list []bar, mark float64, markText string) panel {
	p := blank()
	p.HideX()
	p.HideY()
	longest := mark
	var room vg.Length
	says := make([]string, len(list))
	for i, b := range list {
		longest = max(longest, b.value, b.hi)
		room = max(room, nameRoom(p, b.name, textSize))
		says[i] = b.name + " " + b.text
		if b.missing != "" {
			says[i] = b.name + " " + b.missing
		}
	}
	if longest <= 0 {
		longest = 1
	}
	p.X.Min, p.X.Max = 0, longest*1.42 // room for the values
	p.Y.Min, p.Y.Max = -0.5, float64(len(list))-0.5
	for i, b := range list {
		row := float64(len(list) - 1 - i)
		if b.missing == "" {
			// Finite by construction, so the library has nothing to refuse.
			chart, err := plotter.NewBarChart(plotter.Values{b.value}, 15)
			if err != nil {
				b.missing = "cannot be drawn"
			} else {
				chart.Horizontal, chart.XMin = true, row
				chart.LineStyle = draw.LineStyle{Color: inkOf(b.ink), Width: 1.2}
				chart.Color = inkOf(b.ink)
				if b.hollow {
					chart.Color = inkNone
					chart.LineStyle.Dashes = []vg.Length{3, 2}
				}
				p.Add(chart)
			}
		}
		p.Add(drawing(func(c draw.Canvas, p *plot.Plot) {
			x, y := p.Transforms(&c)
			c.FillText(style(p, inkText, textSize, draw.XRight, draw.YCenter), vg.Point{X: c.Min.X - 7, Y: y(row)}, b.name)
			if b.missing != "" {
				c.FillText(style(p, inkMuted, smallText, draw.XLeft, draw.YCenter), vg.Point{X: x(0) + 4, Y: y(row)}, b.missing)
				return
			}
			end := x(b.value)
			if b.hi > b.lo {
				whisker := draw.LineStyle{Color: inkText, Width: 1.2}
				c.StrokeLine2(whisker, x(b.lo), y(row), x(b.hi), y(row))
				for _, v := range []float64{b.lo, b.hi} {
					c.StrokeLine2(whisker, x(v), y(row)-3, x(v), y(row)+3)
				}
				end = max(end, x(b.hi))
			}
			s := style(p, inkText, textSize, draw.XLeft, draw.YCenter)
			if line := x(mark); mark > 0 && end <= line && end+6+nameRoom(p, b.text, textSize) > line {
				end = line // the text stands beyond the mark, not in it
			}
			c.FillText(s, vg.Point{X: end + 6, Y: y(row)}, b.text)
		}))
	}
	if mark > 0 {
		p.Add(drawing(func(c draw.Canvas, p *plot.Plot) {
			x, y := p.Transforms(&c)
			top := y(float64(len(list)) - 0.5)
			c.StrokeLine2(draw.LineStyle{Color: inkText, Width: 1.2, Dashes: []vg.Length{4, 3}}, x(mark), y(-0.5), x(mark), top)
			align := draw.XRight // of two sides, the one with room
			if mark < longest/2 {
				align = draw.XLeft
			}
			c.FillText(style(p, inkText, smallText, align, draw.YBottom), vg.Point{X: x(mark), Y: top + 2}, markText)
		}))
	}
	above := vg.Length(2)
	if mark > 0 {
		above = 18
	}
	canvas := newSVG(panelWidth, vg.Length(barHeight*len(list))+above+2)
	p.Draw(draw.Crop(draw.New(canvas), room, -2, 2, -above))
	text := title + ": " + strings.Join(says, ", ")
	if markText != "" {
		text += "; " + markText
	}
	return panel{Title: title, Sub: sub, SVG: canvas.String(), Says: text + "."}
}

// nameRoom is the width that a text needs, with some to spare for fonts that
// are wider than the one measured with.
func nameRoom(p *plot.Plot, s string, size vg.Length) vg.Length {
	return style(p, inkText, size, draw.XLeft, draw.YCenter).Width(s)*1.12 + 9
}

// point is one value of a line with the range of its repetitions.
type point struct{ x, y, lo, hi float64 }

// line is one candidate of a line panel.
type line struct {
	name   string
	ink    int
	points []point
	marks  bool // a marker at every point
	hollow bool // no evidence
	says   string
	level  float64 // where the name stands; 0 is at the last point
}

// chart says how a line panel is drawn.
type chart struct {
	title, sub string
	lines      []line
	logX, logY bool
	xTicks     []plot.Tick
	xName      string
	mark       float64 // a horizontal line
	markText   string
	decimals   int // of the y axis
	fromZero   bool
	xFromZero  bool
}

var dashes = [][]vg.Length{nil, {7, 3}, {2, 2.5}, {9, 3, 2, 3}, {4, 2}, {1, 2}}

var glyphs = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}}

// lines draws a line for each candidate with its name at its right end.
func lines(o chart) panel {
	p := blank()
	xMin, xMax, yMin, yMax := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	room := vg.Length(0)
	var says []string
	for _, l := range o.lines {
		for _, q := range l.points {
			xMin, xMax = min(xMin, q.x), max(xMax, q.x)
			yMin, yMax = min(yMin, q.y), max(yMax, q.y, q.hi)
			if q.lo > 0 {
				yMin = min(yMin, q.lo)
			}
		}
		room = max(room, nameRoom(p, l.name, smallText)+2)
		says = append(says, l.name+" "+l.says)
	}
	if o.mark > 0 {
		yMax = max(yMax, o.mark)
	}
	switch {
	case o.logY:
		yMin, yMax = yMin/1.15, yMax*1.15
		p.Y.Scale = plot.LogScale{}
		p.Y.Tick.Marker = plot.ConstantTicks(logTicks(yMin, yMax))
	default:
		if o.fromZero {
			yMin = 0
		}
		if yMax <= yMin {
			yMax = yMin + 1
		}
		yMax += (yMax - yMin) * 0.06
		if o.mark > 0 {
			yMax += (yMax - yMin) * 0.08 // for what is written above the mark
		}
		p.Y.Tick.Marker = plot.ConstantTicks(niceTicks(yMin, yMax, o.decimals))
	}
	if o.logX {
		p.X.Scale = plot.LogScale{}
	}
	if xMax <= xMin {
		xMin, xMax = xMin*0.9, xMax*1.1+1e-9
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = xMin, xMax, yMin, yMax
	if o.xFromZero {
		p.X.Min = 0
	}
	p.X.Tick.Marker = plot.ConstantTicks(o.xTicks)
	p.X.Tick.Length, p.X.Padding = 5, 0
	yTicks := p.Y.Tick.Marker.Ticks(yMin, yMax)
	p.HideY()
	left := vg.Length(0)
	for _, t := range yTicks {
		left = max(left, nameRoom(p, t.Label, smallText))
	}
	p.X.Label.Text = o.xName
	p.X.Label.TextStyle.Font, p.X.Label.TextStyle.Color = font.From(sans, smallText), inkMuted
	p.Add(drawing(func(c draw.Canvas, p *plot.Plot) {
		_, y := p.Transforms(&c)
		for _, t := range yTicks {
			c.StrokeLine2(draw.LineStyle{Color: inkGrid, Width: 0.8}, c.Min.X, y(t.Value), c.Max.X, y(t.Value))
			at := y(t.Value)
			if o.logY { // the lowest may be anywhere above the corner, where the other axis has a label
				at = max(at, c.Min.Y+5)
			}
			c.FillText(style(p, inkMuted, smallText, draw.XRight, draw.YCenter), vg.Point{X: c.Min.X - 7, Y: at}, t.Label)
		}
		if o.mark > 0 {
			c.StrokeLine2(draw.LineStyle{Color: inkText, Width: 1, Dashes: []vg.Length{4, 3}}, c.Min.X, y(o.mark), c.Max.X, y(o.mark))
		}
	}))
	for _, l := range o.lines {
		xys := make(plotter.XYs, len(l.points))
		for i, q := range l.points {
			xys[i] = plotter.XY{X: q.x, Y: q.y}
		}
		drawn, marks, err := plotter.NewLinePoints(xys)
		if err != nil { // no points
			continue
		}
		drawn.LineStyle = draw.LineStyle{Color: inkOf(l.ink), Width: 2, Dashes: dashes[l.ink%inks]}
		if l.hollow {
			drawn.Width = 1
		}
		p.Add(drawn)
		p.Add(drawing(func(c draw.Canvas, p *plot.Plot) {
			x, y := p.Transforms(&c)
			for _, q := range l.points {
				if q.hi > q.lo && q.lo > 0 {
					c.StrokeLine2(draw.LineStyle{Color: inkOf(l.ink), Width: 1}, x(q.x), y(q.lo), x(q.x), y(q.hi))
				}
			}
		}))
		if l.marks {
			marks.GlyphStyle = draw.GlyphStyle{Color: inkOf(l.ink), Radius: 3.2, Shape: glyphs[l.ink%inks]}
			p.Add(marks)
		}
	}
	p.Add(drawing(func(c draw.Canvas, p *plot.Plot) {
		x, y := p.Transforms(&c)
		if o.mark > 0 {
			c.FillText(style(p, inkText, smallText, draw.XLeft, draw.YBottom), vg.Point{X: c.Min.X + 4, Y: y(o.mark) + 5}, o.markText)
		}
		ends := make([]vg.Length, len(o.lines))
		for i, l := range o.lines {
			if len(l.points) > 0 {
				ends[i] = y(cmp.Or(l.level, l.points[len(l.points)-1].y))
			}
		}
		ends = apart(ends, 13, c.Min.Y+5, c.Max.Y)
		for i, l := range o.lines {
			if len(l.points) > 0 {
				at := l.points[len(l.points)-1].x
				if l.level > 0 {
					at = xMax
				}
				c.FillText(style(p, inkOf(l.ink), smallText, draw.XLeft, draw.YCenter), vg.Point{X: x(at) + 8, Y: ends[i]}, l.name)
			}
		}
	}))
	canvas := newSVG(panelWidth, panelHeight)
	p.Draw(draw.Crop(draw.New(canvas), left, -room, 4, -8))
	return panel{Title: o.title, Sub: o.sub, SVG: canvas.String(), Says: o.title + ": " + strings.Join(says, "; ") + "."}
}

// apart moves the places of labels so far from one another that they can be
// read, and no further.
func apart(at []vg.Length, gap, low, high vg.Length) []vg.Length {
	order := make([]int, len(at))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case at[a] < at[b]:
			return -1
		case at[a] > at[b]:
			return 1
		}
		return b - a
	})
	out := slices.Clone(at)
	for range 50 {
		moved := false
		for i := 1; i < len(order); i++ {
			a, b := order[i-1], order[i]
			if d := gap - (out[b] - out[a]); d > 0.1 {
				out[a] -= d / 2
				out[b] += d / 2
				moved = true
			}
		}
		for _, i := range order {
			out[i] = min(max(out[i], low), high)
		}
		if !moved {
			break
		}
	}
	return out
}

// dot is one row of an interval panel.
type dot struct {
	name   string
	ink    int
	value  float64
	lo, hi float64 // of the interval; equal where there is none
	text   string
}

// dots draws values with their intervals on one scale, with a line at each
// mark.
func dots(title, sub string, list []dot, marks []plot.Tick) panel {
	p := blank()
	p.HideY()
	lo, hi := math.Inf(1), math.Inf(-1)
	var room vg.Length
	says := make([]string, len(list))
	for i, d := range list {
		lo, hi = min(lo, d.value, d.lo), max(hi, d.value, d.hi)
		room = max(room, nameRoom(p, d.name, smallText))
		says[i] = d.name + " " + d.text
	}
	for _, m := range marks {
		lo, hi = min(lo, m.Value), max(hi, m.Value)
	}
	span := max(hi-lo, 0.02)
	p.X.Tick.Length = 5
	p.X.Min, p.X.Max = lo-span*0.06, hi+span*0.06
	p.Y.Min, p.Y.Max = -0.5, float64(len(list))-0.5
	p.X.Tick.Marker = plot.ConstantTicks(niceTicks(p.X.Min, p.X.Max, 2))
	p.Add(drawing(func(c draw.Canvas, p *plot.Plot) {
		x, y := p.Transforms(&c)
		top := y(float64(len(list)) - 0.5)
		for i, m := range marks {
			s := draw.LineStyle{Color: inkText, Width: 1}
			if i > 0 {
				s.Dashes = []vg.Length{4, 3}
			}
			c.StrokeLine2(s, x(m.Value), y(-0.5), x(m.Value), top)
			align := draw.XLeft
			if m.Value > (lo+hi)/2 {
				align = draw.XRight
			}
			c.FillText(style(p, inkText, smallText, align, draw.YBottom), vg.Point{X: x(m.Value), Y: top + 2 + vg.Length(12*i)}, m.Label)
		}
		for i, d := range list {
			row := y(float64(len(list) - 1 - i))
			c.FillText(style(p, inkText, smallText, draw.XRight, draw.YCenter), vg.Point{X: c.Min.X - 8, Y: row}, d.name)
			if d.hi > d.lo {
				c.StrokeLine2(draw.LineStyle{Color: inkOf(d.ink), Width: 2}, x(d.lo), row, x(d.hi), row)
			}
			c.DrawGlyph(draw.GlyphStyle{Color: inkOf(d.ink), Radius: 3.5, Shape: glyphs[d.ink%inks]}, vg.Point{X: x(d.value), Y: row})
			c.FillText(style(p, inkText, smallText, draw.XLeft, draw.YCenter), vg.Point{X: c.Max.X + 8, Y: row}, d.text)
		}
	}))
	canvas := newSVG(panelWidth, vg.Length(22*len(list)+24+14*len(marks)))
	p.Draw(draw.Crop(draw.New(canvas), room, -48, 4, vg.Length(-14*len(marks))))
	return panel{Title: title, Sub: sub, SVG: canvas.String(), Says: title + ": " + strings.Join(says, ", ") + "."}
}

// niceTicks are about four round values between two.
func niceTicks(lo, hi float64, decimals int) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10((hi-lo)/4)))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if (hi-lo)/(step*m) <= 5 {
			step *= m
			break
		}
	}
	var ticks []plot.Tick
	for v := math.Ceil(lo/step-1e-9) * step; v <= hi+step*1e-9; v += step {
		ticks = append(ticks, plot.Tick{Value: v, Label: axisNumber(v, step, decimals)})
	}
	return ticks
}

func axisNumber(v, step float64, decimals int) string {
	d := 0
	for d < 3 && math.Abs(step*math.Pow10(d)-math.Round(step*math.Pow10(d))) > 1e-9 {
		d++
	}
	return Number(v+0, max(d, min(decimals, d)))
}

// logTicks are 1, 2 and 5 of each decade; where that is too many, 1 alone, and
// where it is too few, more of them.
func logTicks(lo, hi float64) []plot.Tick {
	mantissas := []float64{1, 2, 5}
	switch decades := math.Log10(hi / lo); {
	case decades > 2.5:
		mantissas = mantissas[:1]
	case decades < 0.7:
		mantissas = []float64{1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8}
	}
	var ticks []plot.Tick
	for e := math.Floor(math.Log10(lo)); e <= math.Ceil(math.Log10(hi)); e++ {
		for _, m := range mantissas {
			if v := m * math.Pow(10, e); v >= lo && v <= hi {
				ticks = append(ticks, plot.Tick{Value: v, Label: plainNumber(v)})
			}
		}
	}
	return ticks
}

func plainNumber(v float64) string {
	if v >= 1 {
		return Number(v, 0)
	}
	return fmt.Sprint(math.Round(v*1e6) / 1e6)
}
