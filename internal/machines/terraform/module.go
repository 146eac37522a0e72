package terraform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"
	"github.com/hashicorp/terraform-exec/tfexec"

	"github.com/percore/percore/internal/base/fail"
	"github.com/percore/percore/internal/machines/fleet"
)

// Files in a module's folder.
const (
	variables = "percore.auto.tfvars.json"
	planFile  = "percore.tfplan"
	logFile   = "terraform.log"
	cliConfig = "percore.tfrc"
)

const (
	// How long a lock that somebody else holds is waited for.
	lockTimeout = "10s"
	// How long Terraform may take to end what it is in the middle of, once it
	// was asked to: as long as AWS may take to start or terminate an instance.
	patience = 15 * time.Minute
	// How long a terminal's own Ctrl-C may take to be seen.
	echo = 3 * time.Second
)

// Module is a copy of an infrastructure module in a folder of its own, with its
// variables and its state. It is used by one process at a time.
type Module struct {
	bin     *Binary
	dir     string
	env     map[string]string
	secrets []string
	loud    *tfexec.Terraform // logs what it says
	quiet   *tfexec.Terraform // says what only a program reads
	watch   *watcher
	offline *offline
	ready   bool // initialised by this process
}

// Plan is what Apply would do.
type Plan struct {
	Text                 string // for a person to read
	Add, Change, Destroy int    // resources
}

// Open copies the module at moduleDir into dir, with vars (anything that
// encoding/json makes an object of) as its variables. With vars nil both are
// left as an earlier Open put them there, so that what was made is described as
// when it was made. What Terraform says goes to terraform.log in dir, and to out
// too unless that is nil.
func Open(bin *Binary, dir, moduleDir string, vars any, out io.Writer) (*Module, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if vars != nil {
		if err := put(dir, moduleDir, vars); err != nil {
			return nil, fmt.Errorf("copying the module %s to %s: %w", moduleDir, dir, err)
		}
	} else if _, err := os.Stat(filepath.Join(dir, variables)); err != nil {
		return nil, fmt.Errorf("there is no infrastructure in %s: %w", dir, err)
	}
	m := &Module{bin: bin, dir: dir, env: environment(os.Environ())}
	m.secrets = secrets(m.env)
	if m.offline, err = provider(os.Getenv(ProviderDir)); err != nil {
		return nil, err
	}
	if m.offline != nil {
		config := filepath.Join(dir, cliConfig)
		if err := write(config, []byte(m.offline.config)); err != nil {
			return nil, fmt.Errorf("the CLI configuration: %w", err)
		}
		m.env["TF_CLI_CONFIG_FILE"] = config
	}
	if m.env["TF_PLUGIN_CACHE_DIR"] == "" && bin.cache != "" {
		// Every command wants it to be there.
		if err := os.MkdirAll(m.plugins(), 0o755); err != nil {
			return nil, fmt.Errorf("the provider cache: %w", err)
		}
		m.env["TF_PLUGIN_CACHE_DIR"] = m.plugins()
		// Without this, a folder that has no lock file yet downloads anew.
		m.env["TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE"] = "true"
	}
	log, err := os.OpenFile(filepath.Join(dir, logFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	log.Close()
	if m.quiet, err = m.terraform(); err != nil {
		return nil, err
	}
	if m.loud, err = m.terraform(); err != nil {
		return nil, err
	}
	m.watch = &watcher{log: log.Name(), out: out, secrets: m.secrets}
	return m, nil
}

// UseAWSProfile makes the provider use a profile of the user's AWS configuration
// in place of credentials that stand in the environment.
func (m *Module) UseAWSProfile(name string) error {
	for _, k := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_DEFAULT_PROFILE"} {
		delete(m.env, k)
	}
	m.env["AWS_PROFILE"] = name
	for _, t := range []*tfexec.Terraform{m.quiet, m.loud} {
		if err := t.SetEnv(m.env); err != nil {
			return fmt.Errorf("%s in %s: %w", m.bin.Name, m.dir, err)
		}
	}
	return nil
}

func (m *Module) terraform() (*tfexec.Terraform, error) {
	t, err := tfexec.NewTerraform(m.dir, m.bin.Path)
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w", m.bin.Name, m.dir, err)
	}
	if err := t.SetEnv(m.env); err != nil {
		return nil, fmt.Errorf("%s in %s: %w", m.bin.Name, m.dir, err)
	}
	return t, t.SetWaitDelay(patience)
}

// plugins is percore's own plugin cache.
func (m *Module) plugins() string { return filepath.Join(m.bin.cache, "terraform", "providers") }

// Init gets what the module needs from elsewhere. Where everything is there
// already it does nothing that takes time.
func (m *Module) Init(ctx context.Context) (err error) {
	if m.ready {
		return nil
	}
	if m.offline == nil || m.offline.install {
		if m.env["TF_PLUGIN_CACHE_DIR"] == m.plugins() {
			release, cacheErr := cache(m.plugins())
			if cacheErr != nil {
				return cacheErr
			}
			defer func() { release(err == nil) }()
		}
		if err := m.run(ctx, m.loud, "init", func(ctx context.Context, t *tfexec.Terraform) error {
			return t.Init(ctx)
		}); err != nil {
			return err
		}
	}
	m.ready = true
	return nil
}

