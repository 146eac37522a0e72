package engine

// Labels on everything of percore's, so that it can be found and removed and
// nothing else is.
const (
	Label     = "io.percore"      // "1" on everything
	LabelRun  = "io.percore.run"  // run id, on containers and networks
	LabelKind = "io.percore.kind" // container, network, volume or image
	LabelRole = "io.percore.what" // what a container is for: db, app, load, sampler, tools
)

// Kinds of things that carry the label.
const (
	KindContainer = "container"
	KindNetwork   = "network"
	KindVolume    = "volume"
	KindImage     = "image"
)

// Own are the labels of percore's own things of a kind. A container that somebody
// else made from an image of percore's inherits that image's labels: only the
// kind tells the two apart.
func Own(kind string) map[string]string {
	return map[string]string{Label: "1", LabelKind: kind}
}
