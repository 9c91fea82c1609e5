package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
)

// A plan of Terraform pins one document: what Terraform says of it, and the vendor's rules
// as they are once rendered. What belongs to Kyverno stays.
func TestPlanOfTerraformLeavesWhatItIsJudgedBy(t *testing.T) {
	t.Parallel()
	i := newInstall(t, greeting)
	plan := i.plan(t, map[string]any{"text": "ahoy", "secret": "canary-one-two"})
	plan.spec.Policies = []policy.Rules{{Name: "names", Language: policy.Kyverno, Text: "of {{ .nuon.name }}: {{ request.object.metadata.name }}", Type: policy.TypeTerraformModule}}
	plan.must(t)
	var c policy.Case
	plan.readJSON(t, "out/pinned/"+policy.PinnedCase, &c)
	if len(c.Rules) != 1 || c.Rules[0].Text != "of acme: {{ request.object.metadata.name }}" || c.Rules[0].Name != "names" {
		t.Errorf("rules: %+v", c.Rules)
	}
	if len(c.Documents) != 1 {
		t.Fatalf("documents: %+v", c.Documents)
	}
	d := c.Documents[0]
	var body, canonical struct {
		Format  string          `json:"format_version"`
		Changes json.RawMessage `json:"resource_changes"`
	}
	if err := json.Unmarshal(d.Body, &body); err != nil {
		t.Fatal(err)
	}
	var whole struct{ Plan json.RawMessage }
	plan.readJSON(t, "out/plan.canonical.json", &whole)
	if err := json.Unmarshal(whole.Plan, &canonical); err != nil {
		t.Fatal(err)
	}
	if d.Form != policy.FormPlan || d.Of != string(jobspec.KindTerraformModule) || d.Sandbox != (plan.spec.Resource.Kind == "sandbox") || body.Format == "" {
		t.Errorf("document %s %s %q, format %q", d.Form, d.Of, d.Component, body.Format)
	}
	var a, b any
	if json.Unmarshal(body.Changes, &a) != nil || json.Unmarshal(canonical.Changes, &b) != nil || a == nil {
		t.Fatal("the changes are no JSON")
	}
	if diff := cmp.Diff(b, a); diff != "" {
		t.Errorf("changes (-canonical +document):\n%s", diff)
	}
}

// An image is what rules see of it: its name in the install's registry, tag and digest.
func TestPlanOfAnImageLeavesWhatItIsJudgedBy(t *testing.T) {
	t.Parallel()
	j := imagePlan(t)
	j.must(t)
	var c policy.Case
	j.readJSON(t, "out/pinned/"+policy.PinnedCase, &c)
	var got policy.Image
	if len(c.Documents) != 1 || json.Unmarshal(c.Documents[0].Body, &got) != nil {
		t.Fatalf("documents: %+v", c.Documents)
	}
	if diff := cmp.Diff(policy.Image{Image: "127.0.0.1:5001/web", Tag: "1.2", Digest: j.spec.Artifact.Digest}, got); diff != "" {
		t.Errorf("image (-want +got):\n%s", diff)
	}
}
