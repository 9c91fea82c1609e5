package orders_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
)

// revision is a component as a release stores it.
func revision(t *testing.T, c appconfig.Component) orders.Revision {
	t.Helper()
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return orders.Revision{Spec: raw, App: &appconfig.App{}, Override: appconfig.InstallComponent{HelmValues: "replicas: 2", TFVars: `size = "big"`}}
}

// Each type of component is told what its engine works from, and what an install
// overrides of another type does not count.
func TestFill(t *testing.T) {
	t.Parallel()
	type fillTest struct {
		name      string
		component appconfig.Component
		commit    string
		app       appconfig.App
		want      jobspec.Spec
		timeout   time.Duration
	}
	tests := []fillTest{
		{name: "a Terraform module", timeout: 2 * time.Minute,
			component: appconfig.Component{Name: "db", Type: appconfig.TypeTerraformModule, DeployTimeout: place.Duration(2 * time.Minute),
				TerraformModule: &appconfig.TerraformModule{
					TerraformVersion: "1.9", Vars: map[string]string{"a": "b"}, EnvVars: map[string]string{"E": "f"},
					VarFiles: []appconfig.VarFile{{Contents: place.Text{Contents: "c = 1", File: "c.tfvars"}}},
				}},
			want: jobspec.Spec{Kind: jobspec.KindTerraformModule, Work: jobspec.Work{TerraformModule: &jobspec.TerraformModule{
				TerraformVersion: "1.9", Vars: map[string]any{"a": "b"}, EnvVars: map[string]string{"E": "f"},
				VarFiles: []string{"c = 1"}, VarFileNames: []string{"c.tfvars"}, InstallVars: `size = "big"`}}}},
		{name: "a type that is a plugin's", timeout: orders.DefaultTimeout,
			component: appconfig.Component{Name: "hello", Type: "greeting", Plugin: map[string]any{"text": "ahoy"},
				Berth: &appconfig.BlockExtension{Plugin: &appconfig.PluginGrant{Signer: "key", Network: true, InstallDir: true}}},
			want: jobspec.Spec{Kind: jobspec.KindPlugin, Work: jobspec.Work{Plugin: &jobspec.Plugin{
				Type: "greeting", Signer: "key", Network: true, InstallDir: true, Config: map[string]any{"text": "ahoy"}}}}},
		{name: "a chart, whose releases are kept in Secrets", timeout: orders.DefaultTimeout,
			component: appconfig.Component{Name: "web", Type: appconfig.TypeHelmChart, HelmChart: &appconfig.HelmChart{ChartName: "web", Namespace: "shop", Values: map[string]string{"x": "1"}}},
			want: jobspec.Spec{Kind: jobspec.KindHelmChart, Work: jobspec.Work{HelmChart: &jobspec.HelmChart{
				ReleaseName: "web", Namespace: "shop", CreateNamespace: true, StorageDriver: "secret", Values: map[string]string{"x": "1"}, InstallValues: "replicas: 2"}}}},
		{name: "a chart, where runner.toml says how they are kept", timeout: orders.DefaultTimeout, app: appconfig.App{Runner: &appconfig.Runner{HelmDriver: "configmap"}},
			component: appconfig.Component{Name: "web", Type: appconfig.TypeHelmChart, HelmChart: &appconfig.HelmChart{ChartName: "web"}},
			want:      jobspec.Spec{Kind: jobspec.KindHelmChart, Work: jobspec.Work{HelmChart: &jobspec.HelmChart{ReleaseName: "web", CreateNamespace: true, StorageDriver: "configmap", InstallValues: "replicas: 2"}}}},
		{name: "a chart that says so itself", timeout: orders.DefaultTimeout, app: appconfig.App{Runner: &appconfig.Runner{HelmDriver: "secret"}},
			component: appconfig.Component{Name: "web", Type: appconfig.TypeHelmChart, HelmChart: &appconfig.HelmChart{
				ChartName: "web", CreateNamespace: new(false), StorageDriver: "configmap", TakeOwnership: true, CRDs: "upgrade", HistoryLimit: 5, Atomic: true,
				ValuesFiles: []appconfig.ValuesFile{{Contents: place.Text{Contents: "a: 1", File: "a.yaml"}}},
			}},
			want: jobspec.Spec{Kind: jobspec.KindHelmChart, Work: jobspec.Work{HelmChart: &jobspec.HelmChart{
				ReleaseName: "web", StorageDriver: "configmap", TakeOwnership: true, CRDs: "upgrade", MaxHistory: 5, Atomic: true, ValuesFiles: []string{"a: 1"}, ValuesFileNames: []string{"a.yaml"}, InstallValues: "replicas: 2"}}}},
		{name: "a chart in Secrets, where runner.toml says ConfigMaps", timeout: orders.DefaultTimeout, app: appconfig.App{Runner: &appconfig.Runner{HelmDriver: "configmap"}},
			component: appconfig.Component{Name: "web", Type: appconfig.TypeHelmChart, HelmChart: &appconfig.HelmChart{ChartName: "web", StorageDriver: "secret", CRDs: "install"}},
			want: jobspec.Spec{Kind: jobspec.KindHelmChart, Work: jobspec.Work{HelmChart: &jobspec.HelmChart{
				ReleaseName: "web", CreateNamespace: true, StorageDriver: "secret", InstallValues: "replicas: 2"}}}},
		{name: "a chart that the control plane keeps", timeout: orders.DefaultTimeout,
			component: appconfig.Component{Name: "web", Type: appconfig.TypeHelmChart, HelmChart: &appconfig.HelmChart{ChartName: "web", StorageDriver: "nuon"}},
			want: jobspec.Spec{Kind: jobspec.KindHelmChart, Work: jobspec.Work{HelmChart: &jobspec.HelmChart{
				ReleaseName: "web", CreateNamespace: true, StorageDriver: "nuon", InstallValues: "replicas: 2"}}}},
		{name: "a manifest", timeout: orders.DefaultTimeout,
			component: appconfig.Component{Name: "cron", Type: appconfig.TypeKubernetesManifest, KubernetesManifest: &appconfig.KubernetesManifest{Namespace: "shop", CreateNamespace: new(true), Manifest: &place.Text{File: "cron.yaml"}}},
			want:      jobspec.Spec{Kind: jobspec.KindKubernetesManifest, Work: jobspec.Work{KubernetesManifest: &jobspec.KubernetesManifest{Namespace: "shop", CreateNamespace: true, ManifestName: "cron.yaml"}}}},
		{name: "a program of Pulumi", timeout: orders.DefaultTimeout,
			component: appconfig.Component{Name: "stack", Type: appconfig.TypePulumi, Pulumi: &appconfig.Pulumi{Runtime: "go", Config: map[string]string{"aws:region": "{{ .r }}"}, EnvVars: map[string]string{"E": "f"}}},
			want:      jobspec.Spec{Kind: jobspec.KindPulumi, Work: jobspec.Work{Pulumi: &jobspec.Pulumi{Runtime: "go", Config: map[string]string{"aws:region": "{{ .r }}"}, EnvVars: map[string]string{"E": "f"}}}}},
		{name: "an image of others", timeout: orders.DefaultTimeout,
			component: appconfig.Component{Name: "img", Type: appconfig.TypeContainerImage, ContainerImage: &appconfig.ContainerImage{Public: &appconfig.PublicImage{Tag: "1.2"}}},
			want:      jobspec.Spec{Kind: jobspec.KindContainerImage, Work: jobspec.Work{ContainerImage: &jobspec.ContainerImage{Tag: "1.2"}}}},
		{name: "an image in a registry of AWS", timeout: orders.DefaultTimeout,
			component: appconfig.Component{Name: "img", Type: appconfig.TypeContainerImage, ContainerImage: &appconfig.ContainerImage{ECR: &appconfig.ECRImage{ImageURL: "1.dkr.ecr.eu-central-1.amazonaws.com/a", Tag: "1.2"}}},
			want:      jobspec.Spec{Kind: jobspec.KindContainerImage, Work: jobspec.Work{ContainerImage: &jobspec.ContainerImage{Image: "1.dkr.ecr.eu-central-1.amazonaws.com/a", Tag: "1.2"}}}},
		{name: "an image that follows a range", timeout: orders.DefaultTimeout, commit: "v1.4.10@sha256:ab",
			component: appconfig.Component{Name: "img", Type: appconfig.TypeContainerImage, ContainerImage: &appconfig.ContainerImage{Public: &appconfig.PublicImage{Tag: "1.2", UpdatePolicy: "^1.4"}}},
			want:      jobspec.Spec{Kind: jobspec.KindContainerImage, Work: jobspec.Work{ContainerImage: &jobspec.ContainerImage{Tag: "v1.4.10"}}}},
		{name: "an image of its own", timeout: orders.DefaultTimeout, commit: "0123456789abcdef0123456789abcdef01234567",
			component: appconfig.Component{Name: "web", Type: appconfig.TypeDockerBuild, DockerBuild: &appconfig.DockerBuild{Dockerfile: "Dockerfile", Args: map[string]string{"A": "1"}}},
			want:      jobspec.Spec{Kind: jobspec.KindDockerBuild, Work: jobspec.Work{DockerBuild: &jobspec.DockerBuild{Commit: "0123456789abcdef0123456789abcdef01234567"}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := revision(t, tt.component)
			r.App, r.Commit = &tt.app, tt.commit
			var got jobspec.Spec
			timeout, err := r.Fill(&got)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || timeout != tt.timeout {
				t.Errorf("timeout %s, want %s; spec (-want +got):\n%s", timeout, tt.timeout, diff)
			}
		})
	}
	for kind, info := range jobspec.Kinds {
		if info.Component && !slices.ContainsFunc(tests, func(tt fillTest) bool { return tt.want.Kind == kind }) {
			t.Errorf("no case for a component of type %s, which jobspec.Kinds says is deployed", kind)
		}
	}
}

func TestFillOfTypeWithoutEngine(t *testing.T) {
	t.Parallel()
	var spec jobspec.Spec
	_, err := revision(t, appconfig.Component{Name: "stack", Type: appconfig.TypeJob, Job: &appconfig.Job{}}).Fill(&spec)
	if want := `component "stack" of type job has no engine in this version`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// What a runner looks at has no values of a chart: what is deployed is in the
// cluster.
func TestProbe(t *testing.T) {
	t.Parallel()
	live := revision(t, appconfig.Component{Name: "web", Type: appconfig.TypeHelmChart, HelmChart: &appconfig.HelmChart{ChartName: "web", Values: map[string]string{"password": "{{ .secret }}"}}})
	live.Override = appconfig.InstallComponent{}
	got, err := orders.Probe(jobspec.Resource{ID: "res_1", Kind: "component", Name: "web"}, live)
	if err != nil {
		t.Fatal(err)
	}
	want := jobspec.Probe{
		Resource: jobspec.Resource{ID: "res_1", Kind: "component", Name: "web"}, Kind: jobspec.KindHelmChart,
		Work: jobspec.Work{HelmChart: &jobspec.HelmChart{ReleaseName: "web", CreateNamespace: true, StorageDriver: "secret"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("probe (-want +got):\n%s", diff)
	}
}

// A runner accepts the plugin that the release pins, as the app grants it; other
// components have none.
func TestPluginScript(t *testing.T) {
	t.Parallel()
	artifact := jobspec.Artifact{Repository: "org/app/hello", Digest: "sha256:a"}
	of := func(c appconfig.Component) (jobspec.Script, bool) {
		s, found, err := orders.PluginScript(revision(t, c).Spec, artifact)
		if err != nil {
			t.Fatal(err)
		}
		return s, found
	}
	got, found := of(appconfig.Component{Name: "hello", Type: "greeting", Plugin: map[string]any{"text": "ahoy"},
		Berth: &appconfig.BlockExtension{Plugin: &appconfig.PluginGrant{Signer: "key", InstallDir: true, Hosts: []string{"api.example.com"}, Paths: []string{"/etc/myapp:ro"}, Roles: []string{"deploy"}}}})
	want := jobspec.PluginScript("hello", jobspec.Plugin{Type: "greeting", Signer: "key", InstallDir: true, Hosts: []string{"api.example.com"}, Paths: []string{"/etc/myapp:ro"}, Roles: []string{"deploy"}}, artifact)
	if diff := cmp.Diff(want, got); diff != "" || !found {
		t.Errorf("found %v (-want +got):\n%s", found, diff)
	}
	if _, found := of(appconfig.Component{Name: "web", Type: appconfig.TypeHelmChart, HelmChart: &appconfig.HelmChart{}}); found {
		t.Error("a chart is taken for a plugin")
	}
}
