package images

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// versionsTimeout bounds how long an image takes to say its versions.
const versionsTimeout = time.Minute

// Versions runs percore-versions of an image in a container that is removed
// afterwards and returns what it prints: name -> version.
func Versions(ctx context.Context, engine Engine, image string) (_ map[string]string, err error) {
	ctx, cancel := context.WithTimeout(ctx, versionsTimeout)
	defer cancel()
	defer func() {
		if err != nil {
			err = fmt.Errorf("asking the image %s for its versions: %w", image, err)
		}
	}()
	created, err := engine.ContainerCreate(ctx, client.ContainerCreateOptions{
		Config: &container.Config{
			Image: image, Entrypoint: []string{"percore-versions"}, Cmd: []string{},
			Labels: map[string]string{LabelOwner: "1", LabelKind: "container"},
		},
		HostConfig: &container.HostConfig{NetworkMode: "none"},
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		// The context may be over; the container must go all the same.
		gone, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		if _, e := engine.ContainerRemove(gone, created.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true}); e != nil && err == nil {
			err = e
		}
	}()
	wait := engine.ContainerWait(ctx, created.ID, client.ContainerWaitOptions{Condition: container.WaitConditionNextExit})
	if _, err := engine.ContainerStart(ctx, created.ID, client.ContainerStartOptions{}); err != nil {
		return nil, err
	}
	var status int64
	select {
	case err := <-wait.Error:
		return nil, err
	case r := <-wait.Result:
		status = r.StatusCode
	}
	logs, err := engine.ContainerLogs(ctx, created.ID, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true})
	if err != nil {
		return nil, err
	}
	defer logs.Close()
	var out, complaints bytes.Buffer
	if _, err := stdcopy.StdCopy(&out, &complaints, logs); err != nil {
		return nil, err
	}
	if status != 0 {
		return nil, fmt.Errorf("percore-versions ended with status %d: %s", status, firstLine(complaints.String()))
	}
	return parseVersions(&out)
}

// parseVersions reads name=version lines.
func parseVersions(r io.Reader) (map[string]string, error) {
	versions := map[string]string{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		l := strings.TrimSpace(lines.Text())
		if l == "" {
			continue
		}
		name, version, ok := strings.Cut(l, "=")
		if !ok || name == "" || version == "" {
			return nil, fmt.Errorf("line %d of percore-versions is %q, not name=version", n, firstLine(l))
		}
		if _, twice := versions[name]; twice {
			return nil, fmt.Errorf("line %d of percore-versions names %s a second time", n, name)
		}
		versions[name] = version
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading percore-versions: %w", err)
	}
	if len(versions) == 0 {
		return nil, fmt.Errorf("percore-versions printed nothing")
	}
	return versions, nil
}
