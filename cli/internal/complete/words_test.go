package complete_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/complete"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for use, want := range map[string][][]string{
		"list":                                      nil,
		"show INSTALL":                              {{"INSTALL"}},
		"why INSTALL | WORKFLOW":                    {{"INSTALL", "WORKFLOW"}},
		"toggle INSTALL COMPONENT on|off":           {{"INSTALL"}, {"COMPONENT"}, {"on|off"}},
		"approve CHANGE | --all WORKFLOW":           {{"CHANGE", "WORKFLOW"}},
		"deploy INSTALL[/COMPONENT] [COMPONENT]...": {{"INSTALL[/COMPONENT]"}, {"[COMPONENT]..."}},
	} {
		if diff := cmp.Diff(want, complete.Words(use)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", use, diff)
		}
	}
}
