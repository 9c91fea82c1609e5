package usage

import (
	"strings"
	"testing"
)

func TestNameable(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"acme": true, "a-1": true, "a": true, strings.Repeat("a", maxName): true,
		"": false, "Acme": false, "-a": false, "a-": false, "ünter": false, "a\x1b[31m": false, strings.Repeat("a", maxName+1): false,
	} {
		err := Nameable("an app", name)
		if (err == nil) != want {
			t.Errorf("%q: got %v, want it allowed: %t", name, err, want)
		}
		if err != nil && strings.ContainsRune(err.Error(), '\x1b') {
			t.Errorf("%q: the error steers the terminal", name)
		}
	}
}
