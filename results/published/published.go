// Package published embeds the published figures, the claims that rest on them
// and the shipped price table, so that the program carries them wherever it is
// copied.
package published

import "embed"

// Files holds the YAML files of this folder: one file a study, claims.yaml and
// prices.yaml.
//
//go:embed *.yaml
var Files embed.FS

// Names of the files that are not a study.
const (
	ClaimsFile = "claims.yaml"
	PricesFile = "prices.yaml"
)
