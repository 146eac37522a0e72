package figures

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/percore/percore/internal/evidence/study"
)

func studyReport(t testing.TB, dir string) Tables {
	t.Helper()
	s, err := study.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return TablesOf(ReadStudy(s))
}

// TestSummaryOfTheStudy holds every cell of which the folder has all
// repetitions against the study's own summary.csv, byte for byte.
func TestSummaryOfTheStudy(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(studyDir, "summary.csv"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if lines[0] != strings.Join(SummaryColumns, ",") {
		t.Errorf("columns are %v", SummaryColumns)
	}
	theirs := map[string]string{}
	place := map[string]int{}
	for i, l := range lines[1:] {
		k := strings.Join(strings.SplitN(l, ",", 5)[:4], ",")
		theirs[k], place[k] = l, i
	}
	equal, incomplete, last := 0, 0, -1
	for _, row := range Summary(studyReport(t, studyDir)) {
		ours := strings.Join(row, ",")
		k := strings.Join(row[:4], ",")
		if place[k] <= last {
			t.Errorf("%s is not in the study's order", k)
		}
		last = place[k]
		switch {
		case k == "rate,fpm,read,50000":
			incomplete++
			if ours == theirs[k] || row[4] != "1" || row[11] != "" {
				t.Errorf("one repetition without counters passes for five: %s", ours)
			}
		case ours != theirs[k]:
			t.Errorf("\n got %s\nwant %s", ours, theirs[k])
		default:
			equal++
		}
	}
	if equal != 4 || incomplete != 1 {
		t.Errorf("%d rows are equal and %d incomplete, the folder holds 4 and 1", equal, incomplete)
	}
	if _, err := csv.NewReader(strings.NewReader(string(data))).ReadAll(); err != nil {
		t.Error(err)
	}
}
