package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/percore/percore/internal/guest/kernel"
)

// groups makes two cgroups in every hierarchy of this machine, puts a process in
// each and returns the processes' ids and the files that a sampler reads.
func groups(b *testing.B) (pids []int, files []string) {
	b.Helper()
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		b.Fatal(err)
	}
	mounts, err := kernel.ParseMountinfo(info)
	if err != nil {
		b.Fatal(err)
	}
	for i := range 2 {
		cmd := exec.Command("sleep", "600")
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		pids = append(pids, cmd.Process.Pid)
		for _, m := range mounts {
			dir := filepath.Join(m.Point, fmt.Sprintf("percore-bench-%d-%d", os.Getpid(), i))
			if err := os.Mkdir(dir, 0o755); err != nil {
				b.Fatalf("this benchmark makes cgroups of its own and needs root: %v", err)
			}
			b.Cleanup(func() { // after the process has left, which takes a moment
				for range 100 {
					if os.Remove(dir) == nil {
						return
					}
					_ = cmd.Process.Kill()
					time.Sleep(10 * time.Millisecond)
				}
				b.Errorf("cannot remove %s", dir)
			})
			if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644); err != nil && !strings.Contains(m.Point, "cpuset") {
				b.Fatal(err)
			}
			for _, f := range []string{
				"cpu.stat", "cpu.pressure", "memory.stat", "memory.current", "memory.peak", "io.stat",
				"memory.usage_in_bytes", "memory.max_usage_in_bytes", "blkio.throttle.io_service_bytes_recursive",
			} {
				if _, err := os.ReadFile(filepath.Join(dir, f)); err == nil {
					files = append(files, filepath.Join(dir, f))
				}
			}
		}
	}
	return pids, files
}

// cpuTime runs a command and returns its CPU time in user mode and the kernel,
// children included (getrusage), and the lines that it wrote.
func cpuTime(b *testing.B, cmd *exec.Cmd) (time.Duration, int) {
	b.Helper()
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		b.Fatalf("%v: %s", err, said.String())
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), bytes.Count(out.Bytes(), []byte("\n"))
}

// perSample reports the CPU time of one sample: a long run less a short one, so
// that the start of the process is not in it. It does so on a machine that does
// nothing else, where waking up costs more than the sample, and on one whose
// CPUs are all busy, as they are while a window is measured.
func perSample(b *testing.B, run func(samples int) *exec.Cmd) {
	measure := func(b *testing.B) {
		b.Helper()
		for b.Loop() {
			short, n1 := cpuTime(b, run(1))
			long, n2 := cpuTime(b, run(201))
			if n2-n1 < 180 {
				b.Fatalf("only %d and %d samples", n1, n2)
			}
			us := float64((long - short).Nanoseconds()) / 1e3 / float64(n2-n1)
			b.ReportMetric(us, "cpu-µs/sample")
			b.ReportMetric(us*10/1e6*100, "%core@10Hz")
			b.ReportMetric(0, "ns/op")
		}
	}
	b.Run("machine=idle", measure)
	b.Run("machine=busy", func(b *testing.B) {
		var end atomic.Bool
		defer end.Store(true)
		for range runtime.NumCPU() {
			go func() {
				for !end.Load() {
				}
			}()
		}
		measure(b)
	})
}

// BenchmarkSampler runs the sampler at 10 Hz on two real cgroups for twenty seconds.
func BenchmarkSampler(b *testing.B) {
	pids, _ := groups(b)
	binary := filepath.Join(b.TempDir(), "guest")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	perSample(b, func(samples int) *exec.Cmd {
		longest := max(time.Duration(samples-1)*100*time.Millisecond, time.Millisecond)
		return exec.Command(binary, "sample", "--interval", "100ms", "--max", longest.String(),
			fmt.Sprintf("app=%d", pids[0]), fmt.Sprintf("db=%d", pids[1]))
	})
}

// BenchmarkSamplerShell does the same with sh and awk.
func BenchmarkSamplerShell(b *testing.B) {
	_, files := groups(b)
	perSample(b, func(samples int) *exec.Cmd {
		return exec.Command("sh", append([]string{"testdata/sampler.sh", strconv.Itoa(samples), "0.1"}, files...)...)
	})
}
