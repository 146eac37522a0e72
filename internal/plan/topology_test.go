package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// far and near are n cores of two threads: numbered 0 and n, or 0 and 1.
func far(n int) (cores []CPUSet) {
	for c := range n {
		cores = append(cores, FormatCPUs([]int{c, c + n}))
	}
	return cores
}

func near(n int) (cores []CPUSet) {
	for c := range n {
		cores = append(cores, FormatCPUs([]int{2 * c, 2*c + 1}))
	}
	return cores
}

func TestCores(t *testing.T) {
	for text, want := range map[string][]CPUSet{
		"":                                 nil,
		"cat: no such file\n":              nil,
		"0\n1\n":                           {"0", "1"},
		"0,2\n1,3\n0,2\n1,3\n0,2\n1,3\n":   {"0,2", "1,3"},
		"0-1\n10-11\n0-1\n10-11\n2-3\n2-3": {"0-1", "2-3", "10-11"},
		"0,4\n1\n2,6\n0,4\n2,6":            {"0,4", "1", "2,6"}, // 5 is offline, 3 and 7 are
		"0-1\n1\nx\n":                      {"0-1"},
	} {
		if got := Cores(text); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := Siblings([]CPUSet{"0,4", "1", "2,6"}); !slices.Equal(got, []CPUSet{"0,4", "2,6"}) {
		t.Errorf("siblings %q", got)
	}
}

func TestSharedCores(t *testing.T) {
	for _, c := range []struct {
		a, b     CPUSet
		siblings []CPUSet
		want     []CPUSet
	}{
		{"0-1", "4-7", nil, nil},
		{"0-1", "1-2", nil, []CPUSet{"1"}},
		{"0-1", "4-7", far(4), []CPUSet{"0,4", "1,5"}},
		{"0-1", "4-7", near(4), nil},
		{"0", "1", near(4), []CPUSet{"0-1"}},
		{"0,4", "1-3,5-7", far(4), nil},
		{"0,8", "4,8", []CPUSet{"0,4"}, []CPUSet{"0,4", "8"}}, // 8 has no sibling
	} {
		if got := SharedCores(c.a, c.b, c.siblings); !slices.Equal(got, c.want) {
			t.Errorf("%s and %s on %q: got %q, want %q", c.a, c.b, c.siblings, got, c.want)
		}
	}
}

// TestResolveOnThreads: the threads of a core stay in one role, however they
// are numbered.
func TestResolveOnThreads(t *testing.T) {
	small, err := FindProfile(root, "small")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		cores  []CPUSet
		want   [3]CPUSet
		shared string
		most   int // threads of a core in one role
	}{
		"far":          {far(4), [3]CPUSet{"0,4", "1,5", "2-3,6-7"}, "", 2},
		"near":         {near(4), [3]CPUSet{"0-1", "2-3", "4-7"}, "", 2},
		"odd":          {far(5), [3]CPUSet{"0,5", "1,6", "2-4,7-9"}, "", 2},
		"mixed":        {[]CPUSet{"0-1", "2-3", "4", "5", "6", "7"}, [3]CPUSet{"0-3", "4-5", "6-7"}, "", 2},
		"none":         {[]CPUSet{"0", "1", "2", "3"}, [3]CPUSet{"0", "1", "2-3"}, "", 1},
		"one offline":  {[]CPUSet{"0,4", "1", "2,6", "3,7"}, [3]CPUSet{"0,4", "1", "2-3,6-7"}, "", 2},
		"odd offline":  {[]CPUSet{"0", "2", "4", "6"}, [3]CPUSet{"0", "2", "4,6"}, "", 1},
		"two cores":    {far(2), [3]CPUSet{"0,2", "1,3", "1,3"}, "db and load share the cores of CPUs 1,3", 2},
		"one core":     {near(1), [3]CPUSet{"0", "1", "1"}, "app and load share the cores of CPUs 0-1", 1},
		"four threads": {[]CPUSet{"0-3"}, [3]CPUSet{"0", "1", "2-3"}, "app and load share the cores of CPUs 0-3", 2},
	} {
		p, err := small.Resolve(Machine{CPUs: JoinCPUs(c.cores...).Count(), MemoryBytes: 8 << 30, Cores: c.cores})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := [3]CPUSet{p.Roles[App].CPUs, p.Roles[DB].CPUs, p.Roles[Load].CPUs}; got != c.want {
			t.Errorf("%s split as %v, want %v", name, got, c.want)
		}
		shared := strings.Join(p.SharedRoles(), ", ")
		if p.SharedCores != (c.shared != "") || (shared != "") != (c.shared != "") || !strings.Contains(shared, c.shared) {
			t.Errorf("%s: shared is %v, pairs %q", name, p.SharedCores, shared)
		}
		most := 0
		for _, r := range p.Roles {
			most = max(most, ThreadsPerCore(r.CPUs, p.Siblings))
		}
		if most != c.most || !slices.Equal(p.Siblings, Siblings(c.cores)) {
			t.Errorf("%s: %d threads of a core in a role, siblings %q", name, most, p.Siblings)
		}
	}

	// A profile with CPUs of its own stays as it is, on a part of the machine.
	own := small
	own.Roles = map[Role]Resources{App: {CPUs: "0-1"}, DB: {CPUs: "2-3"}, Load: {CPUs: "4-5"}}
	for _, c := range []struct {
		cores []CPUSet
		pairs string
	}{
		{far(4), "[app and load share the cores of CPUs 0-1,4-5]"},
		{near(4), "[]"},
		{far(6), "[]"}, // each thread has a core to itself
	} {
		p, err := own.Resolve(Machine{CPUs: 2 * len(c.cores), MemoryBytes: 8 << 30, Cores: c.cores})
		if err != nil || p.SharedCores || fmt.Sprint(p.SharedRoles()) != c.pairs || p.Roles[Load].CPUs != "4-5" {
			t.Errorf("%q: pairs %v, shared %v, %v", c.cores, p.SharedRoles(), p.SharedCores, err)
		}
	}
	_, err = own.Resolve(Machine{CPUs: 4, MemoryBytes: 8 << 30, Cores: far(2)})
	wantInput(t, err, "6 CPUs, and the engine has 4")
}
