// Package yamlfile reads every YAML file that a person writes, and refuses
// whatever two readers could take for different things. Its errors are one
// sentence with the file, the line, the key and what to write instead.
package yamlfile

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/base/infile"
)

// Bounds on a file.
const (
	MaxSize  = 1 << 20 // bytes
	maxNodes = 100000  // values once its aliases are followed
	maxDepth = 100     // of values in values
	maxShown = 60      // characters of the file that an error repeats
)

var (
	// wholeNumber and number are the one way to write numbers: 0300, 0x1F, 1_000
	// and .5 mean different things to different readers of YAML.
	wholeNumber = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)
	number      = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

	// likeNumber is what stands there without quotes and only some readers take
	// for a number: 08, 1e3.
	likeNumber = regexp.MustCompile(`^[-+]?(0[0-9_]+|[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+)$`)
)

// Text is a value with a form of its own in a file, such as a duration.
type Text interface {
	FromYAML(text string) error
	Form() string // how to write it: the remedy
}

// Kind is a kind of file.
type Kind struct {
	What string // in a sentence, as in "claims"
	Like string // a file of the kind that is right
}

// Read reads a file whose every key must be known.
func (k Kind) Read(path string, into any) error {
	data, err := infile.Read(path, MaxSize, k.What, k.Like)
	if err != nil {
		return err
	}
	return k.Decode(path, data, into)
}

// Decode reads a document whose every key must be known. The name stands for
// it in errors. A struct field with the tag yaml:",line" becomes the line on
// which the struct begins.
func (k Kind) Decode(name string, data []byte, into any) error {
	body, err := k.parse(name, data)
	if err != nil {
		return err
	}
	d := &decoder{path: name, anchors: map[string]ast.Node{}}
	return d.decode(body, reflect.ValueOf(into).Elem(), "")
}

// Check refuses what [Kind.Decode] refuses in any document, for one that is
// then read in another way. It returns the text without a byte order mark. A
// text may hold control characters that are written as escapes: they may be
// what is to be sent.
func (k Kind) Check(name string, data []byte) ([]byte, error) {
	body, err := k.parse(name, data)
	if err != nil {
		return nil, err
	}
	w := &unambiguous{d: &decoder{path: name}}
	if ast.Walk(w, body); w.err != nil {
		return nil, w.err
	}
	return withoutMark(data), nil
}

func (k Kind) parse(name string, data []byte) (_ ast.Node, err error) {
	defer func() {
		// The library may panic on hostile input.
		if r := recover(); r != nil {
			err = fail.In(name, "this is not YAML").Try("write it like %s", k.Like)
		}
	}()
	if len(data) > MaxSize {
		return nil, fail.In(name, "a file of more than %d bytes is too large for %s", MaxSize, k.What).Try("write a smaller one like %s", k.Like)
	}
	data = withoutMark(data)
	if err := readable(name, data); err != nil {
		return nil, err
	}
	if err := shallow(name, data); err != nil {
		return nil, err
	}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		var at yaml.Error
		if !errors.As(err, &at) {
			return nil, fail.In(name, "%s", clip(oneLine(err.Error()), 2*maxShown)).Try("correct the file")
		}
		line := 0
		if t := at.GetToken(); t != nil && t.Position != nil {
			line = t.Position.Line
		}
		return nil, fail.In(fail.At(name, line), "%s", clip(oneLine(at.GetMessage()), 2*maxShown)).Try("correct that line")
	}
	d := &decoder{path: name}
	var body ast.Node
	for _, doc := range file.Docs {
		switch doc.Body.(type) {
		case nil, *ast.NullNode, *ast.DirectiveNode:
			continue
		}
		if body != nil {
			return nil, d.fail(doc.Body, "", "a second document begins after ---").Try("write one document in a file")
		}
		body = doc.Body
	}
	if body == nil {
		return nil, fail.In(name, "it is empty or holds nothing but comments").Try("write it like %s", k.Like)
	}
	return body, nil
}

