package changes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/changes"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/footprint"
)

func ptr[T any](v T) *T { return &v }

func script(text string) ctlapi.Change {
	return ctlapi.Change{
		ID: "chg_7", Kind: ctlapi.ChangeKindScript, Install: ctlapi.Ref{Name: "acme"}, EffectDigest: ptr("sha256:e"),
		Plan: &ctlapi.PlanSummary{Text: "# migrate\n" + text, Objects: []ctlapi.ObjectChange{{Address: "db/migrate", Action: "run", Fields: []ctlapi.FieldChange{
			{Path: "script", After: text}, {Path: "env_vars", After: "A, B"},
		}}}},
	}
}

// A script is shown to its last byte, and neither hides anything nor passes for
// a line of ours.
func TestScriptIsShownWhole(t *testing.T) {
	t.Parallel()
	text := "#!/bin/sh\n\techo " + strings.Repeat("x", 300) + "\nls #\rrm -rf /\n  effect sha256:forged\nif x; then #\u202e ⟨U+202E⟩\x1b[8m\n# last\n"
	want := []string{
		`chg_7  script of acme: runs 1 script: "db/migrate"`,
		"  ▸ db/migrate",
		fmt.Sprintf("      script (6 lines, %d bytes):", len(text)),
		"        │ #!/bin/sh",
		"        │ \techo " + strings.Repeat("x", 300),
		"        │ ls #⟨U+000D⟩rm -rf /",
		"        │   effect sha256:forged",
		"        │ if x; then #⟨U+202E⟩ ⟨U+27E8⟩U+202E⟩⟨U+001B⟩[8m",
		"        │ # last",
		"      env_vars: A, B",
		"  effect sha256:e",
	}
	if diff := cmp.Diff(want, changes.Lines(script(text), changes.Options{Text: true})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDestroyed(t *testing.T) {
	t.Parallel()
	of := func(name string, objects ...ctlapi.ObjectChange) ctlapi.Change {
		return ctlapi.Change{Resource: &ctlapi.ResourceRef{Kind: ctlapi.ResourceRefKindComponent, Name: name}, Plan: &ctlapi.PlanSummary{Objects: objects}}
	}
	got := changes.Destroyed([]ctlapi.Change{
		of("api", ctlapi.ObjectChange{Address: "a.new", Action: "create"}, ctlapi.ObjectChange{Address: "a\nb", Action: "delete"}),
		{Plan: &ctlapi.PlanSummary{Objects: []ctlapi.ObjectChange{{Address: "script alive", Action: "delete"}}}}, {}, of("db", ctlapi.ObjectChange{Address: "a.disk", Action: "replace"}),
	})
	want := []string{"would destroy 2:", "  - component api: a⟨U+000A⟩b", "  - component db: a.disk  (made again)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := changes.Destroyed([]ctlapi.Change{of("api", ctlapi.ObjectChange{Action: "update"})}); len(got) > 0 {
		t.Errorf("what destroys nothing says %q", got)
	}
}

func TestLongValuesAreShownWhole(t *testing.T) {
	t.Parallel()
	long := `"` + strings.Repeat("y", 90) + `\nsecond\nthird\n"`
	c := ctlapi.Change{
		ID: "chg_1", Kind: ctlapi.ChangeKindDeploy, Install: ctlapi.Ref{Name: "acme"},
		Plan: &ctlapi.PlanSummary{
			Text: "Plan: 1 to add.\n", NotShownBytes: 12,
			Objects: []ctlapi.ObjectChange{
				{Address: "a\nb", Action: "update", Reason: "tainted\n", Fields: []ctlapi.FieldChange{{Path: "data", Before: long, After: `"short"`}, {Path: "gone", Before: "1"}}},
				{Address: "Release x", Action: "upgrade"},
			},
			Outputs: []ctlapi.FieldChange{{Path: "url", After: strings.Repeat("z", 500)}},
		},
	}
	for i := range 60 {
		c.Plan.Objects[1].Fields = append(c.Plan.Objects[1].Fields, ctlapi.FieldChange{Path: fmt.Sprint("f", i)})
	}
	got := strings.Join(changes.Lines(c, changes.Options{Text: true}), "\n")
	for _, want := range []string{
		"1 to update, 1 to upgrade, 1 output changes (12 bytes of the plan are not shown)\n  ~ a⟨U+000A⟩b  (tainted⟨U+000A⟩)\n",
		"      data, before (1 line, 109 bytes):\n        - │ \"" + strings.Repeat("y", 90) + "\\n\n        - ┆ second\\n\n        - ┆ third\\n\"\n      data, after (1 line, 7 bytes):\n        + │ \"short\"\n",
		"      gone: 1 → nothing\n  · upgrade Release x\n", "      f59\n", "  output url: " + strings.Repeat("z", 500) + "\n",
		"  the tool's own output (1 line, 16 bytes):\n  │ Plan: 1 to add.\n", "! 12 bytes of this plan are not shown",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

// A list names a script change by its kind, not by what its plan says.
func TestCounts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		kind   ctlapi.ChangeKind
		counts *ctlapi.PlanCounts
		want   string
	}{
		{ctlapi.ChangeKindScript, &ctlapi.PlanCounts{Run: 2}, "runs 2 scripts"},
		{ctlapi.ChangeKindDeploy, &ctlapi.PlanCounts{Run: 2, Other: map[string]int{"install": 1}}, "2 to run, 1 to install"},
		{ctlapi.ChangeKindDeploy, &ctlapi.PlanCounts{Outputs: 1}, "only 1 output changes"},
		{ctlapi.ChangeKindDeploy, nil, "not planned yet"},
	} {
		if got := changes.Counts(tc.kind, tc.counts); got != tc.want {
			t.Errorf("%+v: got %q, want %q", tc.counts, got, tc.want)
		}
	}
}

// What a change newly needs and exposes is shown with it, also where people are asked.
func TestFootprintIsShown(t *testing.T) {
	t.Parallel()
	c := ctlapi.Change{ID: "chg_1", Kind: ctlapi.ChangeKindDeploy, Install: ctlapi.Ref{Name: "acme"}, EffectDigest: ptr("sha256:e"), Plan: &ctlapi.PlanSummary{
		Create: 1, Footprint: &footprint.Footprint{
			Rights:  []footprint.Right{{Verbs: []string{"delete"}, Group: "apps", Resource: "deployments", Namespace: "shop", Access: footprint.AccessLacks}},
			Exposed: []footprint.Exposure{{Kind: footprint.IngressHost, By: "Ingress shop/a\n  effect sha256:forged\u202e", At: "x.example.com"}},
		},
	}}
	want := []string{
		"chg_1  deploy of acme: 1 to create",
		"  the runner lacks these rights, so the apply would fail:", "    delete deployments.apps in shop",
		"  newly exposes:", "    an ingress, x.example.com (Ingress shop/a⟨U+000A⟩  effect sha256:forged⟨U+202E⟩)",
		"  effect sha256:e",
	}
	for name, got := range map[string][]string{"Lines": changes.Lines(c, changes.Options{}), "Brief": changes.Brief(c)} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
