// Package clock compares the clocks of two hosts by exchanges of the Network Time
// Protocol, without setting either: a server that answers with its host's clock,
// and a client that finds out how far its own is from it. It is standard library
// only, because the image of the tools compiles it.
package clock

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"
)

// Port is the UDP port that the server of a lab listens on. It is not the
// protocol's own, which the host's time service has.
const Port = 11123

// size is the length of a packet without extensions, in bytes.
const size = 48

// Positions in a packet and values of its first byte: leap indicator, version,
// mode.
const (
	atOriginate = 24
	atReceive   = 32
	atTransmit  = 40

	client4 = 0<<6 | 4<<3 | 3
	server4 = 0<<6 | 4<<3 | 4
)

// era is the time between the protocol's epoch, 1900, and that of Unix.
const era = 2_208_988_800

// stamp writes a time as the protocol's 64 bits: seconds and a fraction.
func stamp(t time.Time) uint64 {
	return uint64(uint32(t.Unix()+era))<<32 | uint64(t.Nanosecond())<<32/1e9
}

// unstamp reads the protocol's 64 bits as the time closest to near: the seconds
// come round every 136 years.
func unstamp(v uint64, near time.Time) time.Time {
	seconds := int64(int32(uint32(v>>32) - uint32(near.Unix()+era)))
	return time.Unix(near.Unix()+seconds, int64((v&0xffffffff)*1e9>>32))
}

// Serve answers requests with this host's clock until the connection is closed.
func Serve(conn net.PacketConn) error {
	buf := make([]byte, 512)
	for {
		n, from, err := conn.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		got := time.Now()
		if reply := answer(buf[:n], got, time.Now); reply != nil {
			_, _ = conn.WriteTo(reply, from) // one that is lost is asked for again
		}
	}
}

// answer is the reply to a request, or nil for what is none.
func answer(request []byte, got time.Time, now func() time.Time) []byte {
	if len(request) < size || request[0]&7 != 3 {
		return nil
	}
	reply := make([]byte, size)
	reply[0], reply[1], reply[2], reply[3] = server4, 8, request[2], 0xec // stratum 8, precision 1 µs
	copy(reply[12:], "LOCL")
	binary.BigEndian.PutUint64(reply[16:], stamp(got))
	copy(reply[atOriginate:], request[atTransmit:size])
	binary.BigEndian.PutUint64(reply[atReceive:], stamp(got))
	binary.BigEndian.PutUint64(reply[atTransmit:], stamp(now()))
	return reply
}

// Reading is what some exchanges with a server found.
type Reading struct {
	// AheadNS is how far this host's clock is ahead of the server's, in ns: by the
	// exchange that took the shortest time.
	AheadNS int64 `json:"ahead_ns"`
	// DelayNS is how long that exchange was under way, in ns; the reading is wrong
	// by half of it at most.
	DelayNS int64 `json:"delay_ns"`
	Samples int   `json:"samples"` // exchanges that were answered
}

// ParseReading reads the line that guest clock ask prints.
func ParseReading(text []byte) (Reading, error) {
	var r Reading
	if err := json.Unmarshal(text, &r); err != nil {
		return Reading{}, fmt.Errorf("no clock reading: %.200q", text)
	}
	if r.Samples < 1 || r.DelayNS < 0 {
		return Reading{}, fmt.Errorf("no clock reading: %.200q", text)
	}
	return r, nil
}

// Ask makes n exchanges with a server, one after another, and waits for each
// answer for as long as patience. An exchange that is not answered is left out;
// none answered is an error.
func Ask(ctx context.Context, server string, n int, patience time.Duration) (Reading, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "udp", server)
	if err != nil {
		return Reading{}, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	var best Reading
	var last error
	for range n {
		r, err := exchange(conn, patience)
		if ctx.Err() != nil {
			return Reading{}, ctx.Err()
		}
		if err != nil {
			last = err
			continue
		}
		if best.Samples == 0 || r.DelayNS < best.DelayNS {
			r.Samples = best.Samples
			best = r
		}
		best.Samples++
	}
	if best.Samples == 0 {
		return Reading{}, fmt.Errorf("the clock at %s does not answer: %w", server, last)
	}
	return best, nil
}

// exchange makes one exchange.
func exchange(conn net.Conn, patience time.Duration) (Reading, error) {
	request := make([]byte, size)
	request[0] = client4
	// The server sends these bytes back: they tell its answer from another.
	_, _ = rand.Read(request[atTransmit:])
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return Reading{}, err
	}
	sent := time.Now()
	if _, err := conn.Write(request); err != nil {
		return Reading{}, err
	}
	reply := make([]byte, 512)
	for {
		n, err := conn.Read(reply)
		if err != nil {
			return Reading{}, err
		}
		got := time.Now()
		if r, ok := read(reply[:n], request, sent, got); ok {
			return r, nil
		}
	}
}

// read takes the offset out of a reply.
func read(reply, request []byte, sent, got time.Time) (Reading, bool) {
	if len(reply) < size || reply[0]&7 != 4 || string(reply[atOriginate:atReceive]) != string(request[atTransmit:size]) {
		return Reading{}, false
	}
	received := unstamp(binary.BigEndian.Uint64(reply[atReceive:]), sent)
	answered := unstamp(binary.BigEndian.Uint64(reply[atTransmit:]), sent)
	delay := got.Sub(sent) - answered.Sub(received)
	ahead := (sent.Round(0).Sub(received) + got.Round(0).Sub(answered)) / 2
	return Reading{AheadNS: int64(ahead), DelayNS: max(int64(delay), 0), Samples: 1}, true
}
