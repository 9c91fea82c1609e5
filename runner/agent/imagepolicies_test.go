package agent_test

import (
	"crypto/ed25519"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/attest"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/guardrail"
	"github.com/berth-dev/berth/runner/agent/imagetrust"
)

// imageRules is a policy for images in Rego.
func imageRules(name, rules string) policy.Rules {
	return policy.Rules{Name: name, Language: policy.Rego, Type: policy.TypeContainerImage, Text: "package berth\n" + rules}
}

// leaveImage leaves the document of a planned image, as the real engine does.
func (e testEngine) leaveImage() error {
	if e.spec.Artifact == nil {
		return nil
	}
	body, err := json.Marshal(policy.Image{Image: "127.0.0.1:5001/web", Tag: e.spec.ImageTag(), Digest: e.spec.Artifact.Digest})
	if err != nil {
		return err
	}
	e.leave(filepath.Join("pinned", policy.PinnedCase), policy.Case{Rules: e.spec.Policies, Documents: []policy.Document{
		{Form: policy.FormImage, Of: string(e.spec.Kind), Component: "web", Name: "image 127.0.0.1:5001/web", Body: body},
	}})
	return nil
}

// A Build Runner holds an image against the vendor's policies before it pushes it: what they
// deny stays where it is.
func TestImagesAreJudgedBeforeTheyArePushed(t *testing.T) {
	t.Parallel()
	layout, err := oci.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	image, err := writeImage(t.Context(), layout)
	if err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, runnerapi.RunnerKindBuild)
	installPolicy(t, r)
	store := &shelf{found: map[string]string{}}
	server := httptest.NewServer(store)
	defer server.Close()
	r.plane.change(func() { r.plane.registry = server.Listener.Addr().String() })
	r.start()
	_, other, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signed := imageRules("signed", `deny contains "it is not signed" if not input.metadata.signed`)
	sbom := imageRules("sbom", `deny contains "nobody says what is in it" if not input.metadata.sbom.of`)
	for _, tc := range []struct {
		name  string
		key   string // image_key of the app
		rules policy.Rules
		want  policy.Answer
		says  string
	}{
		{"by its name and tag", "", imageRules("name", `deny contains sprintf("%s:%s", [input.image, input.tag]) if true`), policy.Deny, "registry.example.com/web:1.2"},
		{"a warning", "", imageRules("warn", `warn contains "it is old" if input.tag == "1.2"`), policy.Warn, "it is old"},
		{"one that it passes", "", imageRules("pass", `deny contains "no digest" if not input.digest`), policy.Allow, ""},
		{"unsigned", "", signed, policy.Deny, "it is not signed"},
		{"signed by another key", pemOf(t, other), signed, policy.Deny, "it is not signed"},
		{"signed", pemOf(t, upstreamKey), signed, policy.Allow, ""},
		{"an SBOM that another key signed", pemOf(t, other), sbom, policy.Deny, "nobody says what is in it"},
		{"an SBOM", pemOf(t, upstreamKey), sbom, policy.Allow, ""},
		{"a policy that does not load", "", imageRules("broken", `deny contains`), policy.Deny, "broken"},
	} {
		store.mu.Lock()
		store.found = map[string]string{}
		store.mu.Unlock()
		result := r.plane.result(t, r.plane.give(jobspec.Spec{
			Kind: jobspec.KindContainerImage, Operation: jobspec.OperationBuild, BuildID: id.New(id.Build), Policies: []policy.Rules{tc.rules},
			Source: &jobspec.Source{Kind: "image", Image: "registry.example.com/web", Ref: "1.2", ImageDigest: image.String(), Push: "org/shop/web", ImageKey: tc.key},
		}))
		said := result.Judgement
		if said == nil {
			t.Errorf("%s: no judgement: %+v", tc.name, result)
			continue
		}
		if got := policy.Decide(said.Vendor, policy.Deny); got != tc.want {
			t.Errorf("%s: the answer is %s, want %s: %+v", tc.name, got, tc.want, said.Vendor)
		}
		store.mu.Lock()
		pushed := len(store.found) > 0
		store.mu.Unlock()
		denied := tc.want == policy.Deny
		if pushed == denied || (result.Outcome == jobspec.OutcomeFailed) != denied || (result.Artifact == nil) != denied {
			t.Errorf("%s: pushed %v, %+v", tc.name, pushed, result)
		}
		if denied && (!strings.Contains(result.Error, tc.says) || result.Reason != jobspec.ReasonNeedsChange || result.Remedy == "") {
			t.Errorf("%s: it fails with %+v, want %q", tc.name, result, tc.says)
		}
	}
}

