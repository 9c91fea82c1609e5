package bom_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/attest"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/build/bom"
	"github.com/berth-dev/berth/runner/engine/job"
)

// What is listed of each kind of artifact: what is in it, and what it names in words.
func TestLeave(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		kind    jobspec.Kind
		files   map[string]string
		modules []jobspec.Module
		want    []attest.Package
	}{
		{
			name: "a module with a lock file", kind: jobspec.KindTerraformModule,
			files: map[string]string{
				"main.tf":             "terraform {\n  required_providers {\n    aws = {\n      source = \"hashicorp/aws\"\n      version = \"~> 5.0\"\n    }\n    own = { source = \"registry.example.com/team/own\", version = \"1.0.0\" }\n  }\n}\nmodule \"sub\" {\n  source = \"./sub\"\n}\n",
				"sub/main.tf":         "terraform {\n  required_providers {\n    random = { source = \"hashicorp/random\", version = \">= 3\" }\n  }\n}\n",
				".terraform.lock.hcl": "# x\nprovider \"registry.terraform.io/hashicorp/aws\" {\n  version     = \"5.31.0\"\n  constraints = \"~> 5.0\"\n  hashes = [\n    \"h1:x\",\n  ]\n}\n",
			},
			modules: []jobspec.Module{{Source: "git::https://git.example.com/vpc.git", From: "https://git.example.com/vpc.git", Commit: "abc"}},
			want: []attest.Package{
				{Name: "registry.example.com/team/own", Version: "1.0.0", Purpose: "APPLICATION", Named: true},
				{Name: "registry.terraform.io/hashicorp/aws", Version: "5.31.0", PURL: "pkg:terraform/registry.terraform.io/hashicorp/aws@5.31.0", Purpose: "APPLICATION", Named: true},
				{Name: "registry.terraform.io/hashicorp/random", Version: ">= 3", Purpose: "APPLICATION", Named: true},
				{Name: "git::https://git.example.com/vpc.git", Version: "abc", From: "git+https://git.example.com/vpc.git@abc", Purpose: "LIBRARY"},
			},
		},
		{
			name: "a chart", kind: jobspec.KindHelmChart,
			files: map[string]string{
				"Chart.yaml":              "apiVersion: v2\nname: shop\nversion: 1.2.3\nappVersion: \"9\"\ndependencies:\n  - name: db\n    version: 0.1.0\n    repository: https://charts.example.com\n",
				"values.yaml":             "image:\n  repository: registry.example.com/shop\nsidecar:\n  proxyImage: envoy:v1\nnotes: no image\n",
				"templates/one.yaml":      "spec:\n  containers:\n    - image: busybox@sha256:aa\n    - image: {{ .Values.image.repository }}\n    - image: \"{{ .Values.x }}\"\n",
				"charts/db/Chart.yaml":    "apiVersion: v2\nname: db\nversion: 0.1.0\n",
				"charts/db/values.yaml":   "image: {registry: quay.io, repository: team/db, tag: 15}\n",
				"charts/db/templates/.gi": "",
			},
			want: []attest.Package{
				{Name: "busybox", Version: "sha256:aa", PURL: "pkg:oci/busybox@sha256%3Aaa?repository_url=busybox", From: "oci://busybox", Purpose: "CONTAINER", Named: true},
				{Name: "envoy", Version: "v1", From: "oci://envoy", Purpose: "CONTAINER", Named: true},
				{Name: "quay.io/team/db", Version: "15", From: "oci://quay.io/team/db", Purpose: "CONTAINER", Named: true},
				{Name: "registry.example.com/shop", Version: "9", From: "oci://registry.example.com/shop", Purpose: "CONTAINER", Named: true},
				{Name: "db", Version: "0.1.0", PURL: "pkg:helm/db@0.1.0", From: "https://charts.example.com", Purpose: "LIBRARY"},
			},
		},
		{
			name: "a manifest", kind: jobspec.KindKubernetesManifest,
			files: map[string]string{"manifest.yaml": "kind: Pod\nspec:\n  containers:\n  - name: a\n    image: 'nginx:1.27' # comment\n  - image: nginx:1.27\n  - image: {{ .nuon.x }}\n"},
			want:  []attest.Package{{Name: "nginx", Version: "1.27", From: "oci://nginx", Purpose: "CONTAINER", Named: true}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range tc.files {
				path := filepath.Join(dir, "out", "artifact", filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			j := &job.Job{Dir: dir}
			j.Spec.Kind, j.Spec.Source = tc.kind, &jobspec.Source{}
			if err := bom.Leave(j, tc.modules); err != nil {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(filepath.Join(dir, "out", bom.File))
			if err != nil {
				t.Fatal(err)
			}
			var got attest.Contents
			if err := json.Unmarshal(raw, &got); err != nil || got.Comment == "" {
				t.Fatalf("%v: %s", err, raw)
			}
			if diff := cmp.Diff(tc.want, got.Packages); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}
