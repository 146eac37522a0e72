package session

import (
	"strings"
	"testing"

	"github.com/percore/percore/internal/profile"
)

// TestThreadsAreACaveat: a core that is a thread is said, once, wherever a role
// has several threads of one core.
func TestThreadsAreACaveat(t *testing.T) {
	for _, c := range []struct {
		siblings []profile.CPUSet
		says     string
	}{
		{nil, ""},
		{[]profile.CPUSet{"0,12", "1,13"}, ""}, // the other threads rest
		{[]profile.CPUSet{"0-1", "2-3", "4-5", "6-7"}, "the machine has 2 threads per core"},
		{[]profile.CPUSet{"0,8", "1,9"}, "app and load share the cores of CPUs 0-1,8-9"},
	} {
		p := Prepared{Preset: profile.Preset{Published: true}, Profile: profile.Profile{
			Name: "m4pro", Siblings: c.siblings,
			Roles: map[profile.Role]profile.Resources{profile.App: {CPUs: "0-3"}, profile.DB: {CPUs: "4-7"}, profile.Load: {CPUs: "8-11"}},
		}}
		all := strings.Join(p.Caveats(), "; ")
		if !strings.Contains(all, c.says) || strings.Count(all, "threads per core") > 1 || c.says == "" && (strings.Contains(all, "thread") || strings.Contains(all, "share")) {
			t.Errorf("%q: caveats %q", c.siblings, all)
		}
	}
}
