package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// imageServer is a registry of somebody else with one image, which has the tag 1.0.
func imageServer(t *testing.T) (address string) {
	t.Helper()
	found := map[string]ocispec.Descriptor{}
	bodies := map[digest.Digest][]byte{}
	put := func(mediaType string, body []byte) ocispec.Descriptor {
		d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(body), Size: int64(len(body))}
		found[d.Digest.String()], bodies[d.Digest] = d, body
		return d
	}
	manifest, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: put(ocispec.MediaTypeImageConfig, []byte(`{"architecture":"amd64"}`)), Layers: []ocispec.Descriptor{put(ocispec.MediaTypeImageLayerGzip, []byte("a layer"))},
	})
	if err != nil {
		t.Fatal(err)
	}
	found["1.0"] = put(ocispec.MediaTypeImageManifest, manifest)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, known := found[path.Base(r.URL.Path)]
		if !known {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", d.MediaType)
		w.Header().Set("Docker-Content-Digest", d.Digest.String())
		_, _ = w.Write(bodies[d.Digest])
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// TestBuildPolicies builds an image of somebody else under policies: one that they deny fails
// and is in no registry, a warning is said with the build, and a changed policy is asked again
// about the same image.
func TestBuildPolicies(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := s.probe("acme")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(in.app, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("components/web.toml", "name = \"web\"\ntype = \"container_image\"\n[public]\nimage_url = \""+imageServer(t)+"/team/web\"\ntag = \"1.0\"\n")
	in.addPolicy("images", "container_image", "package nuon\n\ndeny contains \"nobody signed it\" if not input.metadata.signed\n")
	build := func() ctlapi.Build {
		t.Helper()
		var page ctlapi.BuildPage
		s.get("/builds?component=web", &page)
		for _, b := range page.Items {
			if b.Component.Name == "web" {
				return b
			}
		}
		t.Fatal("web was not built")
		return ctlapi.Build{}
	}

	_, out, code := s.run("sync", in.app, "--wait")
	denied := build()
	if code == 0 || denied.State != ctlapi.BuildStateFailed || denied.Error == nil || !strings.Contains(*denied.Error, "nobody signed it") {
		t.Fatalf("sync ends with %d, the build is %s: %v\n%s", code, denied.State, denied.Error, out)
	}
	if !strings.Contains(out, "nobody signed it") {
		t.Errorf("sync does not say why:\n%s", out)
	}
	if len(denied.Policies) != 1 || denied.Policies[0].Answer != ctlapi.PolicyAnswerDeny || len(denied.Policies[0].Findings) != 1 || denied.Artifact != nil {
		t.Errorf("the denied build: %+v", denied.Policies)
	}

	write("policies/images.rego", "package nuon\n\nwarn contains sprintf(\"%s is unsigned\", [input.tag]) if not input.metadata.signed\n")
	s.must("sync", in.app, "--wait")
	warned := build()
	if warned.ID == denied.ID || warned.State != ctlapi.BuildStateSucceeded || len(warned.Policies) != 1 || warned.Policies[0].Answer != ctlapi.PolicyAnswerWarn {
		t.Fatalf("the build that is warned of: %s, %+v", warned.State, warned.Policies)
	}
	if out := s.must("builds", "list", "-o", "wide"); !strings.Contains(out, "images warn: 1.0 is unsigned") {
		t.Errorf("the list of builds:\n%s", out)
	}
	s.must("sync", in.app, "--wait")
	if again := build(); again.ID != warned.ID {
		t.Errorf("the same image under the same policy was built again: %s", again.Reason)
	}

	write("policies/images.rego", "package nuon\n\ndeny contains \"1.0 is too old\" if input.tag == \"1.0\"\n")
	if _, out, code := s.run("sync", in.app, "--wait"); code == 0 || !strings.Contains(out, "1.0 is too old") {
		t.Errorf("a policy that came later denies nothing: %d\n%s", code, out)
	}
	if late := build(); late.State != ctlapi.BuildStateFailed {
		t.Errorf("the build is %s", late.State)
	}
}
