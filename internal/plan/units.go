package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/docker/go-units"

	"github.com/percore/percore/internal/base/fail"
)

// Std returns the duration as the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// Seconds returns the duration in seconds.
func (d Duration) Seconds() float64 { return time.Duration(d).Seconds() }

// String writes the duration without the zero units that the standard library
// adds: 60s stays 1m, not 1m0s.
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalText writes the duration as text.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a duration such as "60s".
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fail.Input("%q is not a duration", text).Try("%s", d.form())
	}
	*d = Duration(v)
	return nil
}

// MarshalYAML writes the duration as text.
func (d Duration) MarshalYAML() (any, error) { return d.String(), nil }

func (d *Duration) fromYAML(text string) error { return d.UnmarshalText([]byte(text)) }

func (*Duration) form() string { return "write it with its unit, as in 60s or 5m" }

// String writes the size with a binary unit.
func (b Bytes) String() string {
	for _, u := range []struct {
		name string
		size Bytes
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if b >= u.size && b%u.size == 0 {
			return fmt.Sprintf("%d%s", b/u.size, u.name)
		}
	}
	return fmt.Sprintf("%dB", int64(b))
}

// MarshalText writes the size as text.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText reads a size such as "1GiB".
func (b *Bytes) UnmarshalText(text []byte) error {
	s := string(text)
	v, err := units.RAMInBytes(s)
	if err != nil || v < 0 || strings.TrimSpace(s) != s {
		return fail.Input("%q is not a size", text).Try("write it with its unit, as in 512MiB or 2GiB")
	}
	*b = Bytes(v)
	return nil
}

// MarshalYAML writes the size as text.
func (b Bytes) MarshalYAML() (any, error) { return b.String(), nil }

// fromYAML reads auto as 0, which is what a missing key leaves, and refuses a 0
// that somebody wrote.
func (b *Bytes) fromYAML(text string) error {
	if text == "auto" {
		*b = 0
		return nil
	}
	if err := b.UnmarshalText([]byte(text)); err != nil {
		return fmt.Errorf("%w, or auto", err)
	}
	if *b == 0 {
		return fail.Input("%q is no memory at all", text).Try("%s", b.form())
	}
	return nil
}

func (*Bytes) form() string { return "write it with its unit, as in 512MiB or 2GiB, or auto" }
