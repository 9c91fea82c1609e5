package follow_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/visible"
)

// longNames is a deploy with names, errors and reasons that no terminal has room for.
func longNames() ctlapi.Workflow {
	name := "metrics-collector-" + strings.Repeat("very-", 12) + "long"
	resource := &ctlapi.ResourceRef{Kind: ctlapi.ResourceRefKindComponent, Name: name}
	return ctlapi.Workflow{
		ID: "wfl_01jd2x7q9zr8w3v5k6m4n0tgha", Kind: ctlapi.WorkflowKindDeploy, State: ctlapi.WorkflowStateFailed,
		Install: ctlapi.Ref{Name: "production-of-a-customer-with-a-long-name"}, StartedAt: ago(time.Minute), FinishedAt: &now,
		Steps: []ctlapi.Step{
			{Name: "sandbox", State: ctlapi.StepStateSucceeded, StartedAt: ago(time.Minute), FinishedAt: &now,
				Change:    &ctlapi.ChangeSummary{Counts: &ctlapi.PlanCounts{Create: 2}},
				MayChange: []ctlapi.MayChange{{Reads: "greeting.text"}, {Reads: "another.component.with.a.long.output"}}},
			{Name: "component/" + name, Resource: resource, State: ctlapi.StepStateFailed, StartedAt: ago(time.Minute), FinishedAt: &now,
				Error: ptr("terraform apply of component " + name + ": cannot write /var/lib/" + strings.Repeat("deep/", 30) + "file (main.tf:33): " + strings.Repeat("no room on the disk ", 9))},
		},
	}
}

func TestTreeAndVerdictFitTheTerminal(t *testing.T) {
	t.Parallel()
	for _, columns := range []int{60, 80, 120} {
		for _, color := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d columns, color %t", columns, color), func(t *testing.T) {
				t.Parallel()
				var shown bytes.Buffer
				s := follow.Screen{W: visible.NewWriter(&shown), Terminal: true, Columns: columns}
				w := longNames()
				_, verdict := follow.Judge(w)
				lines := append(follow.Tree(w, now, color), verdict...)
				s.Draw(lines)
				drawn := shown.String()
				shown.Reset()
				s = follow.Screen{W: visible.NewWriter(&shown), Terminal: true, Columns: columns}
				s.Fold(lines...)
				for _, line := range strings.Split(strings.TrimSuffix(drawn+shown.String(), "\n"), "\n") {
					if follow.Width(line) > columns {
						t.Errorf("%d characters: %q", follow.Width(line), line)
					}
				}
				if n := strings.Count(drawn, "\n"); n != len(lines) {
					t.Errorf("drawn on %d lines instead of %d", n, len(lines))
				}
				// Nothing is lost but spaces.
				bare := func(text string) string { return strings.Join(strings.Fields(text), "") }
				var whole bytes.Buffer
				_, _ = visible.NewWriter(&whole).Write([]byte(strings.Join(lines, "\n")))
				if diff := cmp.Diff(bare(whole.String()), bare(shown.String())); diff != "" {
					t.Errorf("folded (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestFoldKeepsTheIndent(t *testing.T) {
	t.Parallel()
	lines := []string{"a heading that is too long", "  try: fix the cause, then berth retry acme/web", "  /one/word/that/is/longer/than/a/line", "  " + output.Paint(true, output.Bad, "✗") + " web   2.0 s  no room on the disk"}
	var shown bytes.Buffer
	s := follow.Screen{W: visible.NewWriter(&shown), Terminal: true, Columns: 20}
	s.Fold(lines...)
	want := `a heading that is
  too long
  try: fix the
    cause, then
    berth retry
    acme/web
  /one/word/that/is/
    longer/than/a/li
    ne
  RED✗OFF web   2.0 s  no
    room on the disk
`
	got := strings.NewReplacer("\x1b[31m", "RED", "\x1b[0m", "OFF").Replace(shown.String())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	shown.Reset()
	piped := follow.Screen{W: &shown}
	piped.Fold("a line for a program to look through")
	if shown.String() != "a line for a program to look through\n" {
		t.Errorf("without a terminal: %q", shown.String())
	}
}
