package contract

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/textproto"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/base/infile"
	"github.com/percore/percore/internal/base/yamlfile"
)

// Version is the version of the file format.
const Version = 1

const (
	maxCases = 2000
	maxAgain = time.Minute
)

// File is the name of a contract in the folder of its suite.
const File = "contract.yaml"

var written = yamlfile.Kind{What: "a contract", Like: "candidates/oauth-events/contract.yaml"}

// Answers that an outcome may ask for.
const (
	AnswerClaims = "claims" // {"sub","scope"} of the token
	AnswerRow    = "row"    // the row whose id is in the path
	AnswerID     = "id"     // {"id"} of the one row written
	AnswerError  = "error"  // {"error"}
	AnswerNone   = "none"   // no body
	AnswerAny    = "any"    // the HTTP server itself refuses: the body is its own
)

// rowMembers are what an answer may hold of a row.
var rowMembers = []string{"id", "subject", "kind", "payload", "created_at"}

var answers = []string{AnswerClaims, AnswerRow, AnswerID, AnswerError, AnswerNone, AnswerAny}

// Contract is the contract of a suite as cases.
type Contract struct {
	Version  int                 `yaml:"version"`
	Outcomes map[string]*Outcome `yaml:"outcomes"`
	Cases    []*Case             `yaml:"cases"`
}

// Outcome is what is right.
type Outcome struct {
	Status  int               `yaml:"status"`
	Answer  string            `yaml:"answer"`
	Error   string            `yaml:"error"`   // the error code, with answer error
	Members []string          `yaml:"members"` // members of the row, with answer row
	Headers map[string]string `yaml:"headers"` // header -> exact value
	Rows    int               `yaml:"rows"`    // rows written: 0 or 1
}

// Case is one request with the outcome that is right.
type Case struct {
	Name    string     `yaml:"name"`
	Why     string     `yaml:"why"`
	Send    string     `yaml:"send"`    // method and raw target, a template
	Token   *TokenSpec `yaml:"token"`   // how the token is made
	Headers []string   `yaml:"headers"` // raw header lines, templates; "-Name" leaves a usual one out
	Body    *string    `yaml:"body"`    // a template
	Size    int        `yaml:"size"`    // bytes the body grows to at its ${pad}
	Chunked bool       `yaml:"chunked"` // sent in chunks instead of with a length
	Want    string     `yaml:"want"`    // name of an outcome
	Again   *Again     `yaml:"again"`   // the same request once more, later

	line    int
	want    *Outcome
	method  string
	target  template
	headers []template
	body    template
}

// Again is a second outcome of the same request.
type Again struct {
	After  string   `yaml:"after"`  // how long after the case started, as in 8s
	Mutate []string `yaml:"mutate"` // what is done to the token before
	Want   string   `yaml:"want"`

	after time.Duration
	want  *Outcome
}

// Load reads a contract file. An unknown key, a name used twice and a case that
// cannot be sent are bad input; the error names file, line and remedy.
func Load(files fs.FS, name string) (*Contract, error) {
	data, err := infile.ReadFS(files, name, yamlfile.MaxSize, written.What, written.Like)
	if err != nil {
		return nil, err
	}
	return Parse(name, data)
}

// UnmarshalYAML reads "none" or the description of a token.
func (s *TokenSpec) UnmarshalYAML(node ast.Node) error {
	if text, ok := node.(*ast.StringNode); ok {
		if text.Value != "none" {
			return &lineError{nodeLine(node), fmt.Errorf("token is %q where it is either none or a description such as {alg: none}", clip(text.Value, 40))}
		}
		s.None = true
		return nil
	}
	type plain TokenSpec
	return decodeNode(node, (*plain)(s))
}

// UnmarshalYAML reads a case and keeps its line.
func (c *Case) UnmarshalYAML(node ast.Node) error {
	type plain Case
	if err := decodeNode(node, (*plain)(c)); err != nil {
		return err
	}
	c.line = nodeLine(node)
	return nil
}

// UnmarshalYAML reads an outcome, strictly.
func (o *Outcome) UnmarshalYAML(node ast.Node) error {
	type plain Outcome
	return decodeNode(node, (*plain)(o))
}

