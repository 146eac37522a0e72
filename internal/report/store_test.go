package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/evidence/cgroup"
	"github.com/percore/percore/internal/evidence/store"
	"github.com/percore/percore/internal/evidence/study"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/testkit/cgtest"
)

const studyDir = "../evidence/study/testdata/php-go-bench/results/2026-09-16"

func readStudy(t testing.TB) *study.Study {
	t.Helper()
	s, err := study.Read(studyDir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// convert writes the study's raw data as a percore run, with everything that
// can happen to one: windows that a gate failed and that were measured again,
// one that never passed, a waived gate, an attempt that broke off and a block
// that failed.
func convert(t testing.TB, results string) *store.Store { return convertTo(t, results, false) }

// convertToHosts writes it as if it had been measured on machines in a cloud:
// one for the candidate, one for the database and two that generate load.
func convertToHosts(t testing.TB, results string) *store.Store { return convertTo(t, results, true) }

func convertTo(t testing.TB, results string, hosts bool) *store.Store {
	t.Helper()
	old := readStudy(t)
	run := old.Run
	run.ID, run.Percore, run.Seed, run.Flavour = "20261130-120000-test", "v0-test", 42, plan.FlavourDebian
	run.Comparable = false
	run.Caveats = []string{"flavour debian: PHP 8.2 and Debian's packages stand in for the study's versions"}
	run.FsyncPerSec = map[string]float64{"fdatasync": 2345.6, "open_datasync": 1999.4}
	run.Ended = nil
	for i := range run.Suite.Candidates {
		if c := &run.Suite.Candidates[i]; c.ID == "frankenphp" {
			c.Title = map[plan.Flavour]string{plan.FlavourDebian: "FrankenPHP library behind net/http"}
		}
	}
	if hosts {
		onHosts(&run)
	}
	s, err := store.Create(results, run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	clock := run.Started
	add := func(e store.Event) {
		t.Helper()
		clock = clock.Add(time.Second)
		e.Time = clock
		if err := s.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	raw := func(name string, data []byte) string {
		t.Helper()
		digest, err := s.WriteRaw(name, data)
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	read := func(name string) []byte {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(studyDir, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	steal := func(v float64) store.Gate {
		return store.Gate{Name: "steal", OK: v <= 0.01, Reading: v, Limit: 0.01, Unit: "share of CPU time"}
	}
	cores := store.Gate{Name: "cores", Reading: 1, Unit: "shared CPUs", Detail: "app on 0, load on 0-1", Waived: "the profile shares cores between roles"}

	add(store.Event{Type: store.EventRunStarted})
	for _, p := range old.Probes {
		reading := p.Reading
		reading.File = store.ProbePath(p.Block, store.ProbeReading{Target: 1, Attempt: 1})
		raw(reading.File, read(p.Reading.File))
		data, err := json.Marshal(reading)
		if err != nil {
			t.Fatal(err)
		}
		add(store.Event{Type: store.EventProbe, Block: &p.Block, Data: data})
	}
	measure := func(w store.WindowResult, attempt int, gates ...store.Gate) {
		t.Helper()
		from := w
		w.Attempt, w.Gates, w.SHA256, w.CGroup = attempt, gates, map[string]string{}, ""
		w.OHA = store.RawPath(w.Window, attempt, store.RawOHA)
		output := read(from.OHA)
		if hosts {
			output = half(t, output, 1)
		}
		w.SHA256[w.OHA] = raw(w.OHA, output)
		if from.CGroup != "" {
			w.CGroup = store.RawPath(w.Window, attempt, store.RawCGroup)
			lines := samples(t, read(from.CGroup))
			if hosts {
				lines = split(t, &w, lines, raw)
			}
			w.SHA256[w.CGroup] = raw(w.CGroup, lines)
		}
		if hosts {
			w.OtherOHA = []string{store.RawPath(w.Window, attempt, "load2."+store.RawOHA)}
			w.SHA256[w.OtherOHA[0]] = raw(w.OtherOHA[0], half(t, read(from.OHA), 1.1))
		}
		figures, err := s.Measure(w)
		if err != nil {
			t.Fatal(err)
		}
		w.Measured = &figures
		add(store.Event{Type: store.EventWindow, Window: &w})
	}
	for _, w := range old.Windows {
		switch {
		case w.Candidate == "go" && w.Scenario == "write" && w.Repetition == 2: // passes the second time
			measure(w, 1, steal(0.034), cores)
			measure(w, 2, steal(0), cores)
		case w.Candidate == "go" && w.Scenario == "write" && w.Repetition == 5: // never passes
			measure(w, 1, steal(0.05), cores)
			measure(w, 2, steal(0.02), cores)
			measure(w, 3, steal(0.011), cores)
		case w.Candidate == "frankenphp" && w.Repetition == 1: // breaks off, then goes well
			broken := store.WindowResult{Window: w.Window, Attempt: 1, Error: "the load generator was killed for memory"}
			add(store.Event{Type: store.EventWindow, Window: &broken})
			measure(w, 2, steal(0), cores)
		case hosts && w.Candidate == "go" && w.Scenario == "write" && w.Repetition == 3: // the network held it back, then the load host
			measure(w, 1, store.Gate{Name: "allowance", Reading: 1200, Unit: "packets", Detail: "host load: pps_allowance_exceeded grew by 1200"}, steal(0))
			measure(w, 2, store.Gate{Name: "load", Reading: 0.93, Limit: 0.85, Unit: "share of CPU time", Detail: "host load2"}, steal(0))
			measure(w, 3, steal(0), store.Gate{Name: "load", OK: true, Reading: 0.4, Limit: 0.85, Unit: "share of CPU time", Detail: "host load2"})
		case w.Candidate == "php-fpm" && w.Kind == plan.KindRate: // no evidence at all
			measure(w, 1, steal(0.2), cores)
		default:
			measure(w, 1, steal(0.001), cores)
		}
	}
	add(store.Event{Type: store.EventBlockFailed, Block: &plan.BlockID{Phase: "rate", Candidate: "frankenphp", Repetition: 1}, Error: "the candidate never became ready: its log ends with\nno such file"})
	add(store.Event{Type: store.EventRunEnded, Message: store.StateInterrupted})
	return s
}

// onHosts makes four machines of the study's one.
func onHosts(run *store.Run) {
	run.ID = "20261130-120000-cloud"
	run.Profile.Name, run.Profile.Load.Count = "aws-graviton", 2
	run.Hosts = nil
	for _, h := range []struct {
		name, instance string
		role           plan.Role
		rsa, clock     float64
	}{{"app", "c8g.xlarge", plan.App, 41234.5, 0.412}, {"db", "r8g.xlarge", plan.DB, 40999, -0.3}, {"load", "c8gn.xlarge", plan.Load, 0, 0}, {"load2", "c8gn.xlarge", plan.Load, 0, 1.25}} {
		run.Hosts = append(run.Hosts, store.HostFacts{
			Name: h.name, Roles: []plan.Role{h.role}, Address: "10.0.0." + fmt.Sprint(10+len(run.Hosts)), Engine: "Docker Engine 29.1.3", OS: "Debian GNU/Linux 13 (trixie)",
			Kernel: "6.12.43+deb13-cloud-arm64", Arch: "arm64", CPUModel: "Neoverse-V2", CPUs: 4, MemoryBytes: 8 << 30, CgroupVersion: "2", CgroupDriver: "systemd",
			StorageDriver: "overlayfs", InstanceType: h.instance, RSAVerifyPerS: h.rsa, ClockOffsetMS: &h.clock,
			Facts: map[string]string{"clock source": "arch_sys_counter", "NIC driver": "ena 6.12", "governor": "none"},
		})
	}
	for _, l := range [][2]string{{"load", "app"}, {"load2", "app"}, {"app", "db"}} {
		n := float64(len(run.Links))
		run.Links = append(run.Links, store.Link{From: l[0], To: l[1], RTTMinMS: 0.041 + n/100, RTTMeanMS: 0.055 + n/100, RTTMaxMS: 0.21 + n/100, BitsPerS: 9.53e9 - n*1e8, Retransmits: int64(n)})
	}
	run.Cloud = &store.Cloud{Provider: plan.ProviderAWS, Region: "eu-central-1", Zone: "eu-central-1b", USDPerHour: 0.8123, PriceSource: "AWS price list, 2026-11-30", USDSpent: 2.4369}
}

// split gives each host its samples and what it said of itself.
func split(t testing.TB, w *store.WindowResult, lines []byte, raw func(string, []byte) string) (app []byte) {
	t.Helper()
	w.OtherCGroup, w.Hosts = map[string]string{}, nil
	for _, h := range []struct {
		name, from string
		role       plan.Role
		ahead      float64 // ms
	}{{"app", "app", plan.App, 0.4}, {"db", "db", plan.DB, -0.3}, {"load", "app", plan.Load, 0}, {"load2", "db", plan.Load, 1.2}} {
		part := cgtest.Split(t, lines, cgtest.Host{Containers: map[string]string{h.from: string(h.role)}, Ahead: time.Duration(h.ahead * float64(time.Millisecond))})
		if h.name == "app" {
			app = part
		} else {
			path := store.RawPath(w.Window, w.Attempt, h.name+"."+store.RawCGroup)
			w.SHA256[path] = raw(path, part)
			w.OtherCGroup[h.name] = path
		}
		w.Hosts = append(w.Hosts, store.HostReading{Host: h.name, Roles: []plan.Role{h.role}, ClockOffsetMS: h.ahead,
			Allowances: map[string]int64{"bw_in_allowance_exceeded": 0, "pps_allowance_exceeded": 0}})
	}
	return app
}

// half is the output of one of two generators, whose answers took so many times
// as long.
func half(t testing.TB, data []byte, slower float64) []byte {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	for part, change := range map[string]func(float64) float64{
		"latencyPercentiles":     func(v float64) float64 { return v * slower },
		"statusCodeDistribution": func(v float64) float64 { return math.Floor(v / 2) },
	} {
		for name, v := range out[part].(map[string]any) {
			if v, ok := v.(float64); ok {
				out[part].(map[string]any)[name] = change(v)
			}
		}
	}
	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// samples rewrites the study's samples in percore's format.
func samples(t testing.TB, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	in := bufio.NewScanner(bytes.NewReader(data))
	for in.Scan() {
		var x struct {
			T       int64 `json:"t"`
			AppCPU  int64 `json:"app_cpu"`
			AppMem  int64 `json:"app_mem"`
			AppAnon int64 `json:"app_anon"`
			DBCPU   int64 `json:"db_cpu"`
			DBMem   int64 `json:"db_mem"`
			DBAnon  int64 `json:"db_anon"`
		}
		if err := json.Unmarshal(in.Bytes(), &x); err != nil {
			t.Fatal(err)
		}
		line, err := json.Marshal(cgroup.Sample{T: x.T, Mono: x.T, Host: cgroup.Host{CPUs: 12}, Containers: map[string]cgroup.Container{
			"app": {UsageUS: &x.AppCPU, Memory: &x.AppMem, Anon: &x.AppAnon},
			"db":  {UsageUS: &x.DBCPU, Memory: &x.DBMem, Anon: &x.DBAnon},
		}})
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(line, '\n'))
	}
	return out.Bytes()
}

// TestConvertedRunAgreesWithItsRawFiles holds the log against the raw files,
// whole and damaged.
func TestConvertedRunAgreesWithItsRawFiles(t *testing.T) {
	t.Run("one host", func(t *testing.T) { agrees(t, convert(t, t.TempDir())) })
	t.Run("several hosts", func(t *testing.T) { agrees(t, convertToHosts(t, t.TempDir())) })
}

func agrees(t *testing.T, s *store.Store) {
	t.Helper()
	digests, err := s.Verify()
	if err != nil || len(digests) != 0 {
		t.Fatalf("%v, %v", digests, err)
	}
	figures, err := s.Rederive()
	if err != nil || len(figures) != 0 {
		t.Fatalf("%v, %v", figures, err)
	}
	var victim store.WindowResult
	for _, w := range s.History().Windows() {
		if w.Measured != nil && w.CGroup != "" {
			victim = w
		}
	}
	name := filepath.Join(s.Dir(), victim.OHA)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	damaged := regexp.MustCompile(`"20[01]": ?`).ReplaceAll(data, []byte("${0}9"))
	if bytes.Equal(damaged, data) {
		t.Fatal("nothing was damaged")
	}
	if err := os.WriteFile(name, damaged, 0o644); err != nil {
		t.Fatal(err)
	}
	digests, _ = s.Verify()
	figures, _ = s.Rederive()
	if len(digests) != 1 || len(figures) != 1 || !strings.Contains(figures[0].What, "figures.") {
		t.Errorf("%v %v", digests, figures)
	}
}

// sortedKeys is for messages.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
