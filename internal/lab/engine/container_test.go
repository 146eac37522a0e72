package engine

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/percore/percore/internal/testkit/said"
)

func archive(t testing.TB, h tar.Header, body string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	if err := w.WriteHeader(&h); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, body); err != nil {
		t.Fatal(err)
	}
	_ = w.Flush()
	return buf.Bytes()
}

func TestFileFromTar(t *testing.T) {
	good := archive(t, tar.Header{Name: "f", Size: 5, Mode: 0o644, Typeflag: tar.TypeReg}, "hello")
	if data, err := fileFromTar(bytes.NewReader(good), 5); err != nil || string(data) != "hello" {
		t.Fatalf("%q, %v", data, err)
	}
	tests := map[string]struct {
		data  []byte
		limit int64
		want  string
	}{
		"too large":        {good, 4, "holds 5 bytes, more than the 4"},
		"empty":            {nil, 5, "the archive is empty"},
		"cut in the body":  {good[:514], 5, ""},
		"cut in the head":  {good[:100], 5, "reading the archive"},
		"a folder":         {archive(t, tar.Header{Name: "d/", Mode: 0o755, Typeflag: tar.TypeDir}, ""), 5, "not a regular file"},
		"a link":           {archive(t, tar.Header{Name: "l", Linkname: "f", Typeflag: tar.TypeSymlink}, ""), 5, "not a regular file"},
		"not an archive":   {bytes.Repeat([]byte("x"), 1024), 5, "reading the archive"},
		"promise too high": {good[:512+3], 5, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			data, err := fileFromTar(bytes.NewReader(tt.data), tt.limit)
			if err == nil || !strings.Contains(said.Err(err), tt.want) {
				t.Errorf("%q, %v", data, err)
			}
		})
	}
	if _, err := fileFromTar(bytes.NewReader(good[:514]), 5); !dropped(err) {
		t.Errorf("a file that was cut is not taken for a dropped connection: %v", err)
	}
}

func FuzzFileFromTar(f *testing.F) {
	f.Add(archive(f, tar.Header{Name: "f", Size: 5, Mode: 0o644, Typeflag: tar.TypeReg}, "hello"))
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0}, 1024))
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := fileFromTar(bytes.NewReader(data), 64)
		if err == nil && len(out) > 64 {
			t.Errorf("%d bytes are more than the limit", len(out))
		}
	})
}

func TestTailBuffer(t *testing.T) {
	b := tailBuffer{limit: 10}
	var all string
	for i := range 100 {
		s := fmt.Sprintf("%d,", i)
		all += s
		_, _ = b.Write([]byte(s))
		if got, want := string(b.Bytes()), all[max(0, len(all)-10):]; got != want {
			t.Fatalf("after %d: %q, want %q", i, got, want)
		}
	}
	if cap(b.buf) > 64 {
		t.Errorf("keeps %d bytes for a limit of 10", cap(b.buf))
	}
}

func TestRetry(t *testing.T) {
	e := &Engine{host: "unix:///x"}
	calls := 0
	v, err := retry(t.Context(), e, func() (int, error) {
		calls++
		if calls < 3 {
			return 0, fmt.Errorf("reading: %w", io.ErrUnexpectedEOF)
		}
		return 7, nil
	})
	if v != 7 || err != nil || calls != 3 {
		t.Errorf("%d, %v after %d calls", v, err, calls)
	}

	calls = 0
	refused := errors.New("no such container")
	if _, err := retry(t.Context(), e, func() (int, error) { calls++; return 0, refused }); !errors.Is(err, refused) || calls != 1 {
		t.Errorf("%v after %d calls, want one: the engine refused", err, calls)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := retry(ctx, e, func() (int, error) { return 0, syscall.ECONNRESET }); err == nil || time.Since(start) > 5*time.Second {
		t.Errorf("%v after %s", err, time.Since(start))
	}
	if dropped(context.Canceled) || dropped(nil) {
		t.Error("a cancelled call is taken for a dropped connection")
	}
}
