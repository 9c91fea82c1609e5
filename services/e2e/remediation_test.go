package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRemediation: the runner heals what the app says it may while the control plane is away,
// twice where there is time for that (make health-faults), and gives up where it does not help.
// Afterwards all of it is known, each thing once.
func TestRemediation(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := s.probe("acme")
	db := s.database()
	action := func(name, more, script string) {
		t.Helper()
		text := fmt.Sprintf("# action\nname = %q\ntimeout = \"20s\"\n%s\n[[steps]]\nname = \"step\"\ninline_contents = '''%s'''\n[steps.env_vars]\nDIR = \"{{ .nuon.sandbox.outputs.dir }}\"\n", name, more, script)
		if err := os.WriteFile(filepath.Join(in.app, "actions", name+".toml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(remedy string, attempts int) string {
		return fmt.Sprintf("[[triggers]]\ntype = \"cron\"\ncron_schedule = \"* * * * *\"\n[berth.health_check]\nunhealthy_after = 1\nhealthy_after = 1\nremediation = %q\nremediation_attempts = %d\nremediation_cooldown = \"1s\"\n", remedy, attempts)
	}
	const manual = "[[triggers]]\ntype = \"manual\"\n"
	action("well", check("heal", 3), `test -e "$DIR/well"`)
	action("heal", manual, `echo "$BERTH_JOB_ID" >>"$DIR/healed" && touch "$DIR/well"`)
	action("ill", check("pill", 1), `test -e "$DIR/fit"`)
	action("pill", manual, `echo "$BERTH_JOB_ID" >>"$DIR/taken"`)
	well, fit := filepath.Join(in.files, "well"), filepath.Join(in.files, "fit")
	for _, file := range []string{well, fit} { // a deploy runs the checks too
		if err := os.WriteFile(file, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	in.sync("probe", in.app)
	if w := in.finished(in.deploy(true, "one").ID, time.Minute); w.State != "succeeded" {
		t.Fatalf("deploy: %s", in.explain(w))
	}
	if err := os.Remove(fit); err != nil {
		t.Fatal(err)
	}
	lines := func(name string) []string {
		raw, err := os.ReadFile(filepath.Join(in.files, name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.Fields(string(raw))
	}
	in.eventually(2*time.Minute, "the settings with the remedies are at the runner, which has judged a check", func() error {
		raw, err := os.ReadFile(filepath.Join(in.runnerDir(), "remedies.json"))
		if err == nil && !strings.Contains(string(raw), `"healthy"`) {
			err = errors.New(string(raw))
		}
		return err
	})

	failures := 1
	if os.Getenv("BERTH_FAULTS") == "all" {
		failures = 2
	}
	in.stopParts(services...)
	for n := 1; n <= failures; n++ {
		before := len(lines("healed"))
		if err := os.Remove(well); err != nil {
			t.Fatal(err)
		}
		in.eventually(3*time.Minute, fmt.Sprintf("failure %d is healed without the control plane", n), func() error {
			if _, err := os.Stat(well); err != nil {
				return err
			}
			if got := len(lines("healed")); got != before+1 {
				return fmt.Errorf("healed %d times, before %d", got, before)
			}
			return nil
		})
		in.eventually(3*time.Minute, "the next tick says that it helped", func() error {
			raw, err := os.ReadFile(filepath.Join(in.runnerDir(), "remedies.json"))
			if err == nil && !strings.Contains(string(raw), `"helped"`) {
				err = errors.New(string(raw))
			}
			return err
		})
	}
	in.signal(in.up.Process.Pid, syscall.SIGCONT)
	for _, name := range services {
		in.back(name)
	}

	in.eventually(time.Minute, "all of it is reported", func() error {
		got := column(t, db, `select check_name || ' ' || state || ' ' || attempts || '/' || attempts_of from berth.remediations where install_id = $1 order by check_name`, in.id)
		if want := []string{"ill needs_attention 1/1", fmt.Sprintf("well helped %d/3", failures)}; !slices.Equal(got, want) {
			return fmt.Errorf("remediations %q, want %q", got, want)
		}
		for action, file := range map[string]string{"heal": "healed", "pill": "taken"} {
			runs := column(t, db, `select id from berth.action_runs where install_id = $1 and action = $2 and trigger = 'remediation' and state = 'succeeded' order by created_at, id`, in.id, action)
			if ran := lines(file); !slices.Equal(slices.Sorted(slices.Values(runs)), slices.Sorted(slices.Values(ran))) {
				return fmt.Errorf("action %s ran as %q and is reported as %q", action, ran, runs)
			}
		}
		return nil
	})
	in.eventually(time.Minute, "the chain has each attempt", func() error {
		actors := column(t, db, `select convert_from(body, 'UTF8')::json ->> 'actor' from berth.chain_records
			where chain = $1 and convert_from(body, 'UTF8')::json ->> 'kind' = 'intent' and convert_from(body, 'UTF8')::json ->> 'actor' = 'remediation'`, in.id)
		if want := failures + 1; len(actors) != want {
			return fmt.Errorf("%d intents of remediations, want %d", len(actors), want)
		}
		return nil
	})
	if shown := s.must("installs", "remediations", in.name); !strings.Contains(shown, "needs_attention") || !strings.Contains(shown, "helped") {
		t.Errorf("berth installs remediations:\n%s", shown)
	}
	if shown := s.must("installs", "health", in.name); !strings.Contains(shown, "needs_attention") {
		t.Errorf("berth installs health:\n%s", shown)
	}
	if shown := s.must("why", in.name); !strings.Contains(shown, "pill did not help") {
		t.Errorf("berth why:\n%s", shown)
	}
}
