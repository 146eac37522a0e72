// Package guest embeds the sources of the packages behind the guest program,
// which every lab compiles for its hosts.
package guest

import "embed"

// Files holds the packages' folders.
//
//go:embed clock/*.go hold/*.go kernel/*.go sample/*.go
var Files embed.FS
