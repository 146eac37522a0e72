// Package aws does with AWS what Terraform cannot: it says who is asking and
// where, looks up whether the instances of a run can be had and what they cost,
// and finds and deletes whatever carries percore's tag, with or without
// Terraform's state.
package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/ssocreds"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/plan"
	"github.com/percore/percore/internal/prices"
)

// Tags that infra/aws gives everything it makes.
const (
	TagMark    = "percore"         // "1" on everything of ours
	TagRun     = "percore:run"     // run id
	TagExpires = "percore:expires" // RFC 3339, when the machines shut themselves down
	TagRole    = "percore:role"    // app, db or load, of machines
	TagName    = "Name"
)

// Options says whose account and which region.
type Options struct {
	Region  string // empty: where the SDK's default chain points
	Profile string // of the AWS configuration files; empty: AWS_PROFILE, or default

	// Say, if not nil, is told what Find could not list or price.
	Say func(format string, args ...any)
	// Prices is the table that Find falls back on; nil: the shipped one.
	Prices *prices.Table

	// OnCall, if not nil, is told each API action before it is called, as IAM
	// policies name it (ec2:DescribeInstances). It may be called concurrently.
	OnCall func(action string)
	// Poll is how long to wait before asking again whether something is gone;
	// 0 means 3 s.
	Poll time.Duration
	// Patience is how long a resource that others still depend on, or an
	// instance that is being terminated, is waited for; 0 means 10 minutes.
	Patience time.Duration
}

// Client is one account's view of one region.
type Client struct {
	Region string

	cfg     aws.Config
	ec2     *ec2.Client
	o       Options
	profile string
	now     func() time.Time
}

// openTimeout bounds the search for credentials, which may ask services that do
// not answer.
const openTimeout = 30 * time.Second

// tryTimeout bounds one try of a call, from the connecting to the end of the
// answer. The SDK tries three times unless the user's configuration says
// otherwise.
const tryTimeout = time.Minute

// Open finds region and credentials by the SDK's default chain: environment,
// configuration files with profiles and SSO, then the machine's own role. It
// calls no API of the account.
func Open(ctx context.Context, o Options) (*Client, error) {
	if o.Poll == 0 {
		o.Poll = 3 * time.Second
	}
	if o.Patience == 0 {
		o.Patience = 10 * time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	load := []func(*config.LoadOptions) error{
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(tryTimeout)),
		config.WithLogger(logging.Nop{}), // else the SDK writes to standard error
	}
	if o.Region != "" {
		load = append(load, config.WithRegion(o.Region))
	}
	if o.Profile != "" {
		load = append(load, config.WithSharedConfigProfile(o.Profile))
	}
	if o.OnCall != nil {
		load = append(load, config.WithAPIOptions([]func(*middleware.Stack) error{recordCalls(o.OnCall)}))
	}
	cfg, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, configuration(ctx, err, o.Profile)
	}
	switch {
	case cfg.Region == "":
		return nil, fail.Input("no AWS region is chosen").Try("give %s, write cloud.region in the profile, or set AWS_REGION", fail.Setting("region"))
	case !plan.IsRegion(cfg.Region):
		return nil, fail.Input("%q is not the name of an AWS region", cfg.Region).Try("give %s, cloud.region or AWS_REGION one such as eu-central-1", fail.Setting("region"))
	}
	credentials, err := cfg.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, explain(err, o.Profile)
	}
	if err := whole(credentials); err != nil {
		return nil, err
	}
	return &Client{Region: cfg.Region, cfg: cfg, ec2: ec2.NewFromConfig(cfg), o: o, profile: o.Profile, now: time.Now}, nil
}

func (c *Client) note(format string, args ...any) {
	if c.o.Say != nil {
		c.o.Say("note: "+format, args...)
	}
}

// services are the services that are called, as the SDK names them, with the
// names that IAM policies have for them.
var services = map[string]string{"EC2": "ec2", "SSM": "ssm", "STS": "sts", "Pricing": "pricing", "Service Quotas": "servicequotas"}

// recordCalls tells of every call before it is made.
func recordCalls(onCall func(string)) func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("percore:OnCall",
			func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
				if service := services[awsmiddleware.GetServiceID(ctx)]; service != "" {
					onCall(service + ":" + awsmiddleware.GetOperationName(ctx))
				}
				return next.HandleInitialize(ctx, in)
			}), middleware.After)
	}
}

// Identity is who asks. It holds no secret.
type Identity struct {
	Account string `json:"account"`
	ARN     string `json:"arn"`
}

