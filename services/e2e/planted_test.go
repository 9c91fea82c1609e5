package e2e_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestNothingPlanted: no executable has the bugs that some are built with on purpose
// (make model-planted, which checks that those have what is looked for here).
func TestNothingPlanted(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(executables(t), "berth*"))
	if err != nil || len(files) < 8 {
		t.Fatalf("only %v (%v)", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, tag := range []string{"PLANTED_BUG", "WEAKENED"} {
			if bytes.Contains(data, []byte("BERTH_"+tag)) {
				t.Errorf("%s was built with the tag that reads BERTH_%s", file, tag)
			}
		}
	}
}
