package aws

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/testkit/said"
)

// form reads the parameters of a call of EC2.
func form(r *http.Request) url.Values {
	body, _ := io.ReadAll(r.Body)
	values, _ := url.ParseQuery(string(body))
	return values
}

func TestListing(t *testing.T) {
	against(t, nil, func(w http.ResponseWriter, r *http.Request) {
		f := form(r)
		if got := r.Header.Get("Authorization"); !strings.Contains(got, "/us-east-1/ec2/aws4_request") || strings.Contains(got, "SECRET") {
			t.Errorf("authorization %q", got)
		}
		if f.Get("Filter.1.Name") != "tag:percore" || f.Get("Filter.1.Value.1") != "1" {
			t.Errorf("asked for %v", f)
		}
		switch next := f.Get("NextToken"); next {
		case "":
			io.WriteString(w, "<X><subnetSet><item><subnetId>subnet-1</subnetId><vpcId>vpc-1</vpcId><tagSet><item><key>percore</key><value>1</value></item><item><key>percore:run</key><value>one</value></item></tagSet></item></subnetSet><nextToken>more</nextToken></X>")
		case "more": // one that the service should have left out
			io.WriteString(w, "<X><subnetSet><item><subnetId>subnet-2</subnetId><tagSet><item><key>percore</key><value>0</value></item></tagSet></item></subnetSet></X>")
		default:
			t.Errorf("asked for the page %q", next)
		}
	})
	var called []string
	c, err := Open(t.Context(), Options{Region: "us-east-1", OnCall: func(action string) { called = append(called, action) }})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	err = c.subnets(t.Context(), ours(), func(s types.Subnet) { ids = append(ids, *s.SubnetId+" "+tag(s.Tags, TagRun)) })
	if err != nil || !slices.Equal(ids, []string{"subnet-1 one", "subnet-2 "}) {
		t.Errorf("%q, %v", ids, err)
	}
	if !slices.Equal(called, []string{"ec2:DescribeSubnets", "ec2:DescribeSubnets"}) {
		t.Errorf("told of %v", called)
	}
}

func TestListingWithoutEnd(t *testing.T) {
	c := against(t, nil, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<X><nextToken>again</nextToken></X>") })
	err := c.subnets(t.Context(), ours(), func(types.Subnet) {})
	if err == nil || !strings.Contains(said.Err(err), "has not ended after") {
		t.Errorf("the error is %v", err)
	}
}

// What a service refuses is asked once and said in one sentence.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		status int
		body   string
		want   string
		is     func(error) bool
	}{
		{403, "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>You may not.</Message></Error></Errors></Response>", "ec2 DescribeAddresses: UnauthorizedOperation: You may not.", denied},
		{400, "<Response><Errors><Error><Code>InvalidAction</Code><Message>What?</Message></Error></Errors></Response>", "ec2 DescribeAddresses: InvalidAction: What?", unknownAction},
		{400, "<Response><Errors><Error><Code>InvalidVpcID.NotFound</Code><Message>No.</Message></Error></Errors></Response>", "InvalidVpcID.NotFound", gone},
		{501, "<html>\n<p>not here\n</html>", "ec2 DescribeAddresses: the answer is 501 Not Implemented", unknownAction},
		{501, "", "ec2 DescribeAddresses: the answer is 501 Not Implemented", unknownAction},
		{400, "<Response><Errors><Error><Code>ExpiredToken</Code><Message>Too late.</Message></Error></Errors></Response>", "credentials have expired", fail.IsInput},
	} {
		tries := 0
		c := against(t, nil, func(w http.ResponseWriter, r *http.Request) {
			tries++
			w.WriteHeader(tt.status)
			io.WriteString(w, tt.body)
		})
		_, err := c.ec2.DescribeAddresses(t.Context(), &ec2.DescribeAddressesInput{})
		if said := explain(err, ""); said == nil || !strings.Contains(said.Error(), tt.want) || strings.Contains(said.Error(), "\n") || !tt.is(said) || tries != 1 {
			t.Errorf("%s became %q after %d tries", tt.body, said, tries)
		}
	}
	for _, is := range []func(error) bool{denied, unknownAction, gone} {
		if is(errors.New("UnauthorizedOperation InvalidAction x.NotFound")) {
			t.Error("an error that no service answered was taken for an answer")
		}
	}
}

// A service that is busy is asked again, one that is not there is given up, and
// one that says nothing is not waited for without end.
func TestTries(t *testing.T) {
	tries := 0
	c := against(t, nil, func(w http.ResponseWriter, r *http.Request) {
		if tries++; tries == 1 {
			w.WriteHeader(503)
			io.WriteString(w, "<Response><Errors><Error><Code>RequestLimitExceeded</Code><Message>Slower.</Message></Error></Errors></Response>")
			return
		}
		io.WriteString(w, "<X/>")
	})
	if client, ok := c.ec2.Options().HTTPClient.(*awshttp.BuildableClient); !ok || client.GetTimeout() != tryTimeout {
		t.Errorf("a try may take as long as %+v lets it", c.ec2.Options().HTTPClient)
	}
	if n := c.ec2.Options().Retryer.MaxAttempts(); n != 1 {
		t.Errorf("the user has asked for one try, and %d are made", n)
	}
	t.Setenv("AWS_MAX_ATTEMPTS", "2")
	c, err := Open(t.Context(), Options{Region: "us-east-1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.ec2.DescribeAddresses(t.Context(), &ec2.DescribeAddressesInput{}); err != nil || tries != 2 {
		t.Errorf("%v after %d tries", err, tries)
	}

	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	t.Setenv("AWS_ENDPOINT_URL_EC2", dead.URL)
	if c, err = Open(t.Context(), Options{Region: "us-east-1"}); err != nil {
		t.Fatal(err)
	}
	_, err = c.Running(t.Context(), "one")
	if err == nil || !strings.HasPrefix(said.Err(err), "looking up the instances of run one in us-east-1: ec2 DescribeInstances: Post ") || !strings.Contains(said.Err(err), "connection refused") || strings.Contains(said.Err(err), "\n") {
		t.Errorf("nobody is there: %v", err)
	}
	if left, err := c.Delete(t.Context(), []Resource{{Kind: KindVolume, ID: "vol-1"}, {Kind: KindVolume, ID: "vol-2"}}, nil); err == nil || len(left) != 2 || !strings.HasPrefix(said.Err(err), "deleting volume vol-1: ec2 DeleteVolume: Post ") {
		t.Errorf("left %v, %v", left, err)
	}
}
