// Command integration runs the tests behind the build tag integration, and only
// those: the unit tests of the same packages have run by then.
//
//	go run ./scripts/integration [-v] [-lane LANE]   run them, or those of one lane
//	go run ./scripts/integration -list               say which runs where
//	go run ./scripts/integration -packages           name the packages, one a line
//
// They run in two lanes, side by side. In the lane engine are those that use the
// machine's Docker Engine, one package after the other, since they measure and
// share its cores. In the lane apart are those that do without: Terraform,
// Ansible, a simulated AWS, the browser, and hosts with engines of their own. A
// file says that its tests belong there by a line of its own, //integration:apart.
//
// What the lanes print is not mixed: the lane engine is written as it comes, of
// the lane apart a package at a time. GO names another go command.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// tag is the build tag of the tests.
const tag = "integration"

// A lane runs its tests beside those of the other.
type lane string

const (
	laneEngine lane = "engine" // uses the machine's Docker Engine
	laneApart  lane = "apart"  // does without
)

var lanes = []lane{laneEngine, laneApart}

// directive puts the tests of a file into the lane apart.
const directive = "//integration:apart"

// tests are the tests of one package that are behind the tag; there may be
// benchmarks alone.
type tests struct {
	Package string // import path
	Names   map[lane][]string
}

func main() {
	verbose := flag.Bool("v", false, "show every test and what it logs")
	only := flag.String("lane", "", "run the tests of this lane alone: engine or apart")
	list := flag.Bool("list", false, "list the tests and run none")
	packages := flag.Bool("packages", false, "list the packages and run nothing")
	flag.Parse()
	if err := do(*list, *packages, *only, *verbose); err != nil {
		fmt.Fprintf(os.Stderr, "integration: %v\n", err)
		os.Exit(1)
	}
}

func do(list, packages bool, only string, verbose bool) error {
	chosen := lanes
	if only != "" {
		if chosen = []lane{lane(only)}; !slices.Contains(lanes, chosen[0]) {
			return fmt.Errorf("-lane is %q: pass engine or apart", only)
		}
	}
	all, err := find()
	if err != nil {
		return err
	}
	switch {
	case packages:
		for _, p := range all {
			fmt.Println(p.Package)
		}
		return nil
	case list:
		return write(os.Stdout, all, chosen)
	}
	return run(os.Stdout, all, chosen, verbose)
}