// ambiguous says what other readers of YAML would take for something else, and
// what to write instead; "" for nothing.
func ambiguous(n ast.Node) (problem, remedy string) {
	switch x := n.(type) {
	case *ast.IntegerNode:
		if text := x.GetToken().Value; !wholeNumber.MatchString(text) {
			return clip(text, maxShown) + ", which is not the same number to every reader of YAML", "write it in digits alone, without leading zeros and underscores, or in quotes if it is a text"
		}
	case *ast.FloatNode:
		if text := x.GetToken().Value; !number.MatchString(text) {
			return clip(text, maxShown) + ", which is not the same number to every reader of YAML", "write it as in 0.25, without leading zeros and underscores, or in quotes if it is a text"
		}
	case *ast.StringNode:
		if x.GetToken().Type == token.StringType && likeNumber.MatchString(x.Value) {
			return clip(x.Value, maxShown) + ", which is a number to some readers of YAML and a text to others", "write it in digits alone, as in 8 or 0.25, or in quotes if it is a text"
		}
	}
	return "", ""
}

// control says that a text holds a control character, "" when it holds none.
func control(n ast.Node) (problem, remedy string) {
	text, _ := scalar(n)
	for _, r := range text {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return fmt.Sprintf("a text with the control character %U", r), "take it out"
		}
	}
	return "", ""
}

// unambiguous looks for the first ambiguous value of a document.
type unambiguous struct {
	d   *decoder
	err error
}

