package plan

import "github.com/percore/percore/internal/base/yamlfile"

// written is the kind of file that profiles, presets and suites are.
var written = yamlfile.Kind{What: "a profile, a preset or a suite", Like: profileDir + "/small.yaml"}

// readYAML reads a file whose every key must be known.
func readYAML(path string, into any) error { return written.Read(path, into) }

// DecodeYAML reads a document of a file that belongs to a plan, such as a suite's.
// Every key must be known. The fields of into carry yaml tags. Its errors are as
// those of a profile.
func DecodeYAML(name string, text []byte, into any) error { return decodeYAML(name, text, into) }

func decodeYAML(name string, text []byte, into any) error { return written.Decode(name, text, into) }
