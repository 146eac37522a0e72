package oha

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/testkit/said"
)

func spec() Spec {
	return Spec{
		Base: "http://app:8080", Path: "/events/[1-9][0-9]{0,5}", Random: true, Token: "aaa.bbb.ccc",
		Connections: 256, Target: 50000, Duration: time.Minute, Timeout: 10 * time.Second, Out: "/out/x.json",
	}
}

func TestArgsOpenLoop(t *testing.T) {
	got := strings.Join(Args(spec()), " ")
	want := "--no-tui --no-color --output-format json -c 256 -z 60s -w -m GET -o /out/x.json -t 10s " +
		"-q 50000 --latency-correction -H Authorization: Bearer aaa.bbb.ccc --rand-regex-url http://app:8080/events/[1-9][0-9]{0,5}"
	if got != want {
		t.Errorf("open loop\n got %s\nwant %s", got, want)
	}
}

func TestArgsClosedLoop(t *testing.T) {
	s := spec()
	s.Target, s.Random, s.Path, s.Method = 0, false, "/events", "POST"
	s.Body, s.ContentType, s.Duration = `{"kind":"x"}`, "application/json", 1500*time.Millisecond
	args := Args(s)
	for _, never := range []string{"-q", "--latency-correction", "--disable-keepalive", "--rand-regex-url"} {
		if slices.Contains(args, never) {
			t.Errorf("closed loop has %s: %q", never, args)
		}
	}
	for _, pair := range [][2]string{{"-z", "1500ms"}, {"-d", s.Body}, {"-T", s.ContentType}, {"-m", "POST"}} {
		i := slices.Index(args, pair[0])
		if i < 0 || args[i+1] != pair[1] {
			t.Errorf("%s %s is missing: %q", pair[0], pair[1], args)
		}
	}
	if !slices.Contains(args, "-w") {
		t.Errorf("requests open at the end are not waited for: %q", args)
	}
}

func TestTokenIsNeverPrinted(t *testing.T) {
	s := spec()
	js, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		s.String(), fmt.Sprintf("%v", s), fmt.Sprintf("%+v", s), fmt.Sprintf("%#v", s.Token), string(js),
		Redacted(Args(s)), Redacted([]string{"-H", "authorization:Bearer aaa.bbb.ccc"}),
	} {
		if strings.Contains(text, "aaa") || strings.Contains(text, "bbb") {
			t.Errorf("token shown in %s", text)
		}
	}
	if !strings.Contains(s.String(), "'Authorization: Bearer [token]'") {
		t.Errorf("no placeholder in %s", s)
	}
}

