package orders_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
)

func TestSandbox(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(appconfig.Sandbox{
		TerraformVersion: "1.9", Vars: map[string]string{"a": "b"}, EnvVars: map[string]string{"E": "f"},
		VarFiles: []appconfig.VarFile{{Contents: place.Text{Contents: "c = 1", File: "c.tfvars"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got jobspec.Spec
	if _, err := (orders.Revision{Sandbox: true, Spec: raw}).Fill(&got); err != nil {
		t.Fatal(err)
	}
	want := jobspec.Spec{Kind: jobspec.KindTerraformModule, Work: jobspec.Work{TerraformModule: &jobspec.TerraformModule{
		TerraformVersion: "1.9", Vars: map[string]any{"a": "b"}, EnvVars: map[string]string{"E": "f"}, VarFiles: []string{"c = 1"}, VarFileNames: []string{"c.tfvars"},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

func TestActionOfAnApp(t *testing.T) {
	t.Parallel()
	app := &appconfig.App{Actions: []appconfig.Action{{
		Name: "a", Timeout: place.Duration(time.Minute), EnableKubeConfig: true, Image: "{{ .nuon.components.tools.outputs.image.ref }}", ImageDigest: "sha256:b", Inputs: []appconfig.ActionInput{{Name: "AGE"}},
		Steps: []appconfig.Step{
			{Name: "one", Command: "true", EnvVars: map[string]string{"E": "f"}},
			{Name: "two", InlineContents: &place.Text{Contents: "echo", File: "two.sh"}, EnableKubeConfig: new(false)},
			{Name: "three", Command: "./a.sh", Artifact: &appconfig.Artifact{Repository: "org/shop/ops", Digest: "sha256:a"}},
		},
	}}}
	got, timeout, err := orders.Action(app, "a", map[string]string{"AGE": "3"})
	if err != nil || timeout != time.Minute {
		t.Fatalf("timeout %s, error %v", timeout, err)
	}
	want := &jobspec.Action{Name: "a", Image: "{{ .nuon.components.tools.outputs.image.ref }}", ImageDigest: "sha256:b", Inputs: map[string]string{"AGE": "3"}, Steps: []jobspec.ActionStep{
		{Name: "one", Command: "true", EnvVars: map[string]string{"E": "f"}},
		{Name: "two", InlineContents: "echo", ScriptName: "two.sh", NoKubeConfig: true},
		{Name: "three", Command: "./a.sh", Artifact: &jobspec.Artifact{Repository: "org/shop/ops", Digest: "sha256:a"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("action (-want +got):\n%s", diff)
	}
}
