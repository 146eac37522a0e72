package plan

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/docker/go-units"

	"github.com/percore/percore/internal/base/fail"
)

var (
	leadingZero  = regexp.MustCompile(`(^|[^0-9.])0[0-9]`)
	sizeWithUnit = regexp.MustCompile(`^(0|[1-9][0-9]*)(\.[0-9]+)?([kKmMgGtTpP]i?[bB]?|[bB])$`)
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
	if err != nil || leadingZero.Match(text) {
		return fail.Input("%q is not a duration", text).Try("%s", d.Form())
	}
	*d = Duration(v)
	return nil
}

// MarshalYAML writes the duration as text.
func (d Duration) MarshalYAML() (any, error) { return d.String(), nil }

// FromYAML reads a duration from a file.
func (d *Duration) FromYAML(text string) error { return d.UnmarshalText([]byte(text)) }

// Form says how a duration is written.
func (*Duration) Form() string { return "write it with its unit, as in 60s or 5m" }

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
	if err != nil || !sizeWithUnit.MatchString(s) {
		return fmt.Errorf("%q is not a size with its unit, such as 512MiB or 2GiB", text)
	}
	*b = Bytes(v)
	return nil
}

// MarshalYAML writes the size as text.
func (b Bytes) MarshalYAML() (any, error) { return b.String(), nil }

// FromYAML reads auto as 0, which is what a missing key leaves, and refuses a 0
// that somebody wrote.
func (b *Bytes) FromYAML(text string) error {
	if text == "auto" {
		*b = 0
		return nil
	}
	if err := b.UnmarshalText([]byte(text)); err != nil {
		return fail.Input("%w", err).Try("%s", b.Form()) // which also takes auto
	}
	if *b == 0 {
		return fail.Input("%q is no memory at all", text).Try("%s", b.Form())
	}
	return nil
}

// Form says how a size is written.
func (*Bytes) Form() string { return "write it with its unit, as in 512MiB or 2GiB, or auto" }
