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
		Berth:    &appconfig.BlockExtension{Tool: appconfig.ToolOpenTofu},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got jobspec.Spec
	if _, err := (orders.Revision{Sandbox: true, Spec: raw}).Fill(&got); err != nil {
		t.Fatal(err)
	}
	want := jobspec.Spec{Kind: jobspec.KindTerraformModule, Work: jobspec.Work{TerraformModule: &jobspec.TerraformModule{
		Tool: jobspec.ToolOpenTofu, TerraformVersion: "1.9", Vars: map[string]any{"a": "b"}, EnvVars: map[string]string{"E": "f"}, VarFiles: []string{"c = 1"}, VarFileNames: []string{"c.tfvars"},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

func TestPulumiSandbox(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(appconfig.Sandbox{
		Type: appconfig.SandboxTypePulumi, Runtime: "go", PulumiConfig: map[string]string{"aws:region": "eu"}, EnvVars: map[string]string{"E": "f"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got jobspec.Spec
	if _, err := (orders.Revision{Sandbox: true, Spec: raw}).Fill(&got); err != nil {
		t.Fatal(err)
	}
	want := jobspec.Spec{Kind: jobspec.KindPulumi, Work: jobspec.Work{Pulumi: &jobspec.Pulumi{
		Runtime: "go", Config: map[string]string{"aws:region": "eu"}, EnvVars: map[string]string{"E": "f"},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

// Charts, manifests and scripts say which cluster they are for, probes too; the
// sandbox's own is not named.
func TestClusters(t *testing.T) {
	t.Parallel()
	app := &appconfig.App{
		KubernetesContexts: []appconfig.KubernetesContext{{Name: "west", Component: "west-cluster"}},
		Components:         []appconfig.Component{{Name: "west-cluster", Type: appconfig.TypeTerraformModule, TerraformModule: &appconfig.TerraformModule{}}},
	}
	west := &jobspec.Cluster{Context: "west", Component: "west-cluster"}
	for context, want := range map[string]*jobspec.Cluster{"": nil, "sandbox": nil, "west": west} {
		app.Actions = []appconfig.Action{{Name: "a", KubernetesContext: context}}
		action, _, err := orders.Action(app, "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, action.Cluster); diff != "" {
			t.Errorf("action of context %q (-want +got):\n%s", context, diff)
		}
		for _, c := range []appconfig.Component{
			{Name: "c", Type: appconfig.TypeHelmChart, HelmChart: &appconfig.HelmChart{ChartName: "c"}, KubernetesContext: context},
			{Name: "c", Type: appconfig.TypeKubernetesManifest, KubernetesManifest: &appconfig.KubernetesManifest{Namespace: "n"}, KubernetesContext: context},
		} {
			raw, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			revision := orders.Revision{Spec: raw, App: app}
			var spec jobspec.Spec
			if _, err := revision.Fill(&spec); err != nil {
				t.Fatal(err)
			}
			probe, err := orders.Probe(jobspec.Resource{Name: "c"}, revision)
			if err != nil {
				t.Fatal(err)
			}
			probed := jobspec.Spec{Work: probe.Work}
			if diff := cmp.Diff(want, spec.Cluster()) + cmp.Diff(want, probed.Cluster()); diff != "" {
				t.Errorf("%s of context %q (-want +got):\n%s", c.Type, context, diff)
			}
		}
	}
}

// What is live in one cluster is not deployed to another: it would stay in the
// first for ever.
func TestStays(t *testing.T) {
	t.Parallel()
	west, east := &jobspec.Cluster{Context: "west", Component: "a"}, &jobspec.Cluster{Context: "east", Component: "a"}
	for _, tc := range []struct {
		live, next *jobspec.Cluster
		stays      bool
	}{{nil, nil, true}, {west, west, true}, {west, &jobspec.Cluster{Context: "west", Component: "b"}, true}, {nil, west, false}, {west, nil, false}, {west, east, false}} {
		if err := orders.Stays("web", tc.live, tc.next); (err == nil) != tc.stays {
			t.Errorf("from %v to %v: %v", tc.live, tc.next, err)
		}
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
