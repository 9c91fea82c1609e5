package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/services/internal/optional"
)

// What a script asks for is checked before anything is stored, and what is stored has no
// sensitive value.
func TestRunScriptRequest(t *testing.T) {
	t.Parallel()
	const secret = "a canary that nobody may see"
	d := newDoor(t)
	c := d.org("initech")
	c.released("hello", hello())
	made, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, made, err, http.StatusCreated)
	run := func(kind ctlapi.WorkflowKind, s *ctlapi.AdHocScript) answered {
		t.Helper()
		resp, err := c.CreateWorkflowWithResponse(t.Context(), "acme", nil, ctlapi.WorkflowRequest{Kind: kind, Script: s})
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	for name, tt := range map[string]struct {
		kind   ctlapi.WorkflowKind
		script *ctlapi.AdHocScript
		says   string
	}{
		"no script":            {ctlapi.WorkflowKindRunScript, nil, "needs a script"},
		"for another kind":     {ctlapi.WorkflowKindDeploy, &ctlapi.AdHocScript{Text: "true"}, "not for deploy"},
		"an empty one":         {ctlapi.WorkflowKindRunScript, &ctlapi.AdHocScript{Text: " \n"}, "empty"},
		"a bad variable":       {ctlapi.WorkflowKindRunScript, &ctlapi.AdHocScript{Text: "true", SensitiveEnv: map[string]string{"A-B": secret}}, `"A-B"`},
		"an unknown context":   {ctlapi.WorkflowKindRunScript, &ctlapi.AdHocScript{Text: "true", KubernetesContext: "edge"}, `no kubernetes_context "edge"`},
		"an unknown component": {ctlapi.WorkflowKindRunScript, &ctlapi.AdHocScript{Text: "true", Component: "nothing"}, `no component "nothing"`},
	} {
		p := problemOf(t, run(tt.kind, tt.script), nil, http.StatusUnprocessableEntity, "invalid")
		if detail := optional.Value(p.Detail); !strings.Contains(detail, tt.says) || strings.Contains(detail, secret) {
			t.Errorf("%s: %q, want %q", name, detail, tt.says)
		}
	}
	if n := d.count(`select count(*) from workflows`); n != 0 {
		t.Errorf("%d workflows were started, want none", n)
	}
	must(t, run(ctlapi.WorkflowKindRunScript, &ctlapi.AdHocScript{Text: "echo $TOKEN", Env: map[string]string{"A": "b"}, SensitiveEnv: map[string]string{"TOKEN": secret}}), nil, http.StatusAccepted)
	if n := d.count(`select count(*) from workflows where kind = 'run_script' and params::text like '%"secret": ["TOKEN"]%' and params::text not like '%canary%'`); n != 1 {
		t.Errorf("%d workflows hold the name and not the value, want 1", n)
	}
}
