package engine

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/percore/percore/internal/base/fail"
)

// Spec describes a container. The zero value of a field leaves the engine's
// default.
type Spec struct {
	Name       string
	Image      string
	Entrypoint []string
	Cmd        []string
	Env        map[string]string
	User       string
	Labels     map[string]string

	CPUs   string // list of CPU numbers
	Memory int64  // bytes; swap is not granted on top
	NoFile int64  // open files, soft and hard
	Shm    int64  // bytes of /dev/shm

	Network     string     // name of a network; none when this and the two below are empty
	Aliases     []string   // names on that network
	HostNetwork bool       // use the host's network instead
	NetworkOf   *Container // use that container's network instead

	Volumes map[string]string // volume name -> path
	Binds   []Bind            // the engine host's folders
	Tmpfs   map[string]string // path -> mount options
	Files   []File            // copied in before the start

	HostPID    bool // see the host's processes
	HostCgroup bool // see the host's cgroup tree
	// CgroupParent is the cgroup that the container's lies in; empty leaves it to
	// the engine.
	CgroupParent string
	Init         bool // run a minimal init as process 1
}

// Bind mounts a folder of the engine's host, read-only.
type Bind struct{ Host, Path string }

// File is a file in a container.
type File struct {
	Path string // absolute
	Mode int64
	Data []byte
}

// Container is a container on an engine.
type Container struct {
	ID   string
	Name string
	e    *Engine
}

// Exit is how a container ended.
type Exit struct {
	Code      int
	OOMKilled bool // the kernel killed a process of it for memory
}

// String describes the exit for an error text.
func (x Exit) String() string {
	if x.OOMKilled {
		return "killed for memory"
	}
	return fmt.Sprintf("exit code %d", x.Code)
}

// Engine is the engine the container is on.
func (c *Container) Engine() *Engine { return c.e }

// Container gives a handle on a container that exists.
func (e *Engine) Container(id, name string) *Container { return &Container{ID: id, Name: name, e: e} }

func (c *Container) wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s container %s on %s: %w", doing, c.Name, c.e.host, err)
}

// Create creates a container and copies its files in; it does not start it.
func (e *Engine) Create(ctx context.Context, s Spec) (*Container, error) {
	config := &container.Config{
		Image:      s.Image,
		Entrypoint: s.Entrypoint,
		Cmd:        s.Cmd,
		User:       s.User,
		Labels:     s.Labels,
	}
	for _, k := range slices.Sorted(maps.Keys(s.Env)) {
		config.Env = append(config.Env, k+"="+s.Env[k])
	}
	host := &container.HostConfig{
		// The log stays readable and bounded whatever the engine's default is.
		LogConfig: container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "32m", "max-file": "2"}},
		Tmpfs:     s.Tmpfs,
		ShmSize:   s.Shm,
		Resources: container.Resources{CpusetCpus: s.CPUs, Memory: s.Memory, MemorySwap: s.Memory, CgroupParent: s.CgroupParent},
	}
	if s.Init {
		host.Init = &s.Init
	}
	if s.NoFile > 0 {
		host.Ulimits = []*container.Ulimit{{Name: "nofile", Soft: s.NoFile, Hard: s.NoFile}}
	}
	if s.HostPID {
		host.PidMode = "host"
	}
	if s.HostCgroup {
		host.CgroupnsMode = container.CgroupnsModeHost
	}
	for _, name := range slices.Sorted(maps.Keys(s.Volumes)) {
		host.Mounts = append(host.Mounts, mount.Mount{Type: mount.TypeVolume, Source: name, Target: s.Volumes[name]})
	}
	for _, b := range s.Binds {
		host.Binds = append(host.Binds, b.Host+":"+b.Path+":ro")
	}
	var networking *network.NetworkingConfig
	switch {
	case s.HostNetwork:
		host.NetworkMode = network.NetworkHost
	case s.NetworkOf != nil:
		host.NetworkMode = container.NetworkMode("container:" + s.NetworkOf.ID)
	case s.Network != "":
		host.NetworkMode = container.NetworkMode(s.Network)
		networking = &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{s.Network: {Aliases: s.Aliases}}}
	default:
		host.NetworkMode = network.NetworkNone
	}
	var broke bool // whether an attempt may have created it and could not say so
	id, err := retry(ctx, e, func() (string, error) {
		res, err := e.api.ContainerCreate(ctx, client.ContainerCreateOptions{
			Name: s.Name, Config: config, HostConfig: host, NetworkingConfig: networking,
		})
		if broke && errdefs.IsConflict(err) {
			if id := e.ownContainer(ctx, s); id != "" {
				return id, nil
			}
		}
		broke = broke || dropped(err)
		return res.ID, err
	})
	switch {
	case errdefs.IsConflict(err):
		return nil, e.nameTaken(ctx, s.Name, err)
	case errdefs.IsNotFound(err) && strings.Contains(strings.ToLower(err.Error()), "image"):
		return nil, fail.Work("creating container %s: the image %s is not on the engine at %s", s.Name, s.Image, e.host).Try("build the images first")
	case err != nil:
		return nil, fmt.Errorf("creating container %s from image %s on %s: %w", s.Name, s.Image, e.host, err)
	}
	c := &Container{ID: id, Name: s.Name, e: e}
	if len(s.Files) > 0 {
		if err := c.CopyTo(ctx, s.Files...); err != nil {
			return nil, errors.Join(err, c.Remove(context.WithoutCancel(ctx)))
		}
	}
	return c, nil
}

