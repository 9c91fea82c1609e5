package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/enrolcode"
	"github.com/berth-dev/berth/pkg/visible"
	"github.com/berth-dev/berth/runner/agent"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/heads"
	"github.com/berth-dev/berth/runner/agent/power"
)

const reference = "../../../docs/reference/runner.md"

// The reference page and the command line name the same settings and commands.
func TestReferenceIsComplete(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	root := newRoot()
	flags := map[string]bool{}
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) {
		flags[f.Name] = true
		_, env, _ := strings.Cut(f.Usage, "(BERTH_")
		env, _, _ = strings.Cut("BERTH_"+env, ";")
		env = strings.TrimSuffix(env, ")")
		if !strings.Contains(page, fmt.Sprintf("| `--%s` | `%s` |", f.Name, env)) {
			t.Errorf("%s has no row for --%s with %s", reference, f.Name, env)
		}
	})
	for line := range strings.Lines(page) {
		if name, isRow := strings.CutPrefix(line, "| `--"); isRow {
			name, _, _ = strings.Cut(name, "`")
			if !flags[name] {
				t.Errorf("%s has --%s, which does not exist", reference, name)
			}
		}
	}
	for _, cmd := range root.Commands() {
		if !strings.Contains(page, cmd.Name()) {
			t.Errorf("%s does not name the command %s", reference, cmd.Name())
		}
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		err  error
		want int
	}{
		{"all is well", nil, 0},
		{"anything", errors.New("x"), exitFailed},
		{"busy", fmt.Errorf("dir: %w", datadir.ErrBusy), exitBusy},
		{"revoked", fmt.Errorf("session: %w", agent.ErrRevoked), exitRevoked},
		{"enrolment", fmt.Errorf("enrol: %w", agent.ErrEnrolment), exitEnrolment},
		{"superseded", fmt.Errorf("session: %w", agent.ErrSuperseded), exitSuperseded},
		{"damaged", fmt.Errorf("chain: %w", agent.ErrDamaged), exitDamaged},
		{"usage", usageError{errors.New("x")}, exitUsage},
	} {
		if got := exitCode(tc.err); got != tc.want {
			t.Errorf("%s: exit code %d, want %d", tc.name, got, tc.want)
		}
	}
}

// call runs a command line and returns what it printed.
func call(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&out)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestSwitchCommands(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	dir, err := datadir.At(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		want power.Mode
	}{
		{[]string{"pause", "--reason", "holidays"}, power.Pause},
		{[]string{"read-only"}, power.ReadOnly},
		{[]string{"stop-now"}, power.StopNow},
		{[]string{"sever"}, power.Sever},
		{[]string{"resume"}, power.Run},
		{[]string{"pause"}, power.Pause},
		{[]string{"run", "--reason", "back again"}, power.Run},
	} {
		if out, err := call(t, append(tc.args, "--data", data)...); err != nil || !strings.Contains(out, "switch: "+string(tc.want)) {
			t.Errorf("%v: %q, %v", tc.args, out, err)
		}
		state, err := power.Load(dir)
		if err != nil || state.Mode != tc.want {
			t.Errorf("%v: switch = %+v, %v; want %s", tc.args, state, err, tc.want)
		}
	}
	out, err := call(t, "status", "--data", data)
	if err != nil || !strings.Contains(out, "not enrolled yet") || !strings.Contains(out, "back again") {
		t.Errorf("status: %v\n%s", err, out)
	}
}