// write lists the tests of some lanes.
func write(out io.Writer, all []tests, chosen []lane) error {
	for _, l := range chosen {
		for _, p := range all {
			for _, name := range p.Names[l] {
				if _, err := fmt.Fprintf(out, "%s %s %s\n", l, p.Package, name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// run runs the tests of some lanes, side by side.
func run(out io.Writer, all []tests, chosen []lane, verbose bool) error {
	// An interrupt from the keyboard reaches the tests as well: they are waited
	// for, so that they can take their containers away.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM)
	whole := &shared{w: out}
	errs, took := make([]error, len(chosen)), make([]time.Duration, len(chosen))
	var g sync.WaitGroup
	for i, l := range chosen {
		g.Go(func() {
			began := time.Now()
			w := &blocks{out: whole, end: everyLine}
			if l == laneApart && len(chosen) > 1 {
				w.end = closingLine
			}
			errs[i] = errors.Join(runLane(l, all, verbose, w), w.Close())
			took[i] = time.Since(began)
		})
	}
	g.Wait()
	for i, l := range chosen {
		if errs[i] != nil {
			errs[i] = fmt.Errorf("the tests of the lane %s failed: %w", l, errs[i])
		}
		if _, err := fmt.Fprintf(out, "integration: lane %s took %s\n", l, took[i].Round(time.Second)); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// runLane runs the tests of a lane, one package after the other.
func runLane(l lane, all []tests, verbose bool, out io.Writer) error {
	names := map[string]bool{}
	var packages []string
	for _, p := range all {
		if len(p.Names[l]) > 0 {
			packages = append(packages, p.Package)
		}
		for _, name := range p.Names[l] {
			names[name] = true
		}
	}
	if len(packages) == 0 {
		return nil
	}
	// Last those that measure whole runs, when the other lane has the least left
	// that disturbs them: what is disturbed is measured again.
	slices.SortStableFunc(packages, func(a, b string) int {
		return cmp.Compare(strings.Count(a, "/cmd/"), strings.Count(b, "/cmd/"))
	})
	args := []string{
		"test", "-tags", tag, "-p", "1", "-count", "1", "-timeout", "80m", "-vet", "off",
		"-run", "^(" + strings.Join(slices.Sorted(maps.Keys(names)), "|") + ")$",
	}
	if verbose {
		args = append(args, "-v")
	}
	cmd := exec.Command(goCommand(), append(args, packages...)...)
	cmd.Stdout, cmd.Stderr = out, out
	return cmd.Run()
}

func goCommand() string { return cmp.Or(os.Getenv("GO"), "go") }

// listed is what `go list -json` says of a package.
type listed struct {
	ImportPath, Dir           string
	TestGoFiles, XTestGoFiles []string
}

// find returns the packages with tests behind the tag.
func find() ([]tests, error) {
	without, err := list()
	if err != nil {
		return nil, err
	}
	plain := map[string]bool{}
	for _, p := range without {
		for _, f := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
			plain[filepath.Join(p.Dir, f)] = true
		}
	}
	with, err := list("-tags", tag)
	if err != nil {
		return nil, err
	}
	var all []tests
	for _, p := range with {
		t := tests{Package: p.ImportPath, Names: map[lane][]string{}}
		found := false
		for _, f := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
			path := filepath.Join(p.Dir, f)
			if plain[path] {
				continue
			}
			found = true
			l, names, err := read(path)
			if err != nil {
				return nil, err
			}
			t.Names[l] = append(t.Names[l], names...)
		}
		if found {
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no test is behind the build tag")
	}
	return all, nil
}

func list(args ...string) ([]listed, error) {
	cmd := exec.Command(goCommand(), append(append([]string{"list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles"}, args...), "./...")...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the packages: %w", err)
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("listing the packages: %w", err)
		}
		all = append(all, p)
	}
}

// read returns the lane and the tests of a file.
func read(path string) (lane, []string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return "", nil, err
	}
	l := laneEngine
	for _, group := range f.Comments {
		for _, c := range group.List {
			if c.Text == directive {
				l = laneApart
			}
		}
	}
	var names []string
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && isTest(fn.Name.Name) {
			names = append(names, fn.Name.Name)
		}
	}
	return l, names, nil
}

// isTest reports whether go test runs a function of that name by -run.
func isTest(name string) bool {
	return name != "TestMain" && testName.MatchString(name)
}

var testName = regexp.MustCompile(`^(Test|Example|Fuzz)($|[^a-z])`)

// shared is an output of several lanes; each write comes whole.
type shared struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}

// blocks passes on what is written to it in blocks of whole lines, each up to
// a line that ends one.
type blocks struct {
	out  io.Writer
	end  func(line []byte) bool
	line bytes.Buffer // what has no end yet
	text bytes.Buffer // whole lines
}

func everyLine([]byte) bool { return true }

// closingLine reports whether go test has come to the end of a package.
func closingLine(line []byte) bool { return closing.Match(line) }

var closing = regexp.MustCompile(`^(ok  |FAIL|\?   )\t`)

func (b *blocks) Write(p []byte) (int, error) {
	b.line.Write(p)
	for {
		i := bytes.IndexByte(b.line.Bytes(), '\n')
		if i < 0 {
			return len(p), nil
		}
		line := b.line.Next(i + 1)
		b.text.Write(line)
		if b.end(line) {
			if err := b.flush(); err != nil {
				return 0, err
			}
		}
	}
}

// Close passes on what is left.
func (b *blocks) Close() error {
	if _, err := b.line.WriteTo(&b.text); err != nil {
		return err
	}
	return b.flush()
}

func (b *blocks) flush() error {
	_, err := b.text.WriteTo(b.out)
	return err
}
