package lab

import (
	"strings"
	"testing"
)

// What OpenSSL 3.5 printed, ended after three seconds.
const rsaOutput = `+DTP:2048:private:rsa sign:1
+R1:1445:2048:0.42
+DTP:2048:public:rsa verify:1
+R2:11612:2048:0.19
+DTP:2048:public:rsa encrypt:1
`

func TestParseRSA(t *testing.T) {
	if got, err := parseRSA([]byte(rsaOutput)); err != nil || got < 61115 || got > 61116 {
		t.Errorf("parsed %v, %v", got, err)
	}
	for _, text := range []string{"", "openssl: not found\n", strings.Replace(rsaOutput, "0.19", "0.00", 1), rsaOutput[:70]} {
		if got, err := parseRSA([]byte(text)); err == nil {
			t.Errorf("%q gives %v", text, got)
		}
	}
}

func FuzzParseRSA(f *testing.F) {
	f.Add([]byte(rsaOutput))
	f.Fuzz(func(t *testing.T, text []byte) {
		if v, err := parseRSA(text); err == nil && !(v >= 0) {
			t.Errorf("%q gives %v", text, v)
		}
	})
}
