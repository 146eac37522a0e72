//go:build integration

package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/percore/percore/internal/evidence/cgroup"
	"github.com/percore/percore/internal/lab/engine"
)

// host is the engine with an image that holds nothing but the sampler and the
// program of testdata/work.
type host struct {
	*testing.T
	api   *client.Client
	image string
	run   string
}

func newHost(t *testing.T) *host {
	t.Helper()
	e, err := engine.Connect(t.Context(), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	h := &host{T: t, api: e.API(), run: "guest-" + strings.ToLower(rand.Text()[:8])}
	h.image = "percore/" + h.run + ":test"

	info, err := h.api.Info(t.Context(), client.InfoOptions{})
	if err != nil {
		t.Fatal(err)
	}
	arch := map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[info.Info.Architecture]
	var image bytes.Buffer
	w := tar.NewWriter(&image)
	for name, pkg := range map[string]string{"guest": ".", "work": "./testdata/work"} {
		file := filepath.Join(t.TempDir(), name)
		cmd := exec.Command("go", "build", "-o", file, pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(b))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	imported, err := h.api.ImageImport(t.Context(), client.ImageImportSource{Source: &image, SourceName: "-"}, h.image,
		client.ImageImportOptions{Changes: []string{"LABEL io.percore=1 io.percore.kind=image io.percore.run=" + h.run}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, imported)
	imported.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := h.api.ImageRemove(context.Background(), h.image, client.ImageRemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	})
	return h
}

// start runs a container and returns its id.
func (h *host) start(name string, config *container.HostConfig, command ...string) string {
	h.Helper()
	created, err := h.api.ContainerCreate(h.Context(), client.ContainerCreateOptions{
		Name: "percore-" + h.run + "-" + name + "-" + strings.ToLower(rand.Text()[:6]),
		Config: &container.Config{
			Image: h.image, Entrypoint: command[:1], Cmd: command[1:],
			Labels: map[string]string{"io.percore": "1", "io.percore.kind": "container", "io.percore.run": h.run},
		},
		HostConfig: config,
	})
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() {
		if _, err := h.api.ContainerRemove(context.Background(), created.ID, client.ContainerRemoveOptions{Force: true}); err != nil {
			h.Error(err)
		}
	})
	if _, err := h.api.ContainerStart(h.Context(), created.ID, client.ContainerStartOptions{}); err != nil {
		h.Fatal(err)
	}
	return created.ID
}

// worker runs testdata/work and returns its container and its process id on the
// engine's host.
func (h *host) worker(name string, resources container.Resources, args ...string) (id string, pid int) {
	h.Helper()
	id = h.start(name, &container.HostConfig{NetworkMode: "none", Resources: resources}, append([]string{"/work"}, args...)...)
	h.waitLog(id, "ready")
	inspected, err := h.api.ContainerInspect(h.Context(), id, client.ContainerInspectOptions{})
	if err != nil {
		h.Fatal(err)
	}
	return id, inspected.Container.State.Pid
}

func (h *host) log(id string) string {
	h.Helper()
	r, err := h.api.ContainerLogs(h.Context(), id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true})
	if err != nil {
		h.Fatal(err)
	}
	defer r.Close()
	var out bytes.Buffer
	if _, err := stdcopy.StdCopy(&out, &out, r); err != nil {
		h.Fatal(err)
	}
	return out.String()
}

