//go:build race

package appconfig_test

// slower is how much longer everything takes with the race detector.
const slower = 5
