// Package policy_test holds the import rules of the module against what is really linked.
package policy_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestImports: of Berth the engine links the contract and the version. dev/scripts/policy.sh
// knows no more when it looks whether something changed.
func TestImports(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/policy")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	const berth = "github.com/berth-dev/berth/"
	var got []string
	for _, path := range strings.Fields(string(out)) {
		if ours, is := strings.CutPrefix(path, berth); is && !strings.HasPrefix(ours, "runner/policy/") {
			got = append(got, ours)
		}
	}
	slices.Sort(got)
	if want := []string{"pkg/policy", "pkg/version"}; !slices.Equal(got, want) {
		t.Errorf("it links %v, want %v", got, want)
	}
}
