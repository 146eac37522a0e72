package report

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/percore/percore/internal/answers/claims"
	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/answers/portability"
	"github.com/percore/percore/internal/answers/published"
	"github.com/percore/percore/internal/answers/sizing"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/prices"
)

// document makes everything of a run that a report can hold: verdicts, a
// comparison with the published figures and plots from raw files.
func document(t testing.TB, in figures.Measured, dir string) Document {
	t.Helper()
	d := Document{Report: figures.TablesOf(in), Input: in, Read: func(path string) ([]byte, error) { return os.ReadFile(filepath.Join(dir, path)) }}
	base, err := published.Set()
	if err != nil {
		t.Fatal(err)
	}
	list, err := claims.Published()
	if err != nil {
		t.Fatal(err)
	}
	set := figures.FromRun(in.Run, in.Windows, in.Probes)
	d.Verdicts = claims.Evaluate(list, set, base)
	c, err := portability.Compare(base, set)
	if err != nil {
		t.Fatal(err)
	}
	d.Comparison = &c
	table := prices.Table{Currency: "USD", Source: "a table for tests", Date: "2026-11-30", Instances: map[string]prices.Instance{"c8g.xlarge": {Cores: 4, MemoryGiB: 8, PerHour: map[string]float64{"eu-central-1": 0.18}}}}
	for _, s := range in.Run.Suite.Scenarios {
		if p, err := sizing.Make(set, sizing.Request{Rate: 10_000, Mix: map[string]float64{s.ID: 1}}, table); err == nil {
			d.Plans = append(d.Plans, p)
		}
	}
	return d
}

// documents are the study's raw folder and the same as a percore run.
func documents(t testing.TB) map[string]Document {
	t.Helper()
	s, err := store.Open(convert(t, t.TempDir()).Dir())
	if err != nil {
		t.Fatal(err)
	}
	run := figures.ReadStore(s)
	run.State = store.StateInterrupted // the writer is this process and still holds the lock
	hosts, dir := openHosts(t)
	return map[string]Document{
		"hosts": document(t, hosts, dir),
		"run":   document(t, run, s.Dir()),
		"study": document(t, figures.ReadStudy(readStudy(t)), studyDir),
		"full":  full(t),
	}
}

func TestGoldenPage(t *testing.T) {
	for name, d := range documents(t) {
		for _, format := range []string{"html", "md", "bench"} {
			t.Run(name+"."+format, func(t *testing.T) {
				var got bytes.Buffer
				if err := Write(&got, d, Options{Format: format}); err != nil {
					t.Fatal(err)
				}
				golden(t, filepath.Join("page", name+"."+format), got.Bytes())
			})
		}
	}
}

// TestPageStructure parses the page as a browser does and looks for what would
// make it depend on something else, or hard to read aloud.
func TestPageStructure(t *testing.T) {
	all := documents(t)
	all["empty"] = Document{Report: figures.TablesOf(figures.Measured{State: store.StateInterrupted})}
	for name, d := range all {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := HTML(&b, d); err != nil {
				t.Fatal(err)
			}
			for _, p := range examine(t, b.Bytes()) {
				t.Error(p)
			}
		})
	}
}

// TestExamineFindsFaults shows that the examination above can fail.
func TestExamineFindsFaults(t *testing.T) {
	var b bytes.Buffer
	if err := HTML(&b, full(t)); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string][2]string{
		"a script":             {"</body>", "<script>1</script></body>"},
		"an event handler":     {"<body>", `<body onload="x()">`},
		"a foreign picture":    {"</main>", `<img alt="x" src="http://example.com/x.png"></main>`},
		"a foreign font":       {"<style>", "<style>@import 'x.css';"},
		"a link to nowhere":    {`href="#h-tables"`, `href="#h-nowhere"`},
		"an id twice":          {`id="h-figures"`, `id="h-claims"`},
		"a heading left out":   {`<h2 id="h-figures">Figures</h2>`, `<p id="h-figures">Figures</p><h5>x</h5>`},
		"no caption":           {`<caption id="one-core-caption">`, `<p id="one-core-caption">`},
		"no text alternative":  {`role="img" aria-label="`, `role="img" data-x="`},
		"a weaker policy":      {"default-src 'none'", "default-src *"},
		"a label to nowhere":   {`aria-labelledby="one-core-caption"`, `aria-labelledby="x"`},
		"no language":          {`<html lang="en">`, `<html>`},
		"a head without scope": {`<th scope="col" class="w">candidate</th>`, `<th>candidate</th>`},
	} {
		broken := bytes.ReplaceAll(b.Bytes(), []byte(change[0]), []byte(change[1]))
		if bytes.Equal(broken, b.Bytes()) {
			t.Errorf("%s: nothing was changed", what)
		} else if len(examine(t, broken)) == 0 {
			t.Errorf("%s is not found", what)
		}
	}
}

