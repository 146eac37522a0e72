// Package iampolicy reads an IAM policy document as far as it takes to say
// which API actions it allows.
package iampolicy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Policy is a policy document.
type Policy struct {
	Version    string
	Statements []Statement
}

// Statement is one rule of a policy. Resources and conditions narrow what it
// allows; this package only keeps them.
type Statement struct {
	Sid       string
	Effect    string // Allow or Deny
	Actions   []string
	Resources []string
	Condition map[string]map[string]Strings
}

// Strings is a list that a document may write as one string.
type Strings []string

// UnmarshalJSON reads a string or a list of strings.
func (s *Strings) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*s = Strings{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(s))
}

// Parse reads a policy document. What it does not know is an error: a
// misspelt key would otherwise widen a policy in silence.
func Parse(text []byte) (Policy, error) {
	var in struct {
		Version   string
		Statement []struct {
			Sid       string
			Effect    string
			Action    Strings
			Resource  Strings
			Condition map[string]map[string]Strings
		}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return Policy{}, fmt.Errorf("the policy: %w", err)
	}
	p := Policy{Version: in.Version}
	if p.Version != "2012-10-17" {
		return Policy{}, fmt.Errorf("the policy has the version %q, and 2012-10-17 is the one with variables and tags", p.Version)
	}
	for i, s := range in.Statement {
		switch {
		case s.Effect != "Allow" && s.Effect != "Deny":
			return Policy{}, fmt.Errorf("statement %d of the policy has the effect %q; there are Allow and Deny", i+1, s.Effect)
		case len(s.Action) == 0 || len(s.Resource) == 0:
			return Policy{}, fmt.Errorf("statement %d of the policy has no action or no resource", i+1)
		}
		for _, a := range s.Action {
			if service, name, ok := strings.Cut(a, ":"); a != "*" && (!ok || service == "" || name == "") {
				return Policy{}, fmt.Errorf("statement %d of the policy has the action %q; write it as ec2:RunInstances", i+1, a)
			}
			if _, err := path.Match(a, ""); err != nil {
				return Policy{}, fmt.Errorf("statement %d of the policy has the action %q: %w", i+1, a, err)
			}
		}
		p.Statements = append(p.Statements, Statement{s.Sid, s.Effect, s.Action, s.Resource, s.Condition})
	}
	return p, nil
}

// Allows reports whether some statement allows an action, on whatever resource
// and under whatever condition, and no unconditional statement denies it.
func (p Policy) Allows(action string) bool {
	allowed := false
	for _, s := range p.Statements {
		if !slices.ContainsFunc(s.Actions, func(pattern string) bool { return matches(pattern, action) }) {
			continue
		}
		if s.Effect == "Deny" && len(s.Condition) == 0 {
			return false
		}
		allowed = allowed || s.Effect == "Allow"
	}
	return allowed
}

// matches compares as IAM does: without case, with * and ?.
func matches(pattern, action string) bool {
	if pattern == "*" {
		return true
	}
	ok, _ := path.Match(strings.ToLower(pattern), strings.ToLower(action))
	return ok
}