// Identity asks who the credentials belong to, which also shows that they work.
func (c *Client) Identity(ctx context.Context) (Identity, error) {
	out, err := sts.NewFromConfig(c.cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return Identity{}, explain(err, c.profile)
	}
	return Identity{Account: aws.ToString(out.Account), ARN: aws.ToString(out.Arn)}, nil
}

// login is the command that renews an SSO session.
func login(profile string) string {
	if profile == "" {
		return "aws sso login"
	}
	return "aws sso login --profile " + profile
}

// configuration explains why the SDK cannot use the user's configuration. What
// a line of it says is not repeated: it may be a secret.
func configuration(ctx context.Context, err error, name string) error {
	var noProfile config.SharedConfigProfileNotExistError
	if errors.As(err, &noProfile) {
		// The SDK passes over what it cannot read, such as a section without its ].
		if file, line := malformed(); line > 0 {
			return fail.In(fail.Line(file, line), "this is neither a section in [ ] nor KEY = VALUE").Try("correct it")
		}
	}
	if said := explain(err, name); fail.IsInput(said) || ctx.Err() != nil {
		return said
	}
	if strings.Contains(err.Error(), "partial credentials found") {
		return fail.Input("the AWS profile %q has only one of aws_access_key_id and aws_secret_access_key", cmp.Or(name, os.Getenv("AWS_PROFILE"), "default")).Try("write both, or name another profile with %s", fail.Setting("aws-profile"))
	}
	return fail.Input("the AWS configuration cannot be used: %s", strings.Join(strings.Fields(err.Error()), " ")).Try("correct it, or name another profile with %s", fail.Setting("aws-profile"))
}

// malformed finds the first line of the user's AWS configuration that is no
// part of one; none where the line is 0.
func malformed() (file string, line int) {
	for _, file := range []string{
		cmp.Or(os.Getenv("AWS_CONFIG_FILE"), config.DefaultSharedConfigFilename()),
		cmp.Or(os.Getenv("AWS_SHARED_CREDENTIALS_FILE"), config.DefaultSharedCredentialsFilename()),
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // there need not be one
		}
		for i, l := range strings.Split(string(text), "\n") {
			switch {
			case strings.TrimSpace(l) == "" || strings.ContainsAny(l[:1], "#; \t\r"): // an indented one goes on with the last
			case l[0] == '[' && !strings.Contains(l, "]"), l[0] != '[' && !strings.Contains(l, "="):
				return file, i + 1
			}
		}
	}
	return "", 0
}

// whole refuses credentials with what came along when they were copied. They are
// not repeated.
func whole(c aws.Credentials) error {
	for _, v := range []struct{ what, variable, text string }{
		{"access key ID", "AWS_ACCESS_KEY_ID", c.AccessKeyID},
		{"secret access key", "AWS_SECRET_ACCESS_KEY", c.SecretAccessKey},
		{"session token", "AWS_SESSION_TOKEN", c.SessionToken},
	} {
		if i := strings.IndexFunc(v.text, func(r rune) bool { return r <= ' ' || r > '~' }); i >= 0 {
			r, _ := utf8.DecodeRuneInString(v.text[i:])
			return fail.Input("the AWS %s (from %s) holds the character %U, which no %s has", v.what, c.Source, r, v.what).Try("write it again without that, in %s or where the profile has it", v.variable)
		}
	}
	return nil
}

// Beginnings of what the SDK says of credentials. It tries one source after the
// other; the last is the metadata of an EC2 instance.
const (
	refreshing = "failed to refresh cached credentials, "
	noRole     = "no EC2 IMDS role found"
)

// unusable says why the credentials that are configured cannot be had: a role is
// refused, a file is missing, a helper failed.
func unusable(err error) error {
	text := err.Error()
	var call *smithy.OperationError
	if errors.As(err, &call) {
		text = brief(err).Error()
	}
	if i := strings.LastIndex(text, refreshing); i >= 0 {
		text = text[i+len(refreshing):]
	}
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > maxCause {
		text = string(r[:maxCause]) + "…"
	}
	return fail.Input("the configured AWS credentials do not work: %s", text).Try("correct that, or name another profile with %s or AWS_PROFILE", fail.Setting("aws-profile"))
}

// maxCause is how many characters of an error of the SDK are repeated.
const maxCause = 400

