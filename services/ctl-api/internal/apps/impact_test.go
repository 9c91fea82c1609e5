package apps

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/internal/model"
)

func TestImpact(t *testing.T) {
	t.Parallel()
	reuse := func(name, build, deploy, artifact string) ItemDecision {
		return ItemDecision{
			item:   item{Kind: model.KindComponent, Name: name, BuildDigest: build, DeployDigest: deploy},
			Action: ActionReuse, BuildState: "succeeded", Artifact: artifact, Reason: "unchanged",
		}
	}
	moving := reuse("api", "b", "d", "")
	moving.Action, moving.BuildState, moving.Reason = ActionBuild, "", "the git ref may have moved"
	sandbox := reuse(SandboxName, "b2", "d", "a2")
	sandbox.Kind = model.KindSandbox
	api := live{Kind: model.KindComponent, Name: "api", BuildDigest: "b", DeployDigest: "d", Artifact: "a"}
	for _, tc := range []struct {
		name  string
		items []ItemDecision
		there []live
		off   string
		want  []Effect
	}{
		{name: "nothing differs", items: []ItemDecision{reuse("api", "b", "d", "a")}, there: []live{api}},
		{name: "nothing is there yet", items: []ItemDecision{reuse("api", "b", "d", "a")}, want: []Effect{
			{model.KindComponent, "api", EffectNew, "it is not there yet"},
		}},
		{name: "other settings", items: []ItemDecision{reuse("api", "b", "d2", "a")}, there: []live{api}, want: []Effect{
			{model.KindComponent, "api", EffectChanges, "other settings"},
		}},
		{name: "built from something else", items: []ItemDecision{reuse("api", "b2", "d", "a")}, there: []live{api}, want: []Effect{
			{model.KindComponent, "api", EffectChanges, "another build"},
		}},
		{name: "a newer artifact of the same", items: []ItemDecision{reuse("api", "b", "d", "a2")}, there: []live{api}, want: []Effect{
			{model.KindComponent, "api", EffectChanges, "another build"},
		}},
		{name: "both", items: []ItemDecision{reuse("api", "b2", "d2", "a2")}, there: []live{api}, want: []Effect{
			{model.KindComponent, "api", EffectChanges, "another build and other settings"},
		}},
		{name: "a branch that may have moved", items: []ItemDecision{moving}, there: []live{api}, want: []Effect{
			{model.KindComponent, "api", EffectMayChange, "the git ref may have moved"},
		}},
		{name: "no longer in the folder", there: []live{api}, want: []Effect{
			{model.KindComponent, "api", EffectOrphaned, "the folder no longer has it; a deploy leaves it alone"},
		}},
		{name: "switched off in this install", items: []ItemDecision{reuse("api", "b2", "d2", "a2")}, there: []live{api}, off: "api"},
		{name: "the sandbox is not a component of its name", items: []ItemDecision{sandbox},
			there: []live{{Kind: model.KindSandbox, Name: SandboxName, BuildDigest: "b", DeployDigest: "d"}}, off: SandboxName, want: []Effect{
				{model.KindSandbox, SandboxName, EffectChanges, "another build; a deploy leaves the sandbox alone, a provision brings it"},
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := impact(Decision{Items: tc.items}, tc.there, func(name string) bool { return name == tc.off })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// An install has no scripts of a repository: they change nothing in it.
func TestImpactOfScripts(t *testing.T) {
	t.Parallel()
	d := Decision{Items: []ItemDecision{{item: item{Kind: model.KindScripts, Name: "acme/ops"}, Action: ActionBuild}}}
	if got := impact(d, nil, func(string) bool { return false }); len(got) > 0 {
		t.Errorf("effects %+v", got)
	}
}

func TestOldestCLI(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		version, oldest string
		refused         bool
	}{
		{"", "1.4.0", false},
		{"devel", "1.4.0", false},
		{"0.1.0", "", false},
		{"1.4.0", "1.4.0", false},
		{"v1.10.0", "1.9.0", false},
		{"1.3.9", "1.4.0", true},
		{"1.4.0-3-gabcdef0", "1.4.0", false},
		{"1.3.9-3-gabcdef0", "1.4.0", true},
	} {
		if err := checkCLI(tc.version, tc.oldest); (err != nil) != tc.refused {
			t.Errorf("berth %q where %q is the oldest: %v", tc.version, tc.oldest, err)
		}
	}
}
