//go:build linux && !race

package sample

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// RunAlone is [Sampler.Run] in a child process that has one thread and no Go
// scheduler: it costs a fraction, because in every other Go process the
// runtime's monitor thread wakes up several times around each sample.
//
// The child is a plain fork. Of the runtime it uses only what works without
// other threads: it does not allocate, does not start or wait for goroutines,
// enters the kernel by raw system calls, and has all signals blocked, so that
// no signal handler runs. SIGTERM and SIGINT are taken up while it waits for
// the next sample. It ends when its parent does.
func (s *Sampler) RunAlone(out *os.File, interval, longest time.Duration, stop <-chan os.Signal) error {
	pr, pw, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("cannot start sampling: %w", err)
	}
	defer pr.Close()
	fd, report := int(out.Fd()), int(pw.Fd())
	parent := os.Getpid()
	// A goroutine that has just been scheduled is not asked to yield for 10 ms;
	// such a request would be carried into the child.
	runtime.Gosched()
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno == 0 && pid == 0 {
		s.child(fd, report, parent, int64(interval), int64(longest))
	}
	pw.Close()
	if errno != 0 {
		return fmt.Errorf("cannot start sampling: %w", errno)
	}

	type result struct {
		said []byte
		err  error
	}
	ended := make(chan result, 1)
	go func() {
		b, err := io.ReadAll(pr) // until the child has ended
		ended <- result{b, err}
	}()
	var r result
	for waiting := true; waiting; {
		select {
		case <-stop:
			_ = syscall.Kill(int(pid), syscall.SIGTERM)
		case r = <-ended:
			waiting = false
		}
	}
	var status syscall.WaitStatus
	for {
		if _, err = syscall.Wait4(int(pid), &status, 0, nil); err != syscall.EINTR {
			break
		}
	}
	switch {
	case r.err != nil:
		return fmt.Errorf("cannot follow the sampling process: %w", r.err)
	case err != nil:
		return fmt.Errorf("cannot wait for the sampling process: %w", err)
	case len(r.said) > 1 && r.said[0] == saidErrno:
		return fmt.Errorf("cannot write a sample: write %s: %w", out.Name(), syscall.Errno(r.said[1]))
	case len(r.said) > 1:
		return errors.New(string(r.said[1:]))
	case status.Signaled():
		return fmt.Errorf("the sampling process was killed by signal %d (%v)", int(status.Signal()), status.Signal())
	case status.ExitStatus() != 0:
		return fmt.Errorf("the sampling process ended with exit code %d", status.ExitStatus())
	}
	return nil
}

// What the first byte of the child's report says of the rest.
const (
	saidErrno = 'e' // one byte: the errno of a write
	saidText  = 't' // a sentence
)

// raw are the arguments of the child's system calls: on the heap, where they do
// not move.
type raw struct {
	mask uint64
	wait syscall.Timespec
	said [2]byte
}

// Signals that end the sampling, as a signal set.
const ending = 1<<(syscall.SIGTERM-1) | 1<<(syscall.SIGINT-1)

func (s *Sampler) child(fd, report, parent int, interval, longest int64) {
	r := &s.raw
	r.mask = math.MaxUint64
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, 2 /* SIG_SETMASK */, uintptr(unsafe.Pointer(&r.mask)), 0, unsafe.Sizeof(r.mask), 0, 0)
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGTERM), 0, 0, 0, 0)
	r.mask = ending

	start := s.clock.monotonic()
	for last := false; ; {
		last = last || s.clock.monotonic()-start >= longest
		line, err := s.Sample(last)
		if err != nil {
			s.fail(report, err)
		}
		if errno := rawWrite(fd, line); errno != 0 {
			r.said = [2]byte{saidErrno, byte(errno)}
			_ = rawWrite(report, r.said[:])
			exit(1)
		}
		if last {
			exit(0)
		}
		now := s.clock.monotonic()
		if ppid, _, _ := syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0); int(ppid) != parent {
			exit(1) // it ended before its end could be announced
		}
		due := min(start+int64(nextDue(time.Duration(now-start), time.Duration(interval))), start+longest)
		for {
			left := due - s.clock.monotonic()
			if left <= 0 {
				break
			}
			r.wait = syscall.NsecToTimespec(left)
			got, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGTIMEDWAIT, uintptr(unsafe.Pointer(&r.mask)), 0, uintptr(unsafe.Pointer(&r.wait)), unsafe.Sizeof(r.mask), 0, 0)
			if errno == 0 && got > 0 {
				last = true
				break
			}
		}
	}
}

// fail reports the error that ends the sampling. Only here does the child
// allocate.
func (s *Sampler) fail(report int, err error) {
	_ = rawWrite(report, append([]byte{saidText}, err.Error()...))
	exit(1)
}

func exit(code int) {
	for {
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, uintptr(code), 0, 0)
	}
}

// rawWrite writes all of b, in one call unless the kernel takes only a part.
func rawWrite(fd int, b []byte) syscall.Errno {
	for len(b) > 0 {
		n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		switch errno {
		case 0:
			b = b[n:]
		case syscall.EINTR, syscall.EAGAIN:
		default:
			return errno
		}
	}
	return 0
}
