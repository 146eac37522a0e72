// Package ansible embeds the playbook that prepares the machines of a run, so
// that the program carries it wherever it is copied.
package ansible

import "embed"

// Files holds the playbook and its roles, modules and plugins.
//
//go:embed ansible.cfg prepare.yml library plugins roles
var Files embed.FS
