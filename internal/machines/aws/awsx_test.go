package aws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/prices"
	"github.com/percore/percore/internal/testkit/said"
)

// alone leaves the test with no AWS of the user's: an empty home, no keys.
func alone(t *testing.T, config string) {
	t.Helper()
	home := t.TempDir()
	for _, e := range os.Environ() {
		if k, _, _ := strings.Cut(e, "="); strings.HasPrefix(k, "AWS_") {
			t.Setenv(k, "")
		}
	}
	t.Setenv("HOME", home)
	file := filepath.Join(home, ".aws", "config")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CONFIG_FILE", file)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(home, ".aws", "credentials"))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

// sentence fails unless an error is one sentence about the input.
func sentence(t *testing.T, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Error("there is no error")
		return
	}
	for _, w := range want {
		if !strings.Contains(said.Err(err), w) {
			t.Errorf("the error lacks %q: %v", w, err)
		}
	}
	if !fail.IsInput(err) || strings.Contains(said.Err(err), "\n") {
		t.Errorf("not one sentence about the input: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Run("no region", func(t *testing.T) {
		alone(t, "")
		_, err := Open(t.Context(), Options{})
		sentence(t, err, "no AWS region is chosen", "--region")
	})
	t.Run("no credentials", func(t *testing.T) {
		alone(t, "")
		_, err := Open(t.Context(), Options{Region: "eu-west-1"})
		sentence(t, err, "there are no AWS credentials", "aws sso login")
	})
	t.Run("no such profile", func(t *testing.T) {
		alone(t, "[profile work]\nregion = eu-west-1\n")
		_, err := Open(t.Context(), Options{Profile: "play"})
		sentence(t, err, `no profile "play"`)
	})
	t.Run("no region's name", func(t *testing.T) {
		alone(t, "")
		for _, region := range []string{"frankfurt", "eu-central-1a", "../x", "EU-CENTRAL-1"} {
			_, err := Open(t.Context(), Options{Region: region})
			sentence(t, err, `"`+region+`" is not the name of an AWS region`, "--region")
		}
	})
	t.Run("half a key", func(t *testing.T) {
		alone(t, "[profile work]\nregion = eu-west-1\naws_secret_access_key = SECRET\n")
		_, err := Open(t.Context(), Options{Profile: "work"})
		sentence(t, err, `the AWS profile "work" has only one of`)
		if strings.Contains(said.Err(err), "SECRET") {
			t.Errorf("it gives a secret away: %v", err)
		}
	})
	t.Run("a section without an end", func(t *testing.T) {
		alone(t, "# mine\n[profile work\nregion = eu-west-1\n")
		_, err := Open(t.Context(), Options{Profile: "work"})
		sentence(t, err, "config, line 2: this is neither")
	})
	t.Run("a key without a value", func(t *testing.T) {
		alone(t, "[profile play]\ns3 =\n  addressing_style = path\nSECRET\n")
		_, err := Open(t.Context(), Options{Profile: "work"})
		sentence(t, err, "config, line 4: this is neither")
		if strings.Contains(said.Err(err), "SECRET") {
			t.Errorf("it gives a secret away: %v", err)
		}
	})
	t.Run("a setting that cannot be", func(t *testing.T) {
		alone(t, "[profile work]\nregion = eu-west-1\nrole_arn = arn:aws:iam::123456789012:role/x\nsource_profile = other\n")
		_, err := Open(t.Context(), Options{Profile: "work"})
		sentence(t, err, "AWS configuration")
	})
	t.Run("a helper that fails", func(t *testing.T) {
		alone(t, "[profile work]\nregion = eu-west-1\ncredential_process = /bin/sh -c \"exit 3\"\n")
		_, err := Open(t.Context(), Options{Profile: "work"})
		sentence(t, err, "do not work", "credential_process", "exit status 3")
	})
	t.Run("a file of a token that is missing", func(t *testing.T) {
		alone(t, "[profile work]\nregion = eu-west-1\nrole_arn = arn:aws:iam::123456789012:role/x\nweb_identity_token_file = /nonexistent/token\n")
		_, err := Open(t.Context(), Options{Profile: "work"})
		sentence(t, err, "do not work", "/nonexistent/token", "no such file")
	})
	t.Run("a role that is refused", func(t *testing.T) {
		alone(t, "[profile work]\nregion = eu-west-1\nrole_arn = arn:aws:iam::123456789012:role/x\nsource_profile = base\n[profile base]\naws_access_key_id = AKID\naws_secret_access_key = SECRET\n")
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>User: arn:aws:iam::123456789012:user/dev is not authorized to perform: sts:AssumeRole</Message></Error></ErrorResponse>`)
		}))
		defer srv.Close()
		t.Setenv("AWS_ENDPOINT_URL_STS", srv.URL)
		_, err := Open(t.Context(), Options{Profile: "work"})
		sentence(t, err, "do not work: sts AssumeRole: AccessDenied: User: arn:aws:iam::123456789012:user/dev is not authorized")
	})
	t.Run("a key that was copied with more", func(t *testing.T) {
		for id, want := range map[string]string{"AKID\n": "access key ID (from EnvConfigCredentials) holds the character U+000A", " AKID": "U+0020", "AK\u00a0ID": "U+00A0", "AK\x00ID": "U+0000"} {
			if strings.Contains(id, "\x00") {
				sentence(t, whole(aws.Credentials{AccessKeyID: id}), want)
				continue
			}
			alone(t, "")
			t.Setenv("AWS_ACCESS_KEY_ID", id)
			t.Setenv("AWS_SECRET_ACCESS_KEY", "SECRET")
			_, err := Open(t.Context(), Options{Region: "eu-west-1"})
			sentence(t, err, want)
			if strings.Contains(said.Err(err), "AKID") {
				t.Errorf("it repeats the key: %v", err)
			}
		}
		sentence(t, whole(aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET\r"}), "secret access key")
		sentence(t, whole(aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET", SessionToken: "a b"}), "session token")
	})
	t.Run("never logged in", func(t *testing.T) {
		alone(t, "[profile work]\nregion = eu-west-1\nsso_session = s\nsso_account_id = 123456789012\nsso_role_name = r\n[sso-session s]\nsso_region = eu-west-1\nsso_start_url = https://example.awsapps.com/start\nsso_registration_scopes = sso:account:access\n")
		_, err := Open(t.Context(), Options{Profile: "work"})
		sentence(t, err, "SSO session has expired", "aws sso login --profile work")
	})
	t.Run("session expired", func(t *testing.T) {
		alone(t, "[profile work]\nregion = eu-west-1\nsso_session = s\nsso_account_id = 123456789012\nsso_role_name = r\n[sso-session s]\nsso_region = eu-west-1\nsso_start_url = https://example.awsapps.com/start\nsso_registration_scopes = sso:account:access\n")
		cache := filepath.Join(os.Getenv("HOME"), ".aws", "sso", "cache")
		if err := os.MkdirAll(cache, 0o700); err != nil {
			t.Fatal(err)
		}
		// The name is the SHA-1 of the session's name.
		text := `{"accessToken":"x","expiresAt":"2020-01-01T00:00:00Z","region":"eu-west-1","startUrl":"https://example.awsapps.com/start"}`
		if err := os.WriteFile(filepath.Join(cache, "a0f1490a20d0211c997b44bc357e1972deab8ae3.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(t.Context(), Options{Profile: "work"})
		sentence(t, err, "SSO session has expired", "aws sso login --profile work")
	})
}

func TestOpen(t *testing.T) {
	alone(t, "[profile work]\nregion = eu-west-1\naws_access_key_id = AKID\naws_secret_access_key = SECRET\n")
	c, err := Open(t.Context(), Options{Profile: "work"})
	if err != nil || c.Region != "eu-west-1" {
		t.Fatalf("%+v, %v", c, err)
	}
	c, err = Open(t.Context(), Options{Profile: "work", Region: "us-west-2"})
	if err != nil || c.Region != "us-west-2" {
		t.Fatalf("%+v, %v", c, err)
	}
}

func TestExplain(t *testing.T) {
	for code, want := range map[string]string{
		"ExpiredToken":          "credentials have expired",
		"InvalidClientTokenId":  "does not know the credentials",
		"SignatureDoesNotMatch": "this machine's clock",
		"OptInRequired":         "may not use EC2",
	} {
		sentence(t, explain(&smithy.GenericAPIError{Code: code, Message: "x"}, ""), want)
	}
	unknown := func(host string) error {
		return &smithy.OperationError{ServiceID: "EC2", OperationName: "DescribeVpcs", Err: &smithyhttp.RequestSendError{Err: &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}}}
	}
	sentence(t, explain(unknown("ec2.eu-nowhere-1.amazonaws.com"), ""), "there is no AWS region eu-nowhere-1, or this machine has no network", "--region")
	if err := explain(unknown("proxy.example"), ""); fail.IsInput(err) || !strings.Contains(said.Err(err), "no such host") {
		t.Errorf("another host that is not known: %v", err)
	}
	for _, err := range []error{context.Canceled, errors.New("anything else")} {
		if got := explain(err, ""); got != err || fail.IsInput(got) {
			t.Errorf("%v became %v", err, got)
		}
	}
	if explain(nil, "") != nil {
		t.Error("no error became one")
	}
}

func TestCallerAddress(t *testing.T) {
	answer, status := "203.0.113.9\n", 200
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, answer)
	}))
	defer s.Close()
	if p, err := CallerAddress(t.Context(), s.URL); err != nil || p.String() != "203.0.113.9/32" {
		t.Errorf("%v, %v", p, err)
	}
	for _, tt := range []struct {
		answer string
		status int
	}{{"<html>", 200}, {"", 200}, {"10.0.0.1", 200}, {"127.0.0.1", 200}, {"2001:db8::1", 200}, {"203.0.113.9", 500}} {
		answer, status = tt.answer, tt.status
		if p, err := CallerAddress(t.Context(), s.URL); err == nil || !strings.Contains(said.Err(err), "--ssh-from") {
			t.Errorf("%q became %v, %v", answer, p, err)
		}
	}
	s.Close()
	if _, err := CallerAddress(t.Context(), s.URL); err == nil || !strings.Contains(said.Err(err), "--ssh-from") {
		t.Errorf("nobody answered: %v", err)
	}
}

func TestNetwork(t *testing.T) {
	for text, want := range map[string]string{"203.0.113.7": "203.0.113.7/32", " 203.0.113.7/24 ": "203.0.113.0/24", "10.0.0.0/16": "10.0.0.0/16"} {
		if p, err := Network(text); err != nil || p.String() != want {
			t.Errorf("%q became %v, %v", text, p, err)
		}
	}
	for _, text := range []string{"", "me", "0.0.0.0/0", "10.0.0.0/8", "2001:db8::/64", "203.0.113.7/33"} {
		_, err := Network(text)
		sentence(t, err, "--ssh-from")
	}
}

func TestChooseZone(t *testing.T) {
	zones := []string{"a", "b", "c"}
	offers := map[string][]string{"x": {"c", "b", "local"}, "y": {"a", "b", "c"}, "z": {"a"}}
	zone, all, err := chooseZone(zones, offers, []string{"x", "y"}, "")
	if err != nil || zone != "b" || !slices.Equal(all, []string{"b", "c"}) {
		t.Errorf("%s of %v, %v", zone, all, err)
	}
	if zone, _, err := chooseZone(zones, offers, []string{"x", "y"}, "c"); err != nil || zone != "c" {
		t.Errorf("%s, %v", zone, err)
	}
	_, _, err = chooseZone(zones, offers, []string{"x", "z"}, "")
	sentence(t, err, "no zone offers every instance type (x is in b, c; z is in a)")
	_, _, err = chooseZone(zones, offers, []string{"nowhere"}, "")
	sentence(t, err, "nowhere is in no zone")
	_, _, err = chooseZone(zones, offers, []string{"x"}, "a")
	sentence(t, err, "the zone a does not offer")
	_, _, err = chooseZone(zones, offers, []string{"x"}, "local")
	sentence(t, err, "there is no zone local", "a, b, c")
}

func TestQuotaOf(t *testing.T) {
	for name, want := range map[string]string{
		"c8gn.xlarge": "L-1216C47A", "m7i.large": "L-1216C47A", "im4gn.large": "L-1216C47A", "i4i.large": "L-1216C47A", "d3.xlarge": "L-1216C47A",
		"g5.xlarge": "L-DB2E81BA", "gr6.4xlarge": "L-DB2E81BA", "p5.48xlarge": "L-417A185B", "x2gd.large": "L-7295265B", "inf2.xlarge": "L-1945791B",
		"trn1.2xlarge": "L-2C3B7624", "dl1.24xlarge": "L-6E869C2A", "hpc7g.4xlarge": "L-F7808C92", "u-6tb1.56xlarge": "L-43DA4232", "vt1.3xlarge": "L-DB2E81BA", "f1.2xlarge": "L-74FC7D96",
	} {
		if q, ok := quotaOf(name); !ok || q.code != want || q.name == "" {
			t.Errorf("%s is counted by %+v", name, q)
		}
	}
	if q, ok := quotaOf("mac2.metal"); ok {
		t.Errorf("a Mac is counted by %+v", q)
	}
}

func TestRefusal(t *testing.T) {
	q := Quota{Code: "L-1216C47A", Name: "Standard", Limit: 32, InUse: 24, Asked: 12, Checked: true}
	sentence(t, q.refusal("eu-west-1"), "needs 12 vCPUs in eu-west-1", "24 run already", "allows 32", "ask for 36", "https://eu-west-1.console.aws.amazon.com/servicequotas/home/services/ec2/quotas/L-1216C47A")
	q.InUse = 20
	if err := q.refusal("eu-west-1"); err != nil {
		t.Error(err)
	}
	if err := (Quota{Asked: 12}).refusal("eu-west-1"); err != nil {
		t.Errorf("a quota that was not read refuses: %v", err)
	}
}

func TestRequestOf(t *testing.T) {
	no := false
	p := plan.Profile{
		Load:  plan.Generators{Count: 3},
		Roles: map[plan.Role]plan.Resources{plan.App: {CPUs: "0-3"}, plan.DB: {CPUs: "auto"}, plan.Load: {CPUs: "2-5"}},
		Cloud: &plan.Cloud{
			Provider: plan.ProviderAWS, Zone: "eu-west-1b", PlacementGroup: &no,
			Instances: map[plan.Role]string{plan.App: "c8g.xlarge", plan.DB: "c8g.xlarge", plan.Load: "c8gn.2xlarge"},
			Disks:     map[plan.Role]plan.Disk{plan.DB: {SizeGiB: 40}},
		},
	}
	r := RequestOf(p)
	if r.Zone != "eu-west-1b" || r.Grouped || r.Count() != 5 || !slices.Equal(r.Types(), []string{"c8g.xlarge", "c8gn.2xlarge"}) {
		t.Errorf("%+v", r)
	}
	if a, d, l := r.Machines[0], r.Machines[1], r.Machines[2]; a.Cores != 4 || d.Cores != 0 || l.Cores != 6 || l.Count != 3 || d.Disk != (plan.Disk{SizeGiB: 40, IOPS: 3000, ThroughputMiB: 125}) {
		t.Errorf("%+v", r.Machines)
	}
	if r := RequestOf(plan.Profile{}); r.Count() != 0 {
		t.Errorf("a profile without a cloud asks for %+v", r)
	}
}

func TestEstimate(t *testing.T) {
	r := Request{Machines: []Machines{{Role: plan.App, Type: "a", Count: 1}, {Role: plan.DB, Type: "b", Count: 1, Disk: plan.Disk{SizeGiB: 40, IOPS: 6000, ThroughputMiB: 250}}, {Role: plan.Load, Type: "a", Count: 2}}}
	p := Prices{PerHour: map[string]float64{"a": 0.1, "b": 0.2}, Disk: &prices.Disk{GiBMonth: 0.08, IOPSMonth: 0.005, MiBSMonth: 0.04}, Address: 0.005}
	e := p.Estimate(r, 90*time.Minute)
	// Three disks of 30 GiB, and one of 40 GiB with 3,000 IOPS and 125 MiB/s more.
	disks := (130*0.08 + 3000*0.005 + 125*0.04) / 730
	if want := 0.5 + disks + 4*0.005; math.Abs(e.PerHour-want) > 1e-12 || math.Abs(e.Total-1.5*want) > 1e-12 || len(e.Unpriced) != 0 {
		t.Errorf("%+v, want %g an hour", e, want)
	}
	e = Prices{PerHour: map[string]float64{"a": 0.1}}.Estimate(r, time.Hour)
	if !slices.Equal(e.Unpriced, []string{"b", "gp3 volumes", "public IPv4 addresses"}) || math.Abs(e.PerHour-0.3) > 1e-12 {
		t.Errorf("%+v", e)
	}
	if got := (Prices{PerHour: map[string]float64{"a": 0.1}}).UnpricedTypes(r); !slices.Equal(got, []string{"b"}) {
		t.Errorf("unpriced %v", got)
	}
}

func TestMeter(t *testing.T) {
	now := time.Now()
	m := Meter{PerHour: 2, Since: now.Add(-90 * time.Minute)}
	if got := m.Cost(now); math.Abs(got-3) > 1e-9 {
		t.Errorf("90 minutes at 2 an hour cost %g", got)
	}
	if got := m.Cost(now.Add(-2 * time.Hour)); got != 0 {
		t.Errorf("before it began it cost %g", got)
	}
	if got := (Meter{PerHour: 2}).Cost(now); got != 0 {
		t.Errorf("what was never started costs %g", got)
	}
}

func TestPriceFound(t *testing.T) {
	now := time.Now()
	hours := func(n int) time.Time { return now.Add(time.Duration(-n) * time.Hour) }
	p := Prices{Region: "r", PerHour: map[string]float64{"a": 0.1}, Disk: &prices.Disk{GiBMonth: 0.73}, Address: 0.01}
	all := []Resource{
		{Kind: KindInstance, Type: "a", State: "running", Created: hours(10), public: true},
		{Kind: KindInstance, Type: "a", State: "stopped", Created: hours(10)},
		{Kind: KindInstance, Type: "unheard", State: "running", Created: hours(10)},
		{Kind: KindVolume, Created: hours(10)}, // of no known type
		{Kind: KindAddress},
		{Kind: KindVPC},
	}
	all[3].volume.VolumeType = "io2"
	notes := price(all, p, now)
	for i, want := range [][2]float64{{0.11, 1.1}, {0, 1}, {0, 0}, {0, 0}, {0.01, 0}, {0, 0}} {
		if got := [2]float64{all[i].PerHour, all[i].Cost}; math.Abs(got[0]-want[0]) > 1e-9 || math.Abs(got[1]-want[1]) > 1e-9 {
			t.Errorf("%d: %v, want %v", i, got, want)
		}
	}
	if len(notes) != 2 || !strings.Contains(notes[0], "no price of io2 volumes in r") || !strings.Contains(notes[1], "unheard") {
		t.Errorf("notes %q", notes)
	}
}

func FuzzAddress(f *testing.F) {
	for _, s := range []string{"203.0.113.9\n", "10.0.0.1", "::ffff:203.0.113.9", "203.0.113.0/24", "<html>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if p, err := parseAddress(s); err == nil && (p.Bits() != 32 || !p.Addr().Is4() || p.Addr().IsPrivate()) {
			t.Errorf("%q became %s", s, p)
		}
		if p, err := Network(s); err == nil && (p.Bits() < minSSHBits || p != p.Masked()) {
			t.Errorf("%q became %s", s, p)
		}
	})
}
