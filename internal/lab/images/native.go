package images

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/client"
)

// debianSuite is the Debian release of the images, and glibcOfSuite its C library:
// a program that needs a newer one does not run in them.
const debianSuite = "trixie"

var glibcOfSuite = [2]int{2, 41}

// rustOfOHA is the oldest compiler that oha 1.15.0 says it needs.
var rustOfOHA = [2]int{1, 88}

// local checks that what is made on the driver's machine runs on the engine's.
func (r *run) local(ctx context.Context) error {
	info, err := r.b.Engine.Info(ctx, client.InfoOptions{})
	if err != nil {
		return fmt.Errorf("asking the Docker engine for its architecture: %w", err)
	}
	if runtime.GOOS != "linux" {
		return &remedyError{text: fmt.Sprintf("the debian flavour makes the image %s on the driver's machine, which has to run Debian or Ubuntu: this one runs %s, use the published flavour", r.item.Recipe.Name, runtime.GOOS)}
	}
	if engine := goArch(info.Info.Architecture); engine != runtime.GOARCH {
		return &remedyError{text: fmt.Sprintf("the debian flavour makes the image %s on the driver's machine (%s) and the Docker engine is %s: run percore on a machine of the engine's architecture, or use the published flavour", r.item.Recipe.Name, runtime.GOARCH, engine)}
	}
	return nil
}

// goArch translates the kernel's name of an architecture into Go's.
func goArch(machine string) string {
	switch machine {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return machine
}

// bootstrap makes a Debian root on the driver's machine and imports it.
func (r *run) bootstrap(ctx context.Context) error {
	if err := r.local(ctx); err != nil {
		return err
	}
	program, err := exec.LookPath("mmdebstrap")
	if err != nil {
		return &remedyError{text: "mmdebstrap is missing: install it with apt-get install mmdebstrap (scripts/bootstrap does), or use the published flavour"}
	}
	dir, err := r.b.cacheDir()
	if err != nil {
		return err
	}
	root, err := os.CreateTemp(dir, "base-*.tar")
	if err != nil {
		return fmt.Errorf("making room for the base image: %w", err)
	}
	defer os.Remove(root.Name())
	defer root.Close()

	a := r.item.Recipe.Args
	cmd := exec.CommandContext(ctx, program, "--variant="+a["variant"], "--include="+a["include"], "--format=tar", a["suite"], "-")
	cmd.Stdout = root
	if err := r.command(ctx, cmd, step{1, 2, "mmdebstrap " + a["suite"]}); err != nil {
		return &remedyError{text: fmt.Sprintf("mmdebstrap could not make a Debian %s root (%v): check that a Debian mirror is in reach and that the package debian-archive-keyring is installed", a["suite"], err), output: true}
	}
	if _, err := root.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("reading the base image back: %w", err)
	}
	r.step(step{2, 2, "import into the engine"})
	return r.load(ctx, root, "Debian "+a["suite"]+" by mmdebstrap")
}

// cargo compiles a program on the driver's machine, once per version, and
// imports it as an image that holds nothing else.
func (r *run) cargo(ctx context.Context) error {
	if err := r.local(ctx); err != nil {
		return err
	}
	crate, version := r.item.Recipe.Args["crate"], r.item.Recipe.Args["version"]
	dir, err := r.b.cacheDir()
	if err != nil {
		return err
	}
	root := filepath.Join(dir, crate+"-"+version)
	binary := filepath.Join(root, "bin", crate)
	if got, err := programVersion(ctx, binary); err != nil || got != version {
		if err := r.install(ctx, crate, version, root, filepath.Join(dir, crate+"-target")); err != nil {
			return err
		}
		if got, err = programVersion(ctx, binary); err != nil {
			return fmt.Errorf("running the compiled %s: %w", crate, err)
		}
		if got != version {
			return fmt.Errorf("%s says that it is version %s, not %s", binary, got, version)
		}
	}
	if err := runsOnSuite(binary); err != nil {
		return err
	}
	r.step(step{2, 2, "import into the engine"})
	data, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	h := &tar.Header{Typeflag: tar.TypeReg, Name: "usr/local/bin/" + crate, Mode: 0o755, Size: int64(len(data)), ModTime: time.Unix(0, 0)}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return r.load(ctx, &buf, crate+" "+version+" by cargo")
}

// install runs cargo install. The compiler's intermediate files are kept until
// it has succeeded, so that an interrupted one goes on where it was.
func (r *run) install(ctx context.Context, crate, version, root, target string) error {
	cargo, err := tool("cargo")
	if err != nil {
		return &remedyError{text: fmt.Sprintf("cargo is missing, and the debian flavour compiles %s with it: install Rust %d.%d or newer (rustup), or use the published flavour", crate, rustOfOHA[0], rustOfOHA[1])}
	}
	rustc, err := tool("rustc")
	if err != nil {
		return &remedyError{text: fmt.Sprintf("cargo is there and rustc is not: install Rust %d.%d or newer (rustup), or use the published flavour", rustOfOHA[0], rustOfOHA[1])}
	}
	text, err := exec.CommandContext(ctx, rustc, "--version").Output()
	if err != nil {
		return fmt.Errorf("asking %s for its version: %w", rustc, err)
	}
	if got, err := majorMinor(string(text)); err != nil || older(got, rustOfOHA) {
		return &remedyError{text: fmt.Sprintf("%s is %q and %s %s needs %d.%d: update Rust (rustup update), or use the published flavour", rustc, strings.TrimSpace(string(text)), crate, version, rustOfOHA[0], rustOfOHA[1])}
	}
	cmd := exec.CommandContext(ctx, cargo, "install", crate, "--version", version, "--locked", "--force", "--root", root, "--target-dir", target)
	cmd.Env = append(os.Environ(), "CARGO_TERM_COLOR=never", "PATH="+filepath.Dir(rustc)+string(os.PathListSeparator)+os.Getenv("PATH"))
	if err := r.command(ctx, cmd, step{1, 2, fmt.Sprintf("cargo install %s --version %s", crate, version)}); err != nil {
		return &remedyError{text: fmt.Sprintf("cargo could not compile %s %s (%v): a C compiler, and the crate registry in reach, are what it needs", crate, version, err), output: true}
	}
	return os.RemoveAll(target)
}

