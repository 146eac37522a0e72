package awswire

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

func client(t *testing.T, h http.HandlerFunc, onCall func(string)) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return New(aws.Config{Region: "eu-west-1", BaseEndpoint: aws.String(s.URL), Credentials: credentials.NewStaticCredentialsProvider("AKID", "SECRET", "TOKEN")}, onCall)
}

func TestEC2(t *testing.T) {
	var called []string
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		form, _ := url.ParseQuery(string(body))
		if got := r.Header.Get("Authorization"); !strings.Contains(got, "/eu-west-1/ec2/aws4_request") {
			t.Errorf("authorization %q", got)
		}
		if r.Header.Get("X-Amz-Security-Token") != "TOKEN" || strings.Contains(string(body), "SECRET") {
			t.Error("the session's token is not sent, or the secret is")
		}
		if form.Get("Filter.1.Name") != "tag:percore" || form.Get("Filter.1.Value.1") != "1" || form.Get("Filter.2.Name") != "vpc-id" || form.Get("Filter.2.Value.2") != "vpc-2" {
			t.Errorf("form %v", form)
		}
		if form.Get("NextToken") == "" {
			io.WriteString(w, `<DescribeVpcsResponse><vpcSet><item><vpcId>vpc-1</vpcId><tagSet><item><key>percore</key><value>1</value></item></tagSet></item></vpcSet><nextToken>more</nextToken></DescribeVpcsResponse>`)
			return
		}
		io.WriteString(w, `<DescribeVpcsResponse><vpcSet><item><vpcId>vpc-2</vpcId><isDefault>true</isDefault></item></vpcSet></DescribeVpcsResponse>`)
	}, func(a string) { called = append(called, a) })
	var ids []string
	err := Pages(t.Context(), c, "DescribeVpcs", Params{}.Filter("tag:percore", "1").Filter("vpc-id", "vpc-1", "vpc-2"), func(v VPCs) {
		for _, x := range v.VPCs {
			ids = append(ids, x.ID+x.Tags.Get("percore"))
		}
	})
	if err != nil || !slices.Equal(ids, []string{"vpc-11", "vpc-2"}) {
		t.Errorf("%v, %v", ids, err)
	}
	if !slices.Equal(called, []string{"ec2:DescribeVpcs", "ec2:DescribeVpcs"}) {
		t.Errorf("called %v", called)
	}
}

func TestPagesEnd(t *testing.T) {
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `<X><nextToken>again</nextToken></X>`)
	}, nil)
	if err := Pages(t.Context(), c, "DescribeVpcs", nil, func(VPCs) {}); err == nil || !strings.Contains(err.Error(), "its own next one") {
		t.Errorf("a listing without end: %v", err)
	}
}

func TestErrors(t *testing.T) {
	tries := 0
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		tries++
		w.WriteHeader(400)
		io.WriteString(w, `<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>You may not.</Message></Error></Errors></Response>`)
	}, nil)
	err := c.EC2(t.Context(), "DescribeVpcs", nil, &VPCs{})
	if Code(err) != "UnauthorizedOperation" || err.Error() != "ec2 DescribeVpcs: UnauthorizedOperation: You may not." || tries != 1 {
		t.Errorf("%v after %d tries", err, tries)
	}
	if Code(errors.New("x")) != "" {
		t.Error("an error that is not the API's has a code")
	}
}

func TestRetry(t *testing.T) {
	tries := 0
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		if tries++; tries < 3 {
			w.WriteHeader(503)
			io.WriteString(w, `<Response><Errors><Error><Code>RequestLimitExceeded</Code><Message>Slower.</Message></Error></Errors></Response>`)
			return
		}
		io.WriteString(w, `{"Parameters":[]}`)
	}, nil)
	var out struct{}
	if err := c.JSON(t.Context(), "ssm", "AmazonSSM", "GetParameters", map[string]any{}, &out); err != nil || tries != 3 {
		t.Errorf("%v after %d tries", err, tries)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	tries = -1000
	if err := c.JSON(ctx, "ssm", "AmazonSSM", "GetParameters", nil, &out); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call whose time is up: %v", err)
	}
}

func TestEndpoint(t *testing.T) {
	c := New(aws.Config{Region: "cn-north-1"}, nil)
	if got := c.endpoint("ec2"); got != "https://ec2.cn-north-1.amazonaws.com.cn" {
		t.Errorf("China is at %s", got)
	}
	c.cfg.Region = "eu-west-1"
	if got := c.endpoint("ssm"); got != "https://ssm.eu-west-1.amazonaws.com" {
		t.Errorf("Ireland is at %s", got)
	}
	t.Setenv("AWS_ENDPOINT_URL_SSM", "http://127.0.0.1:1")
	if got := c.endpoint("ssm"); got != "http://127.0.0.1:1" {
		t.Errorf("the environment is overruled by %s", got)
	}
}

func FuzzParseError(f *testing.F) {
	f.Add(400, "", []byte(`<?xml version="1.0"?><Response><Errors><Error><Code>DryRunOperation</Code><Message>Request would have succeeded</Message></Error></Errors><RequestID>x</RequestID></Response>`))
	f.Add(403, "", []byte(`<ErrorResponse><Error><Type>Sender</Type><Code>ExpiredToken</Code><Message>expired</Message></Error></ErrorResponse>`))
	f.Add(400, "", []byte(`{"__type":"com.amazonaws.ssm#ParameterNotFound","message":"no"}`))
	f.Add(400, "AccessDeniedException:http://x", []byte(`{"Message":"no"}`))
	f.Add(502, "", []byte(`<html>bad gateway</html>`))
	f.Fuzz(func(t *testing.T, status int, kind string, body []byte) {
		err := parseError(status, kind, body)
		if Code(err) == "" || err.Error() == "" {
			t.Errorf("an error without a code: %#v", err)
		}
	})
}
