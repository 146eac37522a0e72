// Package engine speaks to one Docker Engine: it finds it the way Docker's own
// command line does, runs containers, moves files in and out of them, and
// reaches network ports inside them without publishing any.
//
// Everything goes through the Engine API, so an engine behind ssh or in a
// virtual machine is used like one on this machine.
package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	dcontext "github.com/docker/cli/cli/context"
	dockercontext "github.com/docker/cli/cli/context/docker"
	"github.com/docker/cli/cli/context/store"
	"github.com/docker/cli/opts"
	"github.com/docker/go-connections/tlsconfig"
	"github.com/moby/moby/client"

	"github.com/percore/percore/internal/base/fail"
)

// connectTimeout bounds the first answer of an engine.
const connectTimeout = 45 * time.Second

// Options say which engine to use. The zero value means: what the environment
// says.
type Options struct {
	// Host is the engine's endpoint: unix:///path, tcp://host:port or
	// ssh://user@host. Empty means DOCKER_HOST, then the Docker context, then
	// the sockets a Docker installation listens on.
	Host string
	// Context is the name of a Docker context. Empty means DOCKER_CONTEXT, then
	// the current one. Host wins over Context.
	Context string
	// SSHOptions are passed to ssh in front of the destination.
	SSHOptions []string
	// Patience is how long calls are repeated while the engine cannot be reached;
	// 0 means two minutes, or ten seconds for a socket on this machine.
	Patience time.Duration
	// Getenv reads the environment; nil means os.Getenv.
	Getenv func(string) string
}

// Engine is one Docker Engine. It is safe for concurrent use.
type Engine struct {
	api     *client.Client
	host    string
	source  string
	contact *contact      // when it was heard of
	limit   time.Duration // patience that was asked for, or 0
}

// endpoint is where an engine is, and how that was found out.
type endpoint struct {
	host   string // URL
	source string // "DOCKER_HOST", `the Docker context "x"`, "default"
	opts   []client.Opt
	// contact is told when the engine answers.
	contact *contact
}

// Connect finds the engine, asks it for its API version and agrees on one. An
// error is one sentence that names the endpoint and the remedy.
func Connect(ctx context.Context, o Options) (*Engine, error) {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	ep, err := resolve(o)
	if err != nil {
		return nil, err
	}
	api, err := client.New(ep.opts...)
	if err != nil {
		return nil, fail.Input("cannot use the Docker endpoint %s (from %s): %w", ep.host, ep.source, err)
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if _, err := api.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		api.Close()
		return nil, explain(ctx, ep, err)
	}
	ep.contact.answer()
	return &Engine{api: api, host: ep.host, source: ep.source, contact: ep.contact, limit: o.Patience}, nil
}

// API is the client underneath, for what this package does not wrap.
func (e *Engine) API() *client.Client { return e.api }

// Host is the endpoint as a URL. Two engines are the same when it is: cloned
// machines report one engine ID.
func (e *Engine) Host() string { return e.host }

// Source says where the endpoint came from: DOCKER_HOST, a Docker context, or
// the default socket.
func (e *Engine) Source() string { return e.source }

// Close gives back the connections.
func (e *Engine) Close() error { return e.api.Close() }

// resolve finds the endpoint in the order of Docker's command line.
func resolve(o Options) (endpoint, error) {
	switch {
	case o.Host != "":
		return fromURL(o.Host, "the profile", o)
	case o.Context != "":
		return fromContext(o.Context, "the command line", o)
	case o.Getenv("DOCKER_HOST") != "" && strings.TrimSpace(o.Getenv("DOCKER_HOST")) == "":
		return defaultEndpoint(o) // a host of blanks is none, and still no context is asked
	case o.Getenv("DOCKER_HOST") != "":
		return fromURL(o.Getenv("DOCKER_HOST"), "DOCKER_HOST", o)
	case o.Getenv("DOCKER_CONTEXT") != "":
		return fromContext(o.Getenv("DOCKER_CONTEXT"), "DOCKER_CONTEXT", o)
	}
	name, err := currentContext(o)
	if err != nil {
		return endpoint{}, err
	}
	if name != "" && name != "default" {
		return fromContext(name, "its config.json", o)
	}
	return defaultEndpoint(o)
}

// defaultEndpoint is where an engine listens that nobody names: with TLS, as for
// Docker's command line, a port of this machine.
func defaultEndpoint(o Options) (endpoint, error) {
	if tlsOptions(o) != nil {
		return fromURL("", "DOCKER_TLS_VERIFY or DOCKER_TLS", o)
	}
	return fromURL("unix://"+firstSocket(sockets(o)), "default", o)
}

