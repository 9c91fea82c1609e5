//go:build race

package interpolate_test

// slower is how much longer everything takes with the race detector.
const slower = 20

// larger is how much more memory everything takes.
const larger = 3