// Plan finds out what is to be done, changes nothing, and keeps the plan for
// Apply.
func (m *Module) Plan(ctx context.Context) (Plan, error) {
	if err := m.Init(ctx); err != nil {
		return Plan{}, err
	}
	file := filepath.Join(m.dir, planFile)
	var p Plan
	if err := m.run(ctx, m.loud, "plan", func(ctx context.Context, t *tfexec.Terraform) error {
		_, err := t.Plan(ctx, tfexec.Out(file), tfexec.LockTimeout(lockTimeout))
		return err
	}); err != nil {
		return Plan{}, err
	}
	err := m.run(ctx, m.quiet, "show", func(ctx context.Context, t *tfexec.Terraform) error {
		if err := os.Chmod(file, 0o600); err != nil {
			return err
		}
		text, err := t.ShowPlanFileRaw(ctx, file)
		if err != nil {
			return err
		}
		p.Text = redact(text, m.secrets)
		plan, err := t.ShowPlanFile(ctx, file)
		if err != nil {
			return err
		}
		for _, r := range plan.ResourceChanges {
			if r.Change == nil {
				continue
			}
			switch a := r.Change.Actions; {
			case a.Replace():
				p.Add++
				p.Destroy++
			case a.Create():
				p.Add++
			case a.Update():
				p.Change++
			case a.Delete():
				p.Destroy++
			}
		}
		return nil
	})
	return p, err
}

// Apply does what the last Plan said, and nothing else. After an error or an
// interruption the state knows what was made: Destroy, or Plan and Apply again.
func (m *Module) Apply(ctx context.Context) error {
	file := filepath.Join(m.dir, planFile)
	if _, err := os.Stat(file); err != nil {
		return fmt.Errorf("there is no plan to apply in %s: %w", m.dir, err)
	}
	if err := m.Init(ctx); err != nil {
		return err
	}
	// A plan is for one time only, however that ends.
	defer os.Remove(file)
	return m.run(ctx, m.loud, "apply", func(ctx context.Context, t *tfexec.Terraform) error {
		return t.Apply(ctx, tfexec.DirOrPlan(file), tfexec.LockTimeout(lockTimeout))
	})
}

// Lab reads the machines out of the state.
func (m *Module) Lab(ctx context.Context) (fleet.Lab, error) {
	var lab fleet.Lab
	err := m.run(ctx, m.quiet, "output", func(ctx context.Context, t *tfexec.Terraform) error {
		outputs, err := t.Output(ctx)
		if err != nil {
			return err
		}
		output, ok := outputs[fleet.Output]
		if !ok {
			return fmt.Errorf("the infrastructure in %s has no output %q: it was never applied to its end, or it was destroyed", m.dir, fleet.Output)
		}
		lab, err = fleet.Parse(output.Value)
		return err
	})
	return lab, err
}

// Destroy undoes everything that the state knows of. It may be repeated.
func (m *Module) Destroy(ctx context.Context) error {
	left, err := m.Resources(ctx)
	if err == nil && len(left) == 0 {
		return nil
	}
	if err := m.Init(ctx); err != nil {
		return err
	}
	destroy := func(refresh bool) error {
		return m.run(ctx, m.loud, "destroy", func(ctx context.Context, t *tfexec.Terraform) error {
			return t.Destroy(ctx, tfexec.Refresh(refresh), tfexec.LockTimeout(lockTimeout))
		})
	}
	if err = destroy(true); err == nil || ctx.Err() != nil || errors.Is(err, errLocked) {
		return err
	}
	// What is only looked up for making machines, such as an image, may be gone
	// meanwhile, and must not keep them.
	if second := destroy(false); second == nil || ctx.Err() != nil {
		return second
	}
	return err
}

// Resources lists the addresses of what the state knows of, sorted.
func (m *Module) Resources(ctx context.Context) ([]string, error) {
	var all []string
	err := m.run(ctx, m.quiet, "state", func(ctx context.Context, t *tfexec.Terraform) error {
		text, err := t.StatePull(ctx)
		if err != nil {
			return err
		}
		if all, err = addresses(bytes.TrimSpace([]byte(text))); err != nil {
			return fmt.Errorf("%s: %w", m.dir, err)
		}
		return nil
	})
	return all, err
}

var errLocked = errors.New("the state is locked")