// UnmarshalYAML reads a second outcome, strictly.
func (a *Again) UnmarshalYAML(node ast.Node) error {
	type plain Again
	return decodeNode(node, (*plain)(a))
}

func decodeNode(node ast.Node, v any) error {
	var b bytes.Buffer
	if err := yaml.NewDecoder(&b, yaml.Strict()).DecodeFromNode(node, v); err != nil {
		return atLine(err)
	}
	return nil
}

func nodeLine(node ast.Node) int {
	if m, ok := node.(*ast.MappingNode); ok && len(m.Values) > 0 {
		node = m.Values[0].Key
	}
	if m, ok := node.(*ast.MappingValueNode); ok {
		node = m.Key
	}
	if t := node.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

// lineError is an error that knows its line.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string { return e.err.Error() }
func (e *lineError) Unwrap() error { return e.err }

// atLine turns an error of the YAML reader into one sentence with its line.
func atLine(err error) error {
	var known *lineError
	if errors.As(err, &known) {
		return known
	}
	var y yaml.Error
	if !errors.As(err, &y) {
		return err
	}
	line := 0
	if t := y.GetToken(); t != nil && t.Position != nil {
		line = t.Position.Line
	}
	text, _, _ := strings.Cut(y.GetMessage(), "\n")
	var unknown *yaml.UnknownFieldError
	if errors.As(err, &unknown) && y.GetToken() != nil {
		return &lineError{line, fail.Input("the key %q is not known here", clip(y.GetToken().Value, 40)).Try("correct its spelling or remove it")}
	}
	return &lineError{line, errors.New(text)}
}

// Parse reads a contract from memory; the name stands in errors.
func Parse(name string, data []byte) (c *Contract, err error) {
	defer func() {
		// The YAML reader may panic on hostile input.
		if r := recover(); r != nil {
			c, err = nil, fail.Input("%s is not YAML", name).Try("correct it or restore it from version control")
		}
	}()
	if data, err = written.Check(name, data); err != nil {
		return nil, err
	}
	c = &Contract{}
	if err := yaml.UnmarshalWithOptions(data, c, yaml.Strict()); err != nil {
		return nil, inFile(name, atLine(err))
	}
	if err := c.prepare(); err != nil {
		return nil, inFile(name, err)
	}
	return c, nil
}

func inFile(name string, err error) error {
	var at *lineError
	if errors.As(err, &at) && at.line > 0 {
		return fail.In(fail.At(name, at.line), "%w", at.err)
	}
	return fail.In(name, "%w", err)
}

func (c *Contract) prepare() error {
	if c.Version != Version {
		return fail.Input("version is %d, this percore reads version %d", c.Version, Version).Try("take the file that came with it")
	}
	if len(c.Cases) == 0 {
		return fail.Input("there are no cases").Try("restore the file from version control")
	}
	if len(c.Cases) > maxCases {
		return fail.Input("there are %d cases, more than %d", len(c.Cases), maxCases).Try("split the file")
	}
	for name, o := range c.Outcomes {
		if o == nil {
			return fail.Input("outcome %s is empty", clip(name, 40)).Try("give it a status and an answer")
		}
		if err := o.check(); err != nil {
			return fmt.Errorf("outcome %s: %w", clip(name, 40), err)
		}
	}
	lines := map[string]int{}
	for i, k := range c.Cases {
		if k == nil {
			return fail.Input("case %d is empty", i+1).Try("describe it or remove it")
		}
		if err := k.prepare(c.Outcomes); err != nil {
			var known *lineError
			if errors.As(err, &known) {
				return err
			}
			return &lineError{k.line, fmt.Errorf("case %s: %w", clip(k.Name, 60), err)}
		}
		if first, twice := lines[k.Name]; twice {
			return &lineError{k.line, fail.Input("the name %s is taken by the case in line %d", k.Name, first).Try("give each case its own")}
		}
		lines[k.Name] = k.line
	}
	return nil
}

var headerName = regexp.MustCompile(`^[A-Za-z0-9-]{1,60}$`)

func (o *Outcome) check() error {
	if o.Status < 200 || o.Status > 599 {
		return fmt.Errorf("status %d is not an HTTP status from 200 to 599", o.Status)
	}
	if !slices.Contains(answers, o.Answer) {
		return fmt.Errorf("answer %q is not one of %s", clip(o.Answer, 40), strings.Join(answers, ", "))
	}
	if (o.Answer == AnswerError) != (o.Error != "") {
		return errors.New("error names the code of an answer of kind error, and of no other")
	}
	if (o.Answer == AnswerRow) != (len(o.Members) > 0) {
		return errors.New("members lists the members of an answer of kind row, and of no other")
	}
	for _, m := range o.Members {
		if !slices.Contains(rowMembers, m) {
			return fmt.Errorf("member %q is not one of %s", clip(m, 40), strings.Join(rowMembers, ", "))
		}
	}
	if o.Rows != 0 && o.Rows != 1 {
		return fmt.Errorf("rows is %d where a request writes one row or none", o.Rows)
	}
	if (o.Answer == AnswerID) != (o.Rows == 1) {
		return errors.New("an answer of kind id goes with rows: 1, and no other does")
	}
	for name := range o.Headers {
		if !headerName.MatchString(name) {
			return fmt.Errorf("%q is not the name of a header", clip(name, 40))
		}
	}
	return nil
}

var (
	caseName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	method   = regexp.MustCompile(`^[A-Za-z]{1,20}$`)
)

// TotalName is the name of the last result of a report: the rows that all cases
// together left behind. No case may take it.
const TotalName = "rows-in-total"

func (c *Case) prepare(outcomes map[string]*Outcome) error {
	if !caseName.MatchString(c.Name) || len(c.Name) > 80 {
		return fmt.Errorf("name %q is not made of small letters, digits and single hyphens", clip(c.Name, 60))
	}
	if c.Name == TotalName {
		return fail.Input("this name is reserved for the count at the end").Try("choose another")
	}
	if len(strings.Fields(c.Why)) < 3 || !strings.HasSuffix(strings.TrimSpace(c.Why), ".") {
		return fail.Input("why is not a sentence").Try("say in one, with a full stop, what the case is for")
	}
	if c.want = outcomes[c.Want]; c.want == nil {
		return fmt.Errorf("want %q is not the name of an outcome", clip(c.Want, 40))
	}
	if c.Token == nil {
		c.Token = &TokenSpec{}
	}
	if err := c.Token.prepare(); err != nil {
		return fmt.Errorf("token: %w", err)
	}
	if err := c.prepareRequest(); err != nil {
		return err
	}
	if err := c.prepareBody(); err != nil {
		return err
	}
	if err := c.prepareAgain(outcomes); err != nil {
		return err
	}
	return c.checkWant()
}

func (c *Case) prepareRequest() error {
	verb, target, ok := strings.Cut(c.Send, " ")
	if !ok || !method.MatchString(verb) || target == "" {
		return fmt.Errorf("send %q is not a method and a target, as in GET /auth", clip(c.Send, 60))
	}
	c.method = verb
	t, err := parseTemplate(target)
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if t.uses("pad") || t.uses("jwk") {
		return errors.New("send: ${pad} and ${jwk} have no place in a target")
	}
	text := t.render(values{token: "t"})
	if text[0] != '/' && !strings.HasPrefix(text, "http://") || strings.ContainsAny(text, " \r\n") {
		return errors.New("send: the target must start with / or http:// and hold neither space nor line break, or what is sent is not a request line")
	}
	if t.uses("token") && c.Token.None {
		return errors.New("send: there is no token to put into the target")
	}
	c.target = t
	for _, line := range c.Headers {
		if name, left := strings.CutPrefix(line, "-"); left {
			if !slices.Contains(usualHeaders, textproto.CanonicalMIMEHeaderKey(name)) {
				return fmt.Errorf("headers: %q leaves out a header that is not sent anyway", clip(line, 60))
			}
			continue
		}
		h, err := parseTemplate(line)
		if err != nil {
			return fmt.Errorf("headers: %w", err)
		}
		if h.uses("token") && c.Token.None {
			return errors.New("headers: there is no token to put into the line")
		}
		if h.uses("pad") || h.uses("jwk") {
			return errors.New("headers: ${pad} and ${jwk} have no place in a header line")
		}
		text := h.render(values{token: "t"})
		name, _, colon := strings.Cut(text, ":")
		if !colon || !headerName.MatchString(name) || strings.Contains(text, "\n") {
			return fmt.Errorf("headers: %q is not a header line", clip(line, 60))
		}
		switch textproto.CanonicalMIMEHeaderKey(name) {
		case "Content-Length", "Transfer-Encoding", "Connection":
			return fmt.Errorf("headers: %s is for the checker to set", name)
		}
		c.headers = append(c.headers, h)
	}
	return nil
}

func (c *Case) prepareBody() error {
	if c.Body == nil {
		if c.Size != 0 || c.Chunked {
			return errors.New("size and chunked need a body")
		}
		return nil
	}
	t, err := parseTemplate(*c.Body)
	if err != nil {
		return fmt.Errorf("body: %w", err)
	}
	c.body = t
	if t.uses("token") {
		return errors.New("body: a token does not belong into a body")
	}
	if t.uses("jwk") {
		return errors.New("body: a key does not belong into a body")
	}
	pads := 0
	for _, p := range t {
		if p.verb == "pad" {
			pads++
		}
	}
	if (c.Size != 0) != (pads == 1) {
		return errors.New("size and one ${pad} in the body go together")
	}
	if c.Size < 0 || c.Size > maxRendered {
		return fmt.Errorf("size %d is not between 1 and %d bytes", c.Size, maxRendered)
	}
	if n := len(t.render(values{now: time.Unix(0, 0)})); c.Size != 0 && n > c.Size {
		return fmt.Errorf("size is %d bytes but the body has %d already", c.Size, n)
	}
	return nil
}

func (c *Case) prepareAgain(outcomes map[string]*Outcome) error {
	if c.Again == nil {
		return nil
	}
	d, err := time.ParseDuration(c.Again.After)
	if err != nil || d <= 0 || d > maxAgain {
		return fmt.Errorf("again: after wants a duration up to %s, as in 8s", maxAgain)
	}
	if c.Again.want = outcomes[c.Again.Want]; c.Again.want == nil {
		return fmt.Errorf("again: want %q is not the name of an outcome", clip(c.Again.Want, 40))
	}
	if len(c.Again.Mutate) > 0 && c.Token.None {
		return errors.New("again: there is no token to mutate")
	}
	if err := checkMutations(c.Again.Mutate); err != nil {
		return fmt.Errorf("again: %w", err)
	}
	c.Again.after = d
	return nil
}

// checkWant refuses outcomes that the request cannot have.
func (c *Case) checkWant() error {
	outcomes := []*Outcome{c.want}
	if c.Again != nil {
		outcomes = append(outcomes, c.Again.want)
	}
	for _, o := range outcomes {
		switch {
		case o.Answer == AnswerRow && c.rowID() == 0:
			return fmt.Errorf("want %s: the target names no row", c.Want)
		case o.Answer == AnswerClaims && c.Token.None:
			return fmt.Errorf("want %s: there is no token whose claims could be answered", c.Want)
		case o.Answer == AnswerID:
			if _, err := c.sentEvent(); err != nil {
				return fmt.Errorf("want %s: %w", c.Want, err)
			}
		case c.method == "HEAD" && o.Answer != AnswerNone && o.Answer != AnswerAny:
			return fmt.Errorf("want %s: an answer to HEAD has no body", c.Want)
		}
	}
	return nil
}

// rowID is the row the target names, 0 when it names none.
func (c *Case) rowID() int64 {
	path, _, _ := strings.Cut(c.target.render(values{}), "?")
	text, ok := strings.CutPrefix(path, "/events/")
	if !ok {
		return 0
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 || strconv.FormatInt(id, 10) != text {
		return 0
	}
	return id
}

// bodyText renders the body.
func (c *Case) bodyText(v values) string {
	if c.body == nil {
		return ""
	}
	v.pad = 0
	if c.Size == 0 {
		return c.body.render(v)
	}
	v.pad = c.Size - len(c.body.render(v))
	return c.body.render(v)
}
