package lab

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/percore/percore/internal/profile"
)

// rsaCommand lets OpenSSL time RSA-2048 for a second of signing and a second of
// verifying, and ends it before it times anything else.
const rsaCommand = "timeout 3 openssl speed -mr -seconds 1 rsa2048 2>&1; true"

// rsaVerified matches OpenSSL's machine-readable line for public-key
// operations: how many, with how many bits, in how many CPU seconds.
var rsaVerified = regexp.MustCompile(`(?m)^\+R2:(\d+):2048:(\d+(?:\.\d+)?)\s*$`)

// RSAVerify measures how many RSA-2048 signatures one of the application's
// cores verifies per second of CPU time. It is what OpenSSL makes of the
// machine, without a candidate, and takes three seconds.
func (l *Lab) RSAVerify(ctx context.Context) (perSecond float64, err error) {
	s := l.spec(profile.App, "rsa", l.cfg.Images[ImageTools])
	s.Network, s.HostNetwork = "", false
	s.Entrypoint = []string{"sh", "-c"}
	s.Cmd = []string{rsaCommand}
	c, err := l.run(ctx, l.host(profile.App), s)
	if err != nil {
		return 0, err
	}
	cleanup, cancel := cleanupContext(ctx)
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
		return 0, fmt.Errorf("timing RSA verifications on %s: %w", l.host(profile.App).Name, err)
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
