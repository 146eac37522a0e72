package plan

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/percore/percore/internal/base/fail"
)

// maxNodes bounds what a file may hold once its aliases are followed.
const maxNodes = 10000

// wholeNumber is the one way to write an integer: 0300, 0x1F and 1_000 mean
// different numbers to different readers of YAML.
var wholeNumber = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)

// yamlText is a value with a form of its own in a file.
type yamlText interface {
	fromYAML(text string) error
	form() string // how to write it: the remedy
}

// decodeYAML reads a document whose every key must be known. Its errors are one
// sentence with the file, the line, the key and what to write instead.
func decodeYAML(path string, text []byte, into any) error {
	text = bytes.TrimPrefix(text, []byte("\uFEFF")) // some editors begin a file with it
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		var at yaml.Error
		if !errors.As(err, &at) {
			return fail.In(path, "%s", oneLine(err.Error())).Try("correct the file")
		}
		line := 0
		if t := at.GetToken(); t != nil && t.Position != nil {
			line = t.Position.Line
		}
		return fail.In(fail.At(path, line), "%s", oneLine(at.GetMessage())).Try("correct that line")
	}
	d := &decoder{path: path, anchors: map[string]ast.Node{}}
	var body ast.Node
	for _, doc := range file.Docs {
		switch doc.Body.(type) {
		case nil, *ast.NullNode, *ast.DirectiveNode:
			continue
		}
		if body != nil {
			return d.fail(doc.Body, "", "a second document begins after ---").Try("write one document in a file")
		}
		body = doc.Body
	}
	if body == nil {
		return fail.Input("%s is empty or holds nothing but comments", path).Try("see %s/ for files to start from", profileDir)
	}
	return d.decode(body, reflect.ValueOf(into).Elem(), "")
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

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
	if v, ok := to.Addr().Interface().(yamlText); ok {
		text, ok := scalar(n)
		if !ok {
			return d.fail(n, "", "%s is %s", subject(key), describe(n)).Try("%s", v.form())
		}
		if err := v.fromYAML(text); err != nil {
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
	case reflect.Int:
		text, _ := scalar(n)
		v, err := strconv.Atoi(text)
		if _, ok := n.(*ast.IntegerNode); !ok || !wholeNumber.MatchString(text) || err != nil {
			return wrong("write a whole number, in digits alone")
		}
		to.SetInt(int64(v))
	default:
		panic("profile: no YAML form for " + to.Type().String())
	}
	return nil
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
		if field == "-" {
			continue // not of the file
		}
		if field == e.key {
			return d.decode(e.value, to.Field(i), name)
		}
		known = append(known, field)
	}
	return d.fail(e.at, key, "unknown field %q", e.key).Try("the fields here are %s", strings.Join(known, ", "))
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
			add(entry{k, k.Value, it.Value()})
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
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
			return strconv.Quote(text)
		}
		return text
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
