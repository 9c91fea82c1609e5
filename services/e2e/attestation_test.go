package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/attest"
	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/oci"
)

// TestAttestations builds an app and looks at what hangs on its artifacts: for the vendor by
// the command line, and for the customer in the install's own registry, where the signature
// of the machine that built verifies without any server.
func TestAttestations(t *testing.T) {
	t.Parallel()
	s := start(t)
	app := folder(t, filepath.Join("..", "..", "examples", "hello"))
	s.must("sync", app, "--wait")
	s.must("installs", "create", "acme", "--app", "hello", "--customer", "acme", "--stack", "local", "--watch", "--auto-approve")
	var stack ctlapi.Stack
	s.get("/installs/acme/stack", &stack)
	layout, err := oci.Open(filepath.Join(s.dir, "runners", stack.Runner.ID, "artifacts"))
	if err != nil {
		t.Fatal(err)
	}

	var page ctlapi.BuildPage
	s.get("/builds", &page)
	artifacts, has := map[string]bool{}, map[string]bool{} // of the customer
	for _, build := range page.Items {
		if build.State != ctlapi.BuildStateSucceeded {
			continue
		}
		if len(build.Attestations) == 0 || build.AttestedBy == "" {
			t.Errorf("nothing hangs on %s of %s", build.Artifact.Digest, build.Component.Name)
			continue
		}
		var provenance attest.Provenance
		if err := json.Unmarshal([]byte(s.must("builds", "provenance", build.ID)), &provenance); err != nil {
			t.Fatal(err)
		}
		made := build.ID
		if build.ReusedFrom != nil {
			made = *build.ReusedFrom
		}
		if d := provenance.BuildDefinition; provenance.RunDetails.Metadata.InvocationID != made || len(d.ResolvedDependencies) == 0 || len(d.ResolvedDependencies[0].Digest) == 0 {
			t.Errorf("provenance of %s: %+v", build.Component.Name, provenance)
		}
		var sbom struct {
			Version  string `json:"spdxVersion"`
			Packages []struct {
				Name string `json:"name"`
			} `json:"packages"`
		}
		if err := json.Unmarshal([]byte(s.must("builds", "sbom", build.ID)), &sbom); err != nil || sbom.Version != "SPDX-2.3" || len(sbom.Packages) == 0 {
			t.Errorf("sbom of %s: %+v, %v", build.Component.Name, sbom, err)
		}
		if out := s.must("builds", "list", "-o", "wide"); !strings.Contains(out, "provenance, sbom") {
			t.Errorf("the list says\n%s", out)
		}

		key, err := capsule.ParsePublicKey(build.AttestedBy)
		if err != nil {
			t.Fatal(err)
		}
		if !layout.Has(digest.Digest(build.Artifact.Digest)) {
			continue // switched off in this install
		}
		artifacts[build.Artifact.Digest] = true
		for _, a := range build.Attestations {
			m, err := oci.Inspect(t.Context(), layout, digest.Digest(a.Digest))
			if err != nil || len(m.Layers) != 1 {
				continue // of another component with the same artifact
			}
			raw, err := os.ReadFile(filepath.Join(layout.Dir(), "blobs", "sha256", m.Layers[0].Digest.Encoded()))
			if err != nil {
				t.Fatal(err)
			}
			said, _, err := attest.Open(raw, key)
			if err != nil || !said.Names(digest.Digest(build.Artifact.Digest)) {
				t.Errorf("%s of %s: %v", a.PredicateType, build.Component.Name, err)
			}
			has[build.Artifact.Digest+" "+a.PredicateType] = true
		}
	}
	for artifact := range artifacts {
		for _, kind := range []string{attest.SLSA, attest.SPDX} {
			if !has[artifact+" "+kind] {
				t.Errorf("the customer has no %s of %s", kind, artifact)
			}
		}
	}
	if len(artifacts) < 3 { // two components and the sandbox
		t.Errorf("the customer has %d artifacts", len(artifacts))
	}
}
