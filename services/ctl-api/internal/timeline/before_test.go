package timeline_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/event"
	"github.com/berth-dev/berth/services/ctl-api/internal/timeline"
	"github.com/berth-dev/berth/services/ctl-api/internal/treediff"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// story makes entries of lines, which are oldest first: "kind" or "kind subject", where
// the subject is a resource, a check, or of a workflow its kind. The result is newest
// first, with the line as the text.
func story(t *testing.T, lines ...string) []timeline.Entry {
	t.Helper()
	var entries []timeline.Entry
	for i, line := range lines {
		kind, rest, _ := strings.Cut(line, " ")
		words := strings.Fields(rest)
		e := timeline.Entry{Seq: int64(i + 1), At: noon.Add(time.Duration(i) * time.Minute), Kind: event.Kind(kind), Text: line}
		for _, w := range words {
			name, value, _ := strings.Cut(w, "=")
			switch name {
			case "resource":
				e.Body.Resource = value
			case "check":
				e.Body.Check = value
			case "to":
				e.Body.To = value
			case "workflow":
				e.WorkflowKind = value
			case "plan_only":
				e.PlanOnly = true
			case "ended":
				e.Ended = value
			case "release":
				if _, err := fmt.Sscan(value, &e.Release); err != nil {
					t.Fatal(err)
				}
			case "kind":
				e.Body.ChangeKind = value
			case "keys":
				e.Body.Changed = strings.Split(value, ",")
			case "overrides":
				e.Body.Overrides = strings.Split(value, ",")
			case "toggle":
				e.Body.Toggles = map[string]string{value: "false"}
			default:
				t.Fatalf("%q in %q", w, line)
			}
		}
		entries = append(entries, e)
	}
	slices.Reverse(entries)
	return entries
}

