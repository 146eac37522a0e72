// Package candidates embeds the suites with their candidates' sources and image
// recipes, and what the suites share, so that the program carries them wherever
// it is copied.
package candidates

import "embed"

// Files holds the folders below this one.
//
//go:embed all:oauth-events all:shared
var Files embed.FS
