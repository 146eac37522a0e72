package ansible

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/percore/percore/internal/machines/fleet"
)

const (
	waitDefault = 5 * time.Minute
	// A machine that has just started lets nobody in until it has fetched the
	// key; one that still refuses after this long never will.
	waitDenied = 90 * time.Second
	sayEvery   = 15 * time.Second
	probeEvery = 2 * time.Second
)

// reach waits until every machine answers over ssh, and returns as whom ssh
// logs in on each. Its error names every machine that does not.
func reach(ctx context.Context, run Run, say func(string, ...any)) (map[string]string, error) {
	wait := run.Wait
	if wait <= 0 {
		wait = waitDefault
	}
	var (
		g     sync.WaitGroup
		mu    sync.Mutex
		users = map[string]string{}
		errs  = make([]error, len(run.Machines.Machines))
	)
	for i, m := range run.Machines.Machines {
		g.Go(func() {
			user, err := reachOne(ctx, run, m, wait, say)
			if err != nil {
				errs[i] = fmt.Errorf("preparing %s: %w", m.Name, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			users[m.Name] = user
		})
	}
	g.Wait()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("waiting for the machines: %w", ctx.Err())
	}
	var failed []string
	for _, err := range errs {
		if err != nil {
			failed = append(failed, err.Error())
		}
	}
	if len(failed) > 0 {
		return nil, errors.New(strings.Join(failed, "; "))
	}
	return users, nil
}

func reachOne(ctx context.Context, run Run, m fleet.Machine, wait time.Duration, say func(string, ...any)) (string, error) {
	began, said := time.Now(), time.Now()
	for {
		user, reason := logIn(ctx, run, m, wait-time.Since(began))
		if reason == "" {
			return user, nil
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		waited := time.Since(began)
		switch {
		case strings.Contains(reason, "REMOTE HOST IDENTIFICATION HAS CHANGED") || strings.Contains(reason, "Host key verification failed"):
			return "", fmt.Errorf("%s has another ssh host key than the known_hosts file of this run says: if that is right, remove its line there", m.SSHHost)
		case hopeless(reason):
			return "", fmt.Errorf("ssh cannot be used: %s", lastLine(reason))
		case strings.Contains(reason, "Permission denied") && waited > min(waitDenied, wait):
			return "", fmt.Errorf("%s refuses ssh for %s (%s): put the key of this run into that user's authorized_keys", m.SSHHost, m.Destination(), lastLine(reason))
		case waited+probeEvery > wait:
			return "", fmt.Errorf("it does not answer over ssh at %s within %s (%s)", at(m), wait.Round(time.Second), lastLine(reason))
		}
		if time.Since(said) >= sayEvery {
			said = time.Now()
			say("prepare: %s: waiting for ssh, %s (%s)", m.Name, waited.Round(time.Second), lastLine(reason))
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(probeEvery):
		}
	}
}

// hopeless reports whether waiting cannot help: ssh itself, or its
// configuration, is at fault.
func hopeless(reason string) bool {
	for _, part := range []string{noSSH, "Bad owner or permissions", "Bad configuration option", "Can't open user config file", "terminating, "} {
		if strings.Contains(reason, part) {
			return true
		}
	}
	return false
}

const noSSH = "the program ssh is not here: install OpenSSH's client"

// logIn returns the name of the user that ssh logs in as, or why it does not.
func logIn(ctx context.Context, run Run, m fleet.Machine, left time.Duration) (user, reason string) {
	ctx, cancel := context.WithTimeout(ctx, max(left, time.Second))
	defer cancel()
	cmd := exec.CommandContext(ctx, "ssh", append(run.sshArgs(m), "id -un")...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if err == nil {
		if user := lastLine(out.String()); user != "" {
			return user, ""
		}
		return "", "it does not say who it has logged in"
	}
	if errors.Is(err, exec.ErrNotFound) {
		return "", noSSH
	}
	if text := strings.TrimSpace(said.String()); text != "" {
		return "", text
	}
	if ctx.Err() != nil {
		return "", "no answer"
	}
	return "", err.Error()
}

// at is where ssh connects to.
func at(m fleet.Machine) string {
	if m.SSHPort != 0 {
		return fmt.Sprintf("%s port %d", m.SSHHost, m.SSHPort)
	}
	return m.SSHHost
}

// lastLine is the last line with something on it.
func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