func TestFindBreak(t *testing.T) {
	t.Parallel()
	const deployed, failed = "workflow.succeeded workflow=deploy", "workflow.failed workflow=deploy"
	for _, tc := range []struct {
		name     string
		lines    []string
		first    string // empty: nothing failed
		good     string
		resource string
		between  int
	}{
		{name: "nothing happened"},
		{name: "nothing failed", lines: []string{deployed, "inputs.changed keys=a"}},
		{name: "a deploy that failed after one that did not", lines: []string{deployed, "inputs.changed keys=a", failed}, first: failed, good: deployed, between: 1},
		{
			name:  "the change that failed is before its workflow",
			lines: []string{deployed, "workflow.queued workflow=deploy", "change.failed resource=api", failed},
			first: "change.failed resource=api", good: deployed, resource: "api", between: 1,
		},
		{
			name:  "the first of a row of failures",
			lines: []string{deployed, "inputs.changed keys=a", "change.failed resource=api", failed, "workflow.queued", "change.failed resource=web", failed, "inputs.changed keys=b"},
			first: "change.failed resource=api", good: deployed, resource: "api", between: 1,
		},
		{name: "what failed is well again, and only the newer row counts", lines: []string{failed, deployed, "check.changed check=ping to=healthy", "check.changed check=ping to=unhealthy"},
			first: "check.changed check=ping to=unhealthy", good: "check.changed check=ping to=healthy"},
		{
			name:  "a deploy that succeeded before a verdict turned stands in between",
			lines: []string{"check.changed check=ping to=healthy", "workflow.queued", "change.applied resource=api", deployed, "check.changed check=ping to=unhealthy"},
			first: "check.changed check=ping to=unhealthy", good: "check.changed check=ping to=healthy", between: 3,
		},
		{
			name:  "a failed deploy, then an unhealthy verdict: one row",
			lines: []string{"check.changed check=ping to=healthy", deployed, "inputs.changed keys=a", failed, "check.changed check=ping to=unhealthy"},
			first: failed, good: deployed, between: 1,
		},
		{
			name:  "another check that turns well ends nothing",
			lines: []string{deployed, "inputs.changed keys=a", "check.changed check=x to=healthy", failed},
			first: failed, good: deployed, between: 2,
		},
		{name: "a denied change is no failure", lines: []string{deployed, "workflow.failed workflow=deploy ended=denied"}},
		{name: "a preview is none", lines: []string{deployed, "workflow.failed workflow=deploy plan_only=1"}},
		{name: "a run of an action that succeeds says nothing", lines: []string{deployed, "inputs.changed keys=a", failed, "workflow.succeeded workflow=action_run"}, first: failed, good: deployed, between: 1},
		{name: "never well", lines: []string{"install.created", failed}, first: failed, between: 1},
		{name: "a failure that a success ended", lines: []string{deployed, failed, deployed}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b, broke := timeline.FindBreak(story(t, tc.lines...))
			if broke != (tc.first != "") {
				t.Fatalf("broke: %v", broke)
			}
			good := ""
			if b.Good != nil {
				good = b.Good.Text
			}
			got := fmt.Sprintf("%s | %s | %s | %d", b.First.Text, good, b.Resource, len(b.Between))
			if want := fmt.Sprintf("%s | %s | %s | %d", tc.first, tc.good, tc.resource, tc.between); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestSuspects(t *testing.T) {
	t.Parallel()
	const good, bad = "workflow.succeeded workflow=deploy", "change.failed resource=api"
	change := func(path, was, is string) treediff.Change {
		return treediff.Change{Path: path, Op: treediff.Changed, Old: json.RawMessage(was), New: json.RawMessage(is)}
	}
	for _, tc := range []struct {
		name    string
		between []string
		d       timeline.Differences
		want    []string
	}{
		{name: "nothing", want: nil},
		{
			name:    "a release that changes what failed comes first",
			between: []string{"inputs.changed keys=size", "install.updated toggle=cache", "workflow.queued release=5"},
			d:       timeline.Differences{FromRelease: 4, ToRelease: 5, Components: []string{"api", "web"}, Snapshot: []treediff.Change{change("inputs.values.size", "1", "2")}},
			want:    []string{"95 release 4 became 5: api, web", "80 inputs.changed keys=size +1", "60 install.updated toggle=cache"},
		},
		{
			name:    "one that does not comes behind inputs that a workflow took",
			between: []string{"inputs.changed keys=size", "workflow.queued release=5"},
			d:       timeline.Differences{FromRelease: 4, ToRelease: 5, Components: []string{"web"}, Snapshot: []treediff.Change{change("inputs.values.size", "1", "2")}},
			want:    []string{"80 inputs.changed keys=size +1", "75 release 4 became 5: web"},
		},
		{
			name: "the same release is none", between: nil, d: timeline.Differences{FromRelease: 4, ToRelease: 4}, want: nil,
		},
		{
			name:    "inputs that became what they were",
			between: []string{"inputs.changed keys=size", "inputs.changed keys=size"},
			d:       timeline.Differences{Snapshot: []treediff.Change{}},
			want:    []string{"20 inputs.changed keys=size", "20 inputs.changed keys=size"},
		},
		{
			name:    "own values of what failed",
			between: []string{"inputs.changed overrides=api", "inputs.changed overrides=web"},
			want:    []string{"90 inputs.changed overrides=api", "70 inputs.changed overrides=web"},
		},
		{
			name:    "what is about the resource that failed, then the later",
			between: []string{"change.applied resource=web", "change.applied resource=api", "drift.changed resource=api to=drifted", "change.applied resource=db", "drift.changed resource=api to=none"},
			want:    []string{"85 drift.changed resource=api to=drifted", "80 change.applied resource=api", "50 change.applied resource=db", "50 change.applied resource=web"},
		},
		{
			name:    "what happened around it",
			between: []string{"runner.switched to=pause", "runner.offline", "action_run.failed", "action_run.succeeded", "variables.changed", "step.skipped", "change.applied kind=accept", "install.updated", "config.created", "release.created"},
			want: []string{
				"65 variables.changed", "55 step.skipped", "45 action_run.failed", "40 runner.switched to=pause", "35 action_run.succeeded",
				"30 change.applied kind=accept", "25 runner.offline", "10 install.updated",
			},
		},
		{
			name: "what only a comparison shows",
			d: timeline.Differences{Snapshot: []treediff.Change{
				change("resources.db.outputs.url", `"a"`, `"b"`), change("resources.db.outputs.port", "1", "2"), change("runner.version", `"v1"`, `"v2"`), change("resources.db.health", `"a"`, `"b"`),
			}},
			want: []string{"55 runner version v1 became v2 +1", "45 outputs of db changed: url, port +2"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b, broke := timeline.FindBreak(story(t, slices.Concat([]string{good}, tc.between, []string{bad})...))
			if !broke {
				t.Fatal("nothing broke")
			}
			var got []string
			for _, s := range timeline.Suspects(b, tc.d) {
				line := fmt.Sprintf("%d %s", s.Weight, s.Text)
				if len(s.Changes) > 0 {
					line += fmt.Sprintf(" +%d", len(s.Changes))
				}
				if s.Why == "" {
					t.Errorf("%s has no reason", s.Text)
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBecause(t *testing.T) {
	t.Parallel()
	entries := story(t, "inputs.changed keys=a", "change.applied resource=api", "change.applied resource=sandbox", "change.applied kind=accept", "runner.enrolled", "config.created", "variables.changed")
	for path, want := range map[string][]string{
		"inputs.inputs.a":            {"inputs.changed keys=a"},
		"components.api.outputs.url": {"change.applied resource=api"},
		"components.apiary.status":   nil,
		"sandbox.outputs.x":          {"change.applied resource=sandbox"},
		"runner.id":                  {"runner.enrolled"},
		"app.variables.x":            {"variables.changed"},
		"app.name":                   nil,
	} {
		var got []string
		for _, e := range timeline.Because(entries, []treediff.Change{{Path: path}}) {
			got = append(got, e.Text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func TestPlace(t *testing.T) {
	t.Parallel()
	want := timeline.Place{At: noon.Add(123456 * time.Microsecond), Seq: 42}
	got, err := timeline.PlaceOf(want.String())
	if err != nil || !got.At.Equal(want.At) || got.Seq != want.Seq {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{"", "x", "1", "1.x", "x.1", "99999999999999999999.1"} {
		if _, err := timeline.PlaceOf(text); err == nil {
			t.Errorf("%q is a place", text)
		}
	}
}
