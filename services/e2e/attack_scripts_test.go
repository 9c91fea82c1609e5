package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestAttackScripts: somebody who can write the control plane's rows, and so
// has its dispatch key sign what he wants, gets no script run that the
// customer's side did not accept; and who only deploys is asked about scripts
// once.
func TestAttackScripts(t *testing.T) {
	t.Parallel()
	s := start(t)
	app := folder(t, filepath.Join("..", "..", "examples", "hello"))
	s.must("sync", app, "--wait")
	s.must("installs", "create", "acme", "--app", "hello", "--customer", "acme", "--stack", "local", "--watch", "--auto-approve")
	in := &install{system: s, name: "acme", app: app}
	var stack ctlapi.Stack
	s.get("/installs/acme/stack", &stack)
	in.runner = stack.Runner.ID
	data := filepath.Join(s.dir, "runners", in.runner)
	if got := in.acceptedScripts(data); len(got) != 1 || !strings.Contains(got[0], "files_intact") {
		t.Errorf("accepted at provision: %v", got)
	}

	t.Run("nothing new asks nobody", func(t *testing.T) {
		w := in.deploy(false)
		if got := in.finished(w.ID, time.Minute); got.State != "succeeded" || step(got, "release").Change.State != "no_change" {
			t.Errorf("deploy: %s", in.explain(got))
		}
	})

	t.Run("one byte is shown, and asked about once, with the plan", func(t *testing.T) {
		edit(t, filepath.Join(app, "actions", "files_intact.sh"), "intact: $1", "intact: $1!")
		edit(t, filepath.Join(app, "inputs.toml"), `"Ahoy"`, `"Hello"`)
		s.must("sync", app, "--wait")
		if _, code := s.berth("deploy", "acme", "--plan"); code != 2 {
			t.Errorf("a preview exits %d, want 2", code)
		}
		if out, code := s.berth("deploy", "acme", "--watch"); code != 3 {
			t.Fatalf("deploy exits %d, want 3:\n%s", code, out)
		}
		var w ctlapi.WorkflowPage
		s.get("/workflows?install=acme&limit=1", &w)
		release := in.proposed(w.Items[0].ID, "release")
		raw, err := json.Marshal(release.Plan)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`-   echo \"intact: $1\"`, `+   echo \"intact: $1!\"`} {
			if !strings.Contains(string(raw), want) {
				t.Errorf("the change does not show %s:\n%s", want, raw)
			}
		}
		greeting := in.proposed(w.Items[0].ID, "component/greeting")
		before := in.acceptedScripts(data)
		_, errOut, code := s.run("approve", greeting.ID, "--auto-approve")
		if code != 0 || !strings.Contains(errOut, "script files_intact") {
			t.Fatalf("approve exits %d and shows:\n%s", code, errOut)
		}
		// The card stands on the greeting: it is planned, and asked about, afterwards.
		s.eventually(time.Minute, "the deploy ends", func() error {
			got := in.workflow(w.Items[0].ID)
			if c := step(got, "component/card").Change; c != nil && c.State == "proposed" {
				return in.call(http.MethodPost, "/changes/"+c.ID+"/decisions", map[string]any{"answer": "approve", "effect_digest": *c.EffectDigest}, nil)
			}
			if got.State != "succeeded" {
				return errors.New(in.explain(got))
			}
			return nil
		})
		if after := in.acceptedScripts(data); strings.Join(after, "\n") == strings.Join(before, "\n") {
			t.Errorf("the accepted scripts are as before: %v", after)
		}
		got := in.workflow(w.Items[0].ID)
		if c := step(got, "release").Change; c.State != "applied" {
			t.Errorf("the acceptance is %s", c.State)
		}
	})

	t.Run("a script of a repository is accepted and run with its directory", func(t *testing.T) {
		ops := filepath.Join(t.TempDir(), "ops")
		action := "name = \"ops\"\n[labels]\ntype = \"health-check\"\n[[steps]]\nname = \"look\"\ncommand = \"./look.sh {{ .nuon.install.name }}\"\n" +
			"[steps.public_repo]\nrepo = \"example/scripts\"\ndirectory = \"ops\"\nbranch = \"main\"\n"
		for file, text := range map[string]string{
			filepath.Join(app, "actions", "ops.toml"): action,
			filepath.Join(ops, "look.sh"):             "#!/usr/bin/env sh\n. ./lib/say.sh\nsay \"$1\"\n",
			filepath.Join(ops, "lib", "say.sh"):       "say() { test \"$1\" = acme && echo \"looked at $1\"; }\n",
		} {
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		sync := func() { s.must("sync", app, "--wait", "--source-map", "example/scripts//ops="+ops) }
		sync()
		w := in.finished(in.deploy(true).ID, time.Minute)
		if w.State != "succeeded" || step(w, "check/ops").State != "succeeded" {
			t.Errorf("deploy: %s", in.explain(w))
		}
		accepted := in.acceptedScripts(data)
		if len(accepted) != 2 || !strings.Contains(strings.Join(accepted, "\n"), "ops") {
			t.Errorf("accepted: %v", accepted)
		}
		edit(t, filepath.Join(ops, "lib", "say.sh"), "looked at", "looked again at")
		sync()
		again := in.deploy(false)
		if change := in.proposed(again.ID, "release"); change.Plan == nil {
			t.Error("another directory is not shown")
		}
		s.must("workflows", "cancel", again.ID)
	})

	t.Run("signed settings with another script do not make it run", func(t *testing.T) {
		evil := filepath.Join(data, "install", "hello", "evil")
		db := s.database()
		tag, err := db.Exec(t.Context(), `update berth.configs set body = replace(body::text, '#!/usr/bin/env sh\n', '#!/usr/bin/env sh\ntouch ' || $1 || '\n')::json`, evil)
		if err != nil || tag.RowsAffected() == 0 {
			t.Fatalf("%d configs were changed: %v", tag.RowsAffected(), err)
		}
		var before int
		if err := db.QueryRow(t.Context(), `select max(version) from berth.settings_versions`).Scan(&before); err != nil {
			t.Fatal(err)
		}
		w := in.deploy(false) // proposes the changed script, and nobody approves that
		in.proposed(w.ID, "release")
		s.must("workflows", "cancel", w.ID) // at whose end settings are made
		s.eventually(2*time.Minute, "the tick is missed because its script is not accepted", func() error {
			var n, version int
			err := db.QueryRow(t.Context(), `select (select count(*) from berth.action_runs where state = 'missed' and error like 'not accepted%'), (select max(version) from berth.settings_versions)`).Scan(&n, &version)
			if err == nil && (n == 0 || version == before) {
				err = fmt.Errorf("%d runs missed so, settings %d after %d", n, version, before)
			}
			return err
		})
		if _, err := os.Stat(evil); !os.IsNotExist(err) {
			t.Errorf("the script ran: %v", err)
		}
		chain, err := os.ReadFile(filepath.Join(data, "chain.jsonl"))
		if err != nil || !strings.Contains(string(chain), "script files_intact was not run") || !strings.Contains(string(chain), "first run of script files_intact") {
			t.Errorf("the chain does not tell of it: %v\n%s", err, tail(string(chain), 5))
		}
	})
}

// acceptedScripts is what the customer sees on the runner's own machine.
func (in *install) acceptedScripts(data string) []string {
	in.t.Helper()
	out, err := exec.CommandContext(in.t.Context(), filepath.Join(in.bin, "berth-runner"), "scripts", "--data", data).CombinedOutput()
	if err != nil {
		in.t.Fatalf("berth-runner scripts: %v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[1:]
}
