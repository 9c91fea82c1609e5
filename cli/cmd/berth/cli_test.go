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
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/logapi"
)

// berth runs one command line and returns what it did.
func berth(t *testing.T, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(t.Context(), args, streams{in: strings.NewReader(""), out: &out, err: &err}, func(name string) string { return env[name] })
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
		{"unknown verb", []string{"apps", "lisst"}, 64, "did you mean lint or list?"},
		{"unknown flag", []string{"status", "--colour"}, 64, "unknown flag: --colour; see berth status --help"},
		{"missing argument", []string{"why"}, 64, "berth why needs INSTALL or WORKFLOW"},
		{"one argument too many", []string{"why", "a", "b"}, 64, `does not take "b"`},
		{"unknown format", []string{"status", "-o", "xml"}, 64, "-o xml is no format"},
		{"no context", []string{"status"}, 1, "try: start one here with berth up"},
		{"unknown context", []string{"status", "--context", "prod"}, 1, `there is no context "prod"`},
		{"folder that is none", []string{"sync", filepath.Join(home, "nowhere")}, 64, "there is no folder"},
		{"folder with a mistake", []string{"sync", broken}, 1, "metadata.toml:2"},
		{"--yes is no flag", []string{"deploy", "acme", "--yes"}, 64, "unknown flag: --yes"},
		{"rollback without a release", []string{"rollback", "acme"}, 64, "berth rollback needs --to"},
		{"flags that exclude each other", []string{"sync", "--plan", "--wait"}, 64, "--plan and --wait exclude each other"},
		{"empty argument", []string{"installs", "show", ""}, 64, "an argument of berth installs show is empty"},
		{"number that is none", []string{"changes", "list", "--limit", "x"}, 64, `--limit "x" is not a whole number`},
		{"number below nothing", []string{"changes", "list", "--limit", "-3"}, 64, "--limit -3 is less than nothing"},
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
		{"outcome", fmt.Errorf("wrapped: %w", outcome(exitWaits)), 3},
		{"command line", usagef("x"), 64},
		{"not found", problem(404), 1},
		{"not allowed", problem(403), 4},
		{"unknown token", fmt.Errorf("wrapped: %w", problem(401)), 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := exitCode(tc.err); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestVerdictOnAWorkflow(t *testing.T) {
	t.Parallel()
	proposed := ctlapi.Step{State: ctlapi.StepStateWaiting, Change: &ctlapi.ChangeSummary{ID: "chg_7", State: ctlapi.ChangeStateProposed}}
	planned := func(noChange bool) ctlapi.Step {
		return ctlapi.Step{State: ctlapi.StepStateSucceeded, Change: &ctlapi.ChangeSummary{State: ctlapi.ChangeStateSuperseded, Counts: &ctlapi.PlanCounts{NoChange: noChange, Create: 1}}}
	}
	failed := ctlapi.Step{ID: "stp_1", Name: "sandbox", State: ctlapi.StepStateFailed, Error: optional("exit\nstatus 1"), Remedy: optional("fix it")}
	refused := failed
	refused.Change = &ctlapi.ChangeSummary{State: ctlapi.ChangeStateRefused}
	for _, tc := range []struct {
		name string
		w    ctlapi.Workflow
		code int
		say  string
	}{
		{"succeeded", ctlapi.Workflow{State: ctlapi.WorkflowStateSucceeded}, 0, ""},
		{"failed", ctlapi.Workflow{State: ctlapi.WorkflowStateFailed, Steps: []ctlapi.Step{failed}}, 1, "sandbox failed: exit status 1\ntry: fix it\n"},
		{"refused by the runner", ctlapi.Workflow{State: ctlapi.WorkflowStateFailed, Steps: []ctlapi.Step{refused}}, 4, "sandbox failed"},
		{"cancelled", ctlapi.Workflow{State: ctlapi.WorkflowStateCancelled}, 1, ""},
		{"waits for a decision", ctlapi.Workflow{State: ctlapi.WorkflowStateWaiting, Steps: []ctlapi.Step{proposed}}, 3, "berth approve chg_7\n"},
		{"plan with changes", ctlapi.Workflow{State: ctlapi.WorkflowStateSucceeded, PlanOnly: true, Steps: []ctlapi.Step{planned(true), planned(false)}}, 2, ""},
		{"plan without", ctlapi.Workflow{State: ctlapi.WorkflowStateSucceeded, PlanOnly: true, Steps: []ctlapi.Step{planned(true)}}, 0, "nothing to do\n"},
		{"plan that failed", ctlapi.Workflow{State: ctlapi.WorkflowStateFailed, PlanOnly: true, Steps: []ctlapi.Step{planned(false), failed}}, 1, "sandbox failed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var stderr bytes.Buffer
			c := &cli{streams: streams{err: &stderr}, now: time.Now}
			if got := exitCode(c.verdict(&tc.w)); got != tc.code {
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
	if code != exitFailed || stdout != "" || stderr != want {
		t.Errorf("exit code %d, stdout %q\nstderr %q\nwant   %q", code, stdout, stderr, want)
	}
}

func TestSyncLine(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	end := start.Add(14 * time.Second)
	item := func(name, build string, action ctlapi.SyncItemAction) ctlapi.SyncItem {
		return ctlapi.SyncItem{Component: name, BuildID: optional(build), Action: action}
	}
	items := []ctlapi.SyncItem{item("api", "bld_1", ctlapi.SyncItemActionBuild), item("web", "bld_2", ctlapi.SyncItemActionReuse), item("db", "bld_3", ctlapi.SyncItemActionReuse)}
	for _, tc := range []struct {
		name   string
		result ctlapi.SyncResult
		builds map[string]ctlapi.Build
		want   string
	}{
		{"just synced", ctlapi.SyncResult{Created: true, Config: &ctlapi.NumberRef{Number: 3}, Items: items}, nil, "config 3 · api is built · web, db reused"},
		{"released", ctlapi.SyncResult{Created: true, Config: &ctlapi.NumberRef{Number: 3}, Release: &ctlapi.NumberRef{Number: 2}, Items: items},
			map[string]ctlapi.Build{"bld_1": {StartedAt: &start, FinishedAt: &end}}, "config 3 · api built 14 s · web, db reused → release 2"},
		{"the same folder again", ctlapi.SyncResult{Config: &ctlapi.NumberRef{Number: 3}, Release: &ctlapi.NumberRef{Number: 2}, Items: items[1:]}, nil,
			"config 3 (unchanged) · web, db reused → release 2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := syncLine(&tc.result, tc.builds); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestCompletenessOfALog(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		s    logapi.Stream
		want string
	}{
		{"complete", logapi.Stream{State: logapi.StreamStateFinished, Lines: 12431, Sha256: "ab", Complete: true}, "12,431 of 12,431 lines, sha256 ab"},
		{"lines were dropped", logapi.Stream{State: logapi.StreamStateFinished, Lines: 101, Sha256: "ab", Gaps: []logapi.Gap{{Lines: 1284, Reason: logapi.GapReasonDropped, Seq: 51}}},
			"100 of 1,384 lines, sha256 ab; missing: 1,284 lines dropped at line 51"},
		{"lines expired", logapi.Stream{State: logapi.StreamStateFinished, Lines: 100, Sha256: "ab", Gaps: []logapi.Gap{{Lines: 60, Reason: logapi.GapReasonExpired, Seq: 1}}},
			"40 of 100 lines, sha256 ab; missing: 60 lines expired at line 1"},
		{"open", logapi.Stream{State: logapi.StreamStateOpen, Lines: 7}, "7 lines so far, more may come"},
		{"cut off", logapi.Stream{State: logapi.StreamStateClosed, Lines: 7}, "7 lines, then the attempt was cut off: its end is not known"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := completeness(&tc.s); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestLogLinesCannotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\ttext ✓":                        "plain\ttext ✓",
		"\x1b[32mgreen\x1b[0;1m ✓\x1b[38:5:1m": "green ✓",
		"\x1b[2J\x1b[Hcleared":                 "⟨U+001B⟩[2J⟨U+001B⟩[Hcleared",
		"\x1b]0;title\x07x":                    "⟨U+001B⟩]0;title⟨U+0007⟩x",
		"over\rwritten\x08\x7f":                "over⟨U+000D⟩written⟨U+0008⟩⟨U+007F⟩",
		"\x1b[":                                "⟨U+001B⟩[",
		"two\nlines":                           "two⟨U+000A⟩lines",
		"é\x1b[1;31mü\x1b[0m日本\u009b2J end":    "éü日本⟨U+009B⟩2J end",
	} {
		if got := output.Printable(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
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
