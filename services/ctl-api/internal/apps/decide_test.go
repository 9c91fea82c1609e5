package apps

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/internal/model"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	local := func(digest string) Source { return Source{Kind: "local", Digest: digest} }
	branch := Source{Kind: "git", Repo: "acme/api", Ref: "main", Directory: "."}
	commit := Source{Kind: "git", Repo: "acme/api", Ref: "0123456789abcdef0123456789abcdef01234567", Directory: "."}
	api := func(build, deploy string, src Source) item {
		return item{Kind: model.KindComponent, Name: "api", BuildDigest: build, DeployDigest: deploy, Source: src}
	}
	built := func(state model.BuildState, src Source, builds ...build) history {
		return history{
			Kind: model.KindComponent, Name: "api", Builds: append([]build{{ID: "bld_1", BuildDigest: "b1", State: state, Source: src}}, builds...),
			Previous: &previous{BuildDigest: "b1", DeployDigest: "d1", Source: src},
		}
	}
	tests := []struct {
		name   string
		item   item
		before []history
		again  bool
		want   ItemDecision // without the item
	}{
		{
			name: "a new component is built", item: api("b1", "d1", local("x")),
			want: ItemDecision{Action: ActionBuild, Reason: "new", DeployChanged: true},
		},
		{
			name: "an unchanged component reuses its build", item: api("b1", "d1", local("x")), before: []history{built("succeeded", local("x"))},
			want: ItemDecision{Action: ActionReuse, Reason: "unchanged", BuildID: "bld_1", BuildState: "succeeded"},
		},
		{
			name: "a changed var deploys and does not build", item: api("b1", "d2", local("x")), before: []history{built("succeeded", local("x"))},
			want: ItemDecision{Action: ActionReuse, Reason: "unchanged", BuildID: "bld_1", BuildState: "succeeded", DeployChanged: true},
		},
		{
			name: "a changed source is built", item: api("b2", "d1", local("y")), before: []history{built("succeeded", local("x"))},
			want: ItemDecision{Action: ActionBuild, Reason: "source changed", DeployChanged: true},
		},
		{
			name: "a changed build key of the same source is built", item: api("b2", "d1", local("x")), before: []history{built("succeeded", local("x"))},
			want: ItemDecision{Action: ActionBuild, Reason: "build settings changed", DeployChanged: true},
		},
		{
			name:   "going back to an older source reuses the older build",
			item:   api("b0", "d1", local("w")),
			before: []history{built("succeeded", local("x"), build{ID: "bld_0", BuildDigest: "b0", State: "succeeded", Source: local("w")})},
			want:   ItemDecision{Action: ActionReuse, Reason: "unchanged", BuildID: "bld_0", BuildState: "succeeded", DeployChanged: true},
		},
		{
			name: "a build under way is joined", item: api("b1", "d2", local("x")), before: []history{built("running", local("x"))},
			want: ItemDecision{Action: ActionReuse, Reason: "is being built", BuildID: "bld_1", BuildState: "running", DeployChanged: true},
		},
		{
			name: "a failed build is tried again", item: api("b1", "d1", local("x")), before: []history{built("failed", local("x"))},
			want: ItemDecision{Action: ActionBuild, Reason: "the build before failed"},
		},
		{
			name: "a branch may have moved", item: api("b1", "d1", branch), before: []history{built("succeeded", branch)},
			want: ItemDecision{Action: ActionBuild, Reason: "the git ref may have moved"},
		},
		{
			name: "a config that exists already leaves the branch alone", item: api("b1", "d1", branch), before: []history{built("succeeded", branch)}, again: true,
			want: ItemDecision{Action: ActionReuse, Reason: "unchanged", BuildID: "bld_1", BuildState: "succeeded"},
		},
		{
			name: "a config that exists already tries a failed build again", item: api("b1", "d1", branch), before: []history{built("failed", branch)}, again: true,
			want: ItemDecision{Action: ActionBuild, Reason: "the build before failed"},
		},
		{
			name: "a commit cannot move", item: api("b1", "d1", commit), before: []history{built("succeeded", commit)},
			want: ItemDecision{Action: ActionReuse, Reason: "unchanged", BuildID: "bld_1", BuildState: "succeeded"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.want.item = tt.item
			got := decide([]item{tt.item}, tt.before, tt.again)
			if diff := cmp.Diff(Decision{Items: []ItemDecision{tt.want}}, got, cmp.AllowUnexported(ItemDecision{})); diff != "" {
				t.Errorf("decide (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecideRemoved(t *testing.T) {
	t.Parallel()
	before := []history{
		{Kind: model.KindComponent, Name: "web"},
		{Kind: model.KindComponent, Name: "api"},
		{Kind: model.KindComponent, Name: "old", Tombstoned: true},
		{Kind: model.KindSandbox, Name: SandboxName},
		{Kind: model.KindScripts, Name: "acme/ops"}, // nothing that an install has
	}
	got := decide([]item{{Kind: model.KindSandbox, Name: SandboxName}}, before, false)
	if diff := cmp.Diff([]string{"api", "web"}, got.Removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
}

func TestReleased(t *testing.T) {
	t.Parallel()
	reuse := func(state model.BuildState) ItemDecision { return ItemDecision{Action: ActionReuse, BuildState: state} }
	tests := []struct {
		name  string
		items []ItemDecision
		want  bool
	}{
		{name: "all builds are there", items: []ItemDecision{reuse("succeeded"), reuse("succeeded")}, want: true},
		{name: "one is under way", items: []ItemDecision{reuse("succeeded"), reuse("running")}},
		{name: "one is new", items: []ItemDecision{reuse("succeeded"), {Action: ActionBuild}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := (Decision{Items: tt.items}).released(); got != tt.want {
				t.Errorf("released = %v, want %v", got, tt.want)
			}
		})
	}
}
