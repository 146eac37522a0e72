package report

import (
	"fmt"
	"html"
	"image"
	"image/color"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// ink is a colour of a plot by the name of its role. The page's style sheet
// gives each role a value for light, for dark and for print, so that one
// drawing serves all three.
type ink string

// RGBA lets an ink stand where the plot library wants a colour. The value is
// never drawn.
func (ink) RGBA() (r, g, b, a uint32) { return color.Black.RGBA() }

// Inks beside those of the candidates, which are c0 to c5.
const (
	inkText  ink = "fg"
	inkMuted ink = "mu"
	inkGrid  ink = "gr"
	inkNone  ink = "no" // fills nothing
)

// inks is the number of colours that candidates have; more candidates share them.
const inks = 6

func inkOf(candidate int) ink { return ink("c" + strconv.Itoa(candidate%inks)) }

// svg is a canvas of the plot library that writes inline SVG: classes instead
// of colours, no ids, no fonts, nothing that refers to anything.
type svg struct {
	w, h  vg.Length
	out   strings.Builder
	now   pen
	saved []pen
}

// pen is the state that Push saves.
type pen struct {
	width  vg.Length
	dashes []vg.Length
	ink    ink
	m      [6]float64 // affine transform, column by column
}

func newSVG(w, h vg.Length) *svg {
	return &svg{w: w, h: h, now: pen{width: 1, ink: inkText, m: [6]float64{1, 0, 0, 1, 0, 0}}}
}

// String is the drawing. The element around it carries the text alternative,
// hence aria-hidden.
func (s *svg) String() string {
	return fmt.Sprintf(`<svg viewBox="0 0 %s %s" aria-hidden="true" focusable="false">%s</svg>`, short(float64(s.w)), short(float64(s.h)), s.out.String())
}

func (s *svg) Size() (w, h vg.Length) { return s.w, s.h }

func (s *svg) SetLineWidth(w vg.Length) { s.now.width = w }

func (s *svg) SetLineDash(pattern []vg.Length, _ vg.Length) { s.now.dashes = pattern }

func (s *svg) SetColor(c color.Color) {
	if i, ok := c.(ink); ok {
		s.now.ink = i
		return
	}
	s.now.ink = inkText // the library's own black
}

func (s *svg) Rotate(rad float64) {
	sin, cos := math.Sincos(rad)
	s.transform([6]float64{cos, sin, -sin, cos, 0, 0})
}

func (s *svg) Translate(pt vg.Point) {
	s.transform([6]float64{1, 0, 0, 1, float64(pt.X), float64(pt.Y)})
}

func (s *svg) Scale(x, y float64) { s.transform([6]float64{x, 0, 0, y, 0, 0}) }

func (s *svg) transform(t [6]float64) {
	m := s.now.m
	s.now.m = [6]float64{
		m[0]*t[0] + m[2]*t[1], m[1]*t[0] + m[3]*t[1],
		m[0]*t[2] + m[2]*t[3], m[1]*t[2] + m[3]*t[3],
		m[0]*t[4] + m[2]*t[5] + m[4], m[1]*t[4] + m[3]*t[5] + m[5],
	}
}

func (s *svg) Push() { s.saved = append(s.saved, s.now) }

func (s *svg) Pop() {
	s.now = s.saved[len(s.saved)-1]
	s.saved = s.saved[:len(s.saved)-1]
}

// at is a point as SVG has it, with the origin at the top left.
func (s *svg) at(p vg.Point) (x, y float64) {
	m := s.now.m
	return m[0]*float64(p.X) + m[2]*float64(p.Y) + m[4], float64(s.h) - (m[1]*float64(p.X) + m[3]*float64(p.Y) + m[5])
}

func (s *svg) Stroke(path vg.Path) {
	if s.now.width <= 0 || len(path) == 0 {
		return
	}
	dash := ""
	if len(s.now.dashes) > 0 {
		var parts []string
		for _, d := range s.now.dashes {
			parts = append(parts, short(float64(d)))
		}
		dash = fmt.Sprintf(` stroke-dasharray="%s"`, strings.Join(parts, " "))
	}
	fmt.Fprintf(&s.out, `<path class="s %s" stroke-width="%s"%s d="%s"/>`, s.now.ink, short(float64(s.now.width)), dash, s.path(path))
}

func (s *svg) Fill(path vg.Path) {
	if len(path) > 0 && s.now.ink != inkNone {
		fmt.Fprintf(&s.out, `<path class="f %s" d="%s"/>`, s.now.ink, s.path(path))
	}
}

func (s *svg) path(path vg.Path) string {
	var b strings.Builder
	var last vg.Point
	pair := func(command string, pts ...vg.Point) {
		b.WriteString(command)
		for i, p := range pts {
			if i > 0 {
				b.WriteByte(' ')
			}
			x, y := s.at(p)
			b.WriteString(short(x) + " " + short(y))
		}
	}
	for _, c := range path {
		switch c.Type {
		case vg.MoveComp:
			pair("M", c.Pos)
			last = c.Pos
		case vg.LineComp:
			pair("L", c.Pos)
			last = c.Pos
		case vg.CurveComp:
			pair(map[int]string{1: "Q", 2: "C"}[len(c.Control)], append(append([]vg.Point(nil), c.Control...), c.Pos)...)
			last = c.Pos
		case vg.ArcComp:
			last = s.arc(&b, c, last)
		case vg.CloseComp:
			b.WriteByte('Z')
		}
	}
	return b.String()
}

// arc writes an arc of a circle in two halves, because one that ends where it
// begins is none to SVG.
func (s *svg) arc(b *strings.Builder, c vg.PathComp, last vg.Point) vg.Point {
	on := func(angle float64) vg.Point {
		sin, cos := math.Sincos(angle)
		return vg.Point{X: c.Pos.X + c.Radius*vg.Length(cos), Y: c.Pos.Y + c.Radius*vg.Length(sin)}
	}
	start := on(c.Start)
	if math.Hypot(float64(start.X-last.X), float64(start.Y-last.Y)) > 1e-6 || b.Len() == 0 {
		x, y := s.at(start)
		command := "L"
		if b.Len() == 0 {
			command = "M"
		}
		b.WriteString(command + short(x) + " " + short(y))
	}
	sweep := 0 // the y axis points the other way
	if c.Angle < 0 {
		sweep = 1
	}
	scale := math.Hypot(s.now.m[0], s.now.m[1])
	r := short(float64(c.Radius) * scale)
	for _, part := range []float64{0.5, 1} {
		x, y := s.at(on(c.Start + part*c.Angle))
		fmt.Fprintf(b, "A%s %s 0 0 %d %s %s", r, r, sweep, short(x), short(y))
	}
	return on(c.Start + c.Angle)
}

// FillString draws a text from its left end.
func (s *svg) FillString(f font.Face, pt vg.Point, text string) {
	s.text(f.Font, pt, text, "")
}

func (s *svg) text(f font.Font, pt vg.Point, text, anchor string) {
	if f.Size <= 0 || strings.TrimSpace(text) == "" {
		return
	}
	x, y := s.at(pt)
	fmt.Fprintf(&s.out, `<text class="f %s" x="%s" y="%s" font-size="%s"%s>%s</text>`,
		s.now.ink, short(x), short(y), short(float64(f.Size)), anchor, html.EscapeString(text))
}

// anchored draws texts so that their alignment is left to whoever shows them:
// the font there may be wider or narrower than the one that was measured here.
// Texts are horizontal and of one line.
type anchored struct{ text.Plain }

// Shares of a font's size: of the height of figures above the baseline, and of
// the depth below it.
const (
	figureHeight = 0.72
	textDepth    = 0.2
)

func (h anchored) Draw(c vg.Canvas, txt string, sty text.Style, pt vg.Point) {
	on := innermost(c)
	if on == nil {
		h.Plain.Draw(c, txt, sty, pt)
		return
	}
	on.SetColor(sty.Color)
	switch sty.YAlign {
	case draw.YTop:
		pt.Y -= figureHeight * sty.Font.Size
	case draw.YCenter:
		pt.Y -= figureHeight / 2 * sty.Font.Size
	case draw.YBottom:
		pt.Y += textDepth * sty.Font.Size
	}
	anchor := map[draw.XAlignment]string{draw.XCenter: ` text-anchor="middle"`, draw.XRight: ` text-anchor="end"`}[sty.XAlign]
	on.text(sty.Font, pt, txt, anchor)
}

// innermost is the canvas of ours below sections of sections of it, nil if it
// is another.
func innermost(c vg.Canvas) *svg {
	for {
		switch inner := c.(type) {
		case *svg:
			return inner
		case draw.Canvas:
			c = inner.Canvas
		case *draw.Canvas:
			c = inner.Canvas
		default:
			return nil
		}
	}
}

// DrawImage is part of the library's interface. No plot of ours has images.
func (s *svg) DrawImage(vg.Rectangle, image.Image) { panic("report: a plot with an image") }

// short writes a coordinate to a tenth of a pixel.
func short(v float64) string {
	return strconv.FormatFloat(math.Round(v*10)/10+0, 'f', -1, 64)
}
