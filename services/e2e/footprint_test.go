package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// openShop is an app with one manifest that exposes itself, from an image of its own, and
// speaks to somebody.
var openShop = map[string]string{
	"metadata.toml": "version = \"v2\"\n", "runner.toml": "runner_type = \"aws\"\n",
	"stack.toml":   "type = \"aws-cloudformation\"\nname = \"x\"\ndescription = \"x\"\n",
	"sandbox.toml": "terraform_version = \"1.11.3\"\n[public_repo]\nrepo = \"https://git.example.invalid/acme/eks.git\"\ndirectory = \".\"\nbranch = \"main\"\n",
	"components/web.toml": `name = "web"
type = "kubernetes_manifest"
namespace = "shop"
manifest = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, ports: [{port: 443}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {rules: [{host: shop.example.com}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec: {containers: [{name: web, image: "ghcr.io/acme/web:7", env: [{name: API, value: "https://ada:canary-one-two@api.example.com/v1"}]}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: web}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]
"""
`,
}

// TestFootprint: what a change newly exposes, gives, runs and speaks to stands next to its
// plan, for the vendor and on the customer's side, and the effect covers it.
func TestFootprint(t *testing.T) {
	t.Parallel()
	s := start(t)
	dir := t.TempDir()
	for file, text := range openShop {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.must("rehearse", dir, "--app", "open", "--name", "trial")
	var at ctlapi.Install
	s.get("/installs/trial", &at)
	runners, err := os.ReadDir(filepath.Join(s.dir, "runners"))
	if err != nil || len(runners) != 1 {
		t.Fatalf("runners: %v, %v", runners, err)
	}
	in := &install{system: s, name: "trial", id: at.ID, runner: runners[0].Name()}

	var page ctlapi.ChangePage
	s.get("/changes?install=trial", &page)
	var change ctlapi.Change
	for _, c := range page.Items {
		if c.Resource != nil && c.Resource.Name == "web" {
			s.get("/changes/"+c.ID, &change)
		}
	}
	if change.Plan == nil || change.Plan.Footprint == nil {
		t.Fatalf("no footprint: %+v", change)
	}
	want := []string{
		"newly gives:", "  get on secrets in the whole cluster (ClusterRole web)",
		"newly exposes:", "  an ingress, shop.example.com (Ingress shop/web)", "  a load balancer, 443/TCP (Service shop/web)",
		"new images:", "  ghcr.io/acme/web:7 (Deployment shop/web; from a repository that is new here)",
		"newly speaks to, as far as can be known:", "  api.example.com (Deployment shop/web, API)",
	}
	sides := map[string]string{"berth changes show": s.must("changes", "show", change.ID)}
	out, err := in.customer("show", change.ID)
	if err != nil {
		t.Fatalf("berth-runner show: %v\n%s", err, out)
	}
	sides["berth-runner show"] = out
	for side, said := range sides {
		for _, line := range want {
			if !strings.Contains(said, line+"\n") {
				t.Errorf("%s does not say %q:\n%s", side, line, said)
			}
		}
	}
	var record struct {
		Effect struct {
			FootprintDigest string `json:"footprint_digest"`
		} `json:"effect"`
	}
	out, err = in.customer("show", change.ID, "--output", "json")
	if err != nil || json.Unmarshal([]byte(out), &record) != nil {
		t.Fatalf("berth-runner show: %v\n%s", err, out)
	}
	if digest, err := change.Plan.Footprint.Digest(); err != nil || record.Effect.FootprintDigest != digest {
		t.Errorf("the effect covers %q, and the vendor is shown %q, %v", record.Effect.FootprintDigest, digest, err)
	}
	footprint, err := json.Marshal(change.Plan.Footprint)
	if err != nil || strings.Contains(string(footprint), "canary") {
		t.Errorf("a password is in %s, %v", footprint, err)
	}
}
