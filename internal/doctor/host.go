package doctor

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/percore/percore/internal/lab/engine"
)

// LocalHost reads an engine's machine that is the driver's too.
type LocalHost struct {
	DataRoot string // folder where Docker stores
	Proc     string // /proc when empty
}

// Read implements Host.
func (h LocalHost) Read(context.Context) (HostReading, error) {
	proc := h.Proc
	if proc == "" {
		proc = "/proc"
	}
	text, err := os.ReadFile(filepath.Join(proc, "loadavg"))
	if err != nil {
		return HostReading{}, fmt.Errorf("reading the load average: %w", err)
	}
	load, err := parseLoad(string(text))
	if err != nil {
		return HostReading{}, err
	}
	free, err := freeBytes(h.DataRoot)
	if err != nil {
		return HostReading{}, err
	}
	return HostReading{Load1: load, Free: free}, nil
}

// ContainerHost reads an engine's machine from inside a container that lives
// for a moment: behind ssh, or in Docker Desktop's virtual machine.
type ContainerHost struct {
	Engine *engine.Engine
	Image  func(ctx context.Context) (string, error) // an image on the engine with a shell and df; empty when there is none
}

// Read implements Host.
func (h ContainerHost) Read(ctx context.Context) (HostReading, error) {
	image, err := h.Image(ctx)
	if err != nil {
		return HostReading{}, err
	}
	if image == "" {
		return HostReading{}, ErrNoWayIn
	}
	// Without a run id: a look at the machine claims no engine.
	c, err := h.Engine.Run(ctx, engine.Spec{
		Name:       fmt.Sprintf("percore-doctor-%d", time.Now().UnixNano()),
		Image:      image,
		Entrypoint: []string{"sh", "-c", "cat /proc/loadavg && df -Pk /"},
		Labels:     map[string]string{engine.Label: "1", engine.LabelKind: engine.KindContainer},
	})
	if err != nil {
		return HostReading{}, fmt.Errorf("looking at the engine's machine: %w", err)
	}
	defer func() { _ = c.Remove(context.WithoutCancel(ctx)) }()
	exit, err := c.Wait(ctx)
	if err != nil {
		return HostReading{}, fmt.Errorf("looking at the engine's machine: %w", err)
	}
	text, err := c.Logs(ctx, 0)
	if err != nil {
		return HostReading{}, fmt.Errorf("looking at the engine's machine: %w", err)
	}
	if exit.Code != 0 {
		return HostReading{}, fmt.Errorf("looking at the engine's machine failed (%s): %s", exit, bytes.TrimSpace(text))
	}
	return parseReading(string(text))
}

// parseReading reads the text of /proc/loadavg followed by what df -Pk prints.
func parseReading(text string) (HostReading, error) {
	first, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	load, err := parseLoad(first)
	if err != nil {
		return HostReading{}, err
	}
	lines := strings.Split(strings.TrimSpace(rest), "\n")
	// Filesystem, 1024-blocks, Used, Available, Capacity, Mounted on.
	fields := strings.Fields(lines[len(lines)-1])
	if len(lines) < 2 || len(fields) < 6 {
		return HostReading{}, fmt.Errorf("df printed %q, not a table of file systems", rest)
	}
	kib, err := strconv.ParseUint(fields[3], 10, 54)
	if err != nil {
		return HostReading{}, fmt.Errorf("df printed %q for the available blocks, not a number", fields[3])
	}
	return HostReading{Load1: load, Free: kib << 10}, nil
}

// parseLoad reads the first number of /proc/loadavg: the load average over one
// minute.
func parseLoad(text string) (float64, error) {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return 0, errors.New("the load average is empty")
	}
	load, err := strconv.ParseFloat(fields[0], 64)
	if err != nil || !(load >= 0) || load > 1e9 {
		return 0, fmt.Errorf("the load average is %q, not a number", fields[0])
	}
	return load, nil
}

// Machine is the machine that percore runs on.
type Machine struct{}

// toolTimeout bounds a program that only says its version.
const toolTimeout = 10 * time.Second

// Tool implements Driver. A program of the Rust toolchain is also found in its
// usual place below the user's folder.
func (Machine) Tool(ctx context.Context, name string, args ...string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		home, homeErr := os.UserHomeDir()
		if homeErr != nil {
			return "", fmt.Errorf("%s is not installed", name)
		}
		if path, err = exec.LookPath(filepath.Join(home, ".cargo", "bin", name)); err != nil {
			return "", fmt.Errorf("%s is not installed", name)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, toolTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s does not run: %w", path, err)
	}
	line, err := bufio.NewReader(bytes.NewReader(out)).ReadString('\n')
	if err != nil && line == "" {
		return "", fmt.Errorf("%s says nothing", path)
	}
	return strings.TrimSpace(line), nil
}

// Free implements Driver; for a folder that does not exist yet it looks at the
// nearest one above.
func (Machine) Free(folder string) (uint64, error) {
	for {
		if _, err := os.Stat(folder); err == nil {
			return freeBytes(folder)
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return freeBytes(folder)
		}
		folder = parent
	}
}

// OS implements Driver.
func (Machine) OS() string { return runtime.GOOS }

// freeBytes is the space that an unprivileged process may still use.
func freeBytes(folder string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil {
		return 0, fmt.Errorf("asking for the free space of %s: %w", folder, err)
	}
	return st.Bavail * uint64(st.Bsize), nil
}