// Chosen says what names the engine, in the order of Docker's command line:
// DOCKER_HOST, DOCKER_CONTEXT, or "docker context use". It is empty where none
// does, so that the default socket is taken.
func Chosen(getenv func(string) string) string {
	if getenv("DOCKER_HOST") != "" {
		return "DOCKER_HOST"
	}
	name, from := getenv("DOCKER_CONTEXT"), "DOCKER_CONTEXT"
	if name == "" {
		var err error
		if name, err = currentContext(Options{Getenv: getenv}); err != nil {
			return "" // Connect says what is wrong with the configuration
		}
		from = "docker context use"
	}
	if name == "" || name == "default" {
		return ""
	}
	return from
}

// sockets are the places where a Docker installation listens, best first.
func sockets(o Options) []string {
	paths := []string{"/var/run/docker.sock"}
	if home := home(o); home != "" {
		paths = append(paths,
			filepath.Join(home, ".docker/run/docker.sock"),     // Docker Desktop on a Mac
			filepath.Join(home, ".docker/desktop/docker.sock"), // Docker Desktop on Linux
		)
	}
	if dir := o.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		paths = append(paths, filepath.Join(dir, "docker.sock")) // rootless
	}
	return paths
}

// firstSocket is the first path that exists, or the first path.
func firstSocket(paths []string) string {
	for _, p := range paths {
		if st, err := os.Stat(p); err == nil && st.Mode()&fs.ModeSocket != 0 {
			return p
		}
	}
	return paths[0]
}

// configDir is the folder of Docker's command line.
func configDir(o Options) string {
	if dir := o.Getenv("DOCKER_CONFIG"); dir != "" {
		return dir
	}
	return filepath.Join(home(o), ".docker")
}

// home is the user's folder, which the system knows where HOME is not set.
func home(o Options) string {
	if dir := o.Getenv("HOME"); dir != "" {
		return dir
	}
	if u, err := user.Current(); err == nil {
		return u.HomeDir
	}
	return ""
}

