// Package awswire calls the APIs of EC2 and Systems Manager with the
// credentials, signatures and retry rules of the AWS SDK, and without its
// client packages for these two services. Those hold every call there is, close
// to a million lines of which percore needs two dozen calls: compiling them
// takes minutes and 3 GB of memory, once for each platform that is built for.
package awswire

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/smithy-go"
)

// Client calls one region's APIs. It is safe for concurrent use.
type Client struct {
	cfg    aws.Config
	http   *http.Client
	signer *v4.Signer
	onCall func(action string)
}

// New makes a client that uses the region, credentials and endpoint of an SDK
// configuration. onCall, if not nil, is told each action before it is called,
// as IAM policies name it: ec2:DescribeInstances.
func New(cfg aws.Config, onCall func(action string)) *Client {
	return &Client{cfg: cfg, http: &http.Client{Timeout: time.Minute}, signer: v4.NewSigner(), onCall: onCall}
}

// maxAnswer bounds an answer; the largest, a page of instance types, has 1 MB.
const maxAnswer = 64 << 20

// endpoint is where a service answers: what the environment or the profile
// names, else AWS's own address of the region.
func (c *Client) endpoint(service string) string {
	if u := os.Getenv("AWS_ENDPOINT_URL_" + strings.ToUpper(service)); u != "" {
		return u
	}
	if c.cfg.BaseEndpoint != nil && *c.cfg.BaseEndpoint != "" {
		return *c.cfg.BaseEndpoint
	}
	suffix := "amazonaws.com"
	if strings.HasPrefix(c.cfg.Region, "cn-") {
		suffix += ".cn"
	}
	return "https://" + service + "." + c.cfg.Region + "." + suffix
}

// ec2Version is the version of the EC2 API, the only one since 2016.
const ec2Version = "2016-11-15"

// EC2 calls an action of EC2 and decodes the answer, XML, into out. An error of
// the API is a smithy.APIError.
func (c *Client) EC2(ctx context.Context, action string, params Params, out any) error {
	form := url.Values{"Action": {action}, "Version": {ec2Version}}
	for k, v := range params {
		form.Set(k, v)
	}
	body, err := c.do(ctx, "ec2", action, []byte(form.Encode()), map[string]string{
		"Content-Type": "application/x-www-form-urlencoded; charset=utf-8",
	})
	if err != nil {
		return err
	}
	if err := xml.Unmarshal(body, out); err != nil {
		return fmt.Errorf("ec2 %s: the answer cannot be read: %w", action, err)
	}
	return nil
}

// JSON calls an action of a service with the AWS JSON 1.1 protocol. target is
// the service's name in the protocol, AmazonSSM for ssm.
func (c *Client) JSON(ctx context.Context, service, target, action string, in, out any) error {
	data, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("%s %s: %w", service, action, err)
	}
	body, err := c.do(ctx, service, action, data, map[string]string{
		"Content-Type": "application/x-amz-json-1.1",
		"X-Amz-Target": target + "." + action,
	})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("%s %s: the answer cannot be read: %w", service, action, err)
	}
	return nil
}

// do sends a signed request until it is answered, refused for good, or has been
// tried as often as the SDK's rules allow.
func (c *Client) do(ctx context.Context, service, action string, body []byte, headers map[string]string) ([]byte, error) {
	if c.onCall != nil {
		c.onCall(service + ":" + action)
	}
	rules := retry.NewStandard()
	for attempt := 1; ; attempt++ {
		answer, err := c.once(ctx, service, action, body, headers)
		if err == nil {
			return answer, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s %s: %w", service, action, ctx.Err())
		}
		if attempt >= rules.MaxAttempts() || !rules.IsErrorRetryable(err) {
			return nil, err
		}
		wait, delayErr := rules.RetryDelay(attempt, err)
		if delayErr != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%s %s: %w", service, action, ctx.Err())
		case <-time.After(wait):
		}
	}
}

func (c *Client) once(ctx context.Context, service, action string, body []byte, headers map[string]string) ([]byte, error) {
	credentials, err := c.cfg.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s %s: credentials: %w", service, action, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.endpoint(service), "/")+"/", bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", service, action, err)
	}
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	sum := sha256.Sum256(body)
	if err := c.signer.SignHTTP(ctx, credentials, req, hex.EncodeToString(sum[:]), service, c.cfg.Region, time.Now().UTC()); err != nil {
		return nil, fmt.Errorf("%s %s: signing: %w", service, action, err)
	}
	answer, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", service, action, &sendError{err})
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s %s: reading the answer: %w", service, action, &sendError{err})
	case len(text) > maxAnswer:
		return nil, fmt.Errorf("%s %s: the answer is larger than %d bytes", service, action, maxAnswer)
	case answer.StatusCode/100 != 2:
		return nil, fmt.Errorf("%s %s: %w", service, action, parseError(answer.StatusCode, answer.Header.Get("X-Amzn-Errortype"), text))
	}
	return text, nil
}

// sendError is a request that was not answered: the SDK's rules retry it.
type sendError struct{ err error }

func (e *sendError) Error() string         { return e.err.Error() }
func (e *sendError) Unwrap() error         { return e.err }
func (e *sendError) ConnectionError() bool { return true }

// apiError is an answer that says no.
type apiError struct {
	smithy.GenericAPIError
	status int
}

func (e *apiError) Error() string {
	if e.Message == "" {
		return e.Code
	}
	return e.Code + ": " + e.Message
}

func (e *apiError) HTTPStatusCode() int { return e.status }

// parseError reads an error of EC2 (XML) or of a JSON service. What is neither
// becomes an error with the status as its code.
func parseError(status int, kind string, body []byte) error {
	e := &apiError{status: status}
	e.Fault = smithy.FaultClient
	if status >= 500 {
		e.Fault = smithy.FaultServer
	}
	var x struct {
		Errors []struct {
			Code    string `xml:"Code"`
			Message string `xml:"Message"`
		} `xml:"Errors>Error"`
		Flat []struct { // as other query services write it
			Code    string `xml:"Code"`
			Message string `xml:"Message"`
		} `xml:"Error"`
	}
	var j struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
		Shouted string `json:"Message"`
	}
	switch {
	case xml.Unmarshal(body, &x) == nil && len(x.Errors)+len(x.Flat) > 0:
		first := append(x.Errors, x.Flat...)[0]
		e.Code, e.Message = strings.TrimSpace(first.Code), strings.TrimSpace(first.Message)
	case json.Unmarshal(body, &j) == nil:
		e.Code, e.Message = j.Type, j.Message
		if e.Message == "" {
			e.Message = j.Shouted
		}
		if e.Code == "" {
			e.Code = kind
		}
		if _, after, ok := strings.Cut(e.Code, "#"); ok { // namespace#Code
			e.Code = after
		}
		e.Code, _, _ = strings.Cut(e.Code, ":") // Code:http://where
	}
	if e.Code == "" {
		e.Code = fmt.Sprintf("HTTP%d", status)
		e.Message = http.StatusText(status)
	}
	return e
}

// Code is the code of an API's error, empty for any other error.
func Code(err error) string {
	var e smithy.APIError
	if errors.As(err, &e) {
		return e.ErrorCode()
	}
	return ""
}
