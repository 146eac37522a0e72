// Package mototest starts a moto server, which plays AWS, for integration
// tests.
package mototest

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Requirements are the Python packages of the server, from PyPI.
var Requirements = []string{"moto[ec2,ssm]==5.2.5", "flask==3.1.3", "flask-cors==6.0.5"}

//go:embed server.py
var program []byte

// Option changes what the server plays.
type Option func(*settings)

type settings struct{ env []string }

// VCPUs sets the quota of running vCPUs of every family. The default is 64.
func VCPUs(n int) Option {
	return func(s *settings) { s.env = append(s.env, "PERCORE_MOTO_VCPUS="+strconv.Itoa(n)) }
}

// NoPlacementGroups leaves out the placement groups that the harness adds to
// moto, so that calls about them are answered as unknown.
func NoPlacementGroups() Option {
	return func(s *settings) { s.env = append(s.env, "PERCORE_MOTO_PLACEMENT_GROUPS=no") }
}

// NoQuotas refuses to tell quotas, as to a caller who may not ask.
func NoQuotas() Option {
	return func(s *settings) { s.env = append(s.env, "PERCORE_MOTO_NO_QUOTAS=yes") }
}

// Server is a running server. It ends with the test.
type Server struct {
	URL    string
	Region string
	t      testing.TB
}

// Start installs moto unless that is done, starts a server on a free port of
// the loopback interface and waits until it answers. A test that cannot have
// one fails.
func Start(t testing.TB, options ...Option) *Server {
	t.Helper()
	var s settings
	for _, o := range options {
		o(&s)
	}
	python, err := install(t.Context())
	if err != nil {
		t.Fatalf("moto: %v", err)
	}
	dir := t.TempDir()
	script, ports, logs := filepath.Join(dir, "server.py"), filepath.Join(dir, "port"), filepath.Join(dir, "log")
	if err := os.WriteFile(script, program, 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(logs)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, script, ports)
	cmd.Env = append(clean(os.Environ()), s.env...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("moto: starting the server: %v", err)
	}
	var failed error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		failed = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
		}
		log.Close()
	})
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		port, err := os.ReadFile(ports)
		if err == nil {
			return &Server{URL: "http://127.0.0.1:" + strings.TrimSpace(string(port)), Region: "us-east-1", t: t}
		}
		select {
		case <-ended:
			text, _ := os.ReadFile(logs)
			t.Fatalf("moto: the server ended (%v):\n%s", failed, text)
		default:
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(logs)
			t.Fatalf("moto: the server did not start within two minutes:\n%s", text)
		}
	}
}

// Env is the environment, one KEY=VALUE each, in which a program that looks for
// AWS finds the server, and nothing of the user's own AWS.
func (s *Server) Env() []string {
	return []string{
		"AWS_ENDPOINT_URL=" + s.URL,
		"AWS_REGION=" + s.Region,
		"AWS_DEFAULT_REGION=" + s.Region,
		"AWS_ACCESS_KEY_ID=test",
		"AWS_SECRET_ACCESS_KEY=test",
		"AWS_SESSION_TOKEN=",
		"AWS_PROFILE=",
		"AWS_CONFIG_FILE=/dev/null",
		"AWS_SHARED_CREDENTIALS_FILE=/dev/null",
		"AWS_EC2_METADATA_DISABLED=true",
	}
}

// Setenv sets Env for the test's own process.
func (s *Server) Setenv(t *testing.T) {
	t.Helper()
	for _, e := range s.Env() {
		k, v, _ := strings.Cut(e, "=")
		t.Setenv(k, v)
	}
}

// Actions lists the API actions that the server was asked for, sorted, as IAM
// policies name them: ec2:RunInstances.
func (s *Server) Actions() []string {
	s.t.Helper()
	var actions []string
	s.ask("/percore/actions", &actions)
	slices.Sort(actions)
	return actions
}

// Tagged counts what has a tag, by its kind as EC2 names it: vpc, key-pair. It
// asks the server's own memory and not the API that it plays.
func (s *Server) Tagged(key, value string) map[string]int {
	s.t.Helper()
	kinds := map[string]int{}
	s.ask("/percore/tagged?"+url.Values{"key": {key}, "value": {value}}.Encode(), &kinds)
	return kinds
}

// ask asks the harness that is around moto.
func (s *Server) ask(path string, out any) {
	s.t.Helper()
	answer, err := http.Get(s.URL + path)
	if err != nil {
		s.t.Fatalf("moto: %v", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		s.t.Fatalf("moto: %s is answered by %s", path, answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(out); err != nil {
		s.t.Fatalf("moto: the answer of %s: %v", path, err)
	}
}

// clean is the environment without the user's AWS and without proxies.
func clean(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(e string) bool {
		return strings.HasPrefix(e, "AWS_") || strings.HasPrefix(e, "MOTO_") || strings.HasPrefix(e, "PYTHON")
	})
}

// install makes a virtual environment with the server in the user's cache and
// returns its Python. Several tests at once wait for one installation.
func install(ctx context.Context) (python string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder: %w", err)
	}
	base, err := exec.LookPath("python3")
	if err != nil {
		return "", errors.New("there is no python3; install python3 with python3-venv")
	}
	version, err := exec.CommandContext(ctx, base, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("python3 --version: %w", err)
	}
	sum := sha256.Sum256([]byte(strings.Join(Requirements, "\n") + base + string(version)))
	dir := filepath.Join(cache, "percore", "moto-"+hex.EncodeToString(sum[:6]))
	python = filepath.Join(dir, "bin", "python")
	mark := filepath.Join(dir, "installed")
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("waiting for another installation: %w", err)
	}
	if _, err := os.Stat(mark); err == nil {
		if err := exec.CommandContext(ctx, python, "-c", "import moto.server").Run(); err == nil {
			return python, nil
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	if err := run(ctx, base, "-m", "venv", dir); err != nil {
		return "", fmt.Errorf("a virtual environment cannot be made; on Debian and Ubuntu install python3-venv: %w", err)
	}
	if err := run(ctx, python, append([]string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"}, Requirements...)...); err != nil {
		return "", fmt.Errorf("%s cannot be installed: %w", Requirements[0], err)
	}
	return python, os.WriteFile(mark, []byte(strings.Join(Requirements, "\n")+"\n"), 0o600)
}

// run runs a command and puts the end of what it said into the error.
func run(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(said.String())
		if len(text) > 2000 {
			text = "… " + text[len(text)-2000:]
		}
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, text)
	}
	return nil
}
