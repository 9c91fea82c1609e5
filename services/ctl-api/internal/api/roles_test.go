package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/services/internal/optional"
)

// Nothing runs under a role yet, so no request that names one is started: one
// that the release lacks is answered with the nearest.
func TestRoleOfARequest(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	folder := with(hello(), "permissions/setup.toml", "type = \"maintenance\"\nname = \"{{ .nuon.install.id }}-setup\"\ndisplay_name = \"Setup\"\ndescription = \"Sets up.\"\n")
	folder = with(folder, "break_glass.toml", "[[role]]\nname = \"rescue\"\ndisplay_name = \"Rescue\"\ndescription = \"Rescues.\"\n")
	c.released("hello", with(folder, "actions/mend.toml", "name = \"mend\"\n[[triggers]]\ntype = \"manual\"\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n"))
	made, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, made, err, http.StatusCreated)
	for _, tt := range []struct {
		name, role, code, says, remedy string
	}{
		{"misspelt", "resque", "unknown_role", `the release has no role "resque"; it has: {{ .nuon.id }}-setup, rescue`, `did you mean "rescue"?`},
		{"the plain part of a template", "setup", "unknown_role", "the release has no role", `did you mean "{{ .nuon.id }}-setup"?`},
		{"far from all", "emperor", "unknown_role", "the release has no role", ""},
		{"declared", "rescue", "unsupported", `running under role "rescue" is not supported yet by this version: the runner uses its own identity`, "start it without a role"},
		{"declared, with another path", "{{.nuon.install.id}}-setup", "unsupported", "is not supported yet", "start it without a role"},
	} {
		answers := map[string]answered{}
		for _, kind := range []ctlapi.WorkflowKind{ctlapi.WorkflowKindProvision, ctlapi.WorkflowKindDeploy, ctlapi.WorkflowKindDeprovision} {
			resp, err := c.CreateWorkflowWithResponse(t.Context(), "acme", nil, ctlapi.WorkflowRequest{Kind: kind, Role: tt.role, PlanOnly: kind == ctlapi.WorkflowKindDeploy})
			if err != nil {
				t.Fatal(err)
			}
			answers[string(kind)] = resp
		}
		resp, err := c.RunActionWithResponse(t.Context(), "acme", "mend", nil, ctlapi.ActionRunRequest{Role: tt.role})
		if err != nil {
			t.Fatal(err)
		}
		answers["action"] = resp
		for what, resp := range answers {
			p := problemOf(t, resp, nil, http.StatusUnprocessableEntity, tt.code)
			if remedy := optional.Value(p.Remedy); !strings.Contains(optional.Value(p.Detail), tt.says) || !strings.Contains(remedy, tt.remedy) || tt.remedy == "" && remedy != "" {
				t.Errorf("%s, %s: %q, remedy %q", tt.name, what, optional.Value(p.Detail), remedy)
			}
		}
	}
	if n := d.count(`select count(*) from workflows`); n != 0 {
		t.Errorf("%d workflows were started, want none", n)
	}
}