// tool finds a program of the Rust toolchain, in its usual place when the PATH
// does not name it.
func tool(name string) (string, error) {
	if p, err := exec.LookPath(name); err == nil {
		return filepath.Abs(p)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return exec.LookPath(filepath.Join(home, ".cargo", "bin", name))
}

func (r *run) step(s step) {
	r.out.step = s
	r.out.onStep(s)
}

// command runs a program of the driver's machine and shows what it prints to
// its standard error (and to its standard output, when that goes nowhere else).
func (r *run) command(ctx context.Context, cmd *exec.Cmd, s step) error {
	r.step(s)
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	cmd.Stderr = out
	if cmd.Stdout == nil {
		cmd.Stdout = out
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		out.Close()
		return err
	}
	out.Close()
	lines := bufio.NewReader(in)
	for {
		l, err := lines.ReadString('\n')
		r.out.line(l)
		if err != nil {
			break
		}
	}
	return cmd.Wait()
}

// programVersion runs PROGRAM --version and returns the version it prints.
func programVersion(ctx context.Context, program string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return "", err
	}
	fields := strings.Fields(string(out))
	if len(fields) < 2 {
		return "", fmt.Errorf("%s --version printed %q", program, out)
	}
	return fields[1], nil
}

// runsOnSuite reports a program that needs a newer C library than the images
// have.
func runsOnSuite(binary string) error {
	f, err := elf.Open(binary)
	if err != nil {
		return fmt.Errorf("reading the program %s: %w", binary, err)
	}
	defer f.Close()
	symbols, err := f.ImportedSymbols()
	if errors.Is(err, elf.ErrNoSymbols) {
		return nil // linked statically
	}
	if err != nil {
		return fmt.Errorf("reading the symbols of %s: %w", binary, err)
	}
	need := [2]int{}
	for _, s := range symbols {
		text, ok := strings.CutPrefix(s.Version, "GLIBC_")
		if !ok {
			continue
		}
		if v, err := majorMinor(text); err == nil && older(need, v) {
			need = v
		}
	}
	if older(glibcOfSuite, need) {
		return &remedyError{text: fmt.Sprintf("%s was compiled here against C library %d.%d and Debian %s, the base of the images, has %d.%d: run percore on a machine with an older C library, or use the published flavour",
			binary, need[0], need[1], debianSuite, glibcOfSuite[0], glibcOfSuite[1])}
	}
	return nil
}

var versionNumber = regexp.MustCompile(`(\d+)\.(\d+)`)

// majorMinor finds the first version number in a text.
func majorMinor(text string) ([2]int, error) {
	m := versionNumber.FindStringSubmatch(text)
	if m == nil {
		return [2]int{}, fmt.Errorf("no version number in %q", text)
	}
	major, err := strconv.Atoi(m[1])
	if err != nil {
		return [2]int{}, err
	}
	minor, err := strconv.Atoi(m[2])
	return [2]int{major, minor}, err
}

func older(a, b [2]int) bool { return a[0] < b[0] || a[0] == b[0] && a[1] < b[1] }

// authorities are the certificates that the driver's machine trusts and its
// distribution did not bring: those of a company's proxy, say, without which a
// build could download nothing there. Build stages get them, images do not.
func authorities() []byte {
	trusted := os.Getenv("SSL_CERT_FILE")
	if trusted == "" {
		trusted = "/etc/ssl/certs/ca-certificates.crt"
	}
	return extraAuthorities(trusted, "/usr/share/ca-certificates")
}

// extraAuthorities returns the certificates of a bundle that no file of the
// distribution's folder holds; nothing when either is not there.
func extraAuthorities(bundle, distribution string) []byte {
	known := map[[32]byte]bool{}
	err := filepath.WalkDir(distribution, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		for _, c := range certificates(data) {
			known[sha256.Sum256(c.Bytes)] = true
		}
		return nil
	})
	data, errBundle := os.ReadFile(bundle)
	if err != nil || errBundle != nil || len(known) == 0 {
		return nil
	}
	var extra bytes.Buffer
	for _, c := range certificates(data) {
		if !known[sha256.Sum256(c.Bytes)] {
			extra.Write(pem.EncodeToMemory(&pem.Block{Type: c.Type, Bytes: c.Bytes}))
		}
	}
	return extra.Bytes()
}

func certificates(data []byte) []*pem.Block {
	var all []*pem.Block
	for {
		var c *pem.Block
		if c, data = pem.Decode(data); c == nil {
			return all
		}
		if c.Type == "CERTIFICATE" || c.Type == "TRUSTED CERTIFICATE" {
			all = append(all, c)
		}
	}
}
