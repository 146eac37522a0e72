package ansible

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/percore/percore/internal/base/fail"
)

// Tool is an Ansible that works.
type Tool struct {
	// Path is the program: ansible-playbook, or the Python of the virtual
	// environment that has Ansible.
	Path string
	// Version is that of ansible-core.
	Version string

	private bool // whether Path is a Python
}

// args are the arguments before those of one of Ansible's commands. A virtual
// environment is used through its Python: its scripts name the folder that it
// was made in, and the system limits how long such a name may be.
func (t *Tool) args(entry string) []string {
	if t.private {
		return []string{"-m", "ansible", entry}
	}
	return nil
}

// Options say where Ansible is looked for.
type Options struct {
	// CacheDir is percore's folder in the user's cache.
	CacheDir string
	// Install lets a missing Ansible be installed below CacheDir.
	Install bool
	// Say gets one line of progress at a time; nil is nobody.
	Say func(format string, args ...any)
}

// oldest is the oldest ansible-core that the playbook works with.
var oldest = version{2, 16}

// release is an ansible-core that is installed, with all that it needs, for the
// versions of Python it runs on. Every one of them prepares hosts with Python
// 3.9 (Amazon Linux 2023) to 3.13 (Debian 13).
type release struct {
	from, to     version // of Python; to is included
	requirements []string
}

var releases = []release{
	{version{3, 11}, version{3, 13}, []string{
		"ansible-core==2.19.14", "cffi==2.1.1", "cryptography==50.0.2", "Jinja2==3.1.6", "MarkupSafe==3.0.4",
		"packaging==26.4", "pycparser==3.12", "PyYAML==6.0.4", "resolvelib==1.2.1",
	}},
	{version{3, 14}, version{3, 14}, []string{
		"ansible-core==2.20.10", "cffi==2.1.1", "cryptography==50.0.2", "Jinja2==3.1.6", "MarkupSafe==3.0.4",
		"packaging==26.4", "pycparser==3.12", "PyYAML==6.0.4", "resolvelib==1.2.1",
	}},
	{version{3, 10}, version{3, 10}, []string{
		"ansible-core==2.17.14", "cffi==2.1.1", "cryptography==50.0.2", "Jinja2==3.1.6", "MarkupSafe==3.0.4",
		"packaging==26.4", "pycparser==2.22", "PyYAML==6.0.4", "resolvelib==1.0.1",
	}},
}

// pythons are where a Python is looked for, in this order.
var pythons = []string{"python3", "python3.13", "python3.12", "python3.11", "python3.14", "python3.10", "/usr/bin/python3"}

// Find returns an Ansible that works: the ansible-playbook on PATH where that is
// ansible-core 2.16 or newer, else one in a virtual environment below CacheDir,
// which it makes when it may. Two processes may call it at once.
func Find(ctx context.Context, o Options) (*Tool, error) {
	say := serially(o.Say)
	var why string
	if path, err := exec.LookPath("ansible-playbook"); err == nil {
		tool := &Tool{Path: path}
		if err = tool.check(ctx); err == nil {
			return tool, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		why = fmt.Sprintf("%s cannot be used: %v", path, err)
	} else {
		why = "there is no ansible-playbook on PATH"
	}
	python, rel, err := findPython(ctx)
	if err != nil {
		return nil, fail.Input("%s: %w", why, err)
	}
	if o.CacheDir == "" {
		return nil, errors.New("looking for Ansible: no folder for it was named")
	}
	base := filepath.Join(o.CacheDir, "ansible")
	dir := filepath.Join(base, rel.folder(python))
	tool := &Tool{Path: filepath.Join(dir, "bin", "python3"), private: true}
	if tool.ready(ctx) {
		return tool, nil
	}
	if !o.Install {
		return nil, fail.Input("%s", why).Try("install ansible-core %s or newer, or let percore install its own (without NO_INSTALL)", oldest)
	}
	if err := os.MkdirAll(base, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of Ansible: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(base, "lock"), say)
	if err != nil {
		return nil, err
	}
	defer unlock()
	// Somebody else may have made it in the meantime.
	if tool.ready(ctx) {
		return tool, nil
	}
	say("prepare: %s: installing %s into %s", why, strings.Replace(rel.requirements[0], "==", " ", 1), dir)
	if err := install(ctx, python.path, rel, dir); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("installing Ansible: %w", err)
	}
	if err := tool.check(ctx); err != nil {
		return nil, fmt.Errorf("installing Ansible: what was installed in %s does not work: %w", dir, err)
	}
	return tool, nil
}

