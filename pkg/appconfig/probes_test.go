package appconfig_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

const probesOfWeb = `[[health.probes]]
type   = "http"
name   = "answers"
target = "https://{{ .nuon.install.id }}.example.com/healthz"
status = "200"

[[health.probes]]
type    = "tcp"
target  = "db.example.com:5432"
timeout = "2s"
`

// Probes of a component are health checks that look each minute: their script is always the
// same text, and what an app says reaches it as an environment only.
func TestProbesOfComponents(t *testing.T) {
	t.Parallel()
	app := correct(t, map[string]string{"components/web.toml": appconfigtest.Module("web", probesOfWeb)})
	app.AddProbes()
	type made struct {
		Script string
		Env    map[string]string
		Cron   string
	}
	got := map[string]made{}
	for i := range app.Actions {
		a := &app.Actions[i]
		if !a.IsProbe() {
			continue
		}
		if _, check := a.HealthCheck(); !check || a.Unattended() || !slices.Equal(a.Dependencies, []string{"web"}) {
			t.Errorf("%s is no check of web: %+v", a.Name, a)
		}
		got[a.Name] = made{a.Steps[0].InlineContents.Contents, a.Steps[0].EnvVars, a.Triggers[0].CronSchedule}
	}
	want := map[string]made{
		"probe.web.answers": {"exec \"$BERTH_PROBE\" probe http\n", map[string]string{
			"PROBE_TARGET": "https://{{ .nuon.install.id }}.example.com/healthz", "PROBE_STATUS": "200", "PROBE_METHOD": "GET", "PROBE_TIMEOUT": "5s",
		}, "* * * * *"},
		"probe.web.tcp-2": {"exec \"$BERTH_PROBE\" probe tcp\n", map[string]string{"PROBE_TARGET": "db.example.com:5432", "PROBE_TIMEOUT": "2s"}, "* * * * *"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("probes (-want +got):\n%s", diff)
	}
}

const probesOfManifest = `name = "web"
type = "kubernetes_manifest"
namespace = "shop-{{ .nuon.install.id }}"
manifest = "{}"

[[health.probes]]
type    = "exec"
name    = "answers"
target  = "deployment/web"
command = "pg_isready -q"

[[health.probes]]
type      = "exec"
selector  = "app=db"
namespace = "data"
container = "db"
command   = "test -f /ready"
timeout   = "10s"
`

// A command runs by the script of every other probe: what the app says is its environment, which
// the digest of the script covers, and only such probes get the way to the cluster.
func TestExecProbesOfComponents(t *testing.T) {
	t.Parallel()
	app, diags := appconfig.Load(appconfigtest.Folder(map[string]string{"components/web.toml": probesOfManifest}), appconfig.LoadOptions{})
	if app.Component("web") == nil {
		t.Fatal(appconfigtest.Render(diags))
	}
	made := app.Component("web").ProbeActions()
	got := map[string]map[string]string{}
	for i := range made {
		if !made[i].EnableKubeConfig || made[i].Timeout.Std() >= time.Minute || made[i].Steps[0].InlineContents.Contents != "exec \"$BERTH_PROBE\" probe exec\n" {
			t.Errorf("%s: %+v", made[i].Name, made[i])
		}
		got[made[i].Name] = made[i].Steps[0].EnvVars
	}
	want := map[string]map[string]string{
		"probe.web.answers": {"PROBE_TARGET": "deployment/web", "PROBE_SELECTOR": "", "PROBE_NAMESPACE": "shop-{{ .nuon.install.id }}", "PROBE_CONTAINER": "", "PROBE_COMMAND": "pg_isready -q", "PROBE_TIMEOUT": "5s"},
		"probe.web.exec-2":  {"PROBE_TARGET": "", "PROBE_SELECTOR": "app=db", "PROBE_NAMESPACE": "data", "PROBE_CONTAINER": "db", "PROBE_COMMAND": "test -f /ready", "PROBE_TIMEOUT": "10s"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("probes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"", "data"}, app.Component("web").ExecNamespaces()); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	for _, tt := range []struct{ name, from, to, want string }{
		{"no command", `command = "pg_isready -q"`, ``, "its command is missing"},
		{"nowhere", `target  = "deployment/web"`, ``, "it needs a target, such as deployment/web, or a selector"},
		{"twice", `selector  = "app=db"`, "selector = \"app=db\"\ntarget = \"pod/db-0\"", "it has a target already"},
		{"no workload", `"deployment/web"`, `"service/web"`, "its target is deployment/NAME"},
		{"too long", `"10s"`, `"31s"`, "is a time up to 30s"},
	} {
		_, diags := check.Folder(appconfigtest.Folder(map[string]string{"components/web.toml": strings.Replace(probesOfManifest, tt.from, tt.to, 1)}), appconfig.LoadOptions{})
		if text := appconfigtest.Render(diags); !strings.Contains(text, "has no effect: ") || !strings.Contains(text, tt.want) {
			t.Errorf("%s: got %s, want a warning with %q", tt.name, text, tt.want)
		}
	}
}

func TestMistakesInProbes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, probe, want string }{
		{"no target", `type = "http"`, `probe "http-1" has no effect: its target is missing`},
		{"no scheme", "type = \"http\"\ntarget = \"example.com\"", "begins with http:// or https://"},
		{"no port", "type = \"tcp\"\ntarget = \"example.com\"", "is HOST:PORT"},
		{"a method that changes something", "type = \"http\"\ntarget = \"http://a\"\nmethod = \"DELETE\"", "is GET or HEAD"},
		{"no such status", "type = \"http\"\ntarget = \"http://a\"\nstatus = \"2xx\"", "is one such as 200"},
		{"too long", "type = \"http\"\ntarget = \"http://a\"\ntimeout = \"5m\"", "is a time up to 30s"},
		{"a key that it has not", "type = \"tcp\"\ntarget = \"a:1\"\nstatus = \"200\"", `key "status" of a probe of type tcp has no effect`},
		{"a name that is none", "type = \"tcp\"\ntarget = \"a:1\"\nname = \"a b\"", `probe "a b" has no effect: a name may have`},
		{"another type", "type = \"grpc\"\ntarget = \"a:1\"", "a probe of a type other than http, tcp and exec is not supported yet"},
		{"a command without a pod", "type = \"exec\"\ncommand = \"true\"\ntarget = \"deployment/web\"", "component web has no pods to run a command in. Write an action with is_health_check = true"},
	} {
		_, diags := check.Folder(appconfigtest.Folder(map[string]string{"components/web.toml": appconfigtest.Module("web", "[[health.probes]]\n"+tt.probe)}), appconfig.LoadOptions{})
		diags = slices.DeleteFunc(diags, func(d place.Diagnostic) bool { return d.Severity == place.Note })
		if len(diags) != 1 || !strings.Contains(diags[0].Message, tt.want) || diags[0].Severity != place.Warning {
			t.Errorf("%s: got %s, want a warning with %q", tt.name, appconfigtest.Render(diags), tt.want)
		}
	}
	app, _ := appconfig.Load(appconfigtest.Folder(map[string]string{"components/web.toml": appconfigtest.Module("web",
		"[[health.probes]]\ntype = \"http\"\npath = \"/healthz\"\n[[health.probes]]\ntype = \"tcp\"\ntarget = \"a:1\"\nname = \"one\"\n[[health.probes]]\ntype = \"tcp\"\ntarget = \"b:1\"\nname = \"one\"")}), appconfig.LoadOptions{})
	if made := app.Component("web").ProbeActions(); len(made) != 1 || made[0].Steps[0].EnvVars["PROBE_TARGET"] != "a:1" {
		t.Errorf("of probes with mistakes: %+v", made)
	}
	taken := "name = \"probe.web.answers\"\n[[triggers]]\ntype = \"manual\"\n[[steps]]\nname = \"a\"\ncommand = \"true\"\n"
	_, diags := check.Folder(appconfigtest.Folder(map[string]string{"actions/a.toml": taken}), appconfig.LoadOptions{})
	if text := appconfigtest.Render(diags); !strings.Contains(text, "names that begin with probe. are those of the probes") {
		t.Errorf("a name of ours: %s", text)
	}
}
