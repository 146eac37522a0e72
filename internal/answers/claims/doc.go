// Package claims turns what the studies claim into verdicts about a set of
// figures. A claim is data: a sentence, the figures it rests on, and a rule in a
// small language whose meaning is fixed here.
//
// A rule compares the value of an expression, a figure or products and ratios
// of figures, with a region that the claim accepts. What it decides on is the
// expression's interval at 90 %: inside the region the claim is reproduced,
// outside it is not, across the border it is inconclusive. A 90 % interval
// inside a region is the two one-sided tests procedure at 5 %. A value without
// repetitions, as the studies print it, is decided on as it stands. Where the
// study's estimator is the best or the largest of the repetitions there is no
// interval for it: the value decides, from three repetitions on, and the spread
// of the repetitions is shown.
package claims