func (w *unambiguous) Visit(n ast.Node) ast.Visitor {
	if w.err != nil {
		return nil
	}
	if problem, remedy := ambiguous(n); problem != "" {
		w.err = w.d.fail(n, "", "this is %s", problem).Try("%s", remedy)
	}
	return w
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// clip bounds what an error repeats of a file.
func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

type decoder struct {
	path    string
	anchors map[string]ast.Node
	nodes   int
}

func (d *decoder) fail(n ast.Node, key, format string, args ...any) *fail.Error {
	where := d.path
	if t := n.GetToken(); t != nil && t.Position != nil {
		where = fmt.Sprintf("%s:%d", d.path, t.Position.Line)
	}
	if key != "" {
		where += ": " + key
	}
	return fail.In(where, format, args...)
}

// plain follows aliases and takes anchors off. done is to be called when the
// node has been read: until then its anchor does not count, so that a node
// cannot hold itself.
func (d *decoder) plain(n ast.Node, key string) (_ ast.Node, done func(), _ error) {
	done = func() {}
	for {
		if d.nodes++; d.nodes > maxNodes {
			return nil, nil, d.fail(n, key, "the file holds more than %d values with its aliases followed", maxNodes).Try("write fewer")
		}
		switch x := n.(type) {
		case *ast.AnchorNode:
			name, value := x.Name.GetToken().Value, x.Value
			before := done
			done = func() { before(); d.anchors[name] = value }
			n = value
		case *ast.AliasNode:
			name := x.Value.GetToken().Value
			target, ok := d.anchors[name]
			if !ok {
				return nil, nil, d.fail(n, key, "there is no anchor &%s above", name).Try("write the value itself")
			}
			n = target
		case *ast.TagNode:
			return nil, nil, d.fail(n, key, "the tag %s is not understood", x.GetToken().Value).Try("leave it out")
		case *ast.NullNode, nil:
			return nil, nil, d.fail(n, "", "%s has no value", subject(key)).Try("write one, or leave the key out")
		default:
			return n, done, nil
		}
	}
}

func (d *decoder) decode(n ast.Node, to reflect.Value, key string) error {
	n, done, err := d.plain(n, key)
	if err != nil {
		return err
	}
	defer done()
	if to.Kind() == reflect.Pointer {
		to.Set(reflect.New(to.Type().Elem()))
		to = to.Elem()
	}
	for _, look := range []func(ast.Node) (string, string){ambiguous, control} {
		if problem, remedy := look(n); problem != "" && to.Kind() != reflect.Int {
			return d.fail(n, "", "%s is %s", subject(key), problem).Try("%s", remedy)
		}
	}
	if v, ok := to.Addr().Interface().(Text); ok {
		text, ok := scalar(n)
		if !ok {
			return d.fail(n, "", "%s is %s", subject(key), describe(n)).Try("%s", v.Form())
		}
		if err := v.FromYAML(text); err != nil {
			return d.fail(n, key, "%w", err)
		}
		return nil
	}
	wrong := func(remedy string) error {
		return d.fail(n, "", "%s is %s", subject(key), describe(n)).Try("%s", remedy)
	}
	switch to.Kind() {
	case reflect.Struct, reflect.Map:
		m, ok := n.(ast.MapNode)
		if !ok {
			return wrong("write keys with values")
		}
		entries, err := d.entries(m, key)
		if err != nil {
			return err
		}
		if to.Kind() == reflect.Map {
			to.Set(reflect.MakeMap(to.Type()))
		} else if i := lineField(to.Type()); i >= 0 && len(entries) > 0 {
			to.Field(i).SetInt(int64(entries[0].at.GetToken().Position.Line))
		}
		for _, e := range entries {
			if err := d.entry(e, to, key); err != nil {
				return err
			}
		}
	case reflect.Slice:
		s, ok := n.(*ast.SequenceNode)
		if !ok {
			if _, ok := scalar(n); ok {
				return wrong(fmt.Sprintf("write a list, as in [%s]", describe(n)))
			}
			return wrong("write a list")
		}
		list := reflect.MakeSlice(to.Type(), len(s.Values), len(s.Values))
		for i, v := range s.Values {
			if err := d.decode(v, list.Index(i), fmt.Sprintf("%s[%d]", key, i)); err != nil {
				return err
			}
		}
		to.Set(list)
	case reflect.String:
		text, ok := scalar(n)
		if !ok {
			return wrong("write a text")
		}
		to.SetString(text)
	case reflect.Bool:
		b, ok := n.(*ast.BoolNode)
		if !ok {
			return wrong("write true or false")
		}
		to.SetBool(b.Value)
	case reflect.Float64:
		text, _ := scalar(n)
		v, err := strconv.ParseFloat(text, 64)
		_, whole := n.(*ast.IntegerNode)
		if _, ok := n.(*ast.FloatNode); !ok && !whole || !number.MatchString(text) || err != nil || math.IsInf(v, 0) {
			return wrong("write a number, as in 0.25")
		}
		to.SetFloat(v)
	case reflect.Interface:
		v, err := d.plainValue(n, key)
		if err != nil {
			return err
		}
		to.Set(reflect.ValueOf(v))
	case reflect.Int:
		text, _ := scalar(n)
		v, err := strconv.Atoi(text)
		if _, ok := n.(*ast.IntegerNode); !ok || !wholeNumber.MatchString(text) || err != nil {
			return wrong("write a whole number, in digits alone")
		}
		to.SetInt(int64(v))
	default:
		panic("yamlfile: no form for " + to.Type().String())
	}
	return nil
}

// plainValue is a value whose type is what stands in the file.
func (d *decoder) plainValue(n ast.Node, key string) (any, error) {
	switch x := n.(type) {
	case *ast.BoolNode:
		return x.Value, nil
	case *ast.IntegerNode:
		return x.Value, nil
	case *ast.FloatNode:
		return x.Value, nil
	case ast.MapNode:
		m := map[string]any{}
		return m, d.decode(n, reflect.ValueOf(&m).Elem(), key)
	case *ast.SequenceNode:
		var list []any
		err := d.decode(n, reflect.ValueOf(&list).Elem(), key)
		return list, err
	}
	if text, ok := scalar(n); ok {
		return text, nil
	}
	return nil, d.fail(n, "", "%s is %s", subject(key), describe(n)).Try("write a number, a text, a list or keys with values")
}

// entry reads one key with its value into a struct or a map.
func (d *decoder) entry(e entry, to reflect.Value, key string) error {
	name := join(key, e.key)
	if to.Kind() == reflect.Map {
		v := reflect.New(to.Type().Elem()).Elem()
		if err := d.decode(e.value, v, name); err != nil {
			return err
		}
		to.SetMapIndex(reflect.ValueOf(e.key).Convert(to.Type().Key()), v)
		return nil
	}
	var known []string
	for i := range to.NumField() {
		field, _, _ := strings.Cut(to.Type().Field(i).Tag.Get("yaml"), ",")
		if field == "-" || field == "" {
			continue // not of the file
		}
		if field == e.key {
			return d.decode(e.value, to.Field(i), name)
		}
		known = append(known, field)
	}
	return d.fail(e.at, key, "unknown field %q", clip(e.key, maxShown)).Try("the fields here are %s", strings.Join(known, ", "))
}

// lineField is the field of a struct that becomes its line, -1 without one.
func lineField(t reflect.Type) int {
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("yaml") == ",line" {
			return i
		}
	}
	return -1
}

