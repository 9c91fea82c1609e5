package main

import (
	"os"
	"runtime/debug"
	"testing"
)

// An engine is started with the collector off, and must not run like that.
func TestCollect(t *testing.T) {
	t.Setenv("GOGC", "off")
	before := debug.SetGCPercent(-1)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	collect()
	if percent := debug.SetGCPercent(100); percent != 100 {
		t.Errorf("the collector runs at %d %%, want 100", percent)
	}
	if value, ok := os.LookupEnv("GOGC"); ok {
		t.Errorf("GOGC=%s is passed on", value)
	}
}
