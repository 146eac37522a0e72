package terraform

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-exec/tfexec"
)

// Variables of the user's that would put the state elsewhere, or another state
// in its place.
var misleading = []string{"TF_DATA_DIR", "TF_WORKSPACE"}

// Variables that are set anew for every command in any case: that they had
// another value is of no interest to anybody.
var overridden = []string{"TF_IN_AUTOMATION", "TF_INPUT", "TF_APPEND_USER_AGENT"}

// environment is what Terraform runs in: the user's, without what would change
// what it does, and without its look for newer versions of itself.
func environment(environ []string) map[string]string {
	env := map[string]string{}
	for _, pair := range environ {
		if k, v, ok := strings.Cut(pair, "="); ok && k != "" {
			env[k] = v
		}
	}
	env = tfexec.CleanEnv(env)
	for _, k := range misleading {
		delete(env, k)
	}
	// About one that is not there, every command would warn.
	if config := env["TF_CLI_CONFIG_FILE"]; config != "" {
		if _, err := os.Stat(config); err != nil {
			delete(env, "TF_CLI_CONFIG_FILE")
		}
	}
	env["CHECKPOINT_DISABLE"] = "1"
	return env
}

// ignored names the variables that environment leaves out, as the beginning of
// a sentence; empty when there are none.
func ignored(environ []string) string {
	env := map[string]string{}
	for _, pair := range environ {
		if k, v, ok := strings.Cut(pair, "="); ok && v != "" && !slices.Contains(overridden, k) {
			env[k] = v
		}
	}
	names := tfexec.ProhibitedEnv(env)
	for _, k := range misleading {
		if _, ok := env[k]; ok && !slices.Contains(names, k) {
			names = append(names, k)
		}
	}
	slices.Sort(names)
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0] + " is"
	}
	return fmt.Sprintf("%s and %s are", strings.Join(names[:len(names)-1], ", "), names[len(names)-1])
}

// pairs is an environment as a command takes it.
func pairs(env map[string]string) []string {
	out := make([]string, 0, len(env))
	for k, v := range env {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return out
}

// secrets are the values of an environment that must not be written anywhere.
func secrets(env map[string]string) []string {
	var out []string
	for _, k := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN"} {
		if v := env[k]; len(v) >= 8 {
			out = append(out, v)
		}
	}
	return out
}

// redact takes secrets out of a text.
func redact(text string, secrets []string) string {
	for _, s := range secrets {
		text = strings.ReplaceAll(text, s, "[redacted]")
	}
	return text
}
