package rehearse

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	begun := time.Unix(100, 0)
	step := func(state ctlapi.StepState) ctlapi.Step {
		return ctlapi.Step{Name: "component/a", Kind: "deploy", State: state, StartedAt: &begun, FinishedAt: new(begun.Add(2 * time.Second))}
	}
	planned := func(r *ctlapi.Rehearsed) *ctlapi.Change {
		return &ctlapi.Change{Plan: &ctlapi.PlanSummary{Create: 1, Update: 2, Replace: 3, Text: "plan", Rehearsed: r}}
	}
	line := Line{Name: "component/a", Kind: "deploy", Seconds: 2}
	shown := line
	shown.Plan, shown.Create, shown.Update = "plan", 1, 5
	standIn := shown
	standIn.Create, standIn.Update = 0, 0
	with := func(l Line, v Verdict, why string, providers ...string) Line {
		l.Verdict, l.Why, l.Providers = v, why, providers
		return l
	}
	failed := step(ctlapi.StepStateFailed)
	failed.Error, failed.Remedy = new("no"), new("try")
	for _, tt := range []struct {
		name   string
		step   ctlapi.Step
		change *ctlapi.Change
		want   Line
	}{
		{"deployed", step(ctlapi.StepStateSucceeded), planned(nil), with(shown, Real, "")},
		{"a script that only ran", step(ctlapi.StepStateSucceeded), nil, with(line, Real, "")},
		{"a sandbox", step(ctlapi.StepStateSucceeded), planned(&ctlapi.Rehearsed{How: ctlapi.RehearsedHowStandIn, Why: "cloud"}), with(standIn, Mocked, "cloud")},
		{"mocked", step(ctlapi.StepStateSucceeded), planned(&ctlapi.Rehearsed{How: ctlapi.RehearsedHowMocked, Why: "cloud", Providers: []string{"hashicorp/aws"}}), with(shown, Mocked, "cloud", "hashicorp/aws")},
		{"not planned", step(ctlapi.StepStateSucceeded), planned(&ctlapi.Rehearsed{How: ctlapi.RehearsedHowNotPlanned, Why: "unreachable"}), with(standIn, NotPlanned, "unreachable")},
		{"failed", failed, planned(nil), with(shown, Failed, "no; try")},
		{"never begun", ctlapi.Step{Name: "component/a", Kind: "deploy", State: ctlapi.StepStateSkipped}, nil,
			Line{Name: "component/a", Kind: "deploy", Verdict: NotPlanned, Why: "the provision ended before it: its step is skipped"}},
	} {
		if diff := cmp.Diff(tt.want, judge(tt.step, tt.change)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestHostOf(t *testing.T) {
	t.Parallel()
	for repo, want := range map[string]string{
		"owner/name": "github.com", "https://git.example.com/a/b.git": "git.example.com", "git@git.example.com:a/b": "git.example.com",
		"git::ssh://git@git.example.com/a": "git.example.com", "./local": "", "": "",
	} {
		if got := hostOf(repo); got != want {
			t.Errorf("%s: %q, want %q", repo, got, want)
		}
	}
}

// What an app says cannot break out of a report.
func TestFormatsOfAReport(t *testing.T) {
	t.Parallel()
	r := Report{
		App: "shop", Install: "trial", Totals: map[Verdict]int{Real: 2, Mocked: 1},
		Lines:   []Line{{Name: "component/a", Verdict: Real, Plan: "```\n# not a heading\n<script>alert(1)</script>"}, {Name: "b|c", Verdict: Mocked, Why: "two\nlines"}},
		Outputs: []ctlapi.RehearsalOutput{{Path: "sandbox.outputs.x", Source: ctlapi.RehearsalOutputSourceMadeUp, Value: json.RawMessage(`"<b>"`)}},
	}
	for name, want := range map[string][]string{
		"out.html": {"2 real, 1 mocked, 0 not planned, 0 failed", "&lt;script&gt;", "&lt;b&gt;"},
		"out.md":   {"**2 real, 1 mocked, 0 not planned, 0 failed**", "    # not a heading", `| b\|c |  | mocked | two lines |`},
		"out.json": {`"real": 2`, `"source": "made_up"`},
	} {
		raw, err := r.Format(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if !strings.Contains(string(raw), text) {
				t.Errorf("%s does not contain %q:\n%s", name, text, raw)
			}
		}
		if strings.HasSuffix(name, ".html") && (strings.Contains(string(raw), "<script>") || strings.Contains(string(raw), "http")) {
			t.Errorf("%s runs or loads something:\n%s", name, raw)
		}
	}
	if _, err := r.Format("out.pdf"); err == nil || !strings.Contains(err.Error(), ".html, .md or .json") {
		t.Errorf("out.pdf: %v", err)
	}
}
