package published

import (
	"strings"
	"testing"

	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/answers/sheet"
)

// TestDocument: every figure is listed once, under a key that reads back, and
// every format can be written.
func TestDocument(t *testing.T) {
	studies, err := Studies()
	if err != nil {
		t.Fatal(err)
	}
	set, err := Set()
	if err != nil {
		t.Fatal(err)
	}
	d := Document(studies)
	want := 0
	for _, s := range studies {
		want += len(s.List())
	}
	rows := 0
	for _, table := range d.Tables {
		for _, row := range table.Rows {
			rows++
			key, err := figures.ParseKey(row[0])
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := set.Get(key); !ok {
				t.Errorf("%s is not in the set", row[0])
			}
			if row[3] == "" {
				t.Errorf("%s has no definition", row[0])
			}
		}
	}
	if rows != want || rows < 100 {
		t.Errorf("%d rows for %d figures", rows, want)
	}
	for _, format := range sheet.Formats {
		var b strings.Builder
		if err := sheet.Write(&b, format, d, studies); err != nil || !strings.Contains(b.String(), "64.1") {
			t.Errorf("%s: %v", format, err)
		}
	}
}
