package check_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/graph"
)

// switched is an app in which web reads api, and metrics is off unless an
// install wants it.
func switched(install string) map[string]string {
	return map[string]string{
		"components/api.toml":     appconfigtest.Module("api", "toggleable = true"),
		"components/web.toml":     appconfigtest.Module("web", "toggleable = true", "[env_vars]", `URL = "{{ .nuon.components.api.outputs.url }}"`),
		"components/metrics.toml": appconfigtest.Module("metrics", "toggleable = true", "default_enabled = false"),
		"components/base.toml":    appconfigtest.Module("base"),
		"actions/look.toml":       "name = \"look\"\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n[steps.env_vars]\nURL = \"{{ .nuon.components.api.outputs.url }}\"\n",
		"actions/wait.toml":       "name = \"wait\"\ndependencies = [\"metrics\"]\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n",
		"installs/acme.toml":      "name = \"acme\"\n" + install,
	}
}

func TestWhatInstallsSayOfComponents(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, install, want string
	}{
		{name: "both off", install: "[component_toggles]\napi = false\nweb = false\nmetrics = true\n"},
		{
			name: "one that another needs", install: "[component_toggles]\nmetrics = true\napi = false\n",
			want: "installs/acme.toml:4:1 error component \"api\" cannot be off while \"web\", which needs it, is on: reads .nuon.components.api.outputs.url at components/web.toml:6\n",
		},
		{
			name: "one that is not toggleable", install: "[component_toggles]\nbase = false\n",
			want: "installs/acme.toml:3:1 error component \"base\" is not toggleable\n",
		},
		{name: "overrides read what components do", install: "[components.web]\ntf_vars = 'a = \"{{ .nuon.components.api.outputs.url }} {{ .nuon.install_stack.outputs.x }}\"'\n"},
		{
			name: "overrides that read what is not there", install: "[components.web]\ntf_vars = '''\nb = 1\na = \"{{ .nuon.components.appi.outputs.url }}\"'''\n",
			want: "installs/acme.toml:5:9 error .nuon.components.appi.outputs.url: component \"appi\" does not exist: did you mean \"api\"?\n",
		},
		{
			name: "an override that reads its own component", install: "[components.api]\ntf_vars = 'a = \"{{ .nuon.components.api.outputs.url }}\"'\n",
			want: "installs/acme.toml:3:1 error component \"api\" reads its own outputs: .nuon.components.api.outputs.url\n",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			app, diags := check.Format(appconfigtest.Folder(switched(tt.install)), appconfig.LoadOptions{})
			if diff := cmp.Diff(tt.want, appconfigtest.Render(diags)); diff != "" {
				t.Errorf("diagnostics (-want +got):\n%s", diff)
			}
			g, _ := graph.New(app)
			if diff := cmp.Diff([]string(nil), g.Needs("api")); diff != "" {
				t.Errorf("what an install overrides makes an edge:\n%s", diff)
			}
		})
	}
}

func TestActionNeedsAny(t *testing.T) {
	t.Parallel()
	app, _ := check.Format(appconfigtest.Folder(switched("")), appconfig.LoadOptions{})
	for action, needs := range map[string]string{"look": "api", "wait": "metrics"} {
		for _, out := range []string{"api", "web", "metrics"} {
			got := app.ActionNeedsAny(app.Action(action), func(name string) bool { return name == out })
			if got != (out == needs) {
				t.Errorf("action %s without %s: %t", action, out, got)
			}
		}
	}
}
