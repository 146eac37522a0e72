package hold

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/percore/percore/internal/testkit/said"
)

func options(t *testing.T, script string) Options {
	dir := t.TempDir()
	o := Options{Output: filepath.Join(dir, "out"), Report: filepath.Join(dir, "report"), GateTimeout: 10 * time.Second, Late: 20 * time.Millisecond}
	o.Argv = []string{"sh", "-c", script, "sh", o.Output}
	return o
}

func report(t *testing.T, o Options) Report {
	t.Helper()
	text, err := os.ReadFile(o.Report)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ParseReport(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRun(t *testing.T) {
	for script, want := range map[string]int{
		`printf hello >"$1"`:           0,
		`printf hello >"$1"; exit 3`:   3,
		`printf hello >"$1"; kill $$`:  128 + int(syscall.SIGTERM),
		`printf hello >"$1"; sleep 61`: 128 + int(syscall.SIGTERM), // ended from outside
	} {
		o := options(t, script)
		before := time.Now().UnixNano()
		if strings.Contains(script, "sleep") {
			o.Argv[2] = strings.Replace(script, "sleep", "exec sleep", 1)
			go func() {
				for {
					if b, _ := os.ReadFile(o.Output); len(b) == 5 {
						break
					}
					time.Sleep(5 * time.Millisecond)
				}
				_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
			}()
		}
		code, err := Run(o)
		if err != nil || code != want {
			t.Errorf("%s: code %d, %v", script, code, err)
		}
		r := report(t, o)
		if r.Code != want || r.Bytes != 5 || r.SHA256 != fmt.Sprintf("%x", sha256.Sum256([]byte("hello"))) || r.Start < before || r.End < r.Start {
			t.Errorf("%s: %+v", script, r)
		}
	}
	o := options(t, "true")
	o.Output = "/dev/null"
	if code, err := Run(o); code != 0 || err != nil {
		t.Errorf("%d, %v", code, err)
	}
	if r := report(t, o); r.SHA256 != "" {
		t.Errorf("the digest of a device: %+v", r)
	}
	o.Argv = []string{"no-such-program"}
	if code, err := Run(o); code != 127 || err == nil {
		t.Errorf("%d, %v", code, err)
	}
	if _, err := os.Stat(o.Report); err == nil {
		t.Error("the report of an earlier run is still there")
	}
}

func TestGate(t *testing.T) {
	o := options(t, "true")
	o.Gate = filepath.Join(filepath.Dir(o.Output), "gate")
	at := time.Now().Add(150 * time.Millisecond)
	go func() {
		_ = os.WriteFile(o.Gate, Gate(at)[:5], 0o600) // not whole yet
		time.Sleep(20 * time.Millisecond)
		_ = os.WriteFile(o.Gate, Gate(at), 0o600)
	}()
	if code, err := Run(o); code != 0 || err != nil {
		t.Fatalf("%d, %v", code, err)
	}
	if r := report(t, o); r.Start < at.UnixNano() {
		t.Errorf("started %v early", time.Duration(at.UnixNano()-r.Start))
	}
	for content, want := range map[string]int{
		string(Gate(time.Time{})):                      0,
		string(Gate(time.Now().Add(-time.Minute))):     CodeLate,
		string(Gate(time.Now().Add(-time.Minute * 2))): CodeLate,
	} {
		if err := os.WriteFile(o.Gate, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, err := Run(o); code != want || err != nil {
			t.Errorf("%q: code %d, %v", content, code, err)
		}
		if _, err := os.Stat(o.Report); (err == nil) != (want == 0) {
			t.Errorf("%q: report: %v", content, err)
		}
	}
	if err := os.WriteFile(o.Gate, []byte("soon\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, err := Run(o); code != 1 || err == nil {
		t.Errorf("%d, %v", code, err)
	}
	_ = os.Remove(o.Gate)
	o.GateTimeout = 20 * time.Millisecond
	if code, err := Run(o); code != 1 || err == nil || !strings.Contains(said.Err(err), "did not appear") {
		t.Errorf("%d, %v", code, err)
	}
	o.GateTimeout = time.Minute
	time.AfterFunc(50*time.Millisecond, func() { _ = syscall.Kill(os.Getpid(), syscall.SIGTERM) })
	if code, err := Run(o); code != 143 || err != nil {
		t.Errorf("%d, %v", code, err)
	}
}

func TestArgs(t *testing.T) {
	got := Args(Options{Gate: "/g", GateTimeout: time.Minute, Late: time.Millisecond, Linger: time.Second, Output: "/o", Report: "/r", Argv: []string{"oha", "-z", "1s"}})
	want := strings.Fields("--gate /g --gate-timeout 1m0s --late 1ms --linger 1s --output /o --report /r -- oha -z 1s")
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := (Options{}).Missing(); got != "--report FILE, --output FILE, a program" {
		t.Error(got)
	}
}

func FuzzParseGate(f *testing.F) {
	f.Add([]byte("1800000000000000000\n"))
	f.Add([]byte("0\n"))
	f.Add([]byte("180000"))
	f.Fuzz(func(t *testing.T, text []byte) {
		at, whole, err := ParseGate(text)
		if err == nil && whole && string(Gate(at)) != string(text) {
			t.Errorf("%q became %q", text, Gate(at))
		}
	})
}

func FuzzParseReport(f *testing.F) {
	f.Add([]byte(`{"start":1800000000000000000,"end":1800000001000000000,"code":0,"bytes":5,"sha256":"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if r, err := ParseReport(text); err == nil && (r.End < r.Start || r.Bytes < 0) {
			t.Errorf("%q gives %+v", text, r)
		}
	})
}