// run lets Terraform do one thing. If ctx ends, Terraform is asked to end too,
// and waited for: it saves the state first. The error is then that of ctx.
func (m *Module) run(ctx context.Context, t *tfexec.Terraform, what string, do func(context.Context, *tfexec.Terraform) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// Terraform is killed with the thread that started it, which must not end
	// before the driver does.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if t == m.loud {
		if err := m.watch.begin(what); err != nil {
			return err
		}
		defer m.watch.end()
		// The library asks for the version first and keeps it: nobody else needs
		// to read that.
		if _, _, err := t.Version(ctx, false); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return m.explain(what, err)
		}
		t.SetStdout(m.watch)
		t.SetStderr(m.watch)
	}
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		// Asked a second time, Terraform ends at once and forgets what it was
		// making. Where it shares the terminal's process group, a Ctrl-C has
		// reached it already.
		if runtime.GOOS != "linux" && m.watch.interrupted(echo) {
			select {
			case <-inner.Done():
			case <-time.After(patience):
			}
		}
		cancel()
	})
	defer stop()
	err := do(inner, t)
	if ctx.Err() != nil {
		if err == nil && what != "show" && what != "output" && what != "state" {
			return nil // it was done before it heard of it
		}
		return fmt.Errorf("%s %s was interrupted: %w", m.bin.Name, what, ctx.Err())
	}
	return m.explain(what, err)
}

// explain makes one sentence of what Terraform printed.
func (m *Module) explain(what string, err error) error {
	if err == nil || fail.IsInput(err) {
		return err
	}
	log := filepath.Join(m.dir, logFile)
	text := redact(colours.ReplaceAllString(err.Error(), ""), m.secrets)
	if strings.Contains(text, "Unsupported state file format") {
		return fail.Work("%s %s: the state in %s is damaged", m.bin.Name, what, m.dir).Try("copy terraform.tfstate.backup over terraform.tfstate there and try again")
	}
	all := parseDiagnoses(text)
	if len(all) == 0 {
		return fmt.Errorf("%s %s in %s: %s", m.bin.Name, what, m.dir, unframed(text))
	}
	for _, d := range all {
		if d.summary == "Error acquiring the state lock" {
			return fail.Work("%s %s: another %s is still working in %s (%w)", m.bin.Name, what, m.bin.Name, m.dir, errLocked).Try("wait until it has ended, or end it, and try again")
		}
	}
	if all[0].ours() {
		return fail.Input("%s", summarise(all))
	}
	return fmt.Errorf("%s %s: %s; everything it said is in %s", m.bin.Name, what, summarise(all), log)
}

// put copies the module's files and writes its variables.
func put(dir, moduleDir string, vars any) error {
	text, err := json.MarshalIndent(vars, "", "  ")
	if err != nil {
		return fmt.Errorf("the variables: %w", err)
	}
	entries, err := os.ReadDir(moduleDir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	copied := map[string]bool{}
	for _, e := range entries {
		if !e.Type().IsRegular() || !belongs(e.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(moduleDir, e.Name()))
		if err != nil {
			return err
		}
		if err := write(filepath.Join(dir, e.Name()), content); err != nil {
			return err
		}
		copied[e.Name()] = true
	}
	if len(copied) == 0 {
		return errors.New("it has no .tf file")
	}
	// A file that the module no longer has would still count.
	there, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range there {
		if name := e.Name(); strings.HasSuffix(name, ".tf") && !copied[name] && name != "override.tf" && !strings.HasSuffix(name, "_override.tf") {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return write(filepath.Join(dir, variables), append(text, '\n'))
}

// belongs reports whether a file is a part of a module.
func belongs(name string) bool {
	return strings.HasSuffix(name, ".tf") || strings.HasSuffix(name, ".tftpl") || name == ".terraform.lock.hcl"
}

// write replaces a file, which only its owner may read, in one step.
func write(path string, content []byte) error {
	return renameio.WriteFile(path, content, 0o600, renameio.WithTempDir(filepath.Dir(path)))
}

// watcher writes what Terraform says to the log, without secrets, and notices
// when it was interrupted. Every write is whole lines.
type watcher struct {
	log     string
	out     io.Writer
	secrets []string

	mu    sync.Mutex
	file  *os.File
	heard chan struct{} // closed once Terraform said that it was interrupted
}

// begin opens the log for one command.
func (w *watcher) begin(what string) error {
	f, err := os.OpenFile(w.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	fmt.Fprintf(f, "--- %s %s\n", time.Now().UTC().Format(time.RFC3339), what)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.file, w.heard = f, make(chan struct{})
	return nil
}

func (w *watcher) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.file.Close()
	w.file = nil
}

// Write takes what Terraform says. It fails never: a full disk must not stop
// Terraform in the middle of its work.
func (w *watcher) Write(p []byte) (int, error) {
	text := redact(string(p), w.secrets)
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.Contains(text, "Interrupt received") && w.heard != nil {
		select {
		case <-w.heard:
		default:
			close(w.heard)
		}
	}
	if w.file != nil {
		_, _ = io.WriteString(w.file, text)
	}
	if w.out != nil {
		_, _ = io.WriteString(w.out, text)
	}
	return len(p), nil
}

// interrupted waits until Terraform says that it was interrupted.
func (w *watcher) interrupted(limit time.Duration) bool {
	w.mu.Lock()
	heard := w.heard
	w.mu.Unlock()
	if heard == nil {
		return false
	}
	select {
	case <-heard:
		return true
	case <-time.After(limit):
		return false
	}
}
