// Package infra embeds the Terraform modules, so that the program carries them
// wherever it is copied.
package infra

import "embed"

// Files holds the modules: aws makes the machines of a run, hosts takes those
// that are there.
//
//go:embed aws hosts
var Files embed.FS
