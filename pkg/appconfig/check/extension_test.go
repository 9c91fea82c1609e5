package check_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

const fix = "name = \"fix\"\n[[triggers]]\ntype = \"manual\"\n[[steps]]\nname = \"s\"\ninline_contents = \"true\"\n"

// check is an action that is a health check, with more keys of its table.
func healthCheck(name, more string) string {
	return "name = \"" + name + "\"\n[[triggers]]\ntype = \"manual\"\n[[steps]]\nname = \"s\"\ninline_contents = \"true\"\n[berth.health_check]\n" + more
}

func eachMinute(action string) string {
	return strings.Replace(action, "type = \"manual\"", "type = \"cron\"\ncron_schedule = \"* * * * *\"", 1)
}

func TestOwnKeys(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string // what is said
	}{
		{"a remediation", map[string]string{"actions/look.toml": eachMinute(healthCheck("look", "remediation = \"fix\"\n")), "actions/fix.toml": fix}, ""},
		{"a remediation of what nobody looks at", map[string]string{"actions/look.toml": healthCheck("look", "remediation = \"fix\"\n"), "actions/fix.toml": fix}, "runs on no schedule: give it a trigger of type cron"},
		{"a revert", map[string]string{"actions/look.toml": eachMinute(healthCheck("look", "remediation = \"fix\"\nremediation_revert = \"other\"\n")), "actions/fix.toml": fix, "actions/other.toml": strings.Replace(fix, "fix", "other", 1)}, ""},
		{"a revert by itself", map[string]string{"actions/look.toml": eachMinute(healthCheck("look", "remediation = \"fix\"\nremediation_revert = \"fix\"\n")), "actions/fix.toml": fix}, `action "fix" cannot take itself back`},
		{"a remediation that the customer switches on", map[string]string{"actions/look.toml": eachMinute(healthCheck("look", "remediation = \"fix\"\n")), "actions/fix.toml": "break_glass_role = \"fix\"\n" + fix}, "cannot run by itself"},
		{"a remediation that needs a value", map[string]string{"actions/look.toml": eachMinute(healthCheck("look", "remediation = \"fix\"\n")), "actions/fix.toml": fix + "[[inputs]]\nname = \"size\"\nrequired = true\n"}, `needs input "size", which nobody gives`},
		{"too many attempts", map[string]string{"actions/look.toml": eachMinute(healthCheck("look", "remediation = \"fix\"\nremediation_attempts = 11\n")), "actions/fix.toml": fix}, "the most is 10"},
		{"thresholds of what has no probe", map[string]string{"components/a.toml": appconfigtest.Module("a") + "[berth.health_check]\nunhealthy_after = 1\n"}, "does nothing here: only the objects of helm charts"},
		{"a remediation that is not there", map[string]string{"actions/look.toml": healthCheck("look", "remediation = \"fixx\"\n"), "actions/fix.toml": fix}, `action "fixx" does not exist: did you mean "fix"?`},
		{"a check that mends", map[string]string{"actions/look.toml": healthCheck("look", "remediation = \"see\"\n"), "actions/see.toml": healthCheck("see", "")}, `action "see" is a health check`},
		{"attempts at nothing", map[string]string{"actions/look.toml": healthCheck("look", "remediation_attempts = 2\n")}, "remediation_attempts does nothing without remediation"},
		{"a cooldown back in time", map[string]string{"actions/look.toml": healthCheck("look", "remediation = \"fix\"\nremediation_cooldown = \"-1m\"\n"), "actions/fix.toml": fix}, "it must be longer than zero"},
		{"a rollback class", map[string]string{"components/a.toml": appconfigtest.Module("a") + "rollback = \"data_loss\"\n"}, ""},
		{"another one", map[string]string{"components/a.toml": appconfigtest.Module("a") + "rollback = \"data_los\"\n"}, `did you mean "data_loss"?`},
		{"hints", map[string]string{"components/a.toml": appconfigtest.Module("a") + "guardrails = [\"deletes_data\", \"changes_iam\"]\n"}, ""},
		{"a hint that is none", map[string]string{"components/a.toml": appconfigtest.Module("a") + "guardrails = [\"delete_data\"]\n"}, `did you mean "deletes_data"?`},
		{"a hint twice", map[string]string{"actions/fix.toml": fix + "[berth]\nguardrails = [\"changes_iam\", \"changes_iam\"]\n"}, `"changes_iam" is said twice`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, diags := check.Format(appconfigtest.Folder(tt.files), appconfig.LoadOptions{})
			if got := appconfigtest.Render(diags); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// What only people and guardrails read makes another config, and neither a
// build nor a deploy.
func TestOwnKeysAreNotDeployed(t *testing.T) {
	t.Parallel()
	digests := func(more string) (build, deploy, config string) {
		app, diags := appconfig.Load(appconfigtest.Folder(map[string]string{"components/a.toml": appconfigtest.Module("a") + more}), appconfig.LoadOptions{})
		if place.HasErrors(diags) {
			t.Fatal(appconfigtest.Render(diags))
		}
		return app.Components[0].BuildDigest("sha256:x"), app.Components[0].DeployDigest(), app.Digest()
	}
	build, deploy, config := digests("")
	hintedBuild, hintedDeploy, hintedConfig := digests("rollback = \"irreversible\"\nguardrails = [\"deletes_data\"]\n")
	if !slices.Equal([]string{build, deploy}, []string{hintedBuild, hintedDeploy}) {
		t.Error("a hint is built or deployed")
	}
	if config == hintedConfig {
		t.Error("a hint makes no other config")
	}
}
