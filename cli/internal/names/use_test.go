package names_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/names"
)

func TestKinds(t *testing.T) {
	t.Parallel()
	for use, want := range map[string][]names.Kind{
		"list":                                nil,
		"show INSTALL":                        {names.Install},
		"status [INSTALL]":                    {names.Install},
		"toggle INSTALL COMPONENT on|off":     {names.Install, "", ""},
		"create APP [COMPONENT]...":           {names.App, ""},
		"diff RELEASE RELEASE":                {names.Release, names.Release},
		"set APP NAME":                        {names.App, ""},
		"why INSTALL | WORKFLOW":              nil,
		"approve CHANGE | --all WORKFLOW":     nil,
		"deploy INSTALL[/COMPONENT] [OTHER]…": {"", ""},
	} {
		if diff := cmp.Diff(want, names.Kinds(use)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", use, diff)
		}
	}
}
