package appconfig_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

func TestMinimalFolderIsClean(t *testing.T) {
	t.Parallel()
	_, diags := check.Folder(appconfigtest.Folder(), appconfig.LoadOptions{})
	if len(diags) > 0 {
		t.Errorf("got diagnostics:\n%s", appconfigtest.Render(diags))
	}
}

func TestSameFolderSameBytes(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"components/b.toml": appconfigtest.Module("b"), "components/a.toml": appconfigtest.Module("a", `dependencies = ["b"]`),
		"actions/x.toml": "name = \"x\"\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n",
	}
	first, _ := json.Marshal(appconfigtest.Load(t, appconfigtest.Folder(files)))
	second, _ := json.Marshal(appconfigtest.Load(t, appconfigtest.Folder(files)))
	if !bytes.Equal(first, second) {
		t.Errorf("the same folder gave\n%s\nand\n%s", first, second)
	}
	var decoded appconfig.App
	if err := json.Unmarshal(first, &decoded); err != nil {
		t.Fatal(err)
	}
	third, _ := json.Marshal(&decoded)
	if !bytes.Equal(first, third) {
		t.Errorf("JSON does not round-trip:\n%s\n%s", first, third)
	}
	if decoded.Digest() != appconfigtest.Load(t, appconfigtest.Folder(files)).Digest() {
		t.Error("the digest changed on the way through JSON")
	}
}

func TestDigestIgnoresWriting(t *testing.T) {
	t.Parallel()
	plain := appconfigtest.Load(t, appconfigtest.Folder(map[string]string{"components/a.toml": appconfigtest.Module("a", `deploy_timeout = "1h"`)}))
	same := appconfigtest.Load(t, appconfigtest.Folder(map[string]string{
		"components/a.toml":      "",
		"components/deep/x.toml": "# a comment\n" + appconfigtest.Module("a", `timeout = "60m"`),
	}))
	if plain.Digest() != same.Digest() {
		t.Error("a comment, another file name or another spelling of an hour changed the digest")
	}
	other := appconfigtest.Load(t, appconfigtest.Folder(map[string]string{"components/a.toml": appconfigtest.Module("a", `deploy_timeout = "2h"`)}))
	if plain.Digest() == other.Digest() {
		t.Error("another timeout did not change the digest")
	}
}

func TestLoadedFilesAndFreeMaps(t *testing.T) {
	t.Parallel()
	app := appconfigtest.Load(t, appconfigtest.Folder(map[string]string{
		"components/sub/a.toml":     appconfigtest.Module("a", "[vars]\nflag = true\nn = 3\nf = 1.5\ns = \"x\"\n[[var_file]]\ncontents = \"./vars/a.tfvars\"\n[[var_file]]\ncontents = \"b = 1\""),
		"components/vars/a.tfvars":  "region = \"{{ .nuon.sandbox.outputs.region }}\"\n",
		"components/vars/README.md": "not a component",
	}))
	got := app.Component("a").TerraformModule
	want := &appconfig.TerraformModule{
		TerraformVersion: "1.11.4",
		Vars:             map[string]string{"flag": "true", "n": "3", "f": "1.5", "s": "x"},
		VarFiles: []appconfig.VarFile{
			{Contents: place.Text{Contents: "region = \"{{ .nuon.sandbox.outputs.region }}\"\n", File: "components/vars/a.tfvars"}},
			{Contents: place.Text{Contents: "b = 1"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("module (-want +got):\n%s", diff)
	}
}

func TestInputsByFolder(t *testing.T) {
	t.Parallel()
	app := appconfigtest.Load(t, appconfigtest.Folder(map[string]string{
		"inputs.toml":          "# moved to inputs/\n",
		"input_groups/g.toml":  "name = \"g\"\ndisplay_name = \"G\"\ndescription = \"d\"\n",
		"inputs/g/domain.toml": "name = \"domain\"\ndisplay_name = \"D\"\ndescription = \"d\"\ndefault = 3\ntype = \"number\"\n",
	}))
	three := "3"
	want := []appconfig.Input{{
		At: place.Place{File: "inputs/g/domain.toml"}, Name: "domain", DisplayName: "D", Description: "d", Group: "g",
		Type: appconfig.InputNumber, Default: &three,
	}}
	if diff := cmp.Diff(want, app.Inputs); diff != "" {
		t.Errorf("inputs (-want +got):\n%s", diff)
	}
}

func TestHealthCheck(t *testing.T) {
	t.Parallel()
	action := func(more string) *appconfig.Action {
		return appconfigtest.Load(t, appconfigtest.Folder(map[string]string{
			"actions/x.toml": "name = \"x\"\n" + more + "\n[[steps]]\nname = \"s\"\ninline_contents = \"true\"\n",
		})).Action("x")
	}
	tests := []struct {
		name, keys string
		want       appconfig.HealthCheck
		isCheck    bool
	}{
		{"label", "[labels]\ntype = \"health-check\"", appconfig.HealthCheck{UnhealthyAfter: 3, HealthyAfter: 2}, true},
		{"table", "[berth.health_check]\nunhealthy_after = 1", appconfig.HealthCheck{UnhealthyAfter: 1, HealthyAfter: 2}, true},
		{"the other threshold", "[berth.health_check]\nhealthy_after = 4", appconfig.HealthCheck{UnhealthyAfter: 3, HealthyAfter: 4}, true},
		{"neither", "[labels]\ntype = \"backup\"", appconfig.HealthCheck{UnhealthyAfter: 3, HealthyAfter: 2}, false},
	}
	for _, tt := range tests {
		got, isCheck := action(tt.keys).HealthCheck()
		if got != tt.want || isCheck != tt.isCheck {
			t.Errorf("%s: got %+v %v, want %+v %v", tt.name, got, isCheck, tt.want, tt.isCheck)
		}
	}
	plain := action("")
	if plain.Timeout.Std() != appconfig.DefaultActionTimeout || !plain.EnableKubeConfig {
		t.Errorf("defaults: got timeout %s, kube config %v", plain.Timeout, plain.EnableKubeConfig)
	}
}

func TestTriggerAliases(t *testing.T) {
	t.Parallel()
	app := appconfigtest.Load(t, appconfigtest.Folder(map[string]string{
		"components/a.toml": appconfigtest.Module("a"),
		"actions/x.toml": "name = \"x\"\n[[triggers]]\ntype = \"cron\"\nschedule = \"*/5 * * * *\"\n" +
			"[[triggers]]\ntype = \"post-component-deploy\"\ncomponent_name = \"a\"\n[[triggers]]\ntype = \"pre-component-deploy\"\ncomponent_name = \"a\"\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n",
	}))
	want := []appconfig.Trigger{
		{Type: appconfig.TriggerCron, CronSchedule: "*/5 * * * *"},
		{Type: "post-deploy-component", ComponentName: "a"},
		{Type: "pre-deploy-component", ComponentName: "a"},
	}
	if diff := cmp.Diff(want, app.Action("x").Triggers); diff != "" {
		t.Errorf("triggers (-want +got):\n%s", diff)
	}
}
