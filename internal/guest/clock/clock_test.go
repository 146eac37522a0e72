package clock

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/testkit/said"
)

func serve(t *testing.T) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- Serve(conn) }()
	t.Cleanup(func() {
		conn.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return conn.LocalAddr().String()
}

func TestAsk(t *testing.T) {
	r, err := Ask(t.Context(), serve(t), 5, 2*time.Second)
	if err != nil || r.Samples != 5 {
		t.Fatalf("%+v, %v", r, err)
	}
	// One clock, asked twice: it differs from itself by half the delay at most.
	if ahead := max(r.AheadNS, -r.AheadNS); ahead > r.DelayNS/2+1000 {
		t.Errorf("%+v", r)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParseReading(text); err != nil || got != r {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestNobodyAnswers(t *testing.T) {
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if _, err := Ask(t.Context(), silent.LocalAddr().String(), 2, 20*time.Millisecond); err == nil || !strings.Contains(said.Err(err), "does not answer") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := Ask(ctx, silent.LocalAddr().String(), 2, time.Hour); err != context.Canceled {
		t.Error(err)
	}
}

// TestSigns reads a server whose clock is 3 s behind, and one 7 ms ahead.
func TestSigns(t *testing.T) {
	sent := time.Date(2036, 2, 7, 6, 28, 14, 0, time.UTC) // 2 s before the seconds come round
	request := make([]byte, size)
	request[0] = client4
	copy(request[atTransmit:], "12345678")
	for _, clock := range []time.Duration{-3 * time.Second, 7 * time.Millisecond, 0, 10 * time.Second} {
		arrives := sent.Add(clock + 2*time.Millisecond)
		reply := answer(request, arrives, func() time.Time { return arrives.Add(time.Millisecond) })
		r, ok := read(reply, request, sent, sent.Add(5*time.Millisecond))
		if !ok || time.Duration(r.AheadNS+int64(clock)).Abs() > time.Microsecond || time.Duration(r.DelayNS-4e6).Abs() > time.Microsecond {
			t.Errorf("server %v ahead: %+v, %v", clock, r, ok)
		}
		copy(reply[atOriginate:], "87654321")
		if _, ok := read(reply, request, sent, sent); ok {
			t.Error("took another's answer")
		}
	}
	for _, bad := range [][]byte{nil, request[:size-1], append([]byte{server4}, request[1:]...)} {
		if answer(bad, sent, time.Now) != nil {
			t.Errorf("answered %x", bad)
		}
	}
}

func TestStamp(t *testing.T) {
	for _, at := range []time.Time{time.Unix(0, 0), time.Unix(1_800_000_000, 999_999_999), time.Date(2036, 2, 7, 6, 28, 16, 1, time.UTC), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)} {
		for _, near := range []time.Duration{-time.Hour, 0, time.Hour} {
			if got := unstamp(stamp(at), at.Add(near)); got.Sub(at).Abs() > time.Nanosecond {
				t.Errorf("%v became %v", at, got)
			}
		}
	}
	// RFC 5905's example of the epoch: 1 January 1970 is 2208988800.
	if got := stamp(time.Unix(0, 5e8)); got != 2208988800<<32|1<<31 {
		t.Errorf("%x", got)
	}
}

func FuzzParseReading(f *testing.F) {
	f.Add([]byte(`{"ahead_ns":-12345,"delay_ns":81000,"samples":8}` + "\n"))
	f.Add([]byte("guest clock: the clock at 10.0.0.1:11123 does not answer: i/o timeout\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if r, err := ParseReading(text); err == nil && (r.Samples < 1 || r.DelayNS < 0) {
			t.Errorf("%q gives %+v", text, r)
		}
	})
}

func FuzzRead(f *testing.F) {
	request := make([]byte, size)
	request[0] = client4
	copy(request[atTransmit:], "12345678")
	at := time.Unix(1_800_000_000, 0)
	f.Add(answer(request, at, func() time.Time { return at }))
	reply, _ := hex.DecodeString("240803ec00000000000000004c4f434c")
	f.Add(append(reply, make([]byte, 32)...))
	f.Fuzz(func(t *testing.T, reply []byte) {
		r, ok := read(reply, request, at, at.Add(time.Millisecond))
		if ok && (r.DelayNS < 0 || !bytes.Equal(reply[atOriginate:atReceive], request[atTransmit:])) {
			t.Errorf("%x gives %+v", reply, r)
		}
		if a := answer(reply, at, time.Now); a != nil && binary.BigEndian.Uint64(a[atOriginate:]) != binary.BigEndian.Uint64(reply[atTransmit:]) {
			t.Errorf("%x is answered %x", reply, a)
		}
	})
}
