// Package figures is the common currency of everything that compares: a Set
// holds the figures of one source, whether a run of percore, an imported study
// folder or the published studies, under the same keys and by the same
// definitions. Each figure is an Estimate: the value that the study's
// definition gives, the repetitions it rests on, an interval where there are
// enough of them, and what the reader has to be told. Windows are sorted into
// cells once (see cell.go); the set of figures and the rows of the tables are
// both taken from the cells, and so never differ.
//
// The statistics are those of golang.org/x/perf/benchmath: medians with
// order-statistic intervals, whose coverage is exact whatever the distribution.
// A ratio of two independent samples gets the interval that inverts the
// Mann-Whitney U test (see Ratio). Few repetitions give wide intervals or none;
// that is said, never papered over. Percentiles are never averaged: a
// percentile over repetitions is the median of the repetitions' percentiles.
package figures
