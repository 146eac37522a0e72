package claims

import (
	"fmt"
	"slices"
	"strings"

	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/answers/sheet"
)

// Schema names the layout of Report as JSON.
const Schema = "percore-claims/1"

// Report is every verdict over one set.
type Report struct {
	Schema       string       `json:"schema"`
	Set          *figures.Set `json:"set"`
	Reproduced   int          `json:"reproduced"`
	Not          int          `json:"not_reproduced"`
	Inconclusive int          `json:"inconclusive"`
	NotMeasured  int          `json:"not_measured"` // of the inconclusive ones
	Results      []Result     `json:"results"`
}

// Of judges claims over a set and counts the verdicts.
func Of(list []Claim, set, baseline *figures.Set) Report {
	r := Report{Schema: Schema, Set: set, Results: Evaluate(list, set, baseline)}
	for _, x := range r.Results {
		switch x.Verdict {
		case Reproduced:
			r.Reproduced++
		case NotReproduced:
			r.Not++
		default:
			r.Inconclusive++
			if x.Cause == CauseNotMeasured {
				r.NotMeasured++
			}
		}
	}
	return r
}

// Summary is the outcome in one sentence.
func (r Report) Summary() string {
	return fmt.Sprintf("Of %d claims %d are reproduced, %d are not, and %d are inconclusive (%d of these because this run did not measure what they are about).",
		len(r.Results), r.Reproduced, r.Not, r.Inconclusive, r.NotMeasured)
}

// Document writes the verdicts as sentences and tables: what is not reproduced
// first. Claims about what was not measured are listed on request.
func (r Report) Document(all bool) sheet.Document {
	d := sheet.Document{Title: "Verdicts on the published claims, by the figures of " + r.Set.Name, Findings: []string{r.Summary()}}
	if r.Set.SharedCores {
		d.First = append(d.First, "The roles share cores in this run: claims about absolute figures cannot be judged, those about ratios are judged and marked.")
	}
	if r.Set.Kind != figures.KindPublished && r.Set.Flavour != "published" {
		d.First = append(d.First, fmt.Sprintf("Flavour %s has other versions than the study: claims about absolute figures cannot be judged, those about ratios are judged and marked.", r.Set.Flavour))
	}
	for _, v := range []Verdict{NotReproduced, Inconclusive, Reproduced} {
		t := sheet.Table{Name: strings.ReplaceAll(string(v), " ", "_"), Left: 3, Right: 1,
			Header: []string{"claim", "says", "kind", "measured", "interval", "published", "reason or mark"}}
		for _, x := range r.Results {
			if x.Verdict != v || !all && x.Cause == CauseNotMeasured {
				continue
			}
			t.Rows = append(t.Rows, x.row())
		}
		t.Title = fmt.Sprintf("%s (%d)", strings.ToUpper(string(v[:1]))+string(v[1:]), len(t.Rows))
		d.Tables = append(d.Tables, t)
	}
	d.Last = []string{
		"Absolute claims are judged on the figure itself, ratios, orders and identities on ratios within the run. Intervals are at 90 %; a claim is reproduced when its interval lies inside what it accepts.",
		"Where a claim compares several figures, the one that decides is shown.",
	}
	if !all && r.NotMeasured > 0 {
		d.Last = append(d.Last, fmt.Sprintf("%d claims about what was not measured are left out; --all lists them.", r.NotMeasured))
	}
	return d
}

// Deciding is the finding that a reader should see: the one that kept the claim
// from being reproduced, or the one nearest to the border of what it accepts.
func (r Result) Deciding() *Finding {
	var first *Finding
	var nearest float64
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Verdict == r.Verdict && r.Verdict != Reproduced {
			return f
		}
		if f.Measured == nil {
			continue
		}
		if m := f.margin(); first == nil || m < nearest {
			first, nearest = f, m
		}
	}
	return first
}

// Warnings are those of the comparison that decides: what the statistics could
// not do, and which repetitions are missing.
func (r Result) Warnings() []string {
	f := r.Deciding()
	if f == nil || f.Measured == nil {
		return nil
	}
	var list []string
	for _, w := range f.Measured.Warnings {
		if !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	return list
}

// margin is how far the value is from the border, relative to the border.
func (f *Finding) margin() float64 {
	best := -1.0
	for _, border := range []*float64{f.Lowest, f.Highest} {
		if border == nil {
			continue
		}
		scale := *border
		if scale == 0 {
			scale = 1
		}
		d := (f.Measured.Value - *border) / scale
		if d < 0 {
			d = -d
		}
		if best < 0 || d < best {
			best = d
		}
	}
	return best
}

func (r Result) row() []string {
	measured, interval, published := "-", "-", "-"
	if f := r.Deciding(); f != nil {
		if m := f.Measured; m != nil {
			measured = short(m.Value)
			switch {
			case m.Confidence > 0 && m.ByValue:
				interval = fmt.Sprintf("repetitions %s to %s", short(m.Lo), short(m.Hi))
			case m.Confidence > 0:
				interval = fmt.Sprintf("%s to %s at %s", short(m.Lo), short(m.Hi), figures.Percent(m.Confidence))
			}
		}
		if f.Published != nil {
			published = short(*f.Published)
		}
	}
	why := r.Reason
	if len(r.Marks) > 0 {
		why += "; mark: " + strings.Join(r.Marks, "; ")
	}
	if list := r.Warnings(); len(list) > 0 {
		why += "; warning: " + strings.Join(list, "; ")
	}
	why = strings.TrimPrefix(why, "; ")
	return []string{r.ID, r.Says, string(r.Kind), measured, interval, published, why}
}