// explain turns what goes wrong with credentials into one sentence with a
// remedy, and says any other error of a call briefly.
func explain(err error, name string) error {
	if err == nil {
		return nil
	}
	var (
		noProfile config.SharedConfigProfileNotExistError
		sso       *ssocreds.InvalidTokenError
		lookup    *net.DNSError
		text      = err.Error()
		has       = func(s string) bool { return strings.Contains(text, s) }
	)
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &noProfile):
		return fail.Input("the AWS configuration has no profile %q", noProfile.Profile).Try("name another with %s or AWS_PROFILE, or make it with `aws configure`", fail.Setting("aws-profile"))
	case errors.As(err, &sso) || has("SSO session has expired") || has("UnauthorizedException") || has("cached SSO token"):
		return fail.Input("the AWS SSO session has expired").Try("renew it with `%s`", login(name))
	}
	if errors.As(err, &lookup) && lookup.IsNotFound {
		for _, part := range strings.Split(lookup.Name, ".") {
			if plan.IsRegion(part) {
				return fail.Input("there is no AWS region %s, or this machine has no network (the name %s is not known)", part, lookup.Name).Try("check %s, cloud.region or AWS_REGION", fail.Setting("region"))
			}
		}
	}
	switch code(err) {
	case "ExpiredToken", "ExpiredTokenException", "RequestExpired":
		return fail.Input("the AWS credentials have expired").Try("get new ones, with `%s` where they come from SSO", login(name))
	case "InvalidClientTokenId", "UnrecognizedClientException", "AuthFailure", "InvalidAccessKeyId":
		return fail.Input("AWS does not know the credentials, or the region is not enabled for the account").Try("check AWS_ACCESS_KEY_ID, AWS_PROFILE and %s", fail.Setting("region"))
	case "SignatureDoesNotMatch":
		return fail.Input("AWS refuses the signature of the request").Try("check AWS_SECRET_ACCESS_KEY and this machine's clock")
	case "OptInRequired":
		return fail.Input("the AWS account may not use EC2 in this region yet").Try("enable the region or the account in the console")
	}
	switch {
	case has(noRole) || has("static credentials are empty") || has("EC2 IMDS access disabled"):
		return fail.Input("there are no AWS credentials").Try("set AWS_PROFILE (%s), log in with `%s`, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", fail.Setting("aws-profile"), login(name))
	case has(refreshing):
		return unusable(err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("AWS did not answer in time: %w", brief(err))
	}
	return brief(err)
}

// callError is a call that failed, without what the SDK says around it.
type callError struct {
	text string
	err  error
}

func (e *callError) Error() string { return e.text }
func (e *callError) Unwrap() error { return e.err }

// brief says of a call that failed what the service answered, or why it could
// not be asked. Any other error stays as it is.
func brief(err error) error {
	var (
		call   *smithy.OperationError
		send   *smithyhttp.RequestSendError
		over   *smithy.CanceledError
		answer *smithyhttp.ResponseError
		reason string
	)
	switch {
	case !errors.As(err, &call):
		return err
	case refusal(err) != "":
		reason = refusal(err)
	case errors.As(err, &send):
		reason = send.Err.Error()
	case errors.As(err, &over):
		reason = over.Err.Error()
	case errors.As(err, &answer) && answer.HTTPStatusCode() >= 300:
		reason = "the answer is " + answer.Response.Status
	default:
		return err
	}
	service, ok := services[call.Service()]
	if !ok {
		service = call.Service()
	}
	return &callError{service + " " + call.Operation() + ": " + reason, err}
}

// refusal is what a service says of its refusal, empty for any other error.
func refusal(err error) string {
	var answer smithy.APIError
	if !errors.As(err, &answer) || answer.ErrorCode() == unread {
		return ""
	}
	return answer.ErrorCode() + ": " + answer.ErrorMessage()
}

// unread is the SDK's code for a refusal in which it finds none.
const unread = "UnknownError"

// code is the code of a service's refusal, empty for any other error.
func code(err error) string {
	var answer smithy.APIError
	if errors.As(err, &answer) {
		return answer.ErrorCode()
	}
	return ""
}

// denied reports whether an error says that the caller may not do this.
func denied(err error) bool {
	switch code(err) {
	case "UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "AuthorizationError":
		return true
	}
	return false
}

// unknownAction reports whether the endpoint does not know the call at all.
func unknownAction(err error) bool {
	switch code(err) {
	case "InvalidAction", "UnknownOperationException":
		return true
	}
	var answer *smithyhttp.ResponseError
	return errors.As(err, &answer) && answer.HTTPStatusCode() == http.StatusNotImplemented
}

// gone reports whether an error says that the resource does not exist (any
// more).
func gone(err error) bool {
	c := code(err)
	return strings.HasSuffix(c, ".NotFound") || strings.HasSuffix(c, ".Unknown") || c == "Gateway.NotAttached"
}
