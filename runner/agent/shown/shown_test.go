package shown

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/footprint"
	"github.com/berth-dev/berth/pkg/jobspec"
)

func bigPlan(objects, bytes int) jobspec.PlanSummary {
	s := jobspec.PlanSummary{Text: strings.Repeat("text\n", bytes/5), Outputs: []jobspec.FieldChange{{Path: "url", After: `"x"`}}}
	for i := range objects {
		s.Objects = append(s.Objects, jobspec.ObjectChange{Address: fmt.Sprintf("thing.n%d", i), Action: "create", Fields: []jobspec.FieldChange{
			{Path: "data", After: strings.Repeat("\x00ü<", bytes/4)}, {Path: "note", Before: "was", After: "is"},
		}})
	}
	return s
}

func TestAPlanIsShownWhole(t *testing.T) {
	t.Parallel()
	whole := bigPlan(20, 5000)
	whole.Create = 20
	if diff := cmp.Diff(whole, Of(whole, Limit)); diff != "" {
		t.Errorf("(-whole +shown):\n%s", diff)
	}
}

// What is left out is counted to the byte, and said in its place; titles count
// the whole plan.
func TestAPlanThatIsTooLong(t *testing.T) {
	t.Parallel()
	const limit = 100_000
	for _, tc := range []struct {
		name  string
		whole jobspec.PlanSummary
		where func(jobspec.PlanSummary) string
	}{
		{"long text", jobspec.PlanSummary{Text: strings.Repeat("line\n", 60_000)}, func(s jobspec.PlanSummary) string { return s.Text }},
		{"long value", bigPlan(1, 400_000), func(s jobspec.PlanSummary) string { return s.Objects[0].Fields[0].After }},
		{"many fields", bigPlan(30, 4000), func(s jobspec.PlanSummary) string {
			last := s.Objects[len(s.Objects)-1].Fields
			return last[len(last)-1].Path
		}},
		{"many objects", bigPlan(3000, 100), func(s jobspec.PlanSummary) string { return s.Text }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			sent := Of(tc.whole, limit)
			encoded, err := json.Marshal(sent)
			if err != nil {
				t.Fatal(err)
			}
			if len(encoded) > limit+1000 {
				t.Errorf("%d bytes are sent, want at most about %d", len(encoded), limit)
			}
			if !strings.Contains(tc.where(sent), "not shown") {
				t.Errorf("nothing is said where it is missing: %.100q", tc.where(sent))
			}
			if sent.NotShownBytes <= 0 {
				t.Error("nothing is counted as missing")
			}
			if got, want := sent.Title(), tc.whole.Title(); !strings.HasPrefix(got, want+" (") {
				t.Errorf("title %q, want that of the whole plan: %q", got, want)
			}
		})
	}
	text := strings.Repeat("ü", 100)
	if got := Of(jobspec.PlanSummary{Text: text}, 51); got.NotShownBytes != 150 || got.Text != strings.Repeat("ü", 25)+"… (150 bytes not shown)" {
		t.Errorf("%d bytes not shown: %q", got.NotShownBytes, got.Text)
	}
}

// What is stripped to counts is recognised as such, and nothing else is.
func TestBare(t *testing.T) {
	t.Parallel()
	whole := jobspec.PlanSummary{
		Text: "+ all of it", Objects: []jobspec.ObjectChange{{Address: "a.b", Action: "create"}}, Outputs: []jobspec.FieldChange{{Path: "url", After: "x"}},
	}
	for name, s := range map[string]jobspec.PlanSummary{"nothing": {}, "counts": Of(whole, 0), "counts of counts": Of(Of(whole, 0), 0)} {
		if !Bare(s) {
			t.Errorf("%s is not bare: %+v", name, s)
		}
	}
	for name, s := range map[string]jobspec.PlanSummary{
		"a plan": whole, "a text": {Text: "+ x"}, "objects": {Objects: whole.Objects}, "outputs": {Outputs: whole.Outputs}, "a footprint": {Footprint: &footprint.Footprint{}},
	} {
		if Bare(s) {
			t.Errorf("%s is bare", name)
		}
	}
}
