package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestRoles: the customer alone switches a role on. An action that needs it waits with the
// reason and goes on by itself; what a switch starts runs once; a killed agent forgets no
// switch; and somebody who writes the control plane's rows makes nothing run under a role that
// is off.
func TestRoles(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := s.probe("acme")
	db := s.database()
	action := func(name, head string) {
		t.Helper()
		text := "name = \"" + name + "\"\n" + head + "\n[[steps]]\nname = \"s\"\ninline_contents = \"echo run >>\\\"$DIR/" + name + "\\\"\"\n[steps.env_vars]\nDIR = \"{{ .nuon.sandbox.outputs.dir }}\"\n"
		if err := os.WriteFile(filepath.Join(in.app, "actions", name+".toml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const role = "break_glass_role = \"{{ .nuon.install.id }}-repair\"\n"
	action("repair", role+"[[triggers]]\ntype = \"manual\"")
	action("hello", "[[triggers]]\ntype = \"role-enabled\"")
	action("tidy", role+"[[triggers]]\ntype = \"role-disabled\"")
	err := os.WriteFile(filepath.Join(in.app, "break_glass.toml"), []byte("[[role]]\nname = \"{{ .nuon.install.id }}-repair\"\ndescription = \"Repairs.\"\n[[role.policies]]\nmanaged_policy_name = \"ReadOnlyAccess\"\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	in.sync("probe", in.app)
	s.must("installs", "set", "acme", "approval=approve_all")
	if w := in.finished(in.deploy(true, "one").ID, time.Minute); w.State != "succeeded" {
		t.Fatalf("deploy: %s", in.explain(w))
	}
	runs := func(name string) int {
		raw, err := os.ReadFile(filepath.Join(in.files, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return strings.Count(string(raw), "run")
	}
	customer := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), filepath.Join(s.bin, "berth-runner"), append([]string{"--data", in.runnerDir(), "roles"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("berth-runner roles %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	name := in.id + "-repair"

	// Somebody writes into the control plane's rows that the role is on.
	forge := func(switchID any) error {
		tag, err := db.Exec(t.Context(), `update berth.install_roles set switch_id = $2 where install_id = $1`, in.id, switchID)
		if err == nil && tag.RowsAffected() != 1 {
			err = errors.New("the runner has not told of its role")
		}
		return err
	}
	in.eventually(goOnTimeout, "there is a role", func() error { return forge("rsw_00000000000000000000000000") })
	s.must("actions", "run", "acme", "repair")
	attacked := in.newestWorkflow()
	if w := in.finished(attacked.ID, time.Minute); w.State != "failed" || !strings.Contains(in.explain(w), "only the customer switches it on") {
		t.Errorf("with forged rows: %s", in.explain(w))
	}
	if n := runs("repair"); n != 0 {
		t.Fatalf("the action ran %d times while its role was off", n)
	}
	if chain, err := os.ReadFile(filepath.Join(in.runnerDir(), "chain.jsonl")); err != nil || !strings.Contains(string(chain), "role "+name+" is off") {
		t.Errorf("the chain does not tell of the refusals: %v", err)
	}
	if err := forge(nil); err != nil {
		t.Fatal(err)
	}

	// It is off: the vendor is told at once, and the action waits.
	out, errOut, code := s.run("actions", "run", "acme", "repair")
	if code != 0 || !strings.Contains(errOut, "role "+name+" is off") {
		t.Errorf("actions run exits %d:\n%s%s", code, out, errOut)
	}
	asked := in.newestWorkflow()
	in.eventually(goOnTimeout, "the action waits for its role", func() error {
		if why := s.must("why", asked.ID); !strings.Contains(why, "berth-runner roles enable "+name) {
			return errors.New(why)
		}
		return nil
	})
	if list := customer("list"); !strings.Contains(list, name) || !strings.Contains(list, "off") {
		t.Errorf("the customer's list:\n%s", list)
	}

	// The customer switches it on while the agent is dead.
	in.signal(in.pid("runner acme"), syscall.SIGKILL)
	customer("enable", name, "--for", "1h", "--reason", "ticket 4711")
	if w := in.finished(asked.ID, time.Minute); w.State != "succeeded" || runs("repair") != 1 {
		t.Errorf("switched on: %s; the action ran %d times", in.explain(w), runs("repair"))
	}
	in.eventually(goOnTimeout, "what the switch starts ran", func() error {
		if n := runs("hello"); n != 1 {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
	var page ctlapi.InstallRolePage
	in.get("/installs/acme/roles", &page)
	if len(page.Items) != 1 || !page.Items[0].On || page.Items[0].Until == nil || page.Items[0].Reason != "ticket 4711" || strings.Join(page.Items[0].Actions, " ") != "repair tidy" {
		t.Errorf("the vendor sees %+v", page.Items)
	}
	if shown := s.must("roles", "acme"); !strings.Contains(shown, name) || !strings.Contains(shown, "on") {
		t.Errorf("roles:\n%s", shown)
	}
	if shown := s.must("installs", "show", "acme"); !strings.Contains(shown, "roles on: "+name) {
		t.Errorf("installs show:\n%s", shown)
	}

	// It stays on when the agent dies, and goes off when the customer says so.
	in.signal(in.pid("runner acme"), syscall.SIGKILL)
	s.must("actions", "run", "acme", "repair")
	if w := in.finished(in.newestWorkflow().ID, time.Minute); w.State != "succeeded" || runs("repair") != 2 {
		t.Errorf("after a kill: %s; the action ran %d times", in.explain(w), runs("repair"))
	}
	var listed []struct {
		Name string `json:"name"`
		On   bool   `json:"on"`
	}
	if err := json.Unmarshal([]byte(customer("list", "--output", "json")), &listed); err != nil || len(listed) != 1 || !listed[0].On {
		t.Errorf("the customer's list as JSON: %+v, %v", listed, err)
	}
	customer("disable", name)
	in.eventually(goOnTimeout, "what the switch starts ran without the role", func() error {
		if n := runs("tidy"); n != 1 {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
	history := s.must("history", "acme", "--limit", "200")
	for _, want := range []string{"role " + name + " switched on", "role " + name + " switched off"} {
		if !strings.Contains(history, want) {
			t.Errorf("the history does not say %q:\n%s", want, history)
		}
	}
	if got := runs("hello"); got != 1 || runs("tidy") != 1 || runs("repair") != 2 {
		t.Errorf("at the end hello ran %d times, tidy %d, repair %d", got, runs("tidy"), runs("repair"))
	}
	if events := column(t, db, `select kind from berth.events where install_id = $1 and kind like 'role.%' order by seq`, in.id); strings.Join(events, " ") != "role.enabled role.disabled" {
		t.Errorf("events: %v", events)
	}
	kinds := column(t, db, `select convert_from(body, 'UTF8')::json ->> 'what' from berth.chain_records where chain = $1 and convert_from(body, 'UTF8')::json -> 'role' is not null order by seq`, in.id)
	if len(kinds) != 2 {
		t.Errorf("the chain has %q", kinds)
	}
}
