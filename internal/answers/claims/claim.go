package claims

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/percore/percore/internal/answers/figures"
	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/base/infile"
	"github.com/percore/percore/internal/base/yamlfile"
	"github.com/percore/percore/results/published"
)

// Kind says what a claim is about, and with that what it is judged on.
type Kind string

const (
	Absolute Kind = "absolute" // a figure itself: depends on the hardware
	Ratio    Kind = "ratio"    // a ratio of figures of one run: need not
	Order    Kind = "order"    // which candidate is ahead: judged on ratios of neighbours
	Identity Kind = "identity" // two ways to the same number
)

// Basis says in words what a claim of the kind is judged on.
func (k Kind) Basis() string {
	switch k {
	case Absolute:
		return "judged on the figure itself"
	case Ratio:
		return "judged on a ratio within the run"
	case Order:
		return "judged on the ratios of neighbours within the run"
	case Identity:
		return "judged on two ways to one number within the run"
	}
	return ""
}

// Claim is one checkable statement of a study.
type Claim struct {
	ID      string
	Says    string
	Study   string
	Kind    Kind
	RestsOn []figures.Key // every figure that the rule and its condition use
	Given   []Part        // the condition under which the claim says anything
	Parts   []Part        // all must hold

	printed printed // of the file that the claim stands in
}

// printed are figures as a study prints them, written down with the claims: what
// a claim expects does not change with a set of figures, whoever edits that.
type printed map[figures.Key]float64

// Part is one comparison of a claim.
type Part struct {
	Text      string // the rule as written, braces expanded
	Op        Op
	Value     Expr
	Of        *Expr   // what is expected, where the claim names another figure or number
	Tolerance float64 // relative
	Limit     float64
	More      float64 // of an order: by which factor the one is ahead of the next
}

// Op is the comparison that a part makes.
type Op string

const (
	OpWithin  Op = "within"    // of the published value, or of another expression
	OpAtLeast Op = "at_least"  // a limit
	OpAtMost  Op = "at_most"   // a limit
	OpAhead   Op = "order"     // the ratio of two neighbours is above 1
	OpEqual   Op = "equal"     // the ratio of both sides is 1 within the tolerance
	OpRounds  Op = "rounds_up" // the value, rounded up, is what is expected
)

// The file as it is written.
type fileSyntax struct {
	Printed map[string]float64 `yaml:"printed"`
	Claims  []claimSyntax      `yaml:"claims"`
}

type claimSyntax struct {
	Line    int                 `yaml:",line"`
	ID      string              `yaml:"id"`
	Says    string              `yaml:"says"`
	Study   string              `yaml:"study"`
	Kind    Kind                `yaml:"kind"`
	For     map[string][]string `yaml:"for"`
	RestsOn []string            `yaml:"rests_on"`
	Given   *ruleSyntax         `yaml:"given"`
	Rule    *ruleSyntax         `yaml:"rule"`
}

type ruleSyntax struct {
	All     []ruleSyntax   `yaml:"all"`
	Within  *withinSyntax  `yaml:"within"`
	AtLeast *limitSyntax   `yaml:"at_least"`
	AtMost  *limitSyntax   `yaml:"at_most"`
	Order   *orderSyntax   `yaml:"order"`
	Equal   *equalSyntax   `yaml:"equal"`
	Rounds  *roundedSyntax `yaml:"rounds_up"`
}

type withinSyntax struct {
	Value     string  `yaml:"value"`
	Of        string  `yaml:"of"`
	Tolerance float64 `yaml:"tolerance"`
}

type limitSyntax struct {
	Value string   `yaml:"value"`
	Limit *float64 `yaml:"limit"`
}

type orderSyntax struct {
	Values []string `yaml:"values"`
	By     float64  `yaml:"by"`
}

type equalSyntax struct {
	Left      string  `yaml:"left"`
	Right     string  `yaml:"right"`
	Tolerance float64 `yaml:"tolerance"`
}

type roundedSyntax struct {
	Value string `yaml:"value"`
	Of    string `yaml:"of"`
}

// Bounds on what a file may expand to.
const (
	maxClaims = 5000
	maxParts  = 500
)

var claimsFile = yamlfile.Kind{What: "claims", Like: "results/published/" + published.ClaimsFile + " (docs/claims.md explains it)"}

// Published returns the claims that ship with percore.
func Published() ([]Claim, error) {
	data, err := published.Files.ReadFile(published.ClaimsFile)
	if err != nil {
		return nil, fmt.Errorf("reading the claims: %w", err)
	}
	return Parse("results/published/"+published.ClaimsFile, data)
}

