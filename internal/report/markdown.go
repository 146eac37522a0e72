package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/percore/percore/internal/answers/claims"
)

// MarkdownLimit is how long a comment on a pull request may be, in characters
// and here in bytes, which are never fewer.
const MarkdownLimit = 65536

// Markdown writes a report that fits a comment on a pull request: what matters
// most comes first, the rest can be unfolded. Rows that do not fit are left out
// from the end, and counted.
func Markdown(w io.Writer, d Document) error {
	r := d.Report
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", escape(title(r.Header)))
	listing(&b, "> ", "> ", atMost(r.Caveats, 10), true)
	for _, l := range summary(d) {
		fmt.Fprintf(&b, "- **%s:** %s\n", escape(l.Label), cut(escape(l.Text), 2000))
	}
	t := Tables(r)
	sections := []section{{oneCoreTable(d), false}}
	if not := claimTable(d.Verdicts, claims.NotReproduced, "Claims not reproduced"); len(not.Rows) > 0 {
		sections = append(sections, section{not, false})
	}
	sections = append(sections, section{t[0], false}, section{t[1], false}) // fixed rate, ceiling
	if yes := claimTable(d.Verdicts, claims.Reproduced, "Claims reproduced"); len(yes.Rows) > 0 {
		sections = append(sections, section{yes, true})
	}
	for _, rest := range t[2:] {
		sections = append(sections, section{rest, true})
	}
	if open := claimTable(d.Verdicts, claims.Inconclusive, "Claims inconclusive"); len(open.Rows) > 0 {
		sections = append(sections, section{open, true})
	}
	// The environment must always be in it, so its room is set aside.
	var end strings.Builder
	fmt.Fprint(&end, "\n<details><summary>Environment and versions</summary>\n\n")
	for _, f := range facts(r.Header) {
		fmt.Fprintf(&end, "- %s: %s\n", escape(f.Name), cut(escape(f.Text), 1500))
	}
	fmt.Fprint(&end, "\n</details>\n")
	if len(r.Notes) > 0 {
		fmt.Fprint(&end, "\n<details><summary>Notes</summary>\n\n")
		listing(&end, "- ", "", atMost(r.Notes, 10), false)
		fmt.Fprint(&end, "\n</details>\n")
	}
	for _, s := range sections {
		b.WriteString(s.fit(MarkdownLimit - 1 - b.Len() - end.Len()))
	}
	b.WriteString(end.String())
	_, err := io.WriteString(w, b.String())
	return err
}

// section is a table of a Markdown report.
type section struct {
	Table
	folded bool
}

// fit writes the section with as many rows as the room allows.
func (s section) fit(room int) string {
	text := s.write(len(s.Rows))
	if len(text) <= room {
		return text
	}
	fits, tooMany := -1, len(s.Rows)
	for tooMany-fits > 1 {
		half := (fits + tooMany) / 2
		if len(s.write(half)) <= room {
			fits = half
		} else {
			tooMany = half
		}
	}
	if fits < 0 {
		return ""
	}
	return s.write(fits)
}

func (s section) write(rows int) string {
	var b strings.Builder
	if s.folded {
		fmt.Fprintf(&b, "\n<details><summary>%s</summary>\n\n", escape(s.Title))
	} else {
		fmt.Fprintf(&b, "\n## %s\n\n", escape(s.Title))
	}
	if len(s.Rows) == 0 {
		fmt.Fprintf(&b, "%s\n", escape(s.Empty))
	} else {
		fmt.Fprintf(&b, "%s\n\n", escape(s.About))
		names := make([]string, len(s.Columns))
		rule := make([]string, len(s.Columns))
		for i, c := range s.Columns {
			names[i], rule[i] = escape(c.Name), "---:"
			if c.Text {
				rule[i] = ":---"
			}
		}
		fmt.Fprintf(&b, "| %s |\n| %s |\n", strings.Join(names, " | "), strings.Join(rule, " | "))
		for _, row := range s.Rows[:rows] {
			line := make([]string, len(row))
			for i, v := range row {
				line[i] = cut(escape(v), 500)
			}
			fmt.Fprintf(&b, "| %s |\n", strings.Join(line, " | "))
		}
	}
	notes := atMost(s.Notes, 10)
	if left := len(s.Rows) - rows; left > 0 {
		notes = append(notes, fmt.Sprintf("%d more rows do not fit here; the HTML report has them", left))
	}
	if len(notes) > 0 {
		fmt.Fprintln(&b)
		listing(&b, "- ", "", notes, false)
	}
	if s.folded {
		fmt.Fprint(&b, "\n</details>\n")
	}
	return b.String()
}

// listing writes texts one a line, bold where they must not be overlooked.
func listing(b *strings.Builder, before, between string, texts []string, bold bool) {
	for i, s := range texts {
		if i > 0 && between != "" {
			fmt.Fprintln(b, strings.TrimSpace(between))
		}
		s = cut(escape(s), 600)
		if bold {
			s = "**" + s + "**"
		}
		fmt.Fprintf(b, "%s%s\n", before, s)
	}
	if bold && len(texts) > 0 {
		fmt.Fprintln(b)
	}
}

// atMost keeps the first n texts and says how many are left out.
func atMost(texts []string, n int) []string {
	if len(texts) <= n {
		return texts[:len(texts):len(texts)]
	}
	return append(texts[:n:n], fmt.Sprintf("and %d more; the HTML report has them", len(texts)-n))
}

// cut shortens a text to a number of bytes, between two characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}

// claimTable lists the claims of one verdict.
func claimTable(results []claims.Result, verdict claims.Verdict, title string) Table {
	t := Table{ID: "claims", Title: title,
		Columns: []Column{{"claim", true, 0}, {"measured", false, 0}, {"interval", false, 0}, {"published", false, 0}, {"judged on", true, 0}, {"why", true, 0}}}
	for _, r := range results {
		if r.Verdict != verdict {
			continue
		}
		c := claimOf(r)
		t.Rows = append(t.Rows, []string{c.Says, c.Measured, c.Interval, c.Published, strings.TrimPrefix(c.Basis, "judged on "), strings.Join(append([]string{c.Reason}, c.Marks...), "; ")})
	}
	t.Title = fmt.Sprintf("%s (%d)", title, len(t.Rows))
	t.About = map[claims.Verdict]string{
		claims.NotReproduced: "Outside of what the claim accepts, with the whole interval.",
		claims.Reproduced:    "Inside of what the claim accepts, with the whole interval.",
		claims.Inconclusive:  "Not to be decided by this run.",
	}[verdict]
	return t
}
