package profile

import (
	"fmt"
	"strings"
	"time"

	"github.com/docker/go-units"
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
		return fmt.Errorf("%q is not a duration; write it with its unit, as in 60s or 5m", text)
	}
	*d = Duration(v)
	return nil
}

// MarshalYAML writes the duration as text.
func (d Duration) MarshalYAML() (any, error) { return d.String(), nil }

// UnmarshalYAML reads a duration such as 60s.
func (d *Duration) UnmarshalYAML(text []byte) error { return d.UnmarshalText(yamlScalar(text)) }

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
		return fmt.Errorf("%q is not a size; write it with its unit, as in 512MiB or 2GiB", text)
	}
	*b = Bytes(v)
	return nil
}

// MarshalYAML writes the size as text.
func (b Bytes) MarshalYAML() (any, error) { return b.String(), nil }

// UnmarshalYAML reads a size such as 1GiB, or auto.
func (b *Bytes) UnmarshalYAML(text []byte) error {
	s := yamlScalar(text)
	if string(s) == "auto" {
		*b = 0
		return nil
	}
	return b.UnmarshalText(s)
}

// yamlScalar strips the quotes and the comment that the YAML reader leaves on
// a scalar it hands over as text.
func yamlScalar(text []byte) []byte {
	s := strings.TrimSpace(string(text))
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') {
		if end := strings.IndexByte(s[1:], s[0]); end >= 0 {
			return []byte(s[1 : 1+end])
		}
	}
	if i := strings.Index(s, " #"); i >= 0 {
		s = strings.TrimSpace(s[:i])
	}
	return []byte(s)
}