type entry struct {
	at    ast.Node
	key   string
	value ast.Node
}

// entries are the keys of a mapping with what <<: merges into it, which its own
// keys override.
func (d *decoder) entries(m ast.MapNode, key string) ([]entry, error) {
	var all []entry
	seen := map[string]bool{}
	add := func(e entry) {
		if !seen[e.key] {
			all, seen[e.key] = append(all, e), true
		}
	}
	var merges []ast.Node
	for it := m.MapRange(); it.Next(); {
		switch k := it.Key().(type) {
		case *ast.MergeKeyNode:
			merges = append(merges, it.Value())
		case *ast.StringNode:
			if problem, remedy := control(k); problem != "" {
				return nil, d.fail(k, key, "a key is %s", problem).Try("%s", remedy)
			}
			add(entry{k, k.Value, it.Value()})
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
			if problem, remedy := ambiguous(k); problem != "" {
				return nil, d.fail(k, key, "a key is %s", problem).Try("%s", remedy)
			}
			add(entry{k, k.GetToken().Value, it.Value()})
		default:
			return nil, d.fail(k, key, "the key is not a plain word").Try("write one as in name: value")
		}
	}
	for len(merges) > 0 {
		n, done, err := d.plain(merges[0], key)
		if err != nil {
			return nil, err
		}
		merges = merges[1:]
		switch x := n.(type) {
		case *ast.SequenceNode: // several to merge, of which the first wins
			merges = slices.Concat(x.Values, merges)
		case ast.MapNode:
			more, err := d.entries(x, key)
			if err != nil {
				return nil, err
			}
			for _, e := range more {
				add(e)
			}
		default:
			return nil, d.fail(n, key, "<<: takes the keys of another mapping").Try("write it as in <<: *anchor")
		}
		done()
	}
	return all, nil
}

// scalar is the text of a single value as it stands in the file, without
// quotes.
func scalar(n ast.Node) (string, bool) {
	switch x := n.(type) {
	case *ast.StringNode:
		return x.Value, true
	case *ast.LiteralNode:
		return x.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// describe says what stands there, for a sentence that says what should.
func describe(n ast.Node) string {
	if text, ok := scalar(n); ok {
		if _, quoted := n.(*ast.StringNode); quoted {
			return strconv.Quote(clip(text, maxShown))
		}
		return clip(text, maxShown)
	}
	switch n.(type) {
	case *ast.SequenceNode:
		return "a list"
	case ast.MapNode:
		return "a mapping"
	}
	return "something else"
}

func subject(key string) string {
	if key == "" {
		return "the document"
	}
	return key
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}