func TestCheck(t *testing.T) {
	if err := spec().Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Spec){
		"base":        func(s *Spec) { s.Base = "app:8080" },
		"path":        func(s *Spec) { s.Path = "events" },
		"connections": func(s *Spec) { s.Connections = 0 },
		"target":      func(s *Spec) { s.Target = -1 },
		"window":      func(s *Spec) { s.Duration = 0 },
		"timeout":     func(s *Spec) { s.Timeout = -1 },
	} {
		s := spec()
		change(&s)
		if s.Check() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

const studyRaw = "../study/testdata/php-go-bench/results/2026-09-16/raw"

func TestReadStudyFile(t *testing.T) {
	r, err := Read(filepath.Join(studyRaw, "rate_fpm_read_q50000_r1.json"), Remedy)
	if err != nil {
		t.Fatal(err)
	}
	if r.Answered != 1444880 || r.OK() != 1444880 || r.Unanswered() != 0 {
		t.Errorf("answered %d, ok %d, unanswered %d", r.Answered, r.OK(), r.Unanswered())
	}
	if p, ok := r.Percentile("p99.9"); !ok || p != 31079.317305 {
		t.Errorf("p99.9 = %v, %v", p, ok)
	}
	var n int64
	for i, b := range r.Histogram {
		n += b.Count
		if i > 0 && b.MS <= r.Histogram[i-1].MS {
			t.Errorf("histogram is not ascending at %d", i)
		}
	}
	if n != r.Answered {
		t.Errorf("histogram counts %d of %d answers", n, r.Answered)
	}
}

// noAnswers is what oha 1.15.0 writes when no request was answered: what
// cannot be computed is null.
func noAnswers(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/refused.json")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestNoAnswers(t *testing.T) {
	r, err := Parse("refused.json", noAnswers(t))
	if err != nil {
		t.Fatal(err)
	}
	if r.Answered != 0 || r.OK() != 0 || r.Unanswered() == 0 {
		t.Errorf("answered %d, ok %d, unanswered %d", r.Answered, r.OK(), r.Unanswered())
	}
	if _, ok := r.Percentile("p50"); ok {
		t.Error("a median of no answers")
	}
}

func TestMissingP999IsAbsent(t *testing.T) {
	r, err := Parse("x", []byte(`{"summary":{"total":1},"latencyPercentiles":{"p50":0.001,"p99":0.002},"statusCodeDistribution":{"200":5,"404":1},"errorDistribution":{"timeout":2}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := r.Percentile("p99.9"); ok {
		t.Error("p99.9 is not in the file")
	}
	if r.Answered != 6 || r.OK() != 5 || r.Unanswered() != 2 {
		t.Errorf("answered %d, ok %d, unanswered %d", r.Answered, r.OK(), r.Unanswered())
	}
}

func TestBadFiles(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join(studyRaw, "ceil_go_read_c256_r1.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data string
		want string
	}{
		"empty":           {"", "empty"},
		"blank":           {" \n", "empty"},
		"truncated":       {string(whole[:len(whole)/2]), "cut off"},
		"one byte short":  {strings.TrimSpace(string(whole))[:len(whole)-1], "cut off"},
		"text":            {"error: connection refused", "not JSON"},
		"binary":          {"\x00\x01\x02", "not JSON"},
		"array":           {"[1,2]", "array"},
		"other JSON":      {`{"a":1}`, "not a result of oha"},
		"null":            {"null", "not a result of oha"},
		"two results":     {string(whole) + string(whole), "more follows"},
		"negative count":  {`{"summary":{"total":1},"latencyPercentiles":{"p50":0.1},"statusCodeDistribution":{"200":-5},"errorDistribution":{}}`, "cannot be"},
		"not a status":    {`{"summary":{"total":1},"latencyPercentiles":{"p50":0.1},"statusCodeDistribution":{"ok":5},"errorDistribution":{}}`, "not an HTTP status"},
		"no median":       {`{"summary":{"total":1},"latencyPercentiles":{"p50":null},"statusCodeDistribution":{"200":5},"errorDistribution":{}}`, "no median"},
		"below zero":      {`{"summary":{"total":1},"latencyPercentiles":{"p50":-1},"statusCodeDistribution":{"200":5},"errorDistribution":{}}`, "-1 seconds is impossible (p50)"},
		"count as string": {`{"summary":{"total":1},"latencyPercentiles":{},"statusCodeDistribution":{"200":"5"},"errorDistribution":{}}`, "string"},
		"lost below zero": {`{"summary":{"total":1},"latencyPercentiles":{},"statusCodeDistribution":{},"errorDistribution":{"x":-1}}`, "cannot be"},
		"empty array":     {"[]", "is no JSON object (array at byte 1)"},
		"half an answer":  {`{"summary":{"total":1},"latencyPercentiles":{},"statusCodeDistribution":{"200":4.5},"errorDistribution":{}}`, "the wrong kind of value in statusCodeDistribution (number 4.5"},
		"endless":         {`{"summary":{"total":1e300},"latencyPercentiles":{},"statusCodeDistribution":{},"errorDistribution":{}}`, "summary.total"},
		"endless latency": {`{"summary":{"total":1},"latencyPercentiles":{"p50":0.1,"p99":1e308},"statusCodeDistribution":{"200":5},"errorDistribution":{}}`, "1e+308 seconds is impossible (p99)"},
		"endless mean":    {`{"summary":{"total":1,"average":1e308},"latencyPercentiles":{"p50":0.1},"statusCodeDistribution":{"200":5},"errorDistribution":{}}`, "summary.average"},
		"endless bucket":  {`{"summary":{"total":1},"responseTimeHistogram":{"1e308":5},"latencyPercentiles":{"p50":0.1},"statusCodeDistribution":{"200":5},"errorDistribution":{}}`, "histogram"},
		"bucket of less":  {`{"summary":{"total":1},"responseTimeHistogram":{"0.1":-5},"latencyPercentiles":{"p50":0.1},"statusCodeDistribution":{"200":5},"errorDistribution":{}}`, "histogram"},
		"out of order":    {`{"summary":{"total":1},"latencyPercentiles":{"p50":0.2,"p99":0.1,"p99.9":0.3},"statusCodeDistribution":{"200":5},"errorDistribution":{}}`, "p99 (0.1 seconds) is below p50 (0.2 seconds)"},
		"too many":        {`{"summary":{"total":1},"latencyPercentiles":{"p50":0.1},"statusCodeDistribution":{"200":9000000000000000000},"errorDistribution":{}}`, "cannot be"},
	} {
		_, err := Parse("raw/some.oha.json", []byte(c.data))
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		if !fail.IsInput(err) || !strings.HasPrefix(said.Err(err), "raw/some.oha.json: ") ||
			!strings.Contains(said.Err(err), c.want) || !strings.HasSuffix(said.Err(err), Remedy) || strings.Contains(said.Err(err), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Read("no/such.json", Remedy); !fail.IsInput(err) || !strings.Contains(said.Err(err), "no/such.json") {
		t.Errorf("missing file: %v", err)
	}
	if _, err := Read(t.TempDir(), "take it away"); !fail.IsInput(err) || !strings.HasSuffix(said.Err(err), "this is a folder and no load-generator file; take it away") {
		t.Errorf("a folder: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob(filepath.Join(studyRaw, "*.json"))
	for _, name := range files[:4] {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)/3])
	}
	f.Add(noAnswers(f))
	f.Add([]byte(`{"summary":{"total":1},"latencyPercentiles":{},"statusCodeDistribution":{},"errorDistribution":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Parse("fuzz", data)
		if err != nil {
			if !fail.IsInput(err) {
				t.Fatalf("not bad input: %v", err)
			}
			return
		}
		if r.OK() > r.Answered || r.OK() < 0 || r.Unanswered() < 0 {
			t.Fatalf("ok %d of %d answers, %d unanswered", r.OK(), r.Answered, r.Unanswered())
		}
		for p, ms := range r.Percentiles {
			if !(ms >= 0 && ms <= 1e12) {
				t.Fatalf("%s = %v", p, ms)
			}
		}
	})
}

func TestFailedRequests(t *testing.T) {
	half, err := Read("testdata/half.json", Remedy)
	if err != nil {
		t.Fatal(err)
	}
	if half.OK() != 18472 || half.Answered != 36943 || half.Unanswered() != 0 {
		t.Errorf("half: ok %d, answered %d, unanswered %d", half.OK(), half.Answered, half.Unanswered())
	}
	hang, err := Read("testdata/timeout.json", Remedy)
	if err != nil {
		t.Fatal(err)
	}
	if hang.Answered != 0 || hang.Errors["timeout"] != 16 || hang.Unanswered() != 16 {
		t.Errorf("timeout: %+v", hang)
	}
}
