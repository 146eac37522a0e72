package engine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/cli/opts"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/testkit/said"
)

// env makes a Getenv of pairs.
func env(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(k string) string { return m[k] }
}

// dockerConfig makes a folder like ~/.docker with one context.
func dockerConfig(t *testing.T, current, name, host string) string {
	t.Helper()
	dir := t.TempDir()
	config, _ := json.Marshal(map[string]string{"currentContext": current})
	if err := os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	meta := filepath.Join(dir, "contexts", "meta", fmt.Sprintf("%x", sha256.Sum256([]byte(name))))
	if err := os.MkdirAll(meta, 0o700); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`{"Name":%q,"Metadata":{"Description":"x"},"Endpoints":{"docker":{"Host":%q,"SkipTLSVerify":false}}}`, name, host)
	if err := os.WriteFile(filepath.Join(meta, "meta.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestResolve(t *testing.T) {
	dir := dockerConfig(t, "desk", "desk", "unix:///run/desk.sock")
	noCurrent := dockerConfig(t, "", "far", "ssh://me@far")
	tests := []struct {
		name         string
		opts         Options
		host, source string
		err          string // a part of it; then it is bad input
	}{
		{name: "DOCKER_HOST wins over contexts", opts: Options{Getenv: env("DOCKER_HOST", "unix:///x.sock", "DOCKER_CONTEXT", "desk", "DOCKER_CONFIG", dir)}, host: "unix:///x.sock", source: "DOCKER_HOST"},
		{name: "explicit host wins over all", opts: Options{Host: "tcp://1.2.3.4:2375", Context: "desk", Getenv: env("DOCKER_HOST", "unix:///x.sock")}, host: "tcp://1.2.3.4:2375", source: "the profile"},
		{name: "current context", opts: Options{Getenv: env("DOCKER_CONFIG", dir)}, host: "unix:///run/desk.sock", source: `the Docker context "desk"`},
		{name: "DOCKER_CONTEXT wins over current", opts: Options{Getenv: env("DOCKER_CONFIG", noCurrent, "DOCKER_CONTEXT", "far")}, host: "ssh://me@far", source: `the Docker context "far"`},
		{name: "default context", opts: Options{Getenv: env("DOCKER_CONFIG", dir, "DOCKER_CONTEXT", "default")}, host: "unix:///var/run/docker.sock", source: "default"},
		{name: "no configuration", opts: Options{Getenv: env("DOCKER_CONFIG", t.TempDir())}, host: "unix:///var/run/docker.sock", source: "default"},
		{name: "unknown context", opts: Options{Getenv: env("DOCKER_CONFIG", dir, "DOCKER_CONTEXT", "moon")}, err: `the Docker context "moon" (from DOCKER_CONTEXT) does not exist; known are default, desk`},
		{name: "unknown current context", opts: Options{Getenv: env("DOCKER_CONFIG", dockerConfig(t, "gone", "desk", "unix:///x"))}, err: `"gone" (from its config.json) does not exist`},
		{name: "no scheme", opts: Options{Getenv: env("DOCKER_HOST", "/var/run/docker.sock")}, err: "is a path and has no scheme"},
		{name: "an unknown scheme", opts: Options{Getenv: env("DOCKER_HOST", "http://x")}, err: "is not one that Docker accepts"},
		{name: "a descriptor", opts: Options{Getenv: env("DOCKER_HOST", "fd://3")}, err: "has an unknown scheme"},
		{name: "blanks around it", opts: Options{Getenv: env("DOCKER_HOST", " unix:///run/x.sock\n")}, host: "unix:///run/x.sock", source: "DOCKER_HOST"},
		{name: "no port", opts: Options{Getenv: env("DOCKER_HOST", "tcp://127.0.0.1")}, host: "tcp://127.0.0.1:2375", source: "DOCKER_HOST"},
		{name: "no scheme", opts: Options{Getenv: env("DOCKER_HOST", "127.0.0.1:4243")}, host: "tcp://127.0.0.1:4243", source: "DOCKER_HOST"},
		{name: "blanks alone", opts: Options{Getenv: env("DOCKER_HOST", "  ", "DOCKER_CONTEXT", "desk", "DOCKER_CONFIG", dir)}, host: "unix:///var/run/docker.sock", source: "default"},
		{name: "certificates without TLS", opts: Options{Getenv: env("DOCKER_HOST", "tcp://1.2.3.4:2375", "DOCKER_CERT_PATH", dir)}, host: "tcp://1.2.3.4:2375", source: "DOCKER_HOST"},
		{name: "TLS and no host", opts: Options{Getenv: env("DOCKER_TLS_VERIFY", "1", "DOCKER_CERT_PATH", dir, "DOCKER_CONFIG", t.TempDir())}, err: "TLS is asked for to tcp://localhost:2376"},
		{name: "not a URL", opts: Options{Getenv: env("DOCKER_HOST", "tcp://[::1")}, err: "is not one that Docker accepts"},
		{name: "ssh with a password", opts: Options{Getenv: env("DOCKER_HOST", "ssh://me:secret@far")}, err: "is not an ssh destination"},
		{name: "TLS without files", opts: Options{Getenv: env("DOCKER_HOST", "tcp://1.2.3.4:2376", "DOCKER_TLS_VERIFY", "1", "DOCKER_CERT_PATH", dir)}, err: "set DOCKER_CERT_PATH"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ep, err := resolve(tt.opts)
			if tt.err != "" {
				if err == nil || !strings.Contains(said.Err(err), tt.err) || !fail.IsInput(err) {
					t.Fatalf("error %v (bad input: %v), want bad input with %q", err, fail.IsInput(err), tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if tt.source == "default" && ep.host != tt.host {
				if _, statErr := os.Stat("/var/run/docker.sock"); statErr != nil {
					t.Skip("another default socket exists on this machine")
				}
			}
			if ep.host != tt.host || ep.source != tt.source {
				t.Errorf("got %s from %s, want %s from %s", ep.host, ep.source, tt.host, tt.source)
			}
		})
	}
}

// TestHostsLikeDocker: what DOCKER_HOST may hold is completed by Docker's own
// rules.
func TestHostsLikeDocker(t *testing.T) {
	for _, host := range []string{"tcp://", "tcp://h", "tcp://h:", "tcp://h:1", "h", "h:1", ":1", "[::1]", "tcp://[::1]:2", "[::1]:", "unix://", "unix:///a b", "unix://rel.sock", " h ", "\tunix:///x\n", "ssh://a@b", "tcp://h:1/path",
		"", "h:x", "tcp://tcp://h", "unix://unix://x", "ftp://h", "tcp://[::1", "npipe://x"} {
		want, wantErr := opts.ParseHost(false, host)
		ep, err := resolve(Options{Getenv: env("DOCKER_HOST", host, "DOCKER_CONFIG", t.TempDir())})
		switch {
		case strings.TrimSpace(host) == "" || strings.HasPrefix(host, "npipe:"): // another socket may be here; no pipes are
		case (err == nil) != (wantErr == nil), err == nil && ep.host != want:
			t.Errorf("%q: %s, %v; Docker has %s, %v", host, ep.host, err, want, wantErr)
		}
	}
}

// TestTLSLikeDocker: DOCKER_TLS_VERIFY and DOCKER_TLS ask for TLS, and nothing
// else does; a client's certificate is optional.
func TestTLSLikeDocker(t *testing.T) {
	empty, full := t.TempDir(), t.TempDir()
	for _, name := range []string{"ca.pem", "cert.pem", "key.pem"} {
		if err := os.WriteFile(filepath.Join(full, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := func(dir string, names ...string) (all []string) {
		for _, n := range names {
			all = append(all, filepath.Join(dir, n))
		}
		return all
	}
	for _, tt := range []struct {
		env   []string
		files []string // nil: no TLS
		skip  bool
	}{
		{nil, nil, false},
		{[]string{"DOCKER_CERT_PATH", full}, nil, false},
		{[]string{"DOCKER_CERT_PATH", full, "DOCKER_TLS_VERIFY", "1"}, in(full, "ca.pem", "cert.pem", "key.pem"), false},
		{[]string{"DOCKER_CERT_PATH", full, "DOCKER_TLS_VERIFY", "0"}, in(full, "ca.pem", "cert.pem", "key.pem"), false},
		{[]string{"DOCKER_CERT_PATH", full, "DOCKER_TLS", "1"}, in(full, "ca.pem", "cert.pem", "key.pem"), true},
		{[]string{"DOCKER_CONFIG", full, "DOCKER_TLS_VERIFY", "yes"}, in(full, "ca.pem", "cert.pem", "key.pem"), false},
		{[]string{"DOCKER_CONFIG", full, "DOCKER_CERT_PATH", empty, "DOCKER_TLS_VERIFY", "1"}, append(in(empty, "ca.pem"), "", ""), false},
	} {
		got := tlsOptions(Options{Getenv: env(tt.env...)})
		switch {
		case got == nil && tt.files == nil:
		case got == nil || tt.files == nil, !slices.Equal([]string{got.CAFile, got.CertFile, got.KeyFile}, tt.files), got.InsecureSkipVerify != tt.skip:
			t.Errorf("%v: %+v, want %v", tt.env, got, tt.files)
		}
	}
}

// TestHomeUnset: the configuration is looked for where the system says that the
// user is at home, and never in the folder that percore runs in.
func TestHomeUnset(t *testing.T) {
	u, err := user.Current()
	if err != nil {
		t.Skip(err)
	}
	if got, want := configDir(Options{Getenv: env()}), filepath.Join(u.HomeDir, ".docker"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestBrokenDockerConfiguration(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := resolve(Options{Getenv: env("DOCKER_CONFIG", dir)})
	if !fail.IsInput(err) || !strings.Contains(said.Err(err), "is not valid JSON") {
		t.Errorf("got %v", err)
	}
}

func TestFirstSocket(t *testing.T) {
	dir := t.TempDir()
	file, sock := filepath.Join(dir, "file"), filepath.Join(dir, "s")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got := firstSocket([]string{file, filepath.Join(dir, "none"), sock}); got != sock {
		t.Errorf("got %s, want the one that is a socket", got)
	}
	if got := firstSocket([]string{file, "/none"}); got != file {
		t.Errorf("got %s, want the first when none is a socket", got)
	}
}

func TestConnectErrors(t *testing.T) {
	dir := t.TempDir()
	dead := filepath.Join(dir, "dead.sock")
	l, err := net.Listen("unix", dead)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	refused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused.Close()

	tests := []struct {
		name, host string
		want       []string
		input      bool
	}{
		{name: "socket is not there", host: "unix://" + filepath.Join(dir, "none.sock"), want: []string{"(from DOCKER_HOST)", "the socket does not exist"}, input: true},
		{name: "nothing listens on the socket", host: "unix://" + dead, want: []string{"nothing listens", "start the engine"}},
		{name: "nothing listens on the port", host: "tcp://" + refused.Addr().String(), want: []string{refused.Addr().String(), "check that the engine runs"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Connect(t.Context(), Options{Getenv: env("DOCKER_HOST", tt.host)})
			if err == nil {
				t.Fatal("connected")
			}
			for _, want := range append(tt.want, "cannot reach Docker at "+tt.host) {
				if !strings.Contains(said.Err(err), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
			if fail.IsInput(err) != tt.input {
				t.Errorf("bad input: %v, want %v", fail.IsInput(err), tt.input)
			}
		})
	}
}

// TestPermissionDenied needs a process that is not root to be denied anything,
// so it checks the sentence on the error the kernel would give.
func TestPermissionDenied(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root is never denied; the same as another user is part of the tests of the command")
	}
	sock := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Chmod(sock, 0); err != nil {
		t.Fatal(err)
	}
	_, err = Connect(t.Context(), Options{Host: "unix://" + sock})
	if err == nil || !strings.Contains(said.Err(err), "usermod -aG docker") {
		t.Errorf("got %v", err)
	}
}

func TestSSHFailureCarriesTheReason(t *testing.T) {
	// Two that behave like an ssh without a key that fits: one ends before
	// anything was sent, one after it has read what was.
	for _, tt := range []struct{ name, first string }{
		{"before the request", ""},
		{"having closed its input", "exec <&-; sleep 0.2\n"},
		{"after the request", "read -r line\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			script := "#!/bin/sh\necho \"$@\" >" + dir + "/args\n" + tt.first + "echo 'me@far: Permission denied (publickey).' >&2\nexit 255\n"
			if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			_, err := Connect(t.Context(), Options{Getenv: env("DOCKER_HOST", "ssh://me@far")})
			if err == nil {
				t.Fatal("connected")
			}
			for _, want := range []string{"ssh://me@far", "Permission denied (publickey)", "try `ssh me@far docker version`"} {
				if !strings.Contains(said.Err(err), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
			if strings.Contains(said.Err(err), "\n") {
				t.Errorf("%q is more than one line", err)
			}
			args, err := os.ReadFile(filepath.Join(dir, "args"))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(args), "BatchMode=yes") {
				t.Errorf("ssh was called as %q, which may ask for a password", args)
			}
		})
	}
}

// TestNegotiation speaks to engines of two ages.
func TestNegotiation(t *testing.T) {
	for _, tt := range []struct{ engine, want string }{{"1.41", "1.41"}, {"1.52", "1.52"}} {
		var got string
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Api-Version", tt.engine)
			w.Header().Set("Ostype", "linux")
			if strings.HasSuffix(r.URL.Path, "/info") {
				got = strings.Split(r.URL.Path, "/")[1]
				fmt.Fprint(w, `{"NCPU":2,"MemTotal":1024,"CgroupVersion":"1","CgroupDriver":"cgroupfs","OperatingSystem":"Docker Desktop","SecurityOptions":["name=rootless"]}`)
			}
		}))
		e, err := Connect(context.Background(), Options{Host: "tcp://" + srv.Listener.Addr().String(), Getenv: env()})
		if err != nil {
			t.Fatal(err)
		}
		info, err := e.Info(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if got != "v"+tt.want {
			t.Errorf("engine %s was asked with %s", tt.engine, got)
		}
		if info.CPUs != 2 || !info.Desktop || !info.Rootless || info.CgroupDriver != "cgroupfs" {
			t.Errorf("info %+v", info)
		}
		e.Close()
		srv.Close()
	}
}

func TestCPUModel(t *testing.T) {
	tests := map[string]string{
		"processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 85\nmodel name\t: Intel(R) Xeon(R)  Processor @ 2.90GHz\n": "Intel(R) Xeon(R) Processor @ 2.90GHz",
		"processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\nCPU revision\t: 1\n":             "Arm Neoverse V2 (Graviton4 and others)",
		"CPU implementer\t: 0x99\nCPU part\t: 0x001\n":                                                                    "ARM implementer 0x99 part 0x001",
		"":     "",
		"junk": "",
	}
	for text, want := range tests {
		if got := CPUModel(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestChosen says what names an engine, by Docker's own order.
func TestChosen(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ host, context, config, want string }{
		{"unix:///x", "y", `{"currentContext":"z"}`, "DOCKER_HOST"},
		{"", "y", `{"currentContext":"z"}`, "DOCKER_CONTEXT"},
		{"", "default", `{"currentContext":"z"}`, ""},
		{"", "", `{"currentContext":"z"}`, "docker context use"},
		{"", "", `{"currentContext":"default"}`, ""},
		{"", "", `{}`, ""},
	} {
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(c.config), 0o600); err != nil {
			t.Fatal(err)
		}
		env := map[string]string{"DOCKER_HOST": c.host, "DOCKER_CONTEXT": c.context, "DOCKER_CONFIG": dir}
		if got := Chosen(func(k string) string { return env[k] }); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