// ready reports whether a virtual environment is there and works. The Python it
// was made with may be gone.
func (t *Tool) ready(ctx context.Context) bool {
	_, err := os.Stat(t.Path)
	return err == nil && t.check(ctx) == nil
}

// check runs Ansible, which takes a Python that works, and reads its version.
func (t *Tool) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := t.command(ctx, "playbook", "--version")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		if text := lastLine(said.String()); text != "" {
			return fmt.Errorf("it does not start (%s)", text)
		}
		return fmt.Errorf("it does not start (%w)", err)
	}
	text, have, err := parseVersion(string(out))
	if err != nil {
		return err
	}
	if have.less(oldest) {
		return fmt.Errorf("it is ansible-core %s, and the playbook needs %s or newer", text, oldest)
	}
	t.Version = text
	return nil
}

var coreVersion = regexp.MustCompile(`(?m)^ansible-playbook \[core ((0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5}\b)[^\]\s]*)[^\]\n]*\]`)

// parseVersion reads the version of ansible-core out of what
// `ansible-playbook --version` prints.
func parseVersion(out string) (string, version, error) {
	m := coreVersion.FindStringSubmatch(out)
	if m == nil {
		// Releases up to 2.10 print it otherwise.
		first, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
		return "", version{}, fmt.Errorf("it does not say that it is ansible-core %s or newer (%q)", oldest, oneLine(first))
	}
	major, _ := strconv.Atoi(m[2])
	minor, _ := strconv.Atoi(m[3])
	return m[1], version{major, minor}, nil
}

// version is a major and a minor number.
type version struct{ major, minor int }

func (v version) String() string { return fmt.Sprintf("%d.%d", v.major, v.minor) }

func (v version) less(w version) bool {
	return v.major < w.major || v.major == w.major && v.minor < w.minor
}

// interpreter is a Python.
type interpreter struct {
	path    string // as it calls itself
	version version
}

// findPython returns a Python that a release of Ansible runs on.
func findPython(ctx context.Context) (interpreter, release, error) {
	var seen []string
	for _, name := range pythons {
		p, err := askPython(ctx, name)
		if err != nil {
			if ctx.Err() != nil {
				return interpreter{}, release{}, ctx.Err()
			}
			continue
		}
		for _, r := range releases {
			if !p.version.less(r.from) && !r.to.less(p.version) {
				return p, r, nil
			}
		}
		if s := p.version.String(); !slices.Contains(seen, s) {
			seen = append(seen, s)
		}
	}
	found := "no Python is here"
	if len(seen) > 0 {
		found = "only Python " + strings.Join(seen, " and ") + " is here"
	}
	return interpreter{}, release{}, fail.Work("%s", found).Try("install Python 3.11 to 3.13 (apt-get install python3-venv, brew install python@3.13), or ansible-core %s or newer", oldest)
}

func askPython(ctx context.Context, name string) (interpreter, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return interpreter{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-c", "import sys; print(sys.version_info[0], sys.version_info[1], sys.executable)")
	cmd.Env = environment(os.Environ())
	out, err := cmd.Output()
	if err != nil {
		return interpreter{}, err
	}
	var p interpreter
	line := strings.TrimSpace(string(out))
	words := strings.SplitN(line, " ", 3)
	if len(words) != 3 {
		return interpreter{}, fmt.Errorf("%s says %q of itself", path, line)
	}
	p.version.major, _ = strconv.Atoi(words[0])
	p.version.minor, _ = strconv.Atoi(words[1])
	p.path = words[2]
	return p, nil
}

// folder names a virtual environment by all that decides what is in it.
func (r release) folder(p interpreter) string {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{p.path}, r.requirements...), "\n")))
	_, core, _ := strings.Cut(r.requirements[0], "==")
	return fmt.Sprintf("core-%s-python-%s-%s", core, p.version, hex.EncodeToString(sum[:4]))
}

