package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUpWritesALostContext: the file of contexts is lost while Berth runs, and
// `berth up` writes it again; one that is there stays as it is.
func TestUpWritesALostContext(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.must("context", "list") // finds the running one
	var file string
	for _, kv := range s.env {
		if home, ok := strings.CutPrefix(kv, "XDG_CONFIG_HOME="); ok {
			file = filepath.Join(home, "berth", "config.json")
		}
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, said, code := s.run("up"); code != 0 || !strings.Contains(said, `the context "local" was missing`) {
		t.Errorf("up: exit %d: %s", code, said)
	}
	after, err := os.ReadFile(file)
	if err != nil || string(after) != string(before) {
		t.Errorf("the contexts were\n%s\nand are\n%s%v", before, after, err)
	}
	if _, said, _ := s.run("up"); strings.Contains(said, "context") {
		t.Errorf("a second time it is not missing: %s", said)
	}
}
