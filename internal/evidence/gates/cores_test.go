package gates

import (
	"strings"
	"testing"

	"github.com/percore/percore/internal/plan"
)

// TestThreadsOfOneCore: app and load on different CPUs of one core share it.
func TestThreadsOfOneCore(t *testing.T) {
	far, near := []plan.CPUSet{"0,4", "1,5", "2,6", "3,7"}, []plan.CPUSet{"0-1", "2-3", "4-5", "6-7"}
	for name, c := range map[string]struct {
		app, db, load plan.CPUSet
		siblings      []plan.CPUSet
		waive         bool
		shared        float64
		says          string
	}{
		"no threads":      {app: "0-1", db: "2-3", load: "4-7", says: "app on 0-1, load on 4-7"},
		"far":             {app: "0-1", db: "2-3", load: "4-7", siblings: far, shared: 4, says: "the CPUs 0-7 are threads of the same cores"},
		"app and load":    {app: "0-1", db: "2,6", load: "3-5,7", siblings: far, shared: 2, says: "app on 0-1, db on 2,6, load on 3-5,7, of which the CPUs 0-1,4-5 are"},
		"near":            {app: "0-1", db: "2-3", load: "4-7", siblings: near, says: "app on 0-1, load on 4-7"},
		"split near":      {app: "0", db: "2-3", load: "1,4-7", siblings: near, shared: 1, says: "the CPUs 0-1 are"},
		"whole cores":     {app: "0,4", db: "1,5", load: "2-3,6-7", siblings: far, says: "app on 0,4"},
		"app and db":      {app: "0,4", db: "1,2", load: "3,5,7", siblings: far, shared: 1, says: "the CPUs 1,5 are"},
		"on purpose":      {app: "0-1", db: "2-3", load: "4-7", siblings: far, waive: true, shared: 2, says: "the CPUs 0-1,4-5 are"},
		"db on purpose":   {app: "0,4", db: "1,5", load: "1,5", siblings: far, waive: true, says: "app on 0,4"},
		"the same thread": {app: "0-1", db: "2", load: "1", siblings: []plan.CPUSet{"2-3"}, shared: 1, says: "the CPUs 1 are"},
	} {
		l := Layout{
			hosts:    map[plan.Role]string{},
			cpus:     map[plan.Role]plan.CPUSet{plan.App: c.app, plan.DB: c.db, plan.Load: c.load},
			siblings: c.siblings,
		}
		if c.waive {
			l.waived = "on purpose"
		}
		unit := "shared CPUs"
		if c.siblings != nil {
			unit = "shared cores"
		}
		g := l.coresGate()
		if g.OK != (c.shared == 0) || g.Reading != c.shared || g.Unit != unit || !strings.Contains(g.Detail, c.says) || (g.Waived != "") != (c.waive && !g.OK) {
			t.Errorf("%s: gate %+v", name, g)
		}
	}
}
