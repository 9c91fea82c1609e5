package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestScheduledAction: an action that may change something runs by itself once its
// release is accepted, with records in the install's chain; its outputs become part of
// the state, and the numbers that it writes a series. The customer's switch holds it.
func TestScheduledAction(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := s.probe("acme")
	db := s.database()
	err := os.WriteFile(filepath.Join(in.app, "actions", "rotate.toml"), []byte(`# action
name    = "rotate"
timeout = "20s"

[[triggers]]
type          = "cron"
cron_schedule = "* * * * *"

[[steps]]
name            = "turn"
inline_contents = "echo \"$BERTH_JOB_ID\" >>\"$DIR/turned\" && echo turned=yes >>\"$BERTH_ACTIONS_OUTPUT_FILEPATH\" && echo turned $(wc -l <\"$DIR/turned\") >>\"$BERTH_METRICS\""

[steps.env_vars]
DIR = "{{ .nuon.sandbox.outputs.dir }}"

[berth]
tools = ["bash"]
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	in.sync("probe", in.app)
	if w := in.finished(in.deploy(true, "one").ID, time.Minute); w.State != "succeeded" {
		t.Fatalf("deploy: %s", in.explain(w))
	}
	if shown, code := s.berth("actions", "list", in.name); code != 0 || !strings.Contains(shown, "script, by itself") {
		t.Errorf("actions, exit code %d:\n%s", code, shown)
	}

	runs := func(state string) []string {
		return column(t, db, `select id from berth.action_runs where install_id = $1 and action = 'rotate' and state = $2`, in.id, state)
	}
	in.eventually(3*time.Minute, "the action ran by its schedule", func() error {
		if len(runs("succeeded")) == 0 {
			return errors.New("it did not run")
		}
		return nil
	})
	in.eventually(time.Minute, "its output is part of the state", func() error {
		var state struct {
			Tree struct {
				Actions struct {
					Workflows map[string]struct {
						Outputs map[string]any `json:"outputs"`
					} `json:"workflows"`
				} `json:"actions"`
			} `json:"tree"`
		}
		in.get("/installs/"+in.name+"/state", &state)
		if got := state.Tree.Actions.Workflows["rotate"].Outputs["turned"]; got != "yes" {
			return fmt.Errorf("it is %v, in %+v", got, state.Tree.Actions)
		}
		return nil
	})

	in.eventually(time.Minute, "its number is a series", func() error {
		if out := s.must("metrics", in.name, "--action", "rotate"); !strings.Contains(out, "turned") {
			return errors.New(out)
		}
		return nil
	})

	// Under the switch, ticks are missed with the reason.
	if out, err := exec.CommandContext(t.Context(), filepath.Join(s.bin, "berth-runner"), "--data", in.runnerDir(), "read-only").CombinedOutput(); err != nil {
		t.Fatalf("berth-runner read-only: %v\n%s", err, out)
	}
	in.eventually(3*time.Minute, "a tick was missed for the switch", func() error {
		missed := column(t, db, `select error from berth.action_runs where install_id = $1 and action = 'rotate' and state = 'missed'`, in.id)
		if !slices.Contains(missed, "the customer's switch is at read_only") {
			return fmt.Errorf("missed: %q", missed)
		}
		return nil
	})

	raw, err := os.ReadFile(filepath.Join(in.files, "turned"))
	if err != nil {
		t.Fatal(err)
	}
	ran, done := strings.Fields(string(raw)), runs("succeeded")
	slices.Sort(ran)
	slices.Sort(done)
	if !slices.Equal(ran, done) {
		t.Errorf("ran %q, and reported %q", ran, done)
	}
	in.eventually(time.Minute, "each run has its intent and outcome in the chain", func() error {
		for _, run := range done {
			kinds := column(t, db, `select (convert_from(body, 'UTF8')::json ->> 'kind') || ' ' || (convert_from(body, 'UTF8')::json ->> 'actor') from berth.chain_records
				where chain = $1 and convert_from(body, 'UTF8')::json ->> 'job' = $2 and convert_from(body, 'UTF8')::json ->> 'kind' <> 'event' order by seq`, in.id, run)
			if !slices.Equal(kinds, []string{"intent schedule", "outcome runner"}) {
				return fmt.Errorf("run %s: %q", run, kinds)
			}
		}
		return nil
	})
}
