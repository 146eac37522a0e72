package gates

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/percore/percore/internal/evidence/measure"
	"github.com/percore/percore/internal/evidence/samples"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/plan"
)

// Layout is what the gates need of a run: which role ran where. It follows from
// run.json alone.
type Layout struct {
	hosts    map[plan.Role]string   // role -> name of the first host that plays it
	roles    map[string][]plan.Role // name of a host -> what it plays
	cpus     map[plan.Role]plan.CPUSet
	siblings []plan.CPUSet // cores with several threads, where all roles are on one host
	waived   string        // why gates that shared cores fail do not count; empty: they do
}

// LayoutOf is the layout of a run.
func LayoutOf(run store.Run) Layout {
	l := Layout{hosts: map[plan.Role]string{}, roles: map[string][]plan.Role{}, cpus: map[plan.Role]plan.CPUSet{}, siblings: run.Profile.Siblings}
	for _, h := range run.Hosts {
		l.roles[h.Name] = h.Roles
		for _, r := range h.Roles {
			if _, known := l.hosts[r]; !known {
				l.hosts[r] = h.Name
			}
		}
	}
	for r, resources := range run.Profile.Roles {
		l.cpus[r] = resources.CPUs
	}
	if run.Profile.SharedCores {
		l.waived = "the profile shares cores between roles"
	}
	return l
}

// spread reports whether roles are on different hosts.
func (l Layout) spread() bool {
	return l.hosts[plan.App] != l.hosts[plan.Load] || l.hosts[plan.App] != l.hosts[plan.DB]
}

// Judge derives the figures of a window and reads its gates from what is stored
// of it: its own entry without figures and gates, the reading of the probe
// before it, and the raw files, which read is asked for by their paths. Of a
// window of the study only gates that fail are returned. The error says why the
// window cannot be judged at all.
func (l Layout) Judge(w store.WindowResult, probe store.ProbeReading, read func(path string) ([]byte, error)) (measure.Window, []store.Gate, error) {
	if imported(w) {
		evidence, err := store.ReadEvidence(w, read)
		if err != nil {
			return measure.Window{}, nil, err
		}
		figures, err := evidence.Figures()
		return figures, FailedOf(w.Window, evidence.Outputs), err
	}
	if w.OHA == "" || w.CGroup == "" {
		return measure.Window{}, nil, errors.New("there is no output of a load generator, or there are no samples of the app's host")
	}
	evidence, err := store.ReadEvidence(w, read)
	if err != nil {
		return measure.Window{}, nil, err
	}
	hosts := l.identify(evidence.Hosts)
	if err := l.ended(hosts); err != nil {
		return measure.Window{}, nil, err
	}
	figures, err := evidence.Figures()
	if err != nil {
		return measure.Window{}, nil, err
	}
	var worked time.Duration
	for _, o := range evidence.Outputs {
		worked = max(worked, time.Duration(o.Result.Seconds*float64(time.Second)))
	}
	gates := append([]store.Gate{OfProbe(probe), l.coresGate()}, l.sampleGates(hosts, w.Hosts, w.Start, w.End, worked)...)
	if late, any := l.lateGate(w.Window, len(evidence.Outputs), hosts); any {
		gates = append(gates, late)
	}
	return figures, append(gates, OfOutputs(w.Window, evidence.Outputs)...), nil
}

// imported reports whether a window is one of the study, whose samples have a
// layout of their own and may be missing.
func imported(w store.WindowResult) bool {
	return strings.HasSuffix(w.CGroup, samples.Ending) || w.CGroup == "" && w.OHA != "" && len(w.Hosts) == 0 && !strings.HasSuffix(w.OHA, store.RawOHA)
}

// identify says who the sampled hosts are where they said nothing of
// themselves. The first is the app's.
func (l Layout) identify(hosts []store.HostSeries) []store.HostSeries {
	hosts = slices.Clone(hosts)
	for i := range hosts {
		h := &hosts[i]
		if i == 0 && l.spread() && h.Host == "" {
			h.Host, h.Roles = l.hosts[plan.App], nil
		}
		if len(h.Roles) == 0 {
			h.Roles = l.roles[h.Host]
		}
	}
	return hosts
}

// ended fails when the container of the app or the database is not in the
// samples or ended before the window did.
func (l Layout) ended(hosts []store.HostSeries) error {
	for _, role := range []plan.Role{plan.App, plan.DB} {
		i := slices.IndexFunc(hosts, func(h store.HostSeries) bool { return h.Series.Has(string(role)) })
		if i < 0 {
			return fmt.Errorf("no samples hold the %s container", role)
		}
		if hosts[i].Series.Gone(string(role)) {
			where := ""
			if l.spread() {
				where = " on host " + hosts[i].Host
			}
			return fmt.Errorf("the %s container%s ended during the window; the log kept in the run's folder says why", role, where)
		}
	}
	return nil
}
