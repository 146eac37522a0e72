//go:build integration

//integration:apart

package mototest

import (
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// call calls an action of EC2 as plainly as moto lets anybody: it looks at a
// signature for the service only.
func call(t *testing.T, s *Server, action string, params map[string]string) (status int, answer string) {
	t.Helper()
	form := url.Values{"Action": {action}, "Version": {"2016-11-15"}}
	for k, v := range params {
		form.Set(k, v)
	}
	return post(t, s, "ec2", form.Encode(), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
}

func post(t *testing.T, s *Server, service, body string, header http.Header) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/"+s.Region+"/"+service+"/aws4_request, SignedHeaders=host, Signature=0")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(text)
}

func TestServer(t *testing.T) {
	s := Start(t)
	group := map[string]string{
		"GroupName": "percore-x", "Strategy": "cluster",
		"TagSpecification.1.ResourceType": "placement-group", "TagSpecification.1.Tag.1.Key": "percore", "TagSpecification.1.Tag.1.Value": "1",
	}
	if status, answer := call(t, s, "CreatePlacementGroup", group); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	if status, answer := call(t, s, "CreatePlacementGroup", group); status != 400 || !strings.Contains(answer, "<Code>InvalidPlacementGroup.Duplicate</Code>") {
		t.Errorf("a second group of that name: %d %s", status, answer)
	}
	status, answer := call(t, s, "DescribePlacementGroups", map[string]string{"Filter.1.Name": "tag:percore", "Filter.1.Value.1": "1"})
	if status != 200 || !strings.Contains(answer, "<groupName>percore-x</groupName>") {
		t.Errorf("placement groups: %d %s", status, answer)
	}
	if status, answer := call(t, s, "DescribePlacementGroups", map[string]string{"Filter.1.Name": "tag:percore", "Filter.1.Value.1": "0"}); status != 200 || strings.Contains(answer, "percore-x") {
		t.Errorf("placement groups of others: %d %s", status, answer)
	}
	vpc := map[string]string{
		"CidrBlock":                       "10.77.0.0/16",
		"TagSpecification.1.ResourceType": "vpc", "TagSpecification.1.Tag.1.Key": "percore", "TagSpecification.1.Tag.1.Value": "1",
	}
	if status, answer := call(t, s, "CreateVpc", vpc); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	if got := s.Tagged("percore", "1"); !maps.Equal(got, map[string]int{"placement-group": 1, "vpc": 1}) {
		t.Errorf("tagged are %v", got)
	}
	if got := s.Tagged("percore", "0"); len(got) != 0 {
		t.Errorf("tagged otherwise are %v", got)
	}
	for arch, image := range map[string]string{"amd64": "ami-0d13a0d13a0d13a64", "arm64": "ami-0d13a0d13a0d13a8a"} {
		status, answer := post(t, s, "ssm", `{"Names":["/aws/service/debian/release/13/latest/`+arch+`"]}`, http.Header{
			"Content-Type": {"application/x-amz-json-1.1"}, "X-Amz-Target": {"AmazonSSM.GetParameters"},
		})
		if status != 200 || !strings.Contains(answer, image) {
			t.Errorf("the image of %s: %d %s", arch, status, answer)
		}
	}
	if got := s.Actions(); !slices.Equal(got, []string{"ec2:CreatePlacementGroup", "ec2:CreateVpc", "ec2:DescribePlacementGroups", "ssm:GetParameters"}) {
		t.Errorf("the actions were %v", got)
	}
}

func TestPlainServer(t *testing.T) {
	s := Start(t, NoPlacementGroups())
	status, answer := call(t, s, "DescribePlacementGroups", nil)
	if status != 400 || !strings.Contains(answer, "<Code>InvalidAction</Code>") {
		t.Errorf("a call that moto does not know is answered by %d %s; if it knows it, the harness need not add placement groups any more", status, answer)
	}
}
