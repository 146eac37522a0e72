package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestObject(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       error
	}{
		{"empty object", `{}`, nil},
		{"white space", " \t\r\n{ \"a\" : 1 , \"b\" : [ ] } \n", nil},
		{"pair of surrogates", `{"a":"\ud83d\ude00"}`, nil},
		{"escaped backslash before u0000", `{"a":"\\u0000"}`, nil},
		{"numbers", `{"a":[0,-0,1.5,1e5,1E+5,1e-5,-1.25e308,123456789012345678901234567890]}`, nil},
		{"huge exponent that is not stored", `{"a":1e400}`, nil},
		{"deepest", `{"a":` + strings.Repeat("[", TokenDepth-1) + strings.Repeat("]", TokenDepth-1) + `}`, nil},
		{"too deep", `{"a":` + strings.Repeat("[", TokenDepth) + strings.Repeat("]", TokenDepth) + `}`, ErrDepth},
		{"array", `[]`, ErrNotObject},
		{"text", `"x"`, ErrNotObject},
		{"null", ` null `, ErrNotObject},
		{"nothing", ``, ErrSyntax},
		{"white space alone", ` `, ErrSyntax},
		{"two objects", `{}{}`, ErrSyntax},
		{"byte order mark", "\ufeff{}", ErrSyntax},
		{"NUL after the end", "{}\x00", ErrSyntax},
		{"trailing comma", `{"a":1,}`, ErrSyntax},
		{"trailing comma in an array", `{"a":[1,]}`, ErrSyntax},
		{"missing colon", `{"a" 1}`, ErrSyntax},
		{"name that is not a string", `{a:1}`, ErrSyntax},
		{"leading zero", `{"a":01}`, ErrSyntax},
		{"plus sign", `{"a":+1}`, ErrSyntax},
		{"bare point", `{"a":1.}`, ErrSyntax},
		{"bare exponent", `{"a":1e}`, ErrSyntax},
		{"minus alone", `{"a":-}`, ErrSyntax},
		{"capital literal", `{"a":TRUE}`, ErrSyntax},
		{"cut literal", `{"a":tru`, ErrSyntax},
		{"control character", "{\"a\":\"\x01\"}", ErrSyntax},
		{"unknown escape", `{"a":"\x41"}`, ErrSyntax},
		{"escaped NUL", `{"a":"\u0000"}`, ErrSyntax},
		{"escaped NUL in a name", `{"\u0000a":1}`, ErrSyntax},
		{"high surrogate alone", `{"a":"\ud800"}`, ErrSyntax},
		{"low surrogate alone", `{"a":"\udc00"}`, ErrSyntax},
		{"high surrogate and a letter", `{"a":"\ud800\u0041"}`, ErrSyntax},
		{"invalid UTF-8", "{\"a\":\"\xff\"}", ErrSyntax},
		{"surrogate in UTF-8", "{\"a\":\"\xed\xa0\x80\"}", ErrSyntax},
		{"cut string", `{"a":"`, ErrSyntax},
		{"cut escape", `{"a":"\`, ErrSyntax},
		{"cut unicode escape", `{"a":"\u00`, ErrSyntax},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := Object([]byte(tc.text), func(string, []byte) {}); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func TestStorable(t *testing.T) {
	for text, want := range map[string]error{
		`{"a":1e308}`:                  nil,
		`{"a":-1.5e-308}`:              nil,
		`{"a":1e+0000000000000308}`:    nil,
		`{"a":"1e999"}`:                nil,
		`{"a":1e309}`:                  ErrExponent,
		`{"a":[{"b":1E-309}]}`:         ErrExponent,
		`{"a":1e99999999999999999999}`: ErrExponent,
		`{"a":1e18446744073709551617}`: ErrExponent,
		strings.Repeat(`{"a":`, 512) + `1` + strings.Repeat(`}`, 512): nil,
		strings.Repeat(`{"a":`, 513) + `1` + strings.Repeat(`}`, 513): ErrDepth,
	} {
		if err := Storable([]byte(text), func(string, []byte) {}); !errors.Is(err, want) {
			t.Errorf("%.60s: got %v, want %v", text, err, want)
		}
	}
}

func TestMembers(t *testing.T) {
	var got []string
	err := Object([]byte(`{"a":1,"\u0061":"\ud83d\ude00\n\/\"","b":{"a":2},"c":["x","\u0079"],"A":[1]}`), func(name string, value []byte) {
		got = append(got, name+"="+string(value))
		switch name {
		case "c":
			if list, ok := Strings(value); !ok || !reflect.DeepEqual(list, []string{"x", "y"}) {
				t.Errorf("Strings gave %q, %v", list, ok)
			}
		case "A", "b":
			if _, ok := Strings(value); ok {
				t.Errorf("Strings took %s", value)
			}
		}
		if s, ok := String(value); ok && s != "😀\n/\"" {
			t.Errorf("String gave %q", s)
		}
	})
	want := []string{`a=1`, `a="\ud83d\ude00\n\/\""`, `b={"a":2}`, `c=["x","\u0079"]`, `A=[1]`}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAppendString(t *testing.T) {
	in := "a\"\\/<>&\b\f\n\r\t\x00\x1f\x7fé\u2028\u2029\u202a😀"
	want := `"a\"\\/<>&\b\f\n\r\t\u0000\u001f` + "\x7fé" + `\u2028\u2029` + "\u202a😀" + `"`
	if got := string(AppendString(nil, in)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FuzzObject holds the reader against encoding/json: what this package accepts is
// JSON with the same members, and what it refuses although it is JSON is one of the
// things that the contract refuses.
func FuzzObject(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"login","payload":{"ip":"192.0.2.1","ok":true,"n":3}}`, `{"a":"\ud83d\ude00","b":[1,-0.5e+3,null,false]}`,
		`{"a":"\u0000"}`, `{"a":"\\u0000"}`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}", `[1]`, `{"a":1e309}`, `{} x`, "\ufeff{}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := map[string]string{}
		err := Storable(data, func(name string, value []byte) {
			got[name] = string(value)
			if s, ok := String(value); ok {
				var want string
				if e := json.Unmarshal(value, &want); e == nil && s != want {
					t.Fatalf("%q read as %q, want %q", value, s, want)
				}
				if again, ok := String(AppendString(nil, s)); !ok || again != s {
					t.Fatalf("%q written and read as %q", s, again)
				}
			}
		})
		var want map[string]json.RawMessage
		reference := json.Unmarshal(data, &want)
		switch {
		case err == nil && reference != nil:
			t.Fatalf("accepted %q, which is not an object: %v", data, reference)
		case err == nil:
			if len(got) != len(want) {
				t.Fatalf("%q has members %q, want %q", data, got, want)
			}
			for name, value := range want {
				if got[name] != string(value) {
					t.Fatalf("member %q of %q is %q, want %q", name, data, got[name], value)
				}
			}
		case reference == nil && want != nil && !mayRefuse(data):
			t.Fatalf("refused %q: %v", data, err)
		}
	})
}

// mayRefuse reports whether a text that encoding/json accepts may be refused.
func mayRefuse(data []byte) bool {
	return !utf8.Valid(data) || bytes.Contains(data, []byte(`\u0000`)) || bytes.Contains(bytes.ToLower(data), []byte(`\ud`)) ||
		bytes.ContainsAny(data, "eE") || bytes.Count(data, []byte("[")) > 200 || bytes.Count(data, []byte("{")) > 200
}
