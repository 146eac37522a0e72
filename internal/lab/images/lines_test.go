package images

import (
	"strings"
	"testing"
	"time"
)

func TestLines(t *testing.T) {
	events := []Event{
		{Kind: Reused, Image: "go", Tag: "percore/go:x"},
		{Kind: Waiting, Line: "another percore"},
		{Kind: Started, Image: "php", Index: 1, Count: 2, Estimate: time.Minute},
		{Kind: Stepped, Image: "php", Index: 1, Count: 2, Step: 1, Steps: 3, Command: "RUN make " + strings.Repeat("x", 200), Elapsed: time.Second},
		{Kind: Printed, Image: "php", Index: 1, Count: 2, Step: 1, Steps: 3, Line: "cc a.c", Elapsed: 2 * time.Second},
		{Kind: Ticked, Image: "php", Index: 1, Count: 2, Step: 1, Steps: 3, Command: "RUN make", Elapsed: 5 * time.Second},
		{Kind: Ticked, Image: "php", Index: 1, Count: 2, Step: 1, Steps: 3, Command: "RUN make", Elapsed: 30 * time.Second},
		{Kind: Ticked, Image: "php", Index: 1, Count: 2, Step: 1, Steps: 3, Command: "RUN make", Elapsed: 32 * time.Second},
		{Kind: Finished, Image: "php", Index: 1, Count: 2, Elapsed: 61 * time.Second},
	}
	show := func(verbose bool) string {
		var s strings.Builder
		tell := Lines(&s, verbose)
		for _, e := range events {
			tell(e)
		}
		return s.String()
	}
	want := "waiting: another percore\n" +
		"image 1/2 php: building, about 1m0s\n" +
		"image 1/2 php: 1s, step 1/3: RUN make " + strings.Repeat("x", 90) + "…\n" +
		"image 1/2 php: 30s, still at step 1/3: RUN make\n" +
		"image 1/2 php: done in 1m1s\n"
	if got := show(false); got != want {
		t.Errorf("the lines are\n%s", got)
	}
	if got := show(true); !strings.Contains(got, "\n    cc a.c\n") || !strings.HasPrefix(got, "image go: there already (percore/go:x)\n") {
		t.Errorf("the verbose lines are\n%s", got)
	}
}
