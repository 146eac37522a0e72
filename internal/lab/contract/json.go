package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// maxDepth bounds the nesting of what the checker reads.
const maxDepth = 10000

// tree is a JSON value: nil, bool, number, string, []any or object.
type (
	number string
	object map[string]any
)

// parseJSON reads one JSON value. Of members with the same name the last one
// counts; duplicates reports whether there were any.
func parseJSON(data []byte) (v any, duplicates bool, err error) {
	r := &jsonReader{dec: json.NewDecoder(bytes.NewReader(data))}
	r.dec.UseNumber()
	if v, err = r.value(0); err != nil {
		return nil, false, err
	}
	if _, err = r.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, false, errors.New("something stands after the JSON value")
	}
	return v, r.duplicates, nil
}

type jsonReader struct {
	dec        *json.Decoder
	duplicates bool
}

func (r *jsonReader) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("JSON nested deeper than %d", maxDepth)
	}
	t, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Number:
		return number(t), nil
	case json.Delim:
		if t == '[' {
			return r.array(depth)
		}
		return r.object(depth)
	}
	return t, nil
}

func (r *jsonReader) array(depth int) (any, error) {
	list := []any{}
	for r.dec.More() {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := r.dec.Token()
	return list, err
}

func (r *jsonReader) object(depth int) (any, error) {
	o := object{}
	for r.dec.More() {
		t, err := r.dec.Token()
		if err != nil {
			return nil, err
		}
		name, ok := t.(string)
		if !ok {
			return nil, errors.New("a member of an object has no name")
		}
		if _, twice := o[name]; twice {
			r.duplicates = true
		}
		if o[name], err = r.value(depth + 1); err != nil {
			return nil, err
		}
	}
	_, err := r.dec.Token()
	return o, err
}

// canonical writes a value so that equal values have equal texts: members in
// order of their names, numbers by value and not by spelling.
func canonical(v any) string {
	var b strings.Builder
	writeCanonical(&b, v)
	return b.String()
}

func writeCanonical(b *strings.Builder, v any) {
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case number:
		b.WriteString(canonicalNumber(string(v)))
	case string:
		b.WriteByte('"')
		b.WriteString(inJSON(v))
		b.WriteByte('"')
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			writeCanonical(b, e)
		}
		b.WriteByte(']')
	case object:
		b.WriteByte('{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b.WriteByte(',')
			}
			writeCanonical(b, name)
			b.WriteByte(':')
			writeCanonical(b, v[name])
		}
		b.WriteByte('}')
	}
}

// canonicalNumber keeps small integers as they are and writes everything else
// as digits and exponent: 1.50 and 15e-1 are both 15e-1. No digit is lost.
func canonicalNumber(s string) string {
	sign := ""
	if rest, negative := strings.CutPrefix(s, "-"); negative {
		sign, s = "-", rest
	}
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		n, err := strconv.Atoi(s[i+1:])
		if err != nil {
			return sign + s // an exponent beyond int: as it is spelt
		}
		mantissa, exponent = s[:i], n
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	exponent -= len(fraction)
	trimmed := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(trimmed)
	switch {
	case trimmed == "":
		return "0"
	case exponent >= 0 && len(trimmed)+exponent <= 40:
		return sign + trimmed + strings.Repeat("0", exponent)
	}
	return fmt.Sprintf("%s%se%d", sign, trimmed, exponent)
}

// sentEvent is the kind and payload that a good body asks to store.
func (c *Case) sentEvent() (event, error) {
	return eventIn(c.bodyText(values{}))
}

type event struct {
	kind    string
	payload object
}

func eventIn(body string) (event, error) {
	v, _, err := parseJSON([]byte(body))
	if err != nil {
		return event{}, errors.New("the body is not JSON, so there is nothing to store")
	}
	o, ok := v.(object)
	if !ok {
		return event{}, errors.New("the body is not an object, so there is nothing to store")
	}
	kind, ok := o["kind"].(string)
	if !ok || kind == "" {
		return event{}, errors.New("the body has no kind to store")
	}
	payload, ok := o["payload"].(object)
	if !ok {
		return event{}, errors.New("the body has no payload to store")
	}
	return event{kind, payload}, nil
}