// Read reads a file of claims.
func Read(path string) ([]Claim, error) {
	data, err := infile.Read(path, yamlfile.MaxSize, claimsFile.What, claimsFile.Like)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Parse reads claims. The name stands for the data in errors.
func Parse(name string, data []byte) ([]Claim, error) {
	var f fileSyntax
	if err := claimsFile.Decode(name, data, &f); err != nil {
		return nil, err
	}
	if len(f.Claims) == 0 {
		return nil, fail.In(name, "there are no claims in it").Try("docs/claims.md shows how one is written")
	}
	values := make(printed, len(f.Printed))
	unused := make(map[figures.Key]bool, len(f.Printed))
	for text, v := range f.Printed {
		k, err := figures.ParseKey(text)
		if err == nil && (!(v >= 0) || math.IsInf(v, 0)) {
			err = fmt.Errorf("%v is no figure", v)
		}
		if err == nil && unused[k] {
			err = errors.New("it stands there twice")
		}
		if err != nil {
			return nil, fail.In(name, "printed: %s: %w", oneLine(text), err).Try("docs/claims.md shows how it is written")
		}
		values[k], unused[k] = v, true
	}
	var all []Claim
	seen := map[string]bool{}
	for i, c := range f.Claims {
		list, err := c.expand(maxClaims - len(all))
		if err != nil {
			return nil, fail.In(fail.At(name, c.Line), "claim %d (%s): %w", i+1, oneLine(c.ID), err).Try("docs/claims.md shows how a claim is written")
		}
		for _, e := range list {
			if seen[e.ID] {
				return nil, fail.In(fail.At(name, c.Line), "claim %d: the id %q is in the file twice", i+1, e.ID).Try("give one of them another")
			}
			seen[e.ID] = true
			e.printed = values
			for _, k := range e.RestsOn {
				delete(unused, k)
			}
			all = append(all, e)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(f.Printed)) {
		if k, _ := figures.ParseKey(text); unused[k] {
			return nil, fail.In(name, "printed: no claim rests on %s", k).Try("correct its name or take it out")
		}
	}
	return all, nil
}

func oneLine(s string) string {
	if s == "" {
		return "without an id"
	}
	return strings.Join(strings.Fields(s), " ")
}

// expand makes the claims that one entry stands for.
func (c claimSyntax) expand(room int) ([]Claim, error) {
	names := make([]string, 0, len(c.For))
	count := 1
	for name, values := range c.For {
		if len(values) == 0 {
			return nil, fmt.Errorf("for %s has no values", name)
		}
		if !isName(name) {
			return nil, fail.Input("%q is no name for a variable", name).Try("take letters")
		}
		if !strings.Contains(c.ID, "$"+name) {
			return nil, fmt.Errorf("the id must hold $%s, or its claims have one id", name)
		}
		for _, other := range names {
			if strings.HasPrefix(name, other) || strings.HasPrefix(other, name) {
				return nil, fail.Input("one of the variables %s and %s begins like the other", other, name).Try("rename one")
			}
		}
		names = append(names, name)
		if count *= len(values); count > room {
			return nil, errors.New("the file stands for too many claims")
		}
	}
	if count > room {
		return nil, errors.New("the file stands for too many claims")
	}
	slices.Sort(names)
	var all []Claim
	for i := range count {
		var pairs []string
		n := i
		for j := len(names) - 1; j >= 0; j-- {
			values := c.For[names[j]]
			pairs = append(pairs, "$"+names[j], values[n%len(values)])
			n /= len(values)
		}
		claim, err := c.build(strings.NewReplacer(pairs...).Replace)
		if err != nil {
			return nil, err
		}
		all = append(all, claim)
	}
	return all, nil
}

func isName(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return s != ""
}

// build makes one claim, with the variables filled in by a function.
func (c claimSyntax) build(fill func(string) string) (Claim, error) {
	claim := Claim{ID: fill(c.ID), Says: strings.TrimSpace(fill(c.Says)), Study: c.Study, Kind: c.Kind}
	switch {
	case claim.ID == "" || strings.ContainsAny(claim.ID, " \t\r\n$"):
		return claim, fail.Input("%q is no id", claim.ID).Try("take letters, digits and dashes")
	case claim.Says == "":
		return claim, errors.New("says must hold a sentence")
	case strings.Contains(claim.Says, "$"):
		return claim, fmt.Errorf("%q holds a variable that for does not give", claim.Says)
	case c.Study == "":
		return claim, errors.New("study must name a study")
	case c.Kind.Basis() == "":
		return claim, fail.Input("%q is no kind of claim", c.Kind).Try("take absolute, ratio, order or identity")
	case c.Rule == nil:
		return claim, errors.New("a rule must be written")
	}
	var err error
	if claim.Parts, err = c.Rule.parts(fill, 0); err != nil {
		return claim, err
	}
	if c.Given != nil {
		if claim.Given, err = c.Given.parts(fill, 0); err != nil {
			return claim, fmt.Errorf("given: %w", err)
		}
	}
	if err := claim.fits(); err != nil {
		return claim, err
	}
	declared := map[figures.Key]bool{}
	for _, text := range c.RestsOn {
		texts, err := braces(fill(text))
		if err != nil {
			return claim, err
		}
		for _, t := range texts {
			k, err := figures.ParseKey(t)
			if err != nil {
				return claim, err
			}
			if declared[k] {
				return claim, fmt.Errorf("rests_on names %s twice", k)
			}
			declared[k] = true
			claim.RestsOn = append(claim.RestsOn, k)
		}
	}
	used := map[figures.Key]bool{}
	for _, p := range append(slices.Clone(claim.Parts), claim.Given...) {
		for _, k := range p.keys() {
			used[k] = true
			if !declared[k] {
				return claim, fmt.Errorf("the rule uses %s, which rests_on does not name", k)
			}
		}
	}
	for _, k := range claim.RestsOn {
		if !used[k] {
			return claim, fmt.Errorf("rests_on names %s, which the rule does not use", k)
		}
	}
	return claim, nil
}

// fits checks that the rule is one for the kind of claim.
func (c Claim) fits() error {
	for _, p := range c.Parts {
		switch {
		case (p.Op == OpAhead) != (c.Kind == Order):
			return fmt.Errorf("a claim of kind %s cannot have the rule %s", c.Kind, p.Op)
		case (p.Op == OpEqual) != (c.Kind == Identity):
			return fmt.Errorf("a claim of kind %s cannot have the rule %s", c.Kind, p.Op)
		case c.Kind == Ratio && !p.Value.isRatio():
			return fmt.Errorf("a claim of kind ratio needs a ratio of figures, and %q is none", p.Value.Text)
		}
	}
	return nil
}

func (p Part) keys() []figures.Key {
	keys := p.Value.keys()
	if p.Of != nil {
		keys = append(keys, p.Of.keys()...)
	}
	return keys
}

// parts turns a rule into its comparisons.
func (r ruleSyntax) parts(fill func(string) string, depth int) ([]Part, error) {
	if depth > 4 {
		return nil, errors.New("rules are nested too deep")
	}
	set := 0
	for _, there := range []bool{r.All != nil, r.Within != nil, r.AtLeast != nil, r.AtMost != nil, r.Order != nil, r.Equal != nil, r.Rounds != nil} {
		if there {
			set++
		}
	}
	if set != 1 {
		return nil, errors.New("a rule is exactly one of all, within, at_least, at_most, order, equal and rounds_up")
	}
	var all []Part
	add := func(make func(texts []string) (Part, error), texts ...string) error {
		for i := range texts {
			texts[i] = fill(texts[i])
		}
		rows, err := together(texts)
		if err != nil {
			return err
		}
		for _, row := range rows {
			p, err := make(row)
			if err != nil {
				return err
			}
			if all = append(all, p); len(all) > maxParts {
				return errors.New("the rule stands for too many comparisons")
			}
		}
		return nil
	}
	var err error
	switch {
	case r.All != nil:
		if len(r.All) == 0 {
			return nil, errors.New("all has no rules")
		}
		for _, sub := range r.All {
			list, err := sub.parts(fill, depth+1)
			if err != nil {
				return nil, err
			}
			if all = append(all, list...); len(all) > maxParts {
				return nil, errors.New("the rule stands for too many comparisons")
			}
		}
	case r.Within != nil:
		if err := tolerance(r.Within.Tolerance); err != nil {
			return nil, err
		}
		texts := []string{r.Within.Value}
		if r.Within.Of != "" {
			texts = append(texts, r.Within.Of)
		}
		err = add(func(t []string) (Part, error) {
			p := Part{Op: OpWithin, Tolerance: r.Within.Tolerance}
			p.Text = fmt.Sprintf("%s within %v %% of the published value", t[0], trim(100*p.Tolerance))
			var err error
			if p.Value, err = ParseExpr(t[0]); err != nil {
				return p, err
			}
			if len(t) > 1 {
				of, err := ParseExpr(t[1])
				if err != nil {
					return p, err
				}
				p.Of = &of
				p.Text = fmt.Sprintf("%s within %v %% of %s", t[0], trim(100*p.Tolerance), t[1])
			}
			return p, nil
		}, texts...)
	case r.AtLeast != nil, r.AtMost != nil:
		l, op, word := r.AtLeast, OpAtLeast, "at least"
		if l == nil {
			l, op, word = r.AtMost, OpAtMost, "at most"
		}
		if l.Limit == nil || math.IsNaN(*l.Limit) || math.IsInf(*l.Limit, 0) {
			return nil, fmt.Errorf("%s needs a limit that is a number", op)
		}
		err = add(func(t []string) (Part, error) {
			v, err := ParseExpr(t[0])
			return Part{Op: op, Value: v, Limit: *l.Limit, Text: fmt.Sprintf("%s %s %v", t[0], word, trim(*l.Limit))}, err
		}, l.Value)
	case r.Order != nil:
		by := r.Order.By
		if by == 0 {
			by = 1
		}
		if !(by >= 1) || math.IsInf(by, 0) {
			return nil, fail.Input("an order by a factor of %v makes no sense", by).Try("take a factor from 1")
		}
		if len(r.Order.Values) < 2 {
			return nil, errors.New("an order needs at least two values")
		}
		for i := range len(r.Order.Values) - 1 {
			if err = add(func(t []string) (Part, error) {
				a, err := ParseExpr(t[0])
				if err != nil {
					return Part{}, err
				}
				b, err := ParseExpr(t[1])
				if err != nil {
					return Part{}, err
				}
				return Part{Op: OpAhead, Value: a.over(b), More: by, Text: fmt.Sprintf("%s above %s", t[0], t[1])}, nil
			}, r.Order.Values[i], r.Order.Values[i+1]); err != nil {
				break
			}
		}
	case r.Equal != nil:
		if err := tolerance(r.Equal.Tolerance); err != nil {
			return nil, err
		}
		err = add(func(t []string) (Part, error) {
			a, err := ParseExpr(t[0])
			if err != nil {
				return Part{}, err
			}
			b, err := ParseExpr(t[1])
			if err != nil {
				return Part{}, err
			}
			return Part{Op: OpEqual, Value: a.over(b), Tolerance: r.Equal.Tolerance,
				Text: fmt.Sprintf("%s equals %s within %v %%", t[0], t[1], trim(100*r.Equal.Tolerance))}, nil
		}, r.Equal.Left, r.Equal.Right)
	case r.Rounds != nil:
		err = add(func(t []string) (Part, error) {
			v, err := ParseExpr(t[0])
			if err != nil {
				return Part{}, err
			}
			of, err := ParseExpr(t[1])
			return Part{Op: OpRounds, Value: v, Of: &of, Text: fmt.Sprintf("%s, rounded up, is %s", t[0], t[1])}, err
		}, r.Rounds.Value, r.Rounds.Of)
	}
	return all, err
}

func tolerance(t float64) error {
	if !(t >= 0 && t < 1) {
		return fail.Input("a tolerance of %v makes no sense", t).Try("write 0.1 for 10 %%")
	}
	return nil
}

// trim writes a number without the noise of binary fractions.
func trim(v float64) string { return fmt.Sprint(math.Round(v*1e6) / 1e6) }

// together expands the braces of several texts. Equal lists, in one text or in
// several, go together; different ones combine.
func together(texts []string) ([][]string, error) {
	const sep = "\x00"
	if slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, sep) }) {
		return nil, errors.New("the rule holds a zero byte")
	}
	rows, err := braces(strings.Join(texts, sep))
	if err != nil {
		return nil, err
	}
	var all [][]string
	for _, r := range rows {
		all = append(all, strings.Split(r, sep))
	}
	return all, nil
}

// braces expands {a,b} lists; equal lists go together.
func braces(s string) ([]string, error) {
	open := strings.IndexByte(s, '{')
	if open < 0 {
		if strings.IndexByte(s, '}') >= 0 {
			return nil, fmt.Errorf("%q: a } without its {", printable(s))
		}
		return []string{s}, nil
	}
	length := strings.IndexByte(s[open:], '}')
	if length < 0 {
		return nil, fmt.Errorf("%q: a { without its }", printable(s))
	}
	list := s[open : open+length+1]
	options := strings.Split(list[1:len(list)-1], ",")
	var all []string
	for _, o := range options {
		o = strings.TrimSpace(o)
		if o == "" || strings.ContainsAny(o, "{}") {
			return nil, fmt.Errorf("%q: an empty name in %s", printable(s), list)
		}
		rest, err := braces(strings.ReplaceAll(s, list, o))
		if err != nil {
			return nil, err
		}
		if all = append(all, rest...); len(all) > maxParts {
			return nil, fmt.Errorf("%q stands for too many figures", printable(s))
		}
	}
	return all, nil
}

func printable(s string) string { return strings.ReplaceAll(s, "\x00", " and ") }
