// Command release builds percore for every platform of the driver and packs each
// into an archive, with a file of checksums beside them.
//
//	go run ./scripts/release -version 1.2.3 -out dist
//
// The same sources and the same Go make the same archives, byte for byte: the
// times in them are that of the last commit, or SOURCE_DATE_EPOCH.
package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// target is a platform that the driver runs on.
type target struct{ os, arch string }

var targets = []target{{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}}

// texts go into every archive beside the command.
var texts = []string{"LICENSE", "NOTICE", "README.md", "CHANGELOG.md"}

// sums is the name of the file with the checksums, as sha256sum --check reads it.
const sums = "SHA256SUMS"

// options say what is built.
type options struct {
	root    string // the checkout
	version string
	out     string // folder of the archives; made if need be
	targets []target
	flags   []string // further ones for go build
	env     []string // further variables of its environment
}

func main() {
	o := options{root: ".", targets: targets}
	flag.StringVar(&o.version, "version", "", "version that the command reports, and part of the archives' names")
	flag.StringVar(&o.out, "out", "dist", "folder that the archives are written to")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	names, err := release(ctx, o)
	if err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
	for _, name := range names {
		fmt.Println(filepath.Join(o.out, name))
	}
}

var versionPattern = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._+-]*$`)

// release returns the names of what it wrote. A leading v of a tag is no part of
// the version.
func release(ctx context.Context, o options) ([]string, error) {
	o.version = strings.TrimPrefix(o.version, "v")
	if !versionPattern.MatchString(o.version) {
		return nil, fmt.Errorf("-version is %q: pass one of letters, digits and . _ + -, such as 1.2.3", o.version)
	}
	made, err := commitTime(ctx, o.root)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "percore-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	var names []string
	var list strings.Builder
	for _, t := range o.targets {
		binary := filepath.Join(work, t.os+"-"+t.arch)
		if err := build(ctx, o, t, binary); err != nil {
			return nil, err
		}
		base := fmt.Sprintf("percore_%s_%s_%s", o.version, t.os, t.arch)
		name := base + ".tar.gz"
		sum, err := pack(filepath.Join(o.out, name), base, binary, o.root, made)
		if err != nil {
			return nil, fmt.Errorf("packing %s: %w", name, err)
		}
		fmt.Fprintf(&list, "%s  %s\n", sum, name)
		names = append(names, name)
	}
	return append(names, sums), os.WriteFile(filepath.Join(o.out, sums), []byte(list.String()), 0o644)
}

// commitTime is the time of the last commit, or SOURCE_DATE_EPOCH.
func commitTime(ctx context.Context, root string) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		cmd := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct")
		cmd.Dir = root
		out, err := cmd.Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("asking git for the time of the last commit: %w", err)
		}
		text = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("the time of the release is %q: SOURCE_DATE_EPOCH is to be seconds since 1970", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

func build(ctx context.Context, o options, t target, binary string) error {
	args := append([]string{"build", "-trimpath", "-ldflags", "-s -w -X main.version=" + o.version, "-o", binary}, o.flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/percore")...)
	cmd.Dir = o.root
	cmd.Env = append(append(os.Environ(), "GOOS="+t.os, "GOARCH="+t.arch, "CGO_ENABLED=0"), o.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building for %s/%s: %w\n%s", t.os, t.arch, err, out)
	}
	return nil
}

// pack writes an archive with one folder and returns its SHA-256. An archive
// that could not be written whole does not stay.
func pack(archive, folder, binary, root string, made time.Time) (_ string, err error) {
	f, err := os.Create(archive)
	if err != nil {
		return "", err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, os.Remove(archive))
		}
	}()
	hash := sha256.New()
	zip, err := gzip.NewWriterLevel(io.MultiWriter(f, hash), gzip.BestCompression)
	if err != nil {
		return "", err
	}
	w := tar.NewWriter(zip)
	if err := add(w, path.Join(folder, "percore"), binary, 0o755, made); err != nil {
		return "", err
	}
	for _, name := range texts {
		if err := add(w, path.Join(folder, name), filepath.Join(root, name), 0o644, made); err != nil {
			return "", err
		}
	}
	if err := errors.Join(w.Close(), zip.Close(), f.Sync()); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", hash.Sum(nil)), nil
}

func add(w *tar.Writer, name, file string, mode int64, made time.Time) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Name: name, Size: info.Size(), Mode: mode, ModTime: made, Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}
