package yamlfile

import (
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/percore/percore/internal/base/fail"
)

// Place says on which line of a document the value stands that an error is about:
// the line of the key that it names (see fail.Error). An error without a key gets
// the name of the document alone.
func (k Kind) Place(name string, data []byte, err error) error {
	key := fail.KeyOf(err)
	if err == nil || key == "" {
		return fail.In(name, "%w", err)
	}
	return fail.In(fail.At(name, k.line(name, data, key)), "%w", err)
}

// line is the line of a document on which a key begins, as in roles.app.memory or
// phases[1].window; of a key that is not there the line of the nearest one above
// it, and 1 where there is none.
func (k Kind) line(name string, data []byte, key string) int {
	body, err := k.parse(name, data)
	if err != nil {
		return 1
	}
	d := &decoder{path: name, anchors: map[string]ast.Node{}}
	return d.line(body, key, 1)
}

// line follows a key below a node; above is the line of the node.
func (d *decoder) line(n ast.Node, key string, above int) int {
	n, done, err := d.plain(n, "")
	if err != nil {
		return above
	}
	defer done()
	switch x := n.(type) {
	case *ast.SequenceNode:
		number, rest, _ := strings.Cut(strings.TrimPrefix(key, "["), "]")
		i, err := strconv.Atoi(number)
		if err != nil || i < 0 || i >= len(x.Values) {
			return above
		}
		return d.line(x.Values[i], strings.TrimPrefix(rest, "."), d.first(x.Values[i]))
	case ast.MapNode:
		entries, err := d.entries(x, "")
		if err != nil {
			return above
		}
		var next *entry
		for i, e := range entries { // a key may hold dots itself: the longest that fits
			rest, ok := strings.CutPrefix(key, e.key)
			if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') && (next == nil || len(e.key) > len(next.key)) {
				next = &entries[i]
			}
		}
		if next == nil {
			return above
		}
		return d.line(next.value, strings.TrimPrefix(strings.TrimPrefix(key, next.key), "."), next.at.GetToken().Position.Line)
	}
	return above
}

// first is the line on which a node begins; the token of a mapping is that of its
// first colon.
func (d *decoder) first(n ast.Node) int {
	if m, ok := n.(ast.MapNode); ok {
		if entries, err := d.entries(m, ""); err == nil && len(entries) > 0 {
			return entries[0].at.GetToken().Position.Line
		}
	}
	return n.GetToken().Position.Line
}