// What others wrote into the data directory does not steer the terminal, and
// makes no line of its own.
func TestStatusCannotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	const hostile = "x\x1b[2J\u009b1m\rover\u202e\u200b\U000e0041\xff\nFORGED line"
	data := t.TempDir()
	dir, err := datadir.At(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := power.Set(dir, power.State{Mode: power.Pause, Reason: hostile, By: hostile}); err != nil {
		t.Fatal(err)
	}
	if err := datadir.WriteJSON(dir.Status(), agent.Status{Error: hostile, Trust: hostile}); err != nil {
		t.Fatal(err)
	}
	if err := datadir.WriteJSON(dir.Runner(), datadir.Runner{RunnerID: hostile, InstallID: hostile}); err != nil {
		t.Fatal(err)
	}
	if err := datadir.WriteJSON(dir.KeyProblem(), agent.KeyProblem{Text: hostile}); err != nil { // it has the control plane's reason
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir.Jobs(), hostile), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"status"}, {"status", "--json"}, {"status", "--connected"}, {"chain", "verify"}, {"preflight"}, {"pause", "--reason", hostile}, {hostile},
		{"preflight", "--code", hostile},
	} {
		var out, errs bytes.Buffer
		root := newRoot()
		root.SetArgs(append(args, "--data", data))
		execute(t.Context(), root, &out, &errs)
		for stream, text := range map[string]string{"stdout": out.String(), "stderr": errs.String()} {
			if i := strings.IndexFunc(text, visible.Hidden); i >= 0 || !utf8.ValidString(text) || strings.Contains(text, "\xff") {
				t.Errorf("%q, %s: hidden at %d of %q", args, stream, i, text)
			}
			if strings.Contains("\n"+text, "\nFORGED") {
				t.Errorf("%q, %s: a line passes for the program's: %q", args, stream, text)
			}
		}
		if out.Len()+errs.Len() == 0 {
			t.Errorf("%q says nothing", args)
		}
	}
}

func TestMistakes(t *testing.T) {
	for _, args := range [][]string{{"status", "extra", "--data", "x"}, {"--unknown"}, {"nonsense"}} {
		_, err := call(t, args...)
		if got := exitCode(err); got != exitUsage {
			t.Errorf("%v: exit code %d (%v), want %d", args, got, err, exitUsage)
		}
	}
	t.Setenv("BERTH_RUNNER_DATA", "")
	if _, err := call(t, "status"); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "--data") {
		t.Errorf("no data directory: %v", err)
	}
}

// preflight takes where engines are to run as manifest does.
func TestEnginesOfPreflight(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", t.TempDir()) // no cluster: what is asked of one is tested in package preflight
	code, err := enrolcode.Code{
		URL: "http://127.0.0.1:1", OneHost: true, InstallID: "ins_1", Install: "acme", EnrolmentSecret: "ben_example", PhoneHomeSecret: "bph_example",
		DispatchKeys: []enrolcode.Key{{KeyID: "key-1", PublicKey: "6kQ2m3m8xk3cI2w6tVJ2bq0m9C0yqk3zq6m8n1f4s2Y="}}, ExpiresAt: time.Now().Add(time.Hour),
	}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for engines, want := range map[string]int{"": exitFailed, "process": exitFailed, "jobs": exitFailed, "threads": exitUsage} { // nobody answers
		out, err := call(t, "preflight", "--code", code, "--engines", engines)
		if got := exitCode(err); got != want {
			t.Errorf("--engines %q: exit code %d (%v), want %d\n%s", engines, got, err, want, out)
		}
	}
}

func TestChainDecisions(t *testing.T) {
	dir, err := datadir.At(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, int) {
		var out bytes.Buffer
		root := newRoot()
		root.SetArgs(append([]string{"--data", dir.Path(), "chain"}, args...))
		code := execute(t.Context(), root, &out, &out)
		return out.String(), code
	}
	if out, code := run("accept"); code != exitUsage || !strings.Contains(out, "--reason") {
		t.Errorf("accept without a reason: %d %s", code, out)
	}
	if out, code := run("restore"); code != exitFailed || !strings.Contains(out, "there is nothing to decide") {
		t.Errorf("restore of a good chain: %d %s", code, out)
	}
	p := agent.ChainProblem{ID: "sha256:p", State: heads.Behind, Text: "it ends at record 1", Kept: []heads.Kept{{By: "the second copy here", Head: chain.Head{Seq: 9, Hash: "sha256:x"}}}}
	if err := datadir.WriteJSON(dir.ChainProblem(), p); err != nil {
		t.Fatal(err)
	}
	if out, code := run("accept", "--reason", "the disk was lost"); code != 0 || !strings.Contains(out, "record 9") || !strings.Contains(out, "No agent is running") {
		t.Errorf("accept: %d %s", code, out)
	}
	var d agent.ChainDecision
	if _, err := datadir.ReadJSON(dir.ChainDecision(), &d); err != nil || d.Problem != p.ID || d.Action != agent.ChainAccept || d.Reason != "the disk was lost" {
		t.Errorf("decision %+v, %v", d, err)
	}
	st, err := look(dir, 0)
	if err != nil || st.Chain == nil || st.Chain.Text != p.Text {
		t.Errorf("status %+v, %v", st.Chain, err)
	}
}
