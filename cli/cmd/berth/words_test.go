package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// vendor is a control plane with two installs of one app.
func vendor(t *testing.T) *httptest.Server {
	t.Helper()
	hello := ctlapi.Ref{ID: "app_01aaa", Name: "hello"}
	acme := ctlapi.Install{ID: "ins_01aaa", Name: "acme", App: hello, Customer: ctlapi.Ref{Name: "acme"}, State: ctlapi.InstallStateLive}
	globex := ctlapi.Install{ID: "ins_01bbb", Name: "globex", App: hello, Customer: ctlapi.Ref{Name: "globex"}, State: ctlapi.InstallStateLive}
	web := &ctlapi.ResourceRef{Kind: "component", Name: "web"}
	change := ctlapi.ChangeSummary{ID: "chg_01aaa", Install: ctlapi.Ref{ID: acme.ID, Name: acme.Name}, WorkflowID: "wfl_01aaa", Resource: web, State: "proposed"}
	workflow := ctlapi.Workflow{ID: "wfl_01aaa", Install: change.Install, Number: 1, Kind: "deploy", State: "waiting", Release: &ctlapi.NumberRef{ID: "rel_01bbb", Number: 2}}
	answers := map[string]any{
		"/installs":      ctlapi.InstallPage{Items: []ctlapi.Install{acme, globex}},
		"/installs/new":  ctlapi.Install{ID: "ins_01ccc", Name: "new", App: hello, Customer: ctlapi.Ref{Name: "new"}, State: ctlapi.InstallStateNew},
		"/installs/acme": acme, "/installs/globex": globex, "/installs/ins_01bbb": globex,
		"/installs/acme/resources": ctlapi.ResourcePage{Items: []ctlapi.Resource{
			{Kind: "stack", Name: "stack"}, {Kind: "component", Name: "web", Type: "helm_chart", State: "live", Outputs: json.RawMessage(`{"url":"http://x"}`)},
		}},
		"/status":                 ctlapi.InstallStatusPage{Items: []ctlapi.InstallStatus{{Install: acme}, {Install: globex}}},
		"/apps":                   ctlapi.AppPage{Items: []ctlapi.App{{ID: hello.ID, Name: hello.Name}}},
		"/apps/hello/releases":    ctlapi.ReleasePage{Items: []ctlapi.Release{{ID: "rel_01bbb", Number: 2}, {ID: "rel_01aaa", Number: 1}}},
		"/changes":                ctlapi.ChangePage{Items: []ctlapi.ChangeSummary{change}},
		"/changes/chg_01aaa":      ctlapi.Change{ID: change.ID, Install: change.Install, WorkflowID: change.WorkflowID, State: change.State},
		"/workflows":              ctlapi.WorkflowPage{Items: []ctlapi.Workflow{workflow}},
		"/workflows/wfl_01aaa":    workflow,
		"/installs/acme/timeline": ctlapi.TimelinePage{Items: []ctlapi.TimelineEntry{{Seq: 1, Kind: "workflow.queued", Text: "deploy #1 requested"}}},
	}
	unknown := regexp.MustCompile(`^/([a-z]+)s/([^/]+)`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if !ok {
			name := unknown.FindStringSubmatch(r.URL.Path)
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(ctlapi.Problem{Status: http.StatusNotFound, Title: "Not Found", Detail: new(fmt.Sprintf("there is no %s %q", name[1], name[2]))})
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	return server
}

// Words of other tools work, or say what to type.
func TestWordsOfOtherTools(t *testing.T) {
	t.Parallel()
	env := map[string]string{"BERTH_URL": vendor(t).URL, "BERTH_TOKEN": "brt_x", "HOME": t.TempDir()}
	for _, tc := range []struct {
		line string
		code int
		want string // on either stream
	}{
		{"ps", 0, "globex"},
		{"ls", 0, "globex"},
		{"ls -o name", 0, "acme\nglobex\n"},
		{"-o name ps", 0, "acme\nglobex\n"},
		{"apps ls", 0, "hello"},
		{"get installs", 0, "globex"},
		{"get apps -o name", 0, "hello\n"},
		{"--version", 0, "berth "},
		{"-v", 0, "berth "},
		{"outputs acme -o name", 0, "web.url\n"},
		{"history acme", 0, "deploy #1 requested"},
		{"history acme --json kind", 0, `"workflow.queued"`},
		{"plan", 64, "berth deploy needs INSTALL"},
		{"validate /nowhere", 64, "/nowhere"},
		{"whoami extra", 64, `berth context show does not take "extra"`},
		{"exec acme", 64, "not yet"},
		{"open", 64, "berth ui opens the dashboard"},
		{"events acme", 64, "berth events --help"},
		{"login", 64, "berth context add"},
		{"destroy acme", 64, "berth installs deprovision INSTALL"},
		{"delete acme", 64, "berth installs deprovision INSTALL"},
		{"rm", 64, "berth installs deprovision INSTALL"},
		{"uninstall acme", 64, "berth installs deprovision INSTALL"},
		{"show acme -o name", 0, "acme\n"},
		{"render /nowhere", 64, "/nowhere"},
		{"apply acme", 64, "berth deploy INSTALL --watch"},
		{"logs nosuch web", 1, `there is no install "nosuch"`},
		// The names that other commands have for the same flag.
		{"deploy new", 1, "was never provisioned: berth installs provision new"},
		{"deploy new --release 9 --plan", 1, "was never provisioned"},
		{"deny new/web --reason no", 1, "nothing of new/web waits for a decision"},
		{"deploy acme --releas 9", 64, "unknown flag: --releas"},
		{"ps --nope", 64, "unknown flag: --nope"},
		{"ps --help", 0, "berth status [INSTALL]"},
		// Only what is close is a guess.
		{"instals", 64, "did you mean installs?"},
		{"stauts", 64, "did you mean status?"},
		{"xyz", 64, `unknown command "xyz" for "berth"; see berth --help`},
		{"top", 64, `unknown command "top" for "berth"; see berth --help`},
	} {
		t.Run(tc.line, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := berth(t, env, strings.Split(tc.line, " ")...)
			if code != tc.code || !strings.Contains(stdout+stderr, tc.want) {
				t.Errorf("exit code %d, want %d\nstdout %q\nstderr %q\nwant %q in it", code, tc.code, stdout, stderr, tc.want)
			}
		})
	}
}

// What cannot be undone takes no beginning of an id; what is only similar is a
// hint.
func TestNamesOnTheCommandLine(t *testing.T) {
	t.Parallel()
	env := map[string]string{"BERTH_URL": vendor(t).URL, "BERTH_TOKEN": "brt_x"}
	for _, tc := range []struct {
		line string
		code int
		want string
	}{
		{"installs show ins_01b -o name", 0, "globex\n"},
		{"changes show acme/web -o name", 0, "chg_01aaa\n"},
		{"changes show chg_01a -o name", 0, "chg_01aaa\n"},
		{"workflows show acme -o name", 0, "wfl_01aaa\n"},
		{"workflows show chg_01a -o name", 0, "wfl_01aaa\n"},
		{"installs show acmee", 1, `there is no install "acmee"; did you mean acme?`},
		{"installs show initech", 1, `there is no install "initech"`},
		{"deploy acmee", 1, "did you mean acme?"},
		{"apps show helo", 1, "did you mean hello?"},
		{"releases show hello@9", 1, "app hello has no release 9; its newest is 2"},
		{"deploy acme --to 9", 1, "app hello has no release 9; its newest is 2"},
		{"outputs acme wbe", 1, "did you mean web?"},
		{"approve acme/db", 1, "nothing of acme/db waits for a decision; what waits: acme/web"},
		{"installs show ins_0", 64, "ins_01aaa  acme of acme\n  ins_01bbb  globex of globex\n"},
		{"installs forget ins_01b", 64, "write globex or ins_01bbb"},
		{"installs deprovision ins_01b", 64, "write globex or ins_01bbb"},
		{"apps delete app_0", 64, "write hello or app_01aaa"},
		{"installs set acme lable=a=b", 64, "did you mean label?"},
		{"deploy acme --app hello", 64, "name an install, or select"},
		{"deploy --label a=b --watch -o json", 64, "text only"},
	} {
		t.Run(tc.line, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := berth(t, env, strings.Split(tc.line, " ")...)
			if code != tc.code || !strings.Contains(stdout+stderr, tc.want) {
				t.Errorf("exit code %d, want %d\nstdout %q\nstderr %q\nwant %q in it", code, tc.code, stdout, stderr, tc.want)
			}
		})
	}
}
