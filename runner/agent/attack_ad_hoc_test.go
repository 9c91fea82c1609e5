package agent_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/scripts"
)

// newAdHoc plans a script that is part of no release, which appends to the file
// "effects"; "evil" is what an attacker would have it touch.
func newAdHoc(t *testing.T) *change {
	t.Helper()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	effects := r.file("effects")
	return newChangeOn(t, r, here, func(s *jobspec.Spec) {
		s.Kind, s.Work, s.Artifact = jobspec.KindAction, jobspec.Work{}, nil
		s.Action = &jobspec.Action{Name: "script/fix", AdHoc: true, Steps: []jobspec.ActionStep{{
			Name: "script", InlineContents: "append " + effects, EnvVars: map[string]string{"SECRET": "{{ .nuon.inputs.inputs.secret }}"},
		}}}
	})
}

func TestAdHocScript(t *testing.T) {
	t.Parallel()
	c := newAdHoc(t)
	before := c.accepted()
	if e := c.plan.Effect; e.ChangeKind != "ad_hoc" || e.Component != "script/fix" || e.ResourceID != c.resource.ID || !strings.HasPrefix(e.InputsDigest, "hmac-sha256:") {
		t.Errorf("effect = %+v", e)
	}
	if strings.Contains(c.plan.Summary.Text, "correct-horse") {
		t.Errorf("the plan shows a sealed value: %q", c.plan.Summary.Text)
	}
	if exists(c.file("effects")) {
		t.Fatal("the plan ran the script")
	}
	job := c.order(asItIs)
	if result := c.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("result = %+v", result)
	}
	if c.count() != 1 {
		t.Errorf("it ran %d times, want once", c.count())
	}
	records := c.records(2)
	if records[0].Kind != chain.Intent || records[0].What != "apply ad-hoc script/fix" || records[1].Kind != chain.Outcome || records[1].Result != "succeeded" {
		t.Errorf("chain = %+v", records)
	}
	if diff := cmp.Diff(before, c.accepted()); diff != "" {
		t.Errorf("the runner accepted scripts for good (-before +after):\n%s", diff)
	}
}

// accepted are the names of the scripts that the runner accepted for good.
func (r *runner) accepted() (names []string) {
	r.t.Helper()
	set, err := scripts.Open(r.dir.Scripts())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, a := range set.List() {
		names = append(names, a.Script.Action.Name)
	}
	return names
}

// Somebody who holds the dispatch key, and so signs what he likes, gets nothing run but
// what was planned and approved, once.
func TestAttackAdHocScript(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		edit    func(*given)
		want    []string // the fields that differ; nil: the runner says so in words
		outcome jobspec.Outcome
	}{
		{name: "approved for another effect", edit: func(g *given) { g.Order.EffectDigest = capsule.DigestBytes(nil) }, want: []string{"effect_digest"}},
		{name: "of another install", edit: func(g *given) { g.Order.InstallID = id.New(id.Install) }, want: []string{"install_id", "install_id"}},
		{name: "under another origin", edit: func(g *given) { g.Order.OriginID = id.New(id.Change) }, want: []string{"origin_id"}},
		{name: "another pinned plan", edit: func(g *given) { g.Order.PlanBytesDigest = capsule.DigestBytes([]byte("evil")) }, want: []string{"plan_bytes_digest"}},
		{name: "passed off as an action of the release", edit: func(g *given) {
			g.Spec.Action.AdHoc, g.Spec.Resource = false, nil
			g.Order.ResourceID = ""
		}, want: []string{"change_kind", "resource_id"}},
		{name: "holding another resource", edit: func(g *given) {
			g.Spec.Resource = &jobspec.Resource{ID: id.New(id.Resource), Kind: "component", Name: "db"}
			g.Order.ResourceID = g.Spec.Resource.ID
		}, want: []string{"resource_id"}},
		{name: "under another name", edit: func(g *given) { g.Spec.Action.Name = "script/other" }, want: []string{"component"}},
		{name: "expired", edit: func(g *given) { g.Order.ExpiresAt = time.Now().Add(-time.Second) }, want: []string{"expires_at"}, outcome: jobspec.OutcomeStale},
		{name: "without a plan", edit: func(g *given) {
			g.Spec.Operation, g.Spec.ChangeID, g.Spec.Pinned, g.Spec.Action.ReadOnly, g.Fence = jobspec.OperationRun, "", "", true, nil
			g.Order.Operation, g.Order.ChangeID, g.Order.OriginID, g.Order.Starts = "run", "", "", capsule.StartsOfReading
			g.Order.EffectDigest, g.Order.PlanBytesDigest, g.Order.Fence, g.Order.Nonce = "", "", 0, ""
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := newAdHoc(t)
			if tc.outcome == "" {
				tc.outcome = jobspec.OutcomeRefused
			}
			result := c.plane.result(t, c.order(tc.edit))
			if result.Outcome != tc.outcome {
				t.Errorf("result = %+v, want %s", result, tc.outcome)
			}
			if diff := cmp.Diff(tc.want, differing(result)); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
			if exists(c.file("effects")) {
				t.Error("the script ran")
			}
		})
	}
}

// Whatever text and environment the order to apply has, what runs is what was planned;
// and an order that was used is good for nothing more.
func TestAttackAdHocScriptWithAnotherText(t *testing.T) {
	t.Parallel()
	c := newAdHoc(t)
	var used given
	job := c.order(func(g *given) {
		g.Spec.Action.Steps[0].InlineContents = "touch " + c.file("evil")
		g.Spec.Action.Steps[0].EnvVars = map[string]string{"SECRET": "mine"}
		used = *g
	})
	if result := c.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("result = %+v", result)
	}
	if _, err := os.Stat(c.file("evil")); err == nil {
		t.Error("the text of the order ran, and not what was approved")
	}
	again := c.plane.result(t, c.order(func(g *given) { g.Order.Nonce = used.Order.Nonce }))
	if again.Outcome != jobspec.OutcomeRefused {
		t.Errorf("replayed: %+v, want it refused", again)
	}
	if c.count() != 1 {
		t.Errorf("it ran %d times, want once", c.count())
	}
}