// ownContainer is the id of the container that an attempt whose answer was lost
// has created: it has the name and all the labels. Empty when there is none.
func (e *Engine) ownContainer(ctx context.Context, s Spec) string {
	res, err := e.api.ContainerInspect(ctx, s.Name, client.ContainerInspectOptions{})
	if err != nil || res.Container.Config == nil || len(s.Labels) == 0 {
		return ""
	}
	for k, v := range s.Labels {
		if res.Container.Config.Labels[k] != v {
			return ""
		}
	}
	return res.Container.ID
}

// nameTaken explains a name conflict.
func (e *Engine) nameTaken(ctx context.Context, name string, err error) error {
	res, inspectErr := e.api.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	if inspectErr != nil {
		return fmt.Errorf("creating container %s on %s: %w", name, e.host, err)
	}
	if res.Container.Config != nil && res.Container.Config.Labels[LabelKind] == KindContainer {
		return fail.Work("the container name %s is taken on %s by a container of percore's run %s", name, e.host, res.Container.Config.Labels[LabelRun]).Try("remove it with %s", fail.Call("clean"))
	}
	return fail.Work("the container name %s is taken on %s by a container that is not percore's", name, e.host).Try("rename or remove it (docker rm -f %s)", name)
}

// Run creates and starts a container. One that cannot be started is removed.
func (e *Engine) Run(ctx context.Context, s Spec) (*Container, error) {
	c, err := e.Create(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := c.Start(ctx); err != nil {
		return nil, errors.Join(err, c.Remove(context.WithoutCancel(ctx)))
	}
	return c, nil
}

// Start starts the container. It is started once, whatever happens to the
// connection: an attempt whose answer was lost is looked for before another is
// made.
func (c *Container) Start(ctx context.Context) error {
	broke := false
	_, err := retry(ctx, c.e, func() (struct{}, error) {
		if broke {
			res, err := c.e.api.ContainerInspect(ctx, c.ID, client.ContainerInspectOptions{})
			if err != nil {
				return struct{}{}, err
			}
			if s := res.Container.State; s != nil {
				started, _ := time.Parse(time.RFC3339Nano, s.StartedAt)
				if s.Running || started.Unix() > 0 {
					return struct{}{}, nil
				}
			}
		}
		_, err := c.e.api.ContainerStart(ctx, c.ID, client.ContainerStartOptions{})
		broke = broke || dropped(err)
		return struct{}{}, err
	})
	return c.wrap("starting", err)
}

// State is a container's condition at one moment.
type State struct {
	Running   bool
	PID       int // of process 1, as the engine's host counts
	Exit      Exit
	Execs     []string  // ids of execs: running, or created and never started
	Started   time.Time // by the engine's clock
	Finished  time.Time // by the engine's clock; zero while it runs
	ErrorText string    // why the engine could not run it
}

// Busy reports whether an exec runs in the container. One that was created and
// never started, by somebody who died in between, does not count.
func (c *Container) Busy(ctx context.Context) (bool, error) {
	state, err := c.Inspect(ctx)
	if err != nil {
		return false, err
	}
	for _, id := range state.Execs {
		res, err := retry(ctx, c.e, func() (client.ExecInspectResult, error) {
			return c.e.api.ExecInspect(ctx, id, client.ExecInspectOptions{})
		})
		if errdefs.IsNotFound(err) {
			continue // ended meanwhile
		}
		if err != nil {
			return false, c.wrap("inspecting an exec in", err)
		}
		if res.Running {
			return true, nil
		}
	}
	return false, nil
}

// Inspect asks for the container's state.
func (c *Container) Inspect(ctx context.Context) (State, error) {
	res, err := retry(ctx, c.e, func() (client.ContainerInspectResult, error) {
		return c.e.api.ContainerInspect(ctx, c.ID, client.ContainerInspectOptions{})
	})
	if err != nil {
		return State{}, c.wrap("inspecting", err)
	}
	in := res.Container
	s := State{Execs: in.ExecIDs}
	if in.State != nil {
		s.Running = in.State.Running
		s.PID = in.State.Pid
		s.Exit = Exit{Code: in.State.ExitCode, OOMKilled: in.State.OOMKilled}
		s.Started, _ = time.Parse(time.RFC3339Nano, in.State.StartedAt)
		if !s.Running {
			s.Finished, _ = time.Parse(time.RFC3339Nano, in.State.FinishedAt)
		}
		s.ErrorText = in.State.Error
	}
	return s, nil
}

// PID is the process id of the container's process 1 as the engine's host
// counts it. A container that does not run is an error.
func (c *Container) PID(ctx context.Context) (int, error) {
	s, err := c.Inspect(ctx)
	if err != nil {
		return 0, err
	}
	if !s.Running || s.PID == 0 {
		return 0, fmt.Errorf("container %s on %s does not run (%s)", c.Name, c.e.host, s.Exit)
	}
	return s.PID, nil
}

// Wait waits until the container has ended. A dropped connection is taken up
// again.
func (c *Container) Wait(ctx context.Context) (Exit, error) {
	s, err := c.Ended(ctx)
	return s.Exit, err
}

// Ended waits as Wait does and returns all of the container's state.
func (c *Container) Ended(ctx context.Context) (State, error) {
	_, err := retry(ctx, c.e, func() (struct{}, error) {
		w := c.e.api.ContainerWait(ctx, c.ID, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
		select {
		case err := <-w.Error:
			return struct{}{}, err
		case res := <-w.Result:
			if res.Error != nil && res.Error.Message != "" {
				return struct{}{}, errors.New(res.Error.Message)
			}
			return struct{}{}, nil
		case <-ctx.Done():
			return struct{}{}, ctx.Err()
		}
	})
	if err != nil {
		return State{}, c.wrap("waiting for", err)
	}
	return c.Inspect(ctx)
}

// Signal sends a signal to the container's process 1. When the link breaks
// meanwhile the signal may be sent twice.
func (c *Container) Signal(ctx context.Context, signal string) error {
	_, err := retry(ctx, c.e, func() (client.ContainerKillResult, error) {
		return c.e.api.ContainerKill(ctx, c.ID, client.ContainerKillOptions{Signal: signal})
	})
	return c.wrap("sending "+signal+" to", err)
}

// Stop asks the container to end and kills it after the grace.
func (c *Container) Stop(ctx context.Context, grace time.Duration) error {
	seconds := int(grace.Round(time.Second) / time.Second)
	_, err := retry(ctx, c.e, func() (client.ContainerStopResult, error) {
		return c.e.api.ContainerStop(ctx, c.ID, client.ContainerStopOptions{Timeout: &seconds})
	})
	if errdefs.IsNotFound(err) {
		return nil
	}
	return c.wrap("stopping", err)
}

// Remove kills and removes the container and its anonymous volumes. One that
// is gone already is no error.
func (c *Container) Remove(ctx context.Context) error {
	_, err := retry(ctx, c.e, func() (client.ContainerRemoveResult, error) {
		return c.e.api.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	})
	if err == nil || errdefs.IsNotFound(err) {
		return nil
	}
	if errdefs.IsConflict(err) && strings.Contains(err.Error(), "already in progress") {
		return c.gone(ctx)
	}
	return c.wrap("removing", err)
}

// gone waits for a removal that somebody else began.
func (c *Container) gone(ctx context.Context) error {
	for range 100 {
		if _, err := c.e.api.ContainerInspect(ctx, c.ID, client.ContainerInspectOptions{}); errdefs.IsNotFound(err) {
			return nil
		}
		select {
		case <-ctx.Done():
			return c.wrap("removing", ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("container %s on %s is still being removed after 5 s", c.Name, c.e.host)
}

// logLimit bounds what Logs returns, in bytes.
const logLimit = 8 << 20

// Logs returns what the container has printed, both streams in order: the last
// lines, or everything when lines is 0, in any case at most the last 8 MiB.
func (c *Container) Logs(ctx context.Context, lines int) ([]byte, error) {
	tail := "all"
	if lines > 0 {
		tail = fmt.Sprint(lines)
	}
	return retry(ctx, c.e, func() ([]byte, error) {
		r, err := c.e.api.ContainerLogs(ctx, c.ID, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: tail})
		if err != nil {
			return nil, c.wrap("reading the log of", err)
		}
		defer r.Close()
		out := tailBuffer{limit: logLimit}
		if _, err := stdcopy.StdCopy(&out, &out, r); err != nil {
			return out.Bytes(), c.wrap("reading the log of", err)
		}
		return out.Bytes(), nil
	})
}

// tailBuffer keeps the last bytes written to it.
type tailBuffer struct {
	limit int
	buf   []byte
}

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if len(t.buf) > 2*t.limit {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-t.limit:]...)
	}
	return len(p), nil
}

// Bytes returns at most the limit.
func (t *tailBuffer) Bytes() []byte {
	return t.buf[max(0, len(t.buf)-t.limit):]
}

// CopyTo writes files into the container.
func (c *Container) CopyTo(ctx context.Context, files ...File) error {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, f := range files {
		mode := f.Mode
		if mode == 0 {
			mode = 0o644
		}
		err := w.WriteHeader(&tar.Header{Name: strings.TrimPrefix(path.Clean(f.Path), "/"), Mode: mode, Size: int64(len(f.Data)), Typeflag: tar.TypeReg})
		if err == nil {
			_, err = w.Write(f.Data)
		}
		if err != nil {
			return c.wrap("packing files for", err)
		}
	}
	if err := w.Close(); err != nil {
		return c.wrap("packing files for", err)
	}
	_, err := retry(ctx, c.e, func() (client.CopyToContainerResult, error) {
		return c.e.api.CopyToContainer(ctx, c.ID, client.CopyToContainerOptions{DestinationPath: "/", Content: bytes.NewReader(buf.Bytes())})
	})
	return c.wrap("copying files into", err)
}

// CopyFrom reads a regular file of the container, running or not. A file
// larger than limit bytes is an error; so is one that came only in part.
func (c *Container) CopyFrom(ctx context.Context, file string, limit int64) ([]byte, error) {
	data, err := retry(ctx, c.e, func() ([]byte, error) {
		res, err := c.e.api.CopyFromContainer(ctx, c.ID, client.CopyFromContainerOptions{SourcePath: file})
		if err != nil {
			return nil, err
		}
		defer res.Content.Close()
		return fileFromTar(res.Content, limit)
	})
	if err != nil {
		return nil, fmt.Errorf("copying %s out of container %s on %s: %w", file, c.Name, c.e.host, err)
	}
	return data, nil
}

// fileFromTar returns the regular file that an archive holds.
func fileFromTar(r io.Reader, limit int64) ([]byte, error) {
	t := tar.NewReader(r)
	h, err := t.Next()
	if err == io.EOF {
		return nil, errors.New("the archive is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the archive: %w", err)
	}
	if h.Typeflag != tar.TypeReg {
		return nil, errors.New("it is not a regular file")
	}
	if h.Size > limit {
		return nil, fmt.Errorf("it holds %d bytes, more than the %d that were expected at most", h.Size, limit)
	}
	data, err := io.ReadAll(io.LimitReader(t, limit+1))
	if err != nil {
		return nil, fmt.Errorf("reading the archive: %w", err)
	}
	if int64(len(data)) != h.Size {
		return nil, fmt.Errorf("the archive promised %d bytes and held %d: %w", h.Size, len(data), io.ErrUnexpectedEOF)
	}
	return data, nil
}

// ExecResult is what a command in a container left behind.
type ExecResult struct {
	Stdout, Stderr []byte // each at most its last 8 MiB
	Code           int
}

// Exec runs a command in the running container and waits for it. A nil stdin
// is an empty one. A non-zero exit code is not an error. A command without input
// is run again when the link breaks meanwhile: it must bear that.
func (c *Container) Exec(ctx context.Context, stdin io.Reader, argv ...string) (ExecResult, error) {
	if stdin != nil {
		return c.execOnce(ctx, stdin, argv)
	}
	return retry(ctx, c.e, func() (ExecResult, error) { return c.execOnce(ctx, nil, argv) })
}

func (c *Container) execOnce(ctx context.Context, stdin io.Reader, argv []string) (ExecResult, error) {
	var out ExecResult
	s, err := c.exec(ctx, stdin != nil, argv)
	if err != nil {
		return out, err
	}
	defer s.Close()
	stop := context.AfterFunc(ctx, s.Close)
	defer stop()
	if stdin != nil {
		go func() {
			_, _ = io.Copy(s.Conn, stdin)
			_ = s.CloseWrite()
		}()
	}
	stdout, stderr := tailBuffer{limit: logLimit}, tailBuffer{limit: logLimit}
	_, err = stdcopy.StdCopy(&stdout, &stderr, s.Reader)
	out.Stdout, out.Stderr = stdout.Bytes(), stderr.Bytes()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return out, c.wrap("running "+argv[0]+" in", err)
	}
	for {
		in, err := retry(ctx, c.e, func() (client.ExecInspectResult, error) {
			return c.e.api.ExecInspect(ctx, s.id, client.ExecInspectOptions{})
		})
		if err != nil {
			return out, c.wrap("running "+argv[0]+" in", err)
		}
		if !in.Running {
			out.Code = in.ExitCode
			return out, nil
		}
		select {
		case <-ctx.Done():
			return out, c.wrap("running "+argv[0]+" in", ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// execStream is an attached exec.
type execStream struct {
	client.HijackedResponse
	id string
}

func (s *execStream) Close() { s.HijackedResponse.Close() }

// exec starts a command in the container and attaches to it.
func (c *Container) exec(ctx context.Context, stdin bool, argv []string) (*execStream, error) {
	ex, err := retry(ctx, c.e, func() (client.ExecCreateResult, error) {
		return c.e.api.ExecCreate(ctx, c.ID, client.ExecCreateOptions{
			AttachStdin: stdin, AttachStdout: true, AttachStderr: true, Cmd: argv,
		})
	})
	if err != nil {
		return nil, c.wrap("running "+argv[0]+" in", err)
	}
	// Attaching starts the command, so that it is done again only where it was
	// never asked for: an sshd that many knock at turns some away.
	at, err := retry(ctx, c.e, func() (client.ExecAttachResult, error) {
		at, err := c.e.api.ExecAttach(ctx, ex.ID, client.ExecAttachOptions{})
		var unsent *unsentError
		if err != nil && !errors.As(err, &unsent) {
			err = &onceError{err}
		}
		return at, err
	})
	var once *onceError
	if errors.As(err, &once) {
		err = once.error
	}
	if err != nil {
		return nil, c.wrap("running "+argv[0]+" in", err)
	}
	return &execStream{at.HijackedResponse, ex.ID}, nil
}
