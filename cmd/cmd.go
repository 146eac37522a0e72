// Package cmd embeds the source of the guest program, which every lab compiles
// for its hosts.
package cmd

import "embed"

// Guest holds the folder of the program.
//
//go:embed guest/*.go
var Guest embed.FS
