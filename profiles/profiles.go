// Package profiles embeds the profiles and presets that ship with percore, so
// that the program carries them wherever it is copied.
package profiles

import "embed"

// Files holds the profiles, and the presets in a folder of their own.
//
//go:embed *.yaml presets
var Files embed.FS
