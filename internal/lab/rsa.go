package lab

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"
)

// rsaCommand lets OpenSSL time RSA-2048 for a second of signing and a second of
// verifying, and ends it before it times anything else.
const rsaCommand = "timeout 3 openssl speed -mr -seconds 1 rsa2048 2>&1; true"

// rsaVerified matches OpenSSL's machine-readable line for public-key
// operations: how many, with how many bits, in how many CPU seconds.
var rsaVerified = regexp.MustCompile(`(?m)^\+R2:(\d+):2048:(\d+(?:\.\d+)?)\s*$`)

// RSAVerify measures how many RSA-2048 signatures one core of each host verifies
// per second of CPU time, by the names that the hosts have in HostFacts. It is
// what OpenSSL makes of the machine, without a candidate, and takes three
// seconds.
func (l *Lab) RSAVerify(ctx context.Context) (map[string]float64, error) {
	out := map[string]float64{}
	var mu sync.Mutex
	var g errgroup.Group
	for _, h := range l.hosts() {
		g.Go(func() error {
			info, err := h.Engine.Info(ctx)
			if err != nil {
				return err
			}
			perSecond, err := l.rsaVerify(ctx, h)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			out[factsName(h, info)] = perSecond
			return nil
		})
	}
	return out, l.blame(g.Wait())
}

// rsaVerify measures it on one host, on the CPUs of the first role it plays.
func (l *Lab) rsaVerify(ctx context.Context, h *Host) (perSecond float64, err error) {
	s := l.spec(l.rolesOf(h)[0], "rsa", l.cfg.Images[ImageTools])
	s.Network, s.HostNetwork = "", false
	s.Entrypoint = []string{"sh", "-c"}
	s.Cmd = []string{rsaCommand}
	c, err := l.run(ctx, h, s)
	if err != nil {
		return 0, err
	}
	cleanup, cancel := l.cleanup(ctx)
	defer cancel()
	defer func() { err = errors.Join(err, c.Remove(cleanup)) }()
	if _, err := c.Wait(ctx); err != nil {
		return 0, err
	}
	text, err := c.Logs(ctx, 0)
	if err != nil {
		return 0, err
	}
	perSecond, err = parseRSA(text)
	if err != nil {
		return 0, fmt.Errorf("timing RSA verifications on %s: %w", h.Name, err)
	}
	return perSecond, nil
}

// parseRSA reads the output of openssl speed -mr.
func parseRSA(text []byte) (perSecond float64, err error) {
	m := rsaVerified.FindSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("openssl speed printed no line for RSA verification: %.200q", text)
	}
	n, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		return 0, err
	}
	seconds, err := strconv.ParseFloat(string(m[2]), 64)
	if err != nil || seconds <= 0 {
		return 0, fmt.Errorf("openssl speed printed %q as a time", m[2])
	}
	return n / seconds, nil
}
