package ansible

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/percore/percore/internal/machines/fleet"
)

// inventory is the machines as Ansible's YAML inventory reads them; users are
// those who log in, by the machine's name.
func inventory(run Run, users map[string]string, facts string) ([]byte, error) {
	all := map[string]any{
		"percore_facts_dir": literal(facts),
		"percore_expires":   "",
	}
	if run.Expires != nil {
		all["percore_expires"] = run.Expires.UTC().Format(time.RFC3339)
	}
	if run.SSHConfig != "" {
		all["ansible_ssh_common_args"] = literal("-F " + quote(run.SSHConfig))
	}
	hosts := map[string]any{}
	for _, m := range run.Machines.Machines {
		user := users[m.Name]
		h := map[string]any{
			"ansible_host":    m.SSHHost,
			"ansible_user":    user,
			"percore_address": m.Address,
			"percore_role":    m.Role,
			"percore_become":  user != "root",
		}
		if m.SSHPort != 0 {
			h["ansible_port"] = m.SSHPort
		}
		hosts[m.Name] = h
	}
	text, err := json.MarshalIndent(map[string]any{"all": map[string]any{"vars": all, "hosts": hosts}}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the inventory: %w", err)
	}
	return append(text, '\n'), nil
}

// literal keeps Ansible from taking a text for a template.
func literal(s string) any {
	if !strings.Contains(s, "{{") && !strings.Contains(s, "{%") && !strings.Contains(s, "{#") {
		return s
	}
	return map[string]string{"__ansible_unsafe": s}
}

// quote makes one word of a text for Ansible, which splits arguments of ssh as
// a shell does.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'" }

// sshArgs are the arguments with which ssh reaches a machine as Ansible does.
func (r Run) sshArgs(m fleet.Machine) []string {
	var args []string
	if r.SSHConfig != "" {
		args = append(args, "-F", r.SSHConfig)
	}
	args = append(args, "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3")
	return append(args, m.SSHArgs()...)
}
