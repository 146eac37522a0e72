package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/percore/percore/internal/guest/clock"
	"github.com/percore/percore/internal/guest/hold"
)

// Guest runs on hosts and is compiled in an image without a module proxy: it may
// import the standard library and internal/guest, and nothing else.
func TestImports(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")
	cmd.Env = append(os.Environ(), "GOOS=linux")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := strings.Fields(string(out))
	if len(packages) < 5 {
		t.Fatalf("go list found %v", packages)
	}
	for _, p := range packages {
		if p != "github.com/percore/percore/cmd/guest" && !strings.HasPrefix(p, "github.com/percore/percore/internal/guest/") {
			t.Errorf("guest imports %s", p)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		says string // on standard output when the code is 0, else on standard error
	}{
		{nil, 2, "Usage: guest sample|clock|hold"},
		{[]string{"--help"}, 0, "Usage: guest sample|clock|hold"},
		{[]string{"sampel"}, 2, `there is no command "sampel": take sample, clock or hold`},
		{[]string{"sample", "--help"}, 0, "Usage: guest sample"},
		{[]string{"clock", "--help"}, 0, "Usage: guest clock serve"},
		{[]string{"clock"}, 2, "Usage: guest clock serve"},
		{[]string{"clock", "set", ":1"}, 2, "Usage: guest clock serve"},
		{[]string{"clock", "ask", "127.0.0.1:1"}, 1, "guest clock: the clock at 127.0.0.1:1 does not answer"},
		{[]string{"hold", "--help"}, 0, "Usage: guest hold"},
		{[]string{"hold", "--output", "x", "--", "true"}, 2, "guest hold: --report FILE is missing"},
		{[]string{"hold", "--late", "soon"}, 2, "see guest hold --help"},
	} {
		cmd := command(t, c.args...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run()
		said, silent := &stderr, &stdout
		if c.code == 0 {
			said, silent = silent, said
		}
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(said.String(), c.says) || silent.Len() > 0 {
			t.Errorf("%q: exit code %d, said %q and %q", c.args, code, stdout.String(), stderr.String())
		}
	}
}

// What the driver makes of options is what the command reads.
func TestHold(t *testing.T) {
	dir := t.TempDir()
	o := hold.Options{Output: filepath.Join(dir, "out"), Report: filepath.Join(dir, "report.json"), Argv: []string{"sh", "-c", "echo done >" + filepath.Join(dir, "out") + "; exit 3"}}
	cmd := command(t, append([]string{"hold"}, hold.Args(o)...)...)
	_ = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != 3 {
		t.Errorf("exit code %d", code)
	}
	if text, err := os.ReadFile(o.Report); err != nil || !strings.Contains(string(text), `"sha256":"`) {
		t.Errorf("the report is %q, %v", text, err)
	}
}

func TestClock(t *testing.T) {
	free, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.LocalAddr().String()
	free.Close()
	serve := command(t, "clock", "serve", address)
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = serve.Process.Kill()
		_ = serve.Wait()
	})
	var out []byte
	for range 20 { // an exchange that is not answered takes its time
		if out, err = command(t, "clock", "ask", address).Output(); err == nil {
			break
		}
	}
	if r, err := clock.ParseReading(out); err != nil || r.Samples == 0 || r.DelayNS <= 0 {
		t.Errorf("read %+v of %q, %v", r, out, err)
	}
}
