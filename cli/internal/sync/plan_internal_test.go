package sync

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/cli/internal/goldentest"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// changes are of two components, one of them new.
func changes() []ctlapi.DiffObject {
	return []ctlapi.DiffObject{
		{Kind: "component", Name: "api", Change: "changed", Build: true, Deploy: true, Fields: []ctlapi.FieldChange{
			{Path: "dependencies", Before: `["db"]`},
			{Path: "helm_chart.values.long", Before: `"` + strings.Repeat("x", 200) + `"`, After: `"short"`},
			{Path: "helm_chart.values_file[0].contents.contents", Before: `"a: 1\nb: 2\n"`, After: `"a: 1\nb: 3\nc: 4\n"`},
			{Path: "max_auto_retries", Before: "2", After: "3"},
		}},
		{Kind: "component", Name: "web", Change: "added", Build: true, Deploy: true},
	}
}

func TestSyncPlanText(t *testing.T) {
	t.Parallel()
	two, total := ctlapi.NumberRef{ID: "rel_2", Number: 2}, 3
	plan := func() *ctlapi.SyncResult {
		return &ctlapi.SyncResult{
			App: ctlapi.Ref{ID: "app_1", Name: "hello"}, Created: true, DryRun: true, Against: &ctlapi.NumberRef{ID: "cfg_3", Number: 3},
			Changes: changes(),
			Items: []ctlapi.SyncItem{
				{Component: "sandbox", Type: "terraform_module", Action: "reuse", Reason: "unchanged"},
				{Component: "api", Type: "helm_chart", Action: "build", Reason: "source changed", DeployChanged: true},
				{Component: "cache", Type: "helm_chart", Action: "reuse", Reason: "unchanged", DeployChanged: true},
				{Component: "web", Type: "terraform_module", Action: "build", Reason: "new", DeployChanged: true},
			},
			Removed: []string{"db"},
			Installs: []ctlapi.SyncInstall{
				{Install: ctlapi.Ref{Name: "acme"}, Release: &two, Inputs: []ctlapi.SyncInstallInput{
					{Name: "greeting", Before: new("Ahoy"), After: new("Hello\nyou")}, {Name: "motto", After: new("")}, {Name: "key", Sensitive: true},
				}, Components: []ctlapi.SyncInstallComponent{
					{Component: "api", Kind: "component", Effect: "changes", Reason: "another build and other settings"},
					{Component: "lib", Kind: "component", Effect: "may_change", Reason: "the git ref may have moved"},
					{Component: "web", Kind: "component", Effect: "new", Reason: "it is not there yet"},
					{Component: "db", Kind: "component", Effect: "orphaned", Reason: "the folder no longer has it; a deploy leaves it alone"},
				}},
				{Install: ctlapi.Ref{Name: "globex"}, Components: []ctlapi.SyncInstallComponent{}},
			},
			InstallsTotal: &total,
		}
	}
	again := plan()
	again.Created, again.Changes, again.Items, again.Removed, again.Installs = false, nil, again.Items[:1], nil, nil
	again.Config, again.InstallsTotal = again.Against, nil
	older := plan()
	older.Created, older.Config, older.Items, older.Installs = false, &ctlapi.NumberRef{ID: "cfg_1", Number: 1}, older.Items[:1], nil
	older.InstallsTotal = nil
	first := plan()
	first.Against, first.Installs, first.Removed, first.InstallsTotal = nil, nil, nil, nil
	first.Items, first.Changes = first.Items[3:], first.Changes[1:]
	for _, tc := range []struct {
		file  string
		plan  *ctlapi.SyncResult
		prune bool
		does  bool
	}{
		{"plan.txt", plan(), false, true},
		{"plan_prune.txt", plan(), true, true},
		{"plan_again.txt", again, false, false},
		{"plan_older.txt", older, false, false},
		{"plan_first.txt", first, false, true},
	} {
		goldentest.File(t, "testdata/"+tc.file, PlanText(tc.plan, tc.prune, false))
		if got := WouldChange(tc.plan); got != tc.does {
			t.Errorf("%s: would change something: %v, want %v", tc.file, got, tc.does)
		}
	}
	failed := plan()
	failed.Created, failed.Items = false, failed.Items[1:2]
	if !WouldChange(failed) {
		t.Error("a build that is tried again is nothing to do")
	}
}