// install makes a virtual environment in a folder beside dir and gives it the
// name dir when it is complete.
func install(ctx context.Context, python string, rel release, dir string) error {
	temp, err := os.MkdirTemp(filepath.Dir(dir), ".making-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := os.Chmod(temp, 0o755); err != nil {
		return err
	}
	inside := filepath.Join(temp, "bin", "python3")
	pip := []string{"install", "--quiet", "--disable-pip-version-check", "--no-input", "--only-binary", ":all:"}
	var installer []string
	if err := pythonRun(ctx, python, "-m", "venv", temp); err == nil {
		installer = slices.Concat([]string{inside, "-m", "pip"}, pip)
	} else if ctx.Err() != nil {
		return ctx.Err()
	} else if installer, err = otherInstaller(ctx, python, temp, inside, pip); err != nil {
		return err
	}
	if err := pythonRun(ctx, installer[0], slices.Concat(installer[1:], rel.requirements)...); err != nil {
		return err
	}
	if err := (&Tool{Path: inside, private: true}).check(ctx); err != nil {
		return fmt.Errorf("what was installed does not work: %w", err)
	}
	// What is there has been found not to work.
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(temp, dir)
}

// otherInstaller makes a virtual environment without a pip in it, as Debian's
// Python without python3-venv can, and returns who installs into it.
func otherInstaller(ctx context.Context, python, dir, inside string, pip []string) ([]string, error) {
	if err := pythonRun(ctx, python, "-m", "venv", "--clear", "--without-pip", dir); err != nil {
		return nil, fail.Work("%w", err).Try("install what makes virtual environments (apt-get install python3-venv)")
	}
	if uv, err := exec.LookPath("uv"); err == nil {
		return []string{uv, "pip", "install", "--quiet", "--python", inside}, nil
	}
	if pythonRun(ctx, python, "-m", "pip", "--python", inside, "--version") == nil {
		return slices.Concat([]string{python, "-m", "pip", "--python", inside}, pip), nil
	}
	return nil, fail.Input("%s has neither ensurepip nor pip, and there is no uv", python).Try("install one of them (apt-get install python3-venv)")
}

// pythonRun runs one step of an installation. The user's index, proxy and
// certificates are used; what would install elsewhere is not.
func pythonRun(ctx context.Context, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = slices.DeleteFunc(environment(os.Environ()), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_REQUIRE_VIRTUALENV", "PIP_PYTHON", "PIP_NO_BINARY", "PIP_REQUIREMENT", "PIP_CONSTRAINT", "UV_PYTHON", "UV_TARGET"}, name)
	})
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%s %s: %s (%w)", filepath.Base(name), strings.Join(args[:min(2, len(args))], " "), complaint(string(out)), err)
	}
	return nil
}

// complaint is the first error in an output, else its last line.
func complaint(out string) string {
	for line := range strings.Lines(out) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "ERROR: "); ok {
			return oneLine(text)
		}
	}
	return oneLine(lastLine(out))
}

// lock lets one process at a time install. The kernel gives the lock back when
// its holder dies.
func lock(ctx context.Context, name string, say func(string, ...any)) (unlock func(), err error) {
	l := flock.New(name)
	locked, err := l.TryLock()
	if err == nil && !locked {
		say("prepare: another percore on this machine is installing Ansible")
		_, err = l.TryLockContext(ctx, 300*time.Millisecond)
	}
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("locking %s: %w", name, err)
	}
	return func() { l.Close() }, nil
}
