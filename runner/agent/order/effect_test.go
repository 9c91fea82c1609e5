package order_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/order"
)

var codeSpan = regexp.MustCompile("`([^`]+)`")

// TestEffectIsAsThePageSays: what docs/reference/orders.md calls empty is empty,
// and nothing else is, for each kind of change.
func TestEffectIsAsThePageSays(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/reference/orders.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## Effect digest\n")
	table, _, _ = strings.Cut(table, "\n## ")
	resource := jobspec.Spec{
		OrgID: "org_1", InstallID: "ins_1",
		Resource: &jobspec.Resource{ID: "res_1", Kind: "component", Name: "api"}, Artifact: &jobspec.Artifact{Digest: "sha256:a"},
	}
	place := order.Place{Target: "machine:1", EngineDigest: "sha256:e", TerraformDigest: "sha256:t"}
	stateful := place
	stateful.Lineage, stateful.Serial = "l", 3
	kinds := map[string]struct {
		spec  jobspec.Spec
		place order.Place
		tool  capsule.Tool
	}{
		"Terraform":         {resource, stateful, capsule.Tool{Name: "terraform", Version: "1.9.0"}},
		"Helm":              {resource, place, capsule.Tool{Name: "helm", Version: "3", Digest: "h1:x"}},
		"manifests, images": {resource, place, capsule.Tool{}},
		"script": {jobspec.Spec{
			OrgID: "org_1", InstallID: "ins_1", Kind: jobspec.KindAction, Action: &jobspec.Action{Name: "seed"},
		}, place, capsule.Tool{}},
	}
	var columns []string
	seen := 0
	for row := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(strings.Trim(row, "|"), "|")
		switch {
		case !strings.HasPrefix(row, "| "):
			continue
		case columns == nil:
			columns = cells
			continue
		}
		names := codeSpan.FindAllStringSubmatch(cells[0], -1)
		for i := 2; i < len(columns); i++ { // after the field and what it is
			kind, known := kinds[strings.TrimSpace(columns[i])]
			if !known {
				t.Fatalf("no change of kind %q is tested here", columns[i])
			}
			effect, err := order.Planned(order.Base(kind.spec, kind.place, kind.tool), []byte("salt"), []byte("{}"), nil)
			if err != nil {
				t.Fatal(err)
			}
			effect.GuardrailsDigest = "sha256:g" // of the guardrails, which the agent holds against each plan
			if kind.spec.Action == nil {
				effect.FootprintDigest = "sha256:f" // of the footprint, which the agent computes for what is no script
			}
			fields := flat(t, effect)
			parent := ""
			for _, name := range names {
				name := name[1]
				if strings.HasPrefix(name, ".") {
					name = parent + name
				} else {
					parent, _, _ = strings.Cut(name, ".")
				}
				value, known := fields[name]
				if name == "footprint_digest" && !known { // the only one that is left out
					value, known = "", true
				}
				if empty := value == "" || value == 0.0; !known || empty != (strings.TrimSpace(cells[i]) == "empty") {
					t.Errorf("%s of a change by %s is %q; the page says %q", name, columns[i], value, cells[i])
				}
				seen++
			}
		}
	}
	if seen == 0 {
		t.Error("the page has no table of effects")
	}
	effect := order.Base(resource, place, capsule.Tool{})
	if effect.Verdict != capsule.Unevaluated || effect.GuardrailsDigest != "" {
		t.Errorf("verdict %q under guardrails %q, though nothing is evaluated", effect.Verdict, effect.GuardrailsDigest)
	}
}

// flat are the fields of an effect by the names that the page has for them.
func flat(t *testing.T, effect capsule.Effect) map[string]any {
	t.Helper()
	raw, err := json.Marshal(effect)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	tool, _ := fields["tool"].(map[string]any)
	for name, value := range tool {
		fields["tool."+name] = value
	}
	return fields
}
