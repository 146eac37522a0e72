package published

import (
	"fmt"
	"strconv"

	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/answers/sheet"
)

// Version is the version of Listing as JSON, by the rule of a report's.
const Version = 1

// Listing is every published figure as JSON.
type Listing struct {
	Version int     `json:"version"`
	Studies []Study `json:"studies"`
}

// ListingOf lists studies.
func ListingOf(studies []Study) Listing { return Listing{Version, studies} }

// Document lists every published figure, a table for each study, with the key
// by which claims name it, its value, its unit and its definition.
func Document(studies []Study) sheet.Document {
	d := sheet.Document{
		Title: "The published figures",
		First: []string{"These are values as printed: they have no repetitions, so nothing here has an interval."},
		Last:  []string{"percore claims, compare and plan take \"published\" in place of a run."},
	}
	for _, s := range studies {
		t := sheet.Table{Name: s.ID, Title: s.Title, Header: []string{"figure", "value", "unit", "definition"}, Left: 1, Right: 2}
		for _, g := range s.Figures {
			list, err := g.flatten(s.Suite)
			if err != nil {
				panic(err) // Parse has checked it
			}
			for _, f := range list {
				t.Rows = append(t.Rows, []string{f.Key.String(), strconv.FormatFloat(f.Value, 'f', -1, 64), figures.Unit(f.Key.Metric), g.Definition})
			}
		}
		d.Findings = append(d.Findings, fmt.Sprintf("%s: %d figures.", s.ID, len(t.Rows)))
		d.Tables = append(d.Tables, t)
	}
	return d
}
