package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestPluginRoles deploys with a plugin that has a role: it neither plans nor applies
// before the customer has switched the role on, and not after they switched it off.
func TestPluginRoles(t *testing.T) {
	t.Parallel()
	s := start(t)
	app := folder(t, filepath.Join("..", "..", "examples", "greeting"))
	component := filepath.Join(app, "components", "greeting.toml")
	dir := filepath.Join(app, "plugins", "greeting")
	edit(t, filepath.Join(dir, "plugin.json"), `"permissions": {`, `"permissions": { "roles": ["greet"],`)
	signedBy(t, component, resign(t, dir))
	edit(t, component, "network     = false", `roles       = ["greet"]`)
	if out, errOut, code := s.run("apps", "validate", app); code == 0 || !strings.Contains(out+errOut, `break-glass or custom role "greet" does not exist`) {
		t.Errorf("a role that the app does not have: %d\n%s%s", code, out, errOut)
	}
	put(t, filepath.Join(app, "break_glass.toml"), "[[role]]\nname = \"greet\"\ndescription = \"Greets.\"\n[[role.policies]]\nmanaged_policy_name = \"ReadOnlyAccess\"\n")
	s.must("sync", app, "--wait")
	if out, errOut, code := s.run("installs", "create", "acme", "--app", "greeting", "--customer", "acme", "--stack", "local", "--watch", "--auto-approve"); code == 0 || !strings.Contains(out+errOut, "role greet is off") {
		t.Fatalf("exit %d\n%s%s", code, out, errOut)
	}
	in := &install{system: s, name: "acme", app: app}
	var stack ctlapi.Stack
	s.get("/installs/acme/stack", &stack)
	data := filepath.Join(s.dir, "runners", stack.Runner.ID)
	greeting := filepath.Join(data, "install", "hall", "greeting.txt")
	if _, err := os.Stat(greeting); err == nil {
		t.Error("it ran while its role was off")
	}
	customer := func(args ...string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), filepath.Join(s.bin, "berth-runner"), append([]string{"--data", data, "roles"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("berth-runner roles %v: %v\n%s", args, err, out)
		}
	}
	w := in.finished(in.newestWorkflow().ID, time.Minute)
	customer("enable", "greet", "--for", "1h", "--reason", "ticket 4711")
	in.post("/steps/"+step(w, "component/greeting").ID+"/retry", nil, nil)
	in.decide(in.proposed(w.ID, "component/greeting"), "approve")
	if w = in.finished(w.ID, time.Minute); w.State != "succeeded" {
		t.Fatalf("switched on: %s", in.explain(w))
	}
	if _, err := os.Stat(greeting); err != nil {
		t.Error(err)
	}

	edit(t, component, "from {{", "to {{")
	s.must("sync", app, "--wait")
	planned := in.deploy(false)
	change := in.proposed(planned.ID, "component/greeting")
	customer("disable", "greet")
	in.decide(change, "approve")
	if w := in.finished(planned.ID, time.Minute); w.State != "failed" || !strings.Contains(in.explain(w), "role greet is off") {
		t.Errorf("switched off after the plan: %s", in.explain(w))
	}
	if raw, err := os.ReadFile(greeting); err != nil || string(raw) != "Ahoy from acme" {
		t.Errorf("the greeting is %q, %v", raw, err)
	}
}
