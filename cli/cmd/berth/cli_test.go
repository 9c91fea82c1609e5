package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// berth runs one command line and returns what it did.
func berth(t *testing.T, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(t.Context(), args, command.Streams{In: strings.NewReader(""), Out: &out, Err: &err}, func(name string) string { return env[name] })
	return code, out.String(), err.String()
}

func TestMistakesAreOneLineWithAnExitCode(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	broken := filepath.Join(home, "broken")
	if err := os.MkdirAll(broken, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(broken, "metadata.toml"), []byte("# metadata\nversion = \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"unknown command", []string{"instals"}, 64, "did you mean installs?"},
		{"unknown verb", []string{"apps", "lisst"}, 64, "did you mean list?"},
		{"unknown flag", []string{"status", "--colour"}, 64, "unknown flag: --colour; see berth status --help"},
		{"missing argument", []string{"why"}, 64, "berth why needs INSTALL or ID"},
		{"one argument too many", []string{"why", "a", "b"}, 64, `does not take "b"`},
		{"unknown format", []string{"status", "-o", "xml"}, 64, "-o xml is not a format"},
		{"no context", []string{"status"}, 1, "try: start one here with berth up"},
		{"unknown context", []string{"status", "--context", "prod"}, 1, `there is no context "prod"`},
		{"folder that is none", []string{"sync", filepath.Join(home, "nowhere")}, 64, "there is no folder"},
		{"folder with a mistake", []string{"sync", broken}, 1, "metadata.toml:2"},
		{"--yes is no flag", []string{"deploy", "acme", "--yes"}, 64, "unknown flag: --yes"},
		{"flags that exclude each other", []string{"sync", "--plan", "--wait"}, 64, "--plan and --wait cannot be used together"},
		{"empty argument", []string{"installs", "show", ""}, 64, "an argument of berth installs show is empty"},
		{"number that is none", []string{"changes", "list", "--limit", "x"}, 64, `--limit "x" is not a whole number`},
		{"number below nothing", []string{"changes", "list", "--limit", "-3"}, 64, "--limit -3 is negative"},
		{"duration that is none", []string{"deploy", "acme", "--timeout", "abc"}, 64, `--timeout "abc" is not a duration`},
		{"unknown state", []string{"workflows", "list", "--state", "lost"}, 64, "there are queued, running, waiting"},
		{"URL that is none", []string{"context", "add", "x", "--url", "foo"}, 64, `"foo" is not the URL of a Berth`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := berth(t, map[string]string{"HOME": home}, tc.args...)
			if code != tc.code || !strings.Contains(stderr, tc.want) || stdout != "" {
				t.Errorf("berth %s: exit code %d, want %d\nstdout %q\nstderr %q, want %q in it", strings.Join(tc.args, " "), code, tc.code, stdout, stderr, tc.want)
			}
			if strings.Contains(stderr, "Usage:") {
				t.Errorf("the whole usage instead of a line:\n%s", stderr)
			}
		})
	}
}

