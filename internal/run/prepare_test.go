package run

import (
	"strings"
	"testing"

	"github.com/percore/percore/internal/plan"
)

// TestThreadsAreACaveat: a core that is a thread is said, once, wherever a role
// has several threads of one core.
func TestThreadsAreACaveat(t *testing.T) {
	for _, c := range []struct {
		siblings []plan.CPUSet
		says     string
	}{
		{nil, ""},
		{[]plan.CPUSet{"0,12", "1,13"}, ""}, // the other threads rest
		{[]plan.CPUSet{"0-1", "2-3", "4-5", "6-7"}, "the machine has 2 threads per core"},
		{[]plan.CPUSet{"0,8", "1,9"}, "app and load share the cores of CPUs 0-1,8-9"},
	} {
		p := Prepared{Preset: plan.Preset{Published: true}, Profile: plan.Profile{
			Name: "m4pro", Siblings: c.siblings,
			Roles: map[plan.Role]plan.Resources{plan.App: {CPUs: "0-3"}, plan.DB: {CPUs: "4-7"}, plan.Load: {CPUs: "8-11"}},
		}}
		all := strings.Join(p.Caveats(), "; ")
		if !strings.Contains(all, c.says) || strings.Count(all, "threads per core") > 1 || c.says == "" && (strings.Contains(all, "thread") || strings.Contains(all, "share")) {
			t.Errorf("%q: caveats %q", c.siblings, all)
		}
	}
}
