package appconfig_test

import (
	"slices"
	"strings"
	"testing"

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
		{"another type", "type = \"exec\"\ncommand = \"true\"", "a probe of a type other than http and tcp is not supported yet"},
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
