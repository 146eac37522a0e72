package iampolicy

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/percore/percore/internal/testkit/said"
)

func shipped(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("../../../docs/iam-policy.json")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Whatever deletes, ends or changes something must be tied to percore's tag.
func TestShippedPolicy(t *testing.T) {
	p, err := Parse(shipped(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Statements {
		for _, a := range s.Actions {
			if strings.Contains(a, "*") {
				t.Errorf("statement %s allows %s", s.Sid, a)
			}
			_, name, _ := strings.Cut(a, ":")
			if strings.HasPrefix(name, "Describe") || strings.HasPrefix(name, "Get") || a == "ec2:RunInstances" && s.Sid == "RunWith" {
				continue
			}
			if len(s.Condition) == 0 {
				t.Errorf("statement %s allows %s on anything", s.Sid, a)
			}
			harms := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
			if slices.ContainsFunc([]string{"Delete", "Terminate", "Modify", "Revoke", "Authorize", "Detach", "Disassociate", "Release"}, harms) &&
				!slices.Equal(s.Condition["StringEquals"]["aws:ResourceTag/percore"], Strings{"1"}) {
				t.Errorf("statement %s allows %s on what is not percore's", s.Sid, a)
			}
		}
	}
}

func TestAllows(t *testing.T) {
	p, err := Parse([]byte(`{"Version":"2012-10-17","Statement":[
	 {"Effect":"Allow","Action":["ec2:Describe*","ssm:GetParameter?"],"Resource":"*"},
	 {"Effect":"Deny","Action":"ec2:DescribeTags","Resource":"*"},
	 {"Effect":"Deny","Action":"ec2:DescribeVpcs","Resource":"*","Condition":{"Bool":{"aws:SecureTransport":"false"}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for action, want := range map[string]bool{
		"ec2:DescribeVpcs": true, "EC2:describevpcs": true, "ec2:DescribeTags": false, "ec2:DeleteVpc": false,
		"ssm:GetParameters": true, "ssm:GetParameter": false, "iam:DescribeX": false,
	} {
		if got := p.Allows(action); got != want {
			t.Errorf("%s: %t", action, got)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"Version":"2008-10-17","Statement":[]}`:                                                               "version",
		`{"Version":"2012-10-17","Statement":[{"Effect":"allow","Action":"*","Resource":"*"}]}`:                 `effect "allow"`,
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*"}]}`:                                "no action or no resource",
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"RunInstances","Resource":"*"}]}`:      "write it as",
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*","Conditions":{}}]}`: "unknown field",
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":{"ec2":"Run"},"Resource":["*"]}]}`:     "cannot unmarshal",
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["ec2:[Describe"],"Resource":["*"]}]}`: "syntax error",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(said.Err(err), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(shipped(f), "ec2:RunInstances")
	f.Add([]byte(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}`), "x:y")
	f.Fuzz(func(t *testing.T, text []byte, action string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		if p.Allows(action) && !slices.ContainsFunc(p.Statements, func(s Statement) bool { return s.Effect == "Allow" }) {
			t.Error("a policy that allows nothing allows", action)
		}
	})
}