// shop serves an org's registry that has what is in a layout.
func shop(t *testing.T, layout *oci.Layout) (address string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := path.Base(r.URL.Path)
		if strings.Contains(r.URL.Path, "/referrers/") {
			index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{}}
			entries, err := layout.Artifacts()
			if err != nil {
				t.Error(err)
			}
			for _, e := range entries {
				var m ocispec.Manifest
				raw, err := os.ReadFile(filepath.Join(layout.Dir(), "blobs", "sha256", e.Digest.Encoded()))
				if err == nil && json.Unmarshal(raw, &m) == nil && m.Subject != nil && m.Subject.Digest.String() == name {
					index.Manifests = append(index.Manifests, e)
				}
			}
			w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
			_ = json.NewEncoder(w).Encode(index)
			return
		}
		raw, err := os.ReadFile(filepath.Join(layout.Dir(), "blobs", "sha256", strings.TrimPrefix(name, "sha256:")))
		if err != nil || r.Header.Get("Authorization") != "Bearer brg_token" || r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
		w.Header().Set("Docker-Content-Digest", name)
		_, _ = w.Write(raw)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// A private image that builder copied is judged by what hangs on it in the org's registry; no
// engine runs, and nothing is pushed.
func TestCopiedImagesAreJudged(t *testing.T) {
	t.Parallel()
	layout, err := oci.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	image, err := writeImage(t.Context(), layout)
	if err != nil {
		t.Fatal(err)
	}
	for _, predicate := range []string{attest.CosignSign, attest.SPDX} {
		if err := hangOn(t.Context(), layout, image, predicate, upstreamKey); err != nil {
			t.Fatal(err)
		}
	}
	r := newRunner(t, runnerapi.RunnerKindBuild)
	installPolicy(t, r)
	address := shop(t, layout)
	r.plane.change(func() { r.plane.registry = address })
	r.start()
	_, other, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	copied := &jobspec.BuiltArtifact{Repository: "org/shop/web", Digest: image.String(), SizeBytes: 42}
	for _, tc := range []struct {
		name   string
		key    string
		copied *jobspec.BuiltArtifact
		want   jobspec.Outcome
	}{
		{"signed", pemOf(t, upstreamKey), copied, jobspec.OutcomeSucceeded},
		{"signed by another key", pemOf(t, other), copied, jobspec.OutcomeFailed},
		{"not named", pemOf(t, upstreamKey), nil, jobspec.OutcomeRefused},
	} {
		result := r.plane.result(t, r.plane.give(jobspec.Spec{
			Kind: jobspec.KindContainerImage, Operation: jobspec.OperationBuild, BuildID: id.New(id.Build),
			Policies: []policy.Rules{imageRules("signed", "deny contains \"it is not signed\" if not input.metadata.signed\ndeny contains \"no sbom\" if not input.metadata.sbom.of")},
			Source:   &jobspec.Source{Kind: jobspec.SourceCopied, Image: "registry.example.com/web", Ref: "1.2", ImageDigest: image.String(), Push: "org/shop/web", ImageKey: tc.key, Copied: tc.copied},
		}))
		if result.Outcome != tc.want || (result.Artifact != nil) != (tc.want == jobspec.OutcomeSucceeded) {
			t.Errorf("%s: %+v, want %s", tc.name, result, tc.want)
		}
		if tc.copied != nil && (result.Judgement == nil || len(result.Judgement.Vendor) == 0) {
			t.Errorf("%s: no judgement", tc.name)
		}
		if a := result.Artifact; a != nil && (a.Digest != copied.Digest || a.SizeBytes != copied.SizeBytes) {
			t.Errorf("%s: artifact %+v", tc.name, a)
		}
	}
}