// waitLog waits for a line that begins with the word and returns the rest of it.
func (h *host) waitLog(id, word string) string {
	h.Helper()
	for range 600 {
		lines := bufio.NewScanner(strings.NewReader(h.log(id)))
		for lines.Scan() {
			if rest, ok := strings.CutPrefix(lines.Text(), word); ok {
				return strings.TrimSpace(rest)
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	h.Fatalf("no %q in the log: %s", word, h.log(id))
	return ""
}

func (h *host) signal(id, signal string) {
	h.Helper()
	if _, err := h.api.ContainerKill(h.Context(), id, client.ContainerKillOptions{Signal: signal}); err != nil {
		h.Fatal(err)
	}
}

// sampler runs guest sample as a run does: with the host's process ids and its
// cgroup file systems.
func (h *host) sampler(namespace container.CgroupnsMode, args ...string) string {
	h.Helper()
	command := append([]string{"/guest", "sample", "--out", "/samples.cg.jsonl", "--cgroup-root", "/host/cgroup", "--interval", "50ms", "--max", "2m"}, args...)
	return h.start("sampler", &container.HostConfig{
		NetworkMode: "none", PidMode: "host", CgroupnsMode: namespace, Binds: []string{"/sys/fs/cgroup:/host/cgroup:ro"},
	}, command...)
}

// firstSample waits until the sampler has written its first sample.
func (h *host) firstSample(id string) {
	h.Helper()
	for range 600 {
		if bytes.Contains(h.file(id), []byte("\n")) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	h.Fatalf("no sample; the sampler said: %s", h.log(id))
}

// file fetches the sample file; it may not be there yet.
func (h *host) file(id string) []byte {
	h.Helper()
	r, err := h.api.CopyFromContainer(h.Context(), id, client.CopyFromContainerOptions{SourcePath: "/samples.cg.jsonl"})
	if err != nil {
		return nil
	}
	defer r.Content.Close()
	t := tar.NewReader(r.Content)
	if _, err := t.Next(); err != nil {
		h.Fatal(err)
	}
	b, err := io.ReadAll(t)
	if err != nil {
		h.Fatal(err)
	}
	return b
}

// finish ends the sampler and reads what it wrote.
func (h *host) finish(id string, want ...string) *cgroup.Series {
	h.Helper()
	h.signal(id, "SIGTERM")
	waited := h.api.ContainerWait(h.Context(), id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	select {
	case r := <-waited.Result:
		if r.StatusCode != 0 {
			h.Fatalf("the sampler ended with exit code %d: %s", r.StatusCode, h.log(id))
		}
	case err := <-waited.Error:
		h.Fatal(err)
	}
	s, err := cgroup.ReadSeries(bytes.NewReader(h.file(id)), "samples", want...)
	if err != nil {
		h.Fatal(err)
	}
	if s.Torn() != 0 {
		h.Error("torn line after SIGTERM")
	}
	return s
}

func grew(t *testing.T, s *cgroup.Series, name, counter string) int64 {
	t.Helper()
	v, ok := s.Grew(name, counter)
	if !ok {
		t.Fatalf("%s of %s was not counted", counter, name)
	}
	return v
}

func TestCountersOfContainers(t *testing.T) {
	for _, namespace := range []container.CgroupnsMode{"host", "private"} {
		t.Run(string(namespace), func(t *testing.T) {
			h := newHost(t)
			app, appPID := h.worker("app", container.Resources{NanoCPUs: 50_000_000, Memory: 64 << 20}, "burn", "250ms")
			db, dbPID := h.worker("db", container.Resources{}, "memory", "48")
			free, freePID := h.worker("free", container.Resources{}, "burn", "1s")
			id := h.sampler(namespace, fmt.Sprintf("app=%d", appPID), fmt.Sprintf("db=%d", dbPID), fmt.Sprintf("free=%d", freePID))
			h.firstSample(id)
			start := time.Now()
			own := map[string]int64{} // CPU time by getrusage in the process
			for _, c := range []string{app, db, free} {
				h.signal(c, "SIGUSR1")
			}
			for name, c := range map[string]string{"app": app, "db": db, "free": free} {
				us, err := strconv.ParseInt(h.waitLog(c, "done"), 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				own[name] = us
			}
			end := time.Now()
			s := h.finish(id, "app", "db", "free")

			// The cgroup counts what getrusage counted in the process, and the little
			// that it did around its work.
			for _, name := range []string{"app", "free"} {
				counted := grew(t, s, name, cgroup.UsageUS)
				t.Logf("%s: %d µs by getrusage, %d µs by cgroup", name, own[name], counted)
				if extra := counted - own[name]; extra < -5_000 || extra > own[name]/20+20_000 {
					t.Errorf("%s: getrusage says %d µs, the cgroup %d µs", name, own[name], counted)
				}
				parts := grew(t, s, name, cgroup.UserUS) + grew(t, s, name, cgroup.SystemUS)
				if diff := parts - counted; diff < -50_000 || diff > 50_000 {
					t.Errorf("%s: user and system are %d µs, usage is %d µs", name, parts, counted)
				}
			}
			// 5 ms in each period of 100 ms: held back most of the time.
			throttled, ok := s.ThrottledGrew("app")
			if !ok || throttled < 200_000 || grew(t, s, "app", cgroup.NrThrottled) < 10 || grew(t, s, "app", cgroup.NrPeriods) < 10 {
				t.Errorf("app was throttled for %d µs, %v", throttled, ok)
			}
			if v, ok := s.ThrottledGrew("free"); !ok || v != 0 {
				t.Errorf("free was throttled for %d µs, %v", v, ok)
			}
			before, after := s.First().Containers["db"], s.Last().Containers["db"]
			if held := *after.Anon - *before.Anon; held < 48<<20 || held > 56<<20 {
				t.Errorf("48 MiB were taken and anonymous memory grew by %d bytes", held)
			}
			if p, ok := s.PeakAnon("db"); !ok || p < *after.Anon {
				t.Errorf("peak of anonymous memory %d, %v", p, ok)
			}
			if after.Peak != nil && (*after.Peak < 48<<20 || *after.Peak < *after.Memory) {
				t.Errorf("peak %d, memory %d", *after.Peak, *after.Memory)
			}
			if !s.Encloses(start, end) {
				t.Error("the samples do not enclose the work")
			}
			if busy, ok := s.BusyFraction(nil); !ok || busy <= 0 {
				t.Errorf("busy %v, %v", busy, ok)
			}
			t.Logf("%d samples in %v, longest gap %v, clocks %v apart", s.Len(), s.Elapsed(), s.MaxGap(), s.WallVsMonotonic())
			if d := s.WallVsMonotonic().Abs(); d > 100*time.Millisecond {
				t.Errorf("clocks %v apart", d)
			}
		})
	}
}

func TestContainerThatIsKilled(t *testing.T) {
	h := newHost(t)
	app, appPID := h.worker("app", container.Resources{}, "burn", "1s")
	db, dbPID := h.worker("db", container.Resources{}, "burn", "300ms")
	id := h.sampler("host", fmt.Sprintf("app=%d", appPID), fmt.Sprintf("db=%d", dbPID))
	h.firstSample(id)
	h.signal(app, "SIGKILL")
	h.signal(db, "SIGUSR1")
	h.waitLog(db, "done")
	for range 600 {
		if bytes.Contains(h.file(id), []byte(`"app":{"gone":true}`)) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	s := h.finish(id, "app", "db")
	if !s.Gone("app") || s.Gone("db") {
		t.Errorf("gone: app %v, db %v", s.Gone("app"), s.Gone("db"))
	}
	if v := grew(t, s, "db", cgroup.UsageUS); v < 300_000 {
		t.Errorf("db used %d µs", v)
	}
	if v, ok := s.Grew("app", cgroup.UsageUS); ok {
		t.Errorf("app used %d µs and is gone", v)
	}
}

func TestProcessThatIsNotThere(t *testing.T) {
	h := newHost(t)
	id := h.sampler("host", "app=4194304")
	waited := h.api.ContainerWait(h.Context(), id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	select {
	case r := <-waited.Result:
		if said := h.log(id); r.StatusCode != 2 || !strings.Contains(said, "process 4194304 (container app) does not exist") || strings.Count(said, "\n") != 1 {
			t.Errorf("exit code %d, said %q", r.StatusCode, said)
		}
	case err := <-waited.Error:
		t.Fatal(err)
	}
}