// currentContext is the context that `docker context use` chose.
func currentContext(o Options) (string, error) {
	file := filepath.Join(configDir(o), "config.json")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot read Docker's configuration: %w", err)
	}
	var config struct {
		CurrentContext string `json:"currentContext"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return "", fail.Input("Docker's configuration %s is not valid JSON (%v)", file, err).Try("repair it or remove it")
	}
	return config.CurrentContext, nil
}

// fromContext reads a Docker context.
func fromContext(name, from string, o Options) (endpoint, error) {
	if name == "default" {
		return defaultEndpoint(o)
	}
	source := fmt.Sprintf("the Docker context %q", name)
	config := store.NewConfig(
		func() any { return &map[string]any{} },
		store.EndpointTypeGetter(dockercontext.DockerEndpoint, func() any { return &dockercontext.EndpointMeta{} }),
	)
	contexts := store.New(filepath.Join(configDir(o), "contexts"), config)
	meta, err := contexts.GetMetadata(name)
	if err != nil {
		known := []string{"default"}
		if list, err := contexts.List(); err == nil {
			for _, m := range list {
				known = append(known, m.Name)
			}
		}
		slices.Sort(known)
		return endpoint{}, fail.Input("the Docker context %q (from %s) does not exist", name, from).Try("known are %s: choose one with `docker context use` or DOCKER_CONTEXT", strings.Join(known, ", "))
	}
	epMeta, err := dockercontext.EndpointFromContext(meta)
	if err != nil {
		return endpoint{}, fail.Input("%s has no Docker endpoint", source).Try("choose another with `docker context use`")
	}
	if strings.HasPrefix(epMeta.Host, "ssh://") {
		return fromURL(epMeta.Host, source, o)
	}
	full, err := dockercontext.WithTLSData(contexts, name, epMeta)
	if err != nil {
		return endpoint{}, fmt.Errorf("cannot read the TLS files of %s: %w", source, err)
	}
	clientOpts, err := full.ClientOpts()
	if err != nil {
		return endpoint{}, fail.Input("%s cannot be used: %w", source, err)
	}
	return endpoint{host: epMeta.Host, source: source, opts: clientOpts, contact: &contact{}}, nil
}

// fromURL makes an endpoint of what stands where Docker's command line takes a
// URL: tcp://host and host:port are completed, blanks around it do not count.
func fromURL(given, source string, o Options) (endpoint, error) {
	bad := func(why string) (endpoint, error) {
		return endpoint{}, fail.Input("the Docker endpoint %q (from %s) %s", given, source, why).Try("write unix:///path, tcp://host:port or ssh://user@host")
	}
	if filepath.IsAbs(strings.TrimSpace(given)) {
		return bad("is a path and has no scheme") // Docker looks for a host of an empty name
	}
	tls := tlsOptions(o)
	host, err := opts.ParseHost(tls != nil, given)
	if err != nil {
		return bad("is not one that Docker accepts")
	}
	ep := endpoint{host: host, source: source, contact: &contact{}}
	full := dockercontext.Endpoint{EndpointMeta: dockercontext.EndpointMeta{Host: host}}
	u, err := url.Parse(host)
	if err != nil {
		return bad("is not a URL")
	}
	switch u.Scheme {
	case "unix":
	case "tcp":
		if tls == nil {
			break
		}
		full.SkipTLSVerify = tls.InsecureSkipVerify
		if full.TLSData, err = dcontext.TLSDataFromFiles(tls.CAFile, tls.CertFile, tls.KeyFile); err != nil {
			return endpoint{}, fail.Input("TLS is asked for to %s (by DOCKER_TLS_VERIFY or DOCKER_TLS), and its files cannot be read: %w", host, err).Try("set DOCKER_CERT_PATH to the folder that holds ca.pem, cert.pem and key.pem")
		}
	case "ssh":
		dial, url, err := dialSSH(host, o.SSHOptions, ep.contact)
		if err != nil {
			return bad("is not an ssh destination")
		}
		ep.opts = []client.Opt{
			// A connection costs a login and is kept: a window makes several calls at once.
			client.WithHTTPClient(&http.Client{Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 8}}),
			client.WithHost(url),
			client.WithDialContext(dial),
		}
		return ep, nil
	default:
		return bad("has an unknown scheme")
	}
	if ep.opts, err = full.ClientOpts(); err != nil {
		return endpoint{}, fail.Input("the Docker endpoint %s (from %s) cannot be used: %w", host, source, err)
	}
	return ep, nil
}

// tlsOptions are the files of TLS as Docker's command line takes them, nil when
// TLS was not asked for: DOCKER_CERT_PATH alone does not ask.
func tlsOptions(o Options) *tlsconfig.Options {
	verify := o.Getenv("DOCKER_TLS_VERIFY") != ""
	if !verify && o.Getenv("DOCKER_TLS") == "" {
		return nil
	}
	dir := o.Getenv("DOCKER_CERT_PATH")
	if dir == "" {
		dir = configDir(o)
	}
	// A certificate of the client is optional.
	there := func(name string) string {
		name = filepath.Join(dir, name)
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			return ""
		}
		return name
	}
	return &tlsconfig.Options{CAFile: filepath.Join(dir, "ca.pem"), CertFile: there("cert.pem"), KeyFile: there("key.pem"), InsecureSkipVerify: !verify}
}

// explain turns a failed first call into one sentence with the remedy.
func explain(ctx context.Context, ep endpoint, err error) error {
	at := ep.host
	if ep.source != "default" {
		at += " (from " + ep.source + ")"
	}
	if path, ok := strings.CutPrefix(ep.host, "unix://"); ok {
		var d net.Dialer
		conn, dialErr := d.DialContext(ctx, "unix", path)
		if dialErr == nil {
			conn.Close()
		}
		switch {
		case errors.Is(dialErr, fs.ErrPermission):
			name := "$USER"
			if u, err := user.Current(); err == nil {
				name = u.Username
			}
			return fail.Work("cannot reach Docker at %s: permission denied", at).Try("add yourself to the group docker (sudo usermod -aG docker %s, then log in again) or use sudo", name)
		case errors.Is(dialErr, fs.ErrNotExist):
			if ep.source == "default" {
				return fail.Work("cannot reach Docker at %s: no engine is installed or running there", at).Try("install Docker Engine (or Docker Desktop) and start it, or set DOCKER_HOST")
			}
			return fail.Input("cannot reach Docker at %s: the socket does not exist", at).Try("start that engine or choose another")
		case errors.Is(dialErr, syscall.ECONNREFUSED):
			return fail.Work("cannot reach Docker at %s: nothing listens on the socket", at).Try("start the engine (sudo systemctl start docker, or sudo dockerd)")
		}
	}
	if strings.HasPrefix(ep.host, "ssh://") {
		return fail.Work("cannot reach Docker at %s: %s", at, sshReason(err)).Try("try `ssh %s docker version` by hand, which must work without a question", strings.TrimPrefix(ep.host, "ssh://"))
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		return fail.Work("cannot reach Docker at %s: no answer within %s", at, connectTimeout).Try("check that the engine runs and that no firewall is in between")
	}
	return fail.Work("cannot reach Docker at %s: %w", at, err).Try("check that the engine runs and that the address is right")
}

// sshReason takes ssh's own words out of a connection error.
func sshReason(err error) string {
	text := err.Error()
	if _, after, ok := strings.Cut(text, "stderr="); ok {
		text = after
	}
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	for i, l := range lines {
		lines[i] = strings.TrimSpace(l)
	}
	lines = slices.DeleteFunc(lines, func(l string) bool { return l == "" })
	return strings.TrimRight(strings.Join(lines, "; "), ".")
}
