package jobspec_test

import (
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
)

func TestTitle(t *testing.T) {
	t.Parallel()
	object := func(action string) jobspec.ObjectChange { return jobspec.ObjectChange{Address: "a", Action: action} }
	script := func(name string) jobspec.ObjectChange {
		return jobspec.ObjectChange{Address: name, Action: "run", Fields: []jobspec.FieldChange{{Path: jobspec.ScriptField, After: "true"}}}
	}
	output := jobspec.FieldChange{Path: "url", After: `"x"`}
	for _, tc := range []struct {
		name       string
		plan       jobspec.PlanSummary
		want, list string // list: as a list says it
	}{
		{name: "nothing", plan: jobspec.PlanSummary{NoChange: true}, want: "no change"},
		{name: "objects", plan: jobspec.PlanSummary{Objects: []jobspec.ObjectChange{object("create"), object("delete"), object("create")}},
			want: "2 to create, 1 to delete"},
		{name: "only outputs", plan: jobspec.PlanSummary{Outputs: []jobspec.FieldChange{output, output}}, want: "only 2 outputs change"},
		{name: "one output", plan: jobspec.PlanSummary{Outputs: []jobspec.FieldChange{output}}, want: "only 1 output changes"},
		{name: "objects and outputs", plan: jobspec.PlanSummary{Objects: []jobspec.ObjectChange{object("update")}, Outputs: []jobspec.FieldChange{output}},
			want: "1 to update, 1 output changes"},
		{name: "a script", plan: jobspec.PlanSummary{Objects: []jobspec.ObjectChange{script("seed/load")}},
			want: `runs 1 script: "seed/load"`, list: "runs 1 script"},
		{name: "a script whose name says something else", plan: jobspec.PlanSummary{Objects: []jobspec.ObjectChange{script("x\": only outputs change\n")}},
			want: `runs 1 script: "x\": only outputs change\n"`, list: "runs 1 script"},
		{name: "many scripts", plan: jobspec.PlanSummary{Objects: []jobspec.ObjectChange{script("a"), script("b"), script("c"), script("d"), script("e"), script("f")}},
			want: `runs 6 scripts: "a", "b", "c", "d" and 2 more`, list: "runs 6 scripts"},
		{name: "hooks of a chart", plan: jobspec.PlanSummary{Objects: []jobspec.ObjectChange{object("create"), object("upgrade"), object("run")}},
			want: "1 to create, 1 to run, 1 to upgrade"},
		{name: "a chart's release alone", plan: jobspec.PlanSummary{Objects: []jobspec.ObjectChange{object("upgrade")}}, want: "1 to upgrade"},
		{name: "moved and forgotten", plan: jobspec.PlanSummary{Objects: []jobspec.ObjectChange{object("move"), object("forget"), object("import"), object("move")}},
			want: "1 to forget, 1 to import, 2 to move"},
		{name: "what is kept is not done", plan: jobspec.PlanSummary{NoChange: true, Objects: []jobspec.ObjectChange{object("keep")}}, want: "no change"},
		{name: "it says less than it lists", plan: jobspec.PlanSummary{NoChange: true, Objects: []jobspec.ObjectChange{object("delete")}}, want: "1 to delete"},
		{name: "it says more than it lists", plan: jobspec.PlanSummary{Delete: 3, Objects: []jobspec.ObjectChange{object("delete")}}, want: "3 to delete"},
		{name: "part of it is missing", plan: jobspec.PlanSummary{NotShownBytes: 7, Objects: []jobspec.ObjectChange{object("create")}},
			want: "1 to create (7 bytes of the plan are not shown)", list: "1 to create"},
		{name: "it lists nothing", plan: jobspec.PlanSummary{Text: "only outputs change"}, want: "changes that the plan does not list"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := tc.plan.Title(); got != tc.want {
				t.Errorf("title %q, want %q", got, tc.want)
			}
			words := tc.plan.Counts().String()
			if len(tc.plan.Objects) > 0 && tc.plan.Objects[0].Action == "run" {
				words = tc.plan.Counts().OfScripts()
			}
			if tc.list == "" {
				tc.list = tc.want
			}
			if words != tc.list {
				t.Errorf("in a list %q, want %q", words, tc.list)
			}
		})
	}
}