// A planned image is seen by each side in its own way: the vendor's policies by the name and
// with the keys of the order, the customer's guardrails by keys of trust.json alone. So a
// control plane that signs an image with a key of its own passes no guardrail.
func TestAttackImageSignedByTheControlPlane(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		trusted  bool // the key is the customer's too
		customer policy.Result
	}{
		{"by a key that only the order names", false, policy.Fail},
		{"by a key of trust.json", true, policy.Pass},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, runnerapi.RunnerKindInstall)
			installPolicy(t, r)
			layout, err := oci.Open(r.dir.Artifacts())
			if err != nil {
				t.Fatal(err)
			}
			image, err := writeImage(t.Context(), layout)
			if err != nil {
				t.Fatal(err)
			}
			for _, predicate := range []string{attest.CosignSign, attest.SPDX} {
				if err := hangOn(t.Context(), layout, image, predicate, upstreamKey); err != nil {
					t.Fatal(err)
				}
			}
			if tc.trusted {
				trust, err := r.dir.LoadTrust()
				if err != nil {
					t.Fatal(err)
				}
				trust.Images = []imagetrust.Rule{{Match: "ghcr.io/team/*", Key: pemOf(t, upstreamKey)}}
				if err := datadir.WriteJSON(r.dir.Trust(), trust); err != nil {
					t.Fatal(err)
				}
			}
			r.guardrails(guardrail.AnswersFile, "")
			r.guardrails("signed.rego", "package berth\nwarn contains \"unsigned\" if { input.image; not input.metadata.signed }\nwarn contains \"no statement\" if { input.image; not input.metadata.sbom }\n")
			withCluster(r)
			job := r.plane.give(jobspec.Spec{
				Kind: jobspec.KindContainerImage, Operation: jobspec.OperationPlan, ChangeID: id.New(id.Change),
				Resource: &jobspec.Resource{ID: id.New(id.Resource), Kind: "component", Name: "web"},
				Artifact: &jobspec.Artifact{Repository: "org/shop/web", Digest: image.String()},
				Work:     jobspec.Work{ContainerImage: &jobspec.ContainerImage{Image: "ghcr.io/team/web", Tag: "1.2"}},
				Policies: []policy.Rules{imageRules("team", `deny contains sprintf("%s, signed %v", [input.image, input.metadata.signed]) if { not input.metadata.signed }
deny contains "another name" if input.image != "ghcr.io/team/web"
deny contains "no sbom" if not input.metadata.sbom.of`)},
				ImageKeys: []string{pemOf(t, upstreamKey)},
			})
			result := r.plane.result(t, job)
			r.plane.mu.Lock()
			plan := r.plane.plans[job]
			r.plane.mu.Unlock()
			if result.Outcome != jobspec.OutcomeSucceeded || plan.Judgement == nil {
				t.Fatalf("%+v, judgement %+v", result, plan.Judgement)
			}
			if text := plan.Judgement.Denies(); text != "" || len(plan.Judgement.Vendor) == 0 {
				t.Errorf("the vendor's policy: %q of %+v", text, plan.Judgement.Vendor)
			}
			got, looked := policy.Pass, false
			for _, v := range plan.Judgement.Guardrails {
				if looked = looked || v.Policy == "signed"; v.Policy == "signed" && v.Result != policy.Pass {
					got = policy.Fail
				}
			}
			if !looked {
				t.Errorf("the customer's guardrail did not look: %+v", plan.Judgement.Guardrails)
			}
			if got != tc.customer {
				t.Errorf("the customer's guardrail: %+v, want %s", plan.Judgement.Guardrails, tc.customer)
			}
		})
	}
}
