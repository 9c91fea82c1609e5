package appconfig

import "testing"

// A panic of what runs alongside must reach the one who waits, whose recovery
// answers for one request, and not end the process.
func TestAlongsidePanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if got := recover(); got != "boom" {
			t.Errorf("waiting panicked with %v, want boom", got)
		}
	}()
	alongside(func() { panic("boom") })()
	t.Error("waiting did not panic")
}
