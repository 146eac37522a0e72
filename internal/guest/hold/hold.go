// Package hold runs one program of a measurement on its host and writes
// down what the driver has to know of it: when it started and ended by the
// host's clock, how it ended, and the digest of the file it left. It is standard
// library only, because the image of the tools compiles it.
package hold

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Options say how to run a program.
type Options struct {
	// Gate is a file that holds the program back: it names the time to start at,
	// see [Gate]. The file need not be there yet. Empty starts at once.
	Gate string
	// GateTimeout is how long the gate file may take to appear.
	GateTimeout time.Duration
	// Late is how much after its time the program may be started. What comes
	// later than that is not started. It is looked at only when the gate names a
	// time.
	Late time.Duration
	// Linger is how long to stay after the program has ended, so that what it
	// used can still be read from its container.
	Linger time.Duration
	Output string // file that the program writes and of which the digest is taken
	Report string // file that receives the report
	Argv   []string
}

// Report is what one run left behind.
type Report struct {
	Start  int64  `json:"start"`            // wall clock in ns, just before the program was started
	End    int64  `json:"end"`              // the same, just after it had ended
	Code   int    `json:"code"`             // exit code; 128 and the signal's number for a program that a signal ended
	Bytes  int64  `json:"bytes"`            // length of the output
	SHA256 string `json:"sha256,omitempty"` // of the output, in hexadecimal; empty where that is no regular file
}

// CodeLate is the exit code of a run whose time had passed before it could
// start.
const CodeLate = 75

// maxGate bounds a gate file, in bytes.
const maxGate = 64

// Gate is the content of a gate file: the wall clock of its host at which to
// start, or the zero time to start at once.
func Gate(at time.Time) []byte {
	if at.IsZero() {
		return []byte("0\n")
	}
	return append(strconv.AppendInt(nil, at.UnixNano(), 10), '\n')
}

// ParseGate reads the content of a gate file. A file that is still being
// written, which lacks the newline, is not whole.
func ParseGate(text []byte) (at time.Time, whole bool, err error) {
	line, rest, ended := bytes.Cut(text, []byte("\n"))
	if !ended && len(text) <= maxGate {
		return time.Time{}, false, nil
	}
	ns, err := strconv.ParseInt(string(line), 10, 64)
	if err != nil || ns < 0 || len(rest) > 0 || strconv.FormatInt(ns, 10) != string(line) {
		return time.Time{}, true, fmt.Errorf("the gate file holds %.80q, which is no time in ns", text)
	}
	if ns == 0 {
		return time.Time{}, true, nil
	}
	return time.Unix(0, ns), true, nil
}

// ParseReport reads a report.
func ParseReport(text []byte) (Report, error) {
	var r Report
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return Report{}, fmt.Errorf("the report of the run is damaged: %w", err)
	}
	if sum, err := hex.DecodeString(r.SHA256); err != nil || len(sum) != 0 && len(sum) != sha256.Size || r.Start <= 0 || r.End < r.Start || r.Bytes < 0 {
		return Report{}, fmt.Errorf("the report of the run is damaged: %.200q", text)
	}
	return r, nil
}

// Run runs the program, waits for it, and writes the report. SIGTERM, SIGINT and
// SIGHUP are passed on to the program. The code is the one to exit with: the
// program's, or CodeLate. An error means that the program could not be run or
// the report not be written.
func Run(o Options) (code int, err error) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := os.Remove(o.Report); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 1, fmt.Errorf("removing an old report: %w", err)
	}
	path, err := exec.LookPath(o.Argv[0])
	if err != nil {
		return 127, err
	}
	if o.Gate != "" {
		if code, err := wait(o, signals); code != 0 || err != nil {
			return code, err
		}
	}
	cmd := exec.Command(path, o.Argv[1:]...)
	cmd.Args[0] = o.Argv[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	r := Report{Start: time.Now().UnixNano()}
	if err := cmd.Start(); err != nil {
		return 126, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for waiting := true; waiting; {
		select {
		case s := <-signals:
			_ = cmd.Process.Signal(s)
		case err = <-ended:
			waiting = false
		}
	}
	r.End = max(time.Now().UnixNano(), r.Start)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 1, err
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		r.Code = 128 + int(status.Signal())
	} else {
		r.Code = cmd.ProcessState.ExitCode()
	}
	if r.Bytes, r.SHA256, err = digest(o.Output); err != nil {
		return 1, err
	}
	if err := write(o.Report, r); err != nil {
		return 1, err
	}
	if o.Linger > 0 {
		select {
		case <-signals:
		case <-time.After(o.Linger):
		}
	}
	return r.Code, nil
}

// wait returns when the gate's time has come.
func wait(o Options, signals <-chan os.Signal) (code int, err error) {
	deadline := time.Now().Add(o.GateTimeout)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	var at time.Time
	for whole := false; !whole; {
		text, err := os.ReadFile(o.Gate)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 1, fmt.Errorf("reading the gate: %w", err)
		}
		if err == nil {
			if at, whole, err = ParseGate(text); err != nil {
				return 1, err
			}
		}
		if whole {
			break
		}
		if time.Now().After(deadline) {
			return 1, fmt.Errorf("the gate file %s did not appear within %v", o.Gate, o.GateTimeout)
		}
		select {
		case s := <-signals:
			return signalCode(s), nil
		case <-tick.C:
		}
	}
	if at.IsZero() {
		return 0, nil
	}
	left := time.Until(at)
	if left < -o.Late {
		fmt.Fprintf(os.Stderr, "guest hold: the time to start was %v ago\n", -left)
		return CodeLate, nil
	}
	select {
	case s := <-signals:
		return signalCode(s), nil
	case <-time.After(left):
		return 0, nil
	}
}

func signalCode(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 1
}

// digest hashes a regular file; another, or none, has no digest.
func digest(file string) (n int64, sum string, err error) {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return 0, "", nil
	}
	if err != nil {
		return 0, "", err
	}
	f, err := os.Open(file)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	h := sha256.New()
	if n, err = io.Copy(h, f); err != nil {
		return 0, "", fmt.Errorf("taking the digest of %s: %w", file, err)
	}
	return n, hex.EncodeToString(h.Sum(nil)), nil
}

// write writes the report under its name only when it is whole.
func write(file string, r Report) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	part := filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+".part")
	if err := os.WriteFile(part, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if err := os.Rename(part, file); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// Args are the arguments of guest hold for the options.
func Args(o Options) []string {
	var args []string
	add := func(flag, value string) {
		if value != "" {
			args = append(args, flag, value)
		}
	}
	add("--gate", o.Gate)
	if o.Gate != "" {
		add("--gate-timeout", o.GateTimeout.String())
		add("--late", o.Late.String())
	}
	if o.Linger > 0 {
		add("--linger", o.Linger.String())
	}
	add("--output", o.Output)
	add("--report", o.Report)
	return append(append(args, "--"), o.Argv...)
}

// Missing names what the options lack, or is empty.
func (o Options) Missing() string {
	var missing []string
	if o.Report == "" {
		missing = append(missing, "--report FILE")
	}
	if o.Output == "" {
		missing = append(missing, "--output FILE")
	}
	if len(o.Argv) == 0 {
		missing = append(missing, "a program")
	}
	return strings.Join(missing, ", ")
}
