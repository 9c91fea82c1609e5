package job

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/jobdir"
)

// Only what was sealed is a secret; everything that was is.
func TestOpenStateLearnsWhatWasSealed(t *testing.T) {
	t.Parallel()
	id, err := seal.GenerateIdentity()
	if err != nil {
		t.Fatal(err)
	}
	tree := map[string]any{
		"name":       "open-to-everybody",
		"inputs":     map[string]any{"inputs": map[string]any{"password": "sealed-input", "host": "open-host"}},
		"sandbox":    map[string]any{"outputs": map[string]any{"list": []any{"sealed-in-a-list"}}},
		"components": map[string]any{"db": map[string]any{"install_component_id": "res_db", "outputs": map[string]any{"admin": map[string]any{"user": "sealed-user", "port": 123456789}}}},
		"numbers":    987654321,
		"app":        map[string]any{"variables": map[string]any{"token": "sealed-variable", "region": "open-region"}},
	}
	at := interpolate.SealedLeaves("org_1", "ins_1", tree)
	sealed, err := seal.SealLeaves([]string{id.Recipient()}, tree, func(path []string) (seal.Purpose, bool) {
		purpose, ok := at(path)
		return purpose, ok && !slices.Contains([]string{"host", "region"}, path[len(path)-1])
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(sealed)
	if err != nil {
		t.Fatal(err)
	}
	open := func(id *seal.Identity, script string) (*job, jobspec.Spec, error) {
		j := &job{deps: &Deps{Keys: datadir.Keys{Seal: id}}, secrets: newSecrets(), dir: jobdir.Folder{Path: t.TempDir()}}
		j.spec = jobspec.Spec{
			OrgID: "org_1", InstallID: "ins_1", Kind: jobspec.KindAction, Operation: jobspec.OperationRun, State: raw,
			Action: &jobspec.Action{Steps: []jobspec.ActionStep{{InlineContents: script}}},
		}
		spec, err := j.openState()
		return j, spec, err
	}
	j, spec, err := open(id, "{{ .nuon | toJson }}")
	if err != nil {
		t.Fatal(err)
	}
	var opened map[string]any
	if err := json.Unmarshal(spec.State, &opened); err != nil {
		t.Fatal(err)
	}
	if password := opened["inputs"].(map[string]any)["inputs"].(map[string]any)["password"]; password != "sealed-input" {
		t.Errorf("password = %v, want it in clear", password)
	}
	want := map[string]bool{"sealed-input": true, "sealed-in-a-list": true, "sealed-user": true, "sealed-variable": true, "123456789": true}
	if diff := cmp.Diff(want, j.secrets.known); diff != "" {
		t.Errorf("known secrets (-want +got):\n%s", diff)
	}
	stranger, err := seal.GenerateIdentity()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := open(stranger, "{{ .nuon | toJson }}"); !errors.Is(err, seal.ErrNotForUs) {
		t.Errorf("another identity opened it: %v", err)
	}
	// A job of a change is planned again: its values may be older than a takeover.
	of := &job{deps: &Deps{Keys: datadir.Keys{Seal: stranger}}, secrets: newSecrets(), dir: jobdir.Folder{Path: t.TempDir()}, spec: j.spec}
	of.spec.ChangeID = "chg_1"
	var refused *refusal
	if _, err := of.openState(); !errors.As(err, &refused) || refused.result.Outcome != jobspec.OutcomeStale || refused.result.Reason != jobspec.ReasonMachineReplaced {
		t.Errorf("a change that reads what is sealed for another: %v", err)
	}
	// What the templates do not name stays sealed, so also nobody but a stranger
	// would notice.
	for _, tc := range []struct {
		script string
		want   map[string]bool
	}{
		{"echo nothing", map[string]bool{}},
		{"{{ .nuon.name }}", map[string]bool{}},
		{"{{ .nuon.components.db.outputs.admin.port }}", map[string]bool{"sealed-user": true, "123456789": true}}, // it is sealed as one
		{"{{ index .nuon.sandbox.outputs.list 0 }}", map[string]bool{"sealed-in-a-list": true}},
		{"{{ range .nuon.sandbox.outputs.list }}{{ . }}{{ end }}", map[string]bool{"sealed-in-a-list": true}},
		{`{{ index .nuon.app.variables (printf "to%s" "ken") }}`, map[string]bool{"sealed-variable": true}}, // computed: all of them
		{"{{ with .nuon.app }}{{ .variables.token }}{{ end }}", map[string]bool{"sealed-variable": true}},
		{"{{ .nuon.components", map[string]bool{}}, // the engine says what is wrong
	} {
		j, _, err := open(id, tc.script)
		if err != nil {
			t.Errorf("%s: %v", tc.script, err)
			continue
		}
		if diff := cmp.Diff(tc.want, j.secrets.known); diff != "" {
			t.Errorf("%s opens (-want +got):\n%s", tc.script, diff)
		}
	}
}

// An engine cannot make the agent read what is not its own, or wait forever.
func TestReadOutIsNotFooled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := jobdir.Folder{Path: dir}
	out := filepath.Join(f.Engine(), "out")
	if err := os.MkdirAll(out, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "identity"), []byte(`"key"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(out, "good"), []byte(`"result"`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"absolute": filepath.Join(dir, "identity"), "relative": "../../identity"} {
		if err := os.Symlink(target, filepath.Join(out, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(out, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(out, "large"), make([]byte, 101), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		found bool
		ok    bool
	}{
		{"good", true, true}, {"none", false, true}, {"absolute", true, false}, {"relative", true, false}, {"pipe", true, false}, {"large", true, false},
	} {
		data, found, err := f.ReadOut("out/"+tc.name, 100)
		if found != tc.found || (err == nil) != tc.ok {
			t.Errorf("%s: %q, found %v, %v", tc.name, data, found, err)
		}
		if strings.Contains(string(data), "key") {
			t.Errorf("%s: the agent's key was read", tc.name)
		}
	}
}

// What a probe of an app found is redacted as errors are. When the customer keeps outputs of
// checks back, only that nobody can tell leaves: without it, the look would count as good.
func TestFindingsOfAnAppsProbe(t *testing.T) {
	t.Parallel()
	j := &job{deps: &Deps{}, secrets: newSecrets()}
	j.secrets.set.Add([]byte("correct-horse-battery"), "")
	found := []jobspec.Finding{{Object: "action probe.web.ready", Condition: "nobody can tell: correct-horse-battery", Unknown: true}}
	got, err := j.presentable(jobspec.Result{Outcome: jobspec.OutcomeSucceeded, Findings: found, Error: "exit code 1: correct-horse-battery"})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Findings) != 1 || got.Findings[0].Condition != "nobody can tell: (redacted)" || got.Error != "exit code 1: (redacted)" {
		t.Errorf("it is %+v", got)
	}
	j.deps.Off = off{}
	run := j.allowed(runOf(jobdir.Tick{Action: "probe.web.ready"}, got))
	want := map[string]any{jobspec.FindingsOutput: []jobspec.Finding{{Object: noOutputs, Unknown: true}}}
	if diff := cmp.Diff(want, run.Outputs); diff != "" || run.Error != noOutputs {
		t.Errorf("outputs that are kept back: %q (-want +got):\n%s", run.Error, diff)
	}
}

// off is a customer who keeps all back.
type off struct{}

func (off) Off(string) bool { return true }

// A secret that is also a number of the result makes it unreadable as it is. What decides
// about reuse and the next step stays.
func TestPresentableKeepsWhatDecides(t *testing.T) {
	t.Parallel()
	j := &job{deps: &Deps{}, secrets: newSecrets()}
	j.secrets.set.Add([]byte("123456789"), "")
	at := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	result := jobspec.Result{
		JobID: "job_1", Attempt: 1, Outcome: jobspec.OutcomeSucceeded, Reason: jobspec.ReasonMachineReplaced, Serial: 123456789, StartedAt: at, FinishedAt: at,
		Modules: []jobspec.Module{{Source: "git::https://h/123456789.git", From: "https://h/123456789.git", Commit: "c0ffee", Moves: true}, {Source: "b", Digest: "sha256:1"}},
	}
	got, err := j.presentable(result)
	if err != nil {
		t.Fatal(err)
	}
	want := result
	want.Modules = []jobspec.Module{{Source: "git::https://h/(redacted).git", From: "https://h/(redacted).git", Commit: "c0ffee", Moves: true}, {Source: "b", Digest: "sha256:1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a result with a secret in a number (-want +got):\n%s", diff)
	}
	if result.Modules[0].From != "https://h/123456789.git" {
		t.Error("the engine's own result was changed")
	}
}

// No secret leaves in a number that a script wrote, wherever it stands, and nothing that
// is left out for it is left out silently.
func TestAttackSecretsInMetrics(t *testing.T) {
	t.Parallel()
	const secret, number = "hunter2-hunter2", "123456789"
	j := &job{deps: &Deps{}, secrets: newSecrets()}
	j.secrets.set.Add([]byte(secret), "")
	j.secrets.set.Add([]byte(number), "")
	j.secrets.set.Add([]byte("sesame_open"), "")
	gauge := func(name, label, text string, value float64) jobspec.Metric {
		return jobspec.Metric{Name: name, Kind: jobspec.MetricGauge, Labels: map[string]string{label: text}, Help: "of " + text, Value: value}
	}
	result := jobspec.Result{
		JobID: "job_1", Attempt: 1, Outcome: jobspec.OutcomeSucceeded, Serial: 123456789, // the result as a whole cannot be redacted
		Metrics: []jobspec.Metric{
			gauge("fine", "queue", "mail", 1), gauge("token", "value", secret, 2), gauge("pin", "of", "door", 123456789),
			gauge("sesame_open", "a", "b", 3), gauge("named", "sesame_open", "b", 4),
		},
		MetricsError: "step \"" + secret + "\": line 3 is not in the Prometheus text format",
	}
	got, err := j.presentable(result)
	if err != nil {
		t.Fatal(err)
	}
	want := []jobspec.Metric{gauge("fine", "queue", "mail", 1), gauge("token", "value", "(redacted)", 2)}
	if diff := cmp.Diff(want, got.Metrics); diff != "" {
		t.Errorf("numbers (-want +got):\n%s", diff)
	}
	wantError := "a label of token has a secret in it, which was redacted; a secret was written as a number or a name; a secret was written as a number or a name; and 2 more"
	if got.MetricsError != wantError {
		t.Errorf("it says %q, want %q", got.MetricsError, wantError)
	}
	if result.Metrics[1].Labels["value"] != secret {
		t.Error("the engine's own result was changed")
	}
	got, err = j.presentable(jobspec.Result{Metrics: []jobspec.Metric{gauge("a", "b", "c", 1)}, MetricsError: "step " + secret})
	if err != nil || got.MetricsError != "step (redacted)" || len(got.Metrics) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	// An engine that keeps to no limit.
	many := make([]jobspec.Metric, 0, 10_000)
	for i := range cap(many) {
		many = append(many, gauge("m", "i", strconv.Itoa(i), 1))
	}
	if got, err = j.presentable(jobspec.Result{Metrics: many}); err != nil || len(got.Metrics) != jobspec.MaxMetrics || !strings.Contains(got.MetricsError, "9800 more") {
		t.Errorf("%d numbers are kept, %q, %v", len(got.Metrics), got.MetricsError, err)
	}
}

// A scheduled run brings its numbers, with the time at which it ended.
func TestARunBringsItsMetrics(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC)
	result := jobspec.Result{
		Outcome: jobspec.OutcomeFailed, ExitCode: 1, StartedAt: at, FinishedAt: at.Add(time.Second),
		Metrics: []jobspec.Metric{{Name: "rows", Kind: jobspec.MetricGauge, Value: 1}}, MetricsError: "line 2 is wrong",
	}
	want := jobspec.Run{
		Action: "look", ScheduledAt: at, State: "failed", ExitCode: 1, Outputs: map[string]any{}, StartedAt: at, FinishedAt: at.Add(time.Second),
		Metrics: result.Metrics, MetricsError: "line 2 is wrong",
	}
	if diff := cmp.Diff(want, runOf(jobdir.Tick{Action: "look", At: at}, result)); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
}