func TestExitCode(t *testing.T) {
	t.Parallel()
	problem := func(status int) error { return &api.Problem{Problem: ctlapi.Problem{Status: status, Title: "x"}} }
	for _, tc := range []struct {
		name string
		err  error
		want int
	}{
		{"nothing went wrong", nil, 0},
		{"any error", errors.New("x"), 1},
		{"outcome", fmt.Errorf("wrapped: %w", command.Outcome(command.ExitWaits)), 3},
		{"command line", usage.Errorf("x"), 64},
		{"not found", problem(404), 1},
		{"not allowed", problem(403), 4},
		{"unknown token", fmt.Errorf("wrapped: %w", problem(401)), 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := command.ExitCode(tc.err); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestVerdictOnAWorkflow(t *testing.T) {
	t.Parallel()
	proposed := ctlapi.Step{State: ctlapi.StepStateWaiting, Change: &ctlapi.ChangeSummary{ID: "chg_7", State: ctlapi.ChangeStateProposed}}
	planned := func(noChange bool) ctlapi.Step {
		return ctlapi.Step{State: ctlapi.StepStateSucceeded, Change: &ctlapi.ChangeSummary{State: ctlapi.ChangeStatePlanned, Counts: &ctlapi.PlanCounts{NoChange: noChange, Create: 1}}}
	}
	failed := ctlapi.Step{ID: "stp_1", Name: "sandbox", State: ctlapi.StepStateFailed, Error: api.Optional("exit\nstatus 1"), Remedy: api.Optional("fix it")}
	refused := failed
	refused.Change = &ctlapi.ChangeSummary{State: ctlapi.ChangeStateRefused}
	for _, tc := range []struct {
		name string
		w    ctlapi.Workflow
		code int
		say  string
	}{
		{"succeeded", ctlapi.Workflow{State: ctlapi.WorkflowStateSucceeded}, 0, ""},
		{"failed", ctlapi.Workflow{State: ctlapi.WorkflowStateFailed, Steps: []ctlapi.Step{failed}}, 1,
			"sandbox of acme failed:\n  exit status 1\n  try: fix it, then berth retry acme\n"},
		{"refused by the runner", ctlapi.Workflow{State: ctlapi.WorkflowStateFailed, Steps: []ctlapi.Step{refused}}, 4, "sandbox of acme failed"},
		{"cancelled", ctlapi.Workflow{State: ctlapi.WorkflowStateCancelled}, 1, ""},
		{"waits for a decision", ctlapi.Workflow{State: ctlapi.WorkflowStateWaiting, Steps: []ctlapi.Step{proposed}}, 3, "berth approve acme\n"},
		{"plan with changes", ctlapi.Workflow{State: ctlapi.WorkflowStateSucceeded, PlanOnly: true, Steps: []ctlapi.Step{planned(true), planned(false)}}, 2, ""},
		{"plan without", ctlapi.Workflow{State: ctlapi.WorkflowStateSucceeded, PlanOnly: true, Steps: []ctlapi.Step{planned(true)}}, 0, "nothing to do\n"},
		{"plan that failed", ctlapi.Workflow{State: ctlapi.WorkflowStateFailed, PlanOnly: true, Steps: []ctlapi.Step{planned(false), failed}}, 1, "sandbox of acme failed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var stderr bytes.Buffer
			c := &cli{&command.CLI{Streams: command.Streams{Err: &stderr}, Getenv: func(string) string { return "" }, Now: time.Now}}
			tc.w.Install.Name = "acme"
			if got := command.ExitCode(c.verdict(&tc.w)); got != tc.code {
				t.Errorf("exit code %d, want %d", got, tc.code)
			}
			if !strings.Contains(stderr.String(), tc.say) {
				t.Errorf("says %q, want %q", stderr.String(), tc.say)
			}
		})
	}
}

func TestProblemOfTheServiceReachesThePerson(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusConflict)
		_, _ = fmt.Fprint(w, `{"type":"about:blank","title":"Conflict","status":409,"code":"conflict","detail":"app \"hello\" has installs",
			"remedy":"forget them first","errors":[{"pointer":"/x","message":"acme"}]}`)
	}))
	defer server.Close()
	code, stdout, stderr := berth(t, map[string]string{"BERTH_URL": server.URL, "BERTH_TOKEN": "brt_x"}, "app", "delete", "hello")
	want := "berth: app \"hello\" has installs\n  /x acme\ntry: forget them first\n"
	if code != command.ExitFailed || stdout != "" || stderr != want {
		t.Errorf("exit code %d, stdout %q\nstderr %q\nwant   %q", code, stdout, stderr, want)
	}
}

func TestDeployTarget(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args       []string
		install    string
		components []string
	}{
		{[]string{"acme"}, "acme", nil},
		{[]string{"acme/api"}, "acme", []string{"api"}},
		{[]string{"acme", "api", "db"}, "acme", []string{"api", "db"}},
		{[]string{"acme/api", "db"}, "acme", []string{"api", "db"}},
	} {
		install, components := deployTarget(tc.args)
		if install != tc.install || !cmp.Equal(components, tc.components) {
			t.Errorf("%v: got %s %v", tc.args, install, components)
		}
	}
}