// examine returns what is wrong with a page.
func examine(t testing.TB, page []byte) []string {
	t.Helper()
	doc, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	ids := map[string]bool{}
	var refs, labels []string
	level, policy := 0, ""
	attr := func(n *html.Node, name string) string {
		for _, a := range n.Attr {
			if a.Key == name {
				return a.Val
			}
		}
		return ""
	}
	child := func(n *html.Node, name string) *html.Node {
		for c := range n.ChildNodes() {
			if c.Type == html.ElementNode && c.Data == name {
				return c
			}
		}
		return nil
	}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		for _, a := range n.Attr {
			switch a.Key {
			case "id":
				if ids[a.Val] {
					fault("the id %s stands twice", a.Val)
				}
				ids[a.Val] = true
			case "src", "href", "data", "poster", "action", "srcset":
				switch {
				case strings.HasPrefix(a.Val, "#"):
					refs = append(refs, a.Val[1:])
				case strings.HasPrefix(a.Val, "data:"):
				default:
					fault("%s refers to %q", n.Data, a.Val)
				}
			case "aria-labelledby":
				labels = append(labels, a.Val)
			}
			if strings.HasPrefix(a.Key, "on") || strings.Contains(strings.ToLower(a.Val), "javascript:") || a.Key == "style" {
				fault("%s has %s=%q", n.Data, a.Key, a.Val)
			}
		}
		switch n.Data {
		case "script", "iframe", "object", "embed", "form", "base":
			fault("there is a %s", n.Data)
		case "style":
			if text := n.FirstChild.Data; strings.Contains(text, "@import") || strings.Contains(text, "url(") || strings.Contains(text, "@font-face") {
				fault("the style sheet refers to something")
			}
		case "html":
			if attr(n, "lang") == "" {
				fault("the page has no language")
			}
		case "meta":
			if attr(n, "http-equiv") == "Content-Security-Policy" {
				policy = attr(n, "content")
			}
		case "h1", "h2", "h3", "h4", "h5", "h6":
			at := int(n.Data[1] - '0')
			if at > level+1 || level > 0 && at == 1 {
				fault("%s follows a heading of level %d", n.Data, level)
			}
			level = at
		case "table":
			if c := child(n, "caption"); c == nil || c.FirstChild == nil || strings.TrimSpace(c.FirstChild.Data) == "" {
				fault("the table %s has no caption", attr(n, "id"))
			}
			if p := n.Parent; attr(p, "role") != "region" || attr(p, "tabindex") != "0" || attr(p, "aria-labelledby") == "" {
				fault("the table %s cannot be scrolled by keyboard", attr(n, "id"))
			}
		case "th":
			if s := attr(n, "scope"); s != "row" && s != "col" {
				fault("a heading cell has the scope %q", s)
			}
		case "figure":
			if child(n, "figcaption") == nil {
				fault("the figure %s has no caption", attr(n, "id"))
			}
			said := false
			for c := range n.ChildNodes() {
				said = said || attr(c, "role") == "img" && len(attr(c, "aria-label")) > 40
			}
			if !said {
				fault("the figure %s has no text alternative", attr(n, "id"))
			}
		}
	}
	for _, r := range refs {
		if !ids[r] {
			fault("there is no %s to go to", r)
		}
	}
	for _, l := range labels {
		for _, id := range strings.Fields(l) {
			if !ids[id] {
				fault("there is no %s to be labelled by", id)
			}
		}
	}
	if !strings.HasPrefix(policy, "default-src 'none'; style-src 'unsafe-inline'; img-src data:") {
		fault("the policy is %q", policy)
	}
	return faults
}

// TestPageIsEscaped writes names that would be markup.
func TestPageIsEscaped(t *testing.T) {
	d := full(t)
	const evil = `<b onclick="x">&"'</b>`
	d.Report.Header.Order[0] = evil
	d.Report.Header.ID = evil
	d.Report.Caveats = []string{evil}
	for i := range d.Report.Rate {
		d.Report.Rate[i].Candidate = evil
	}
	var b bytes.Buffer
	if err := HTML(&b, d); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "<b ") {
		t.Error("markup got through")
	}
	for _, p := range examine(t, b.Bytes()) {
		t.Error(p)
	}
}

// TestMarkdownFits makes reports too long for a comment.
func TestMarkdownFits(t *testing.T) {
	d := full(t)
	for i := range 4000 {
		row := d.Report.Rate[i%9]
		row.Notes = []string{fmt.Sprintf("note %d: %s", i, strings.Repeat("é|", 400))}
		d.Report.Rate = append(d.Report.Rate, row)
		d.Report.Notes = append(d.Report.Notes, row.Notes[0])
		d.Report.Caveats = append(d.Report.Caveats, row.Notes[0])
	}
	d.Report.Header.Versions = map[string]string{"long": strings.Repeat("1.2.3 ", 20000)}
	var b bytes.Buffer
	if err := Markdown(&b, d); err != nil {
		t.Fatal(err)
	}
	if b.Len() >= MarkdownLimit || !strings.Contains(b.String(), "more rows do not fit") || !strings.Contains(b.String(), "Environment and versions") {
		t.Errorf("%d bytes", b.Len())
	}
	if strings.Count(b.String(), "<details>") != strings.Count(b.String(), "</details>") {
		t.Error("something stays unfolded")
	}
}

