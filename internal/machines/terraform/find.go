// Package terraform runs Terraform, or OpenTofu, on a module below infra/: in a folder
// of the run, with a state of its own, so that it can be resumed and undone by
// another process.
package terraform

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"

	"github.com/hashicorp/go-version"

	"github.com/percore/percore/internal/base/fail"
)

// Minimum is the oldest version of Terraform and of OpenTofu that the modules
// work with.
const Minimum = "1.9.0"

// Installed is the version of Terraform that is installed where neither it nor
// OpenTofu is found.
const Installed = "1.13.3"

// Options say where Terraform may come from.
type Options struct {
	CacheDir string // percore's own folder in the user's cache
	Install  bool   // whether Terraform may be installed into CacheDir
	Path     string // program to use; empty: the environment's TERRAFORM, else the first that is found
	Say      func(format string, args ...any)

	releases releases
}

// Binary is a Terraform or OpenTofu that the modules work with.
type Binary struct {
	Path    string // absolute
	Name    string // terraform or tofu
	Version string // such as 1.13.3

	cache string
}

// Find returns the program that Options name, else a terraform or tofu on the
// PATH that is new enough, else one that an earlier call installed, else one
// that it installs. A program that was asked for and will not do, or none at
// all, is an error of the input.
func Find(ctx context.Context, o Options) (*Binary, error) {
	if o.Say == nil {
		o.Say = func(string, ...any) {}
	}
	if left := ignored(os.Environ()); left != "" {
		o.Say("%s set in the environment, and terraform runs without it", left)
	}
	if o.Path == "" {
		o.Path = os.Getenv("TERRAFORM")
	}
	if o.Path != "" {
		return o.asked(ctx)
	}
	var old []string
	for _, program := range []string{"terraform", "tofu"} {
		path, err := exec.LookPath(program)
		if err != nil {
			continue
		}
		b, err := o.inspect(ctx, path)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			old = append(old, err.Error())
		case !b.suffices():
			old = append(old, fmt.Sprintf("%s is version %s", path, b.Version))
		default:
			return b, nil
		}
	}
	for _, reason := range old {
		o.Say("%s, which is too old or does not work; percore needs %s or newer", reason, Minimum)
	}
	if o.CacheDir != "" {
		if b, err := o.inspect(ctx, o.installed()); err == nil && b.suffices() {
			return b, nil
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if !o.Install || o.CacheDir == "" {
		return nil, fail.Input("neither terraform nor tofu of version %s or newer is on the PATH", Minimum).Try("install one of them, or let percore install it by leaving out NO_INSTALL")
	}
	if err := o.install(ctx); err != nil {
		return nil, err
	}
	return o.inspect(ctx, o.installed())
}

// asked returns the program that was asked for by name.
func (o Options) asked(ctx context.Context) (*Binary, error) {
	path, err := exec.LookPath(o.Path)
	if err != nil {
		return nil, fail.Input("TERRAFORM is %q, and there is no such program", o.Path).Try("write the path of terraform or tofu, or leave it out")
	}
	b, err := o.inspect(ctx, path)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fail.Input("TERRAFORM is %q: %w", o.Path, err).Try("write the path of terraform or tofu, or leave it out")
	}
	if !b.suffices() {
		return nil, fail.Input("TERRAFORM is %q, which is version %s", o.Path, b.Version).Try("write the path of one of version %s or newer, or leave it out", Minimum)
	}
	return b, nil
}

// installed is where an installation puts the program.
func (o Options) installed() string {
	return filepath.Join(o.CacheDir, "terraform", Installed, "terraform")
}

// inspect asks a program what it is.
func (o Options) inspect(ctx context.Context, path string) (*Binary, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, "version")
	cmd.Env = pairs(environment(os.Environ()))
	text, err := cmd.Output()
	if err != nil {
		if exit := new(exec.ExitError); errors.As(err, &exit) {
			text = exit.Stderr
		}
		return nil, fmt.Errorf("%s version: %w %s", path, err, bytes.TrimSpace(text))
	}
	name, v, err := parseVersion(text)
	if err != nil {
		return nil, fmt.Errorf("%s version: %w", path, err)
	}
	return &Binary{Path: path, Name: name, Version: v, cache: o.CacheDir}, nil
}

var versionLine = regexp.MustCompile(`(?m)^(Terraform|OpenTofu) v(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)`)

// parseVersion reads what the command `version` prints.
func parseVersion(text []byte) (name, v string, err error) {
	m := versionLine.FindSubmatch(text)
	if m == nil {
		return "", "", errors.New("it does not say that it is Terraform or OpenTofu")
	}
	name = "terraform"
	if string(m[1]) == "OpenTofu" {
		name = "tofu"
	}
	return name, string(m[2]), nil
}

// suffices reports whether the version is new enough. One before a release
// counts as that release.
func (b *Binary) suffices() bool {
	v, err := version.NewVersion(b.Version)
	return err == nil && v.Core().GreaterThanOrEqual(version.Must(version.NewVersion(Minimum)))
}
