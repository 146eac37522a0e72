package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestFlagsAreNamedHereAlone: other packages name a setting or a command as
// values (fail.Setting, fail.Call), and the command line writes them. What is
// listed here names the flags of another program, or stands in a document.
func TestFlagsAreNamedHereAlone(t *testing.T) {
	allowed := map[string]string{
		"internal/lab/images":                "of configure, mmdebstrap, cargo and rustc",
		"internal/lab/window.go":             "the guest program's",
		"internal/lab/hosts.go":              "iperf3's",
		"internal/machines/aws/client.go":    "of the AWS command line",
		"internal/answers/sizing/sizing.go":  "a plan's assumptions, a document that is kept",
		"internal/answers/claims/report.go":  "the last line of the verdicts, a document that is kept",
		"internal/answers/figures/tables.go": "the notes of a report, a document that is kept",
	}
	files := slices.Sorted(maps.Keys(allowed))
	flags := map[string]bool{}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, set := range []*pflag.FlagSet{cmd.LocalFlags(), cmd.PersistentFlags()} {
			set.VisitAll(func(f *pflag.Flag) { flags["--"+f.Name] = true })
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRootCmd(&app{}))
	if len(flags) < 20 || !flags["--results"] {
		t.Fatalf("the command line has these flags: %v", flags)
	}
	flag := regexp.MustCompile(`--[a-z][a-z-]*`)
	root := filepath.Join("..", "..")
	used := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testkit" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			for _, name := range flag.FindAllString(lit.Value, -1) {
				if !flags[name] {
					continue
				}
				if i := slices.IndexFunc(files, func(k string) bool { return rel == k || strings.HasPrefix(rel, k+"/") }); i >= 0 {
					used[files[i]] = true
					continue
				}
				t.Errorf("%s:%d names the flag %s; use fail.Setting or fail.Call", rel, set.Position(lit.Pos()).Line, name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range files {
		if !used[k] {
			t.Errorf("%s names no flag of percore's any more; take it off the list", k)
		}
	}
}