// TestBigPage writes the page of a run with 3,000 windows, each with a gate
// that failed before.
func TestBigPage(t *testing.T) {
	d := bigDocument(t, 3000)
	var b bytes.Buffer
	if err := HTML(&b, d); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 3<<20 {
		t.Errorf("the page has %d bytes", b.Len())
	}
	for _, p := range examine(t, b.Bytes()) {
		t.Error(p)
	}
}

// bigDocument is a run with many repetitions.
func bigDocument(t testing.TB, windows int) Document {
	d := full(t)
	in := d.Input
	in.Run.Preset.Phases = slices.Clone(in.Run.Preset.Phases)
	for i := range in.Run.Preset.Phases {
		in.Run.Preset.Phases[i].Repetitions = windows
	}
	template := slices.Clone(in.Windows)
	in.Windows = nil
	for i := range windows {
		w := template[i%len(template)]
		w.Repetition, w.Attempt = i/len(template)+1, 1
		m := *w.Measured
		m.Achieved *= 1 + 0.01*math.Sin(float64(i))
		w.Measured = &m
		bad := w
		bad.Gates = []store.Gate{{Name: "steal", Reading: 0.05, Limit: 0.01, Unit: "share of CPU time"}}
		w.Attempt = 2
		in.Windows = append(in.Windows, bad, w)
	}
	out := document(t, in, "")
	out.Read = d.Read
	return out
}

// BenchmarkPage makes everything of a run and writes its page.
func BenchmarkPage(b *testing.B) {
	for _, n := range []int{3000, 30_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d := bigDocument(b, n)
			b.ResetTimer()
			cpu := cpuTime()
			for range b.N {
				out := document(b, d.Input, "")
				out.Read = d.Read
				var page bytes.Buffer
				if err := HTML(&page, out); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(page.Len()), "page-bytes")
			}
			b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(b.N)/float64(n), "cpu-ns/window")
		})
	}
}

// TestContrast holds every colour of text and of plots against the backgrounds
// it stands on, in all three style sheets, by the formula of WCAG 2.2.
func TestContrast(t *testing.T) {
	parts := regexp.MustCompile(`:root\{([^}]*)\}`).FindAllStringSubmatch(pageStyle, -1)
	if len(parts) != 3 {
		t.Fatalf("%d sets of colours", len(parts))
	}
	luminance := func(hex string) float64 {
		if len(hex) == 4 {
			hex = "#" + string([]byte{hex[1], hex[1], hex[2], hex[2], hex[3], hex[3]})
		}
		v, err := strconv.ParseUint(hex[1:], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
			c := float64(v>>(16-8*i)&255) / 255
			if c <= 0.04045 {
				c /= 12.92
			} else {
				c = math.Pow((c+0.055)/1.055, 2.4)
			}
			sum += weight * c
		}
		return sum
	}
	colours := map[string]string{}
	for i, p := range parts { // the later ones change some of the first
		for _, m := range regexp.MustCompile(`--([a-z0-9-]+):(#[0-9a-f]+)`).FindAllStringSubmatch(p[1], -1) {
			if i == 2 && colours["light-"+m[1]] == "" {
				t.Errorf("%s is for print alone", m[1])
			}
			colours[m[1]] = m[2]
			if i == 0 {
				colours["light-"+m[1]] = m[2]
			}
		}
		get := func(name string) string {
			if i == 2 && name != "bg" && name != "card" { // print starts from light
				return colours["light-"+name]
			}
			return colours[name]
		}
		for _, on := range []string{"bg", "card", "warn"} {
			for _, name := range []string{"fg", "mu", "link", "yes", "no", "c0", "c1", "c2", "c3", "c4", "c5"} {
				if on == "warn" && name != "fg" {
					continue
				}
				a, b := luminance(get(name)), luminance(get(on))
				if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); ratio < 4.5 {
					t.Errorf("set %d: %s on %s has a contrast of %.2f", i, name, on, ratio)
				}
			}
		}
	}
}

// A row whose rates were all left out has evidence and no rate; what it
// achieved is not known.
func TestTargetsWithoutARate(t *testing.T) {
	cell := figures.Cell{Scenario: "read", Candidate: "go", Repetitions: 1, Evidence: true}
	text := targets(figures.Tables{Rate: []figures.RateRow{{Cell: cell, Target: 1000}}})
	if !strings.Contains(text, "read at 1,000/s") || !strings.Contains(text, "go") || strings.Contains(text, "go (") {
		t.Errorf("%q", text)
	}
}
