package report

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
)

// wellFormed reads a drawing as XML.
func wellFormed(t testing.TB, s string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(s)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in %s", err, s)
		}
	}
}

func TestCanvas(t *testing.T) {
	c := newSVG(100, 50)
	c.SetColor(inkOf(7)) // the colours start anew
	c.SetLineWidth(2)
	c.SetLineDash([]vg.Length{3, 1.25}, 0)
	c.Push()
	c.Translate(vg.Point{X: 10, Y: 5})
	c.Scale(2, 2)
	c.Rotate(math.Pi / 2)
	c.Stroke(vg.Path{{Type: vg.MoveComp, Pos: vg.Point{X: 0, Y: 0}}, {Type: vg.LineComp, Pos: vg.Point{X: 10, Y: 0}}})
	c.Pop()
	c.SetColor(nil)
	c.Fill(vg.Path{{Type: vg.MoveComp, Pos: vg.Point{X: 30, Y: 20}}, {Type: vg.ArcComp, Pos: vg.Point{X: 20, Y: 20}, Radius: 10, Angle: 2 * math.Pi}, {Type: vg.CloseComp}})
	c.SetColor(inkNone)
	c.Fill(vg.Path{{Type: vg.MoveComp}, {Type: vg.CloseComp}})
	c.SetLineWidth(0)
	c.Stroke(vg.Path{{Type: vg.MoveComp}, {Type: vg.CloseComp}})
	got := c.String()
	wellFormed(t, got)
	for _, want := range []string{
		`<path class="s c1" stroke-width="2" stroke-dasharray="3 1.3" d="M10 45L10 25"/>`, // up by 20, turned and scaled
		`<path class="f fg" d="M30 30A10 10 0 0 0 10 30A10 10 0 0 0 30 30Z"/>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	if n := strings.Count(got, "<path"); n != 2 {
		t.Errorf("%d paths: %s", n, got)
	}
}

// TestOddPlots draws what a run can hold at its worst.
func TestOddPlots(t *testing.T) {
	many := make([]bar, 9)
	for i := range many {
		many[i] = bar{name: strings.Repeat("<long> & ", 5), ink: i, value: float64(i), hi: float64(i), text: "&"}
	}
	for name, p := range map[string]panel{
		"no bars":      bars("t", "", nil, 0, ""),
		"only missing": bars("t", "", []bar{{name: "a", missing: "not measured"}}, 100, "target 100"),
		"many bars":    bars("t", "", many, 0, ""),
		"one point":    lines(chart{title: "t", lines: []line{{name: "a", points: []point{{x: 16, y: 5}}, marks: true}}, logX: true, fromZero: true}),
		"all equal":    lines(chart{title: "t", lines: []line{{name: "a", points: []point{{x: 1, y: 5}, {x: 2, y: 5}}}}, logY: true}),
		"all zero":     lines(chart{title: "t", lines: []line{{name: "a", points: []point{{x: 1}, {x: 2}}}}, fromZero: true}),
		"no points":    lines(chart{title: "t", lines: []line{{name: "a", points: []point{{x: 1, y: 1}}}, {name: "b"}}}),
		"one dot":      dots("t", "", []dot{{name: "a", value: 1, lo: 1, hi: 1, text: "1×"}}, []plot.Tick{{Value: 1, Label: "1×"}}),
	} {
		t.Run(name, func(t *testing.T) {
			wellFormed(t, p.SVG)
			if strings.Contains(p.SVG, "NaN") || strings.Contains(p.SVG, "Inf") {
				t.Errorf("a coordinate is no number: %s", p.SVG)
			}
		})
	}
}

func TestLabelsStandApart(t *testing.T) {
	got := apart([]vg.Length{50, 50, 52, 200}, 13, 0, 200)
	for i := range got {
		for j := range got[:i] {
			if d := math.Abs(float64(got[i] - got[j])); d < 12.5 {
				t.Errorf("%v", got)
			}
		}
	}
	if got[3] != 200 {
		t.Errorf("a label moved without need: %v", got)
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct{ lo, hi float64 }{{0, 1}, {0, 4.3}, {0, 59004}, {0.97, 1.31}, {0, 0.002}} {
		if n := len(niceTicks(c.lo, c.hi, 2)); n < 3 || n > 7 {
			t.Errorf("%v: %d ticks", c, n)
		}
	}
	for _, c := range []struct{ lo, hi float64 }{{0.4, 3}, {0.1, 100000}, {15000, 35000}} {
		if n := len(logTicks(c.lo, c.hi)); n < 3 || n > 8 {
			t.Errorf("%v: %d ticks", c, n)
		}
	}
}
