package build

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	godigest "github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/attest"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/services/builder/internal/keyring"
	"github.com/berth-dev/berth/services/builder/internal/source"
	"github.com/berth-dev/berth/services/internal/model"
)

const imagePassword = "correct-horse-battery"

// refer adds a manifest that refers to another one, and lists it under the tag that
// stands in for the referrers API, which this registry lacks.
func (u *upstream) refer(t *testing.T, subject ocispec.Descriptor, content string) ocispec.Descriptor {
	t.Helper()
	desc := u.putJSON(t, ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: "application/vnd.example.signature",
		Config: u.put(ocispec.MediaTypeEmptyJSON, []byte(`{}`)), Subject: &subject,
		Layers: []ocispec.Descriptor{u.put("application/octet-stream", []byte(content))},
	})
	index, err := json.Marshal(ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{desc}})
	if err != nil {
		t.Fatal(err)
	}
	u.named[strings.Replace(subject.Digest.String(), ":", "-", 1)] = u.put(ocispec.MediaTypeImageIndex, index).Digest
	return desc
}

// private serves an upstream to who has the password.
type private struct {
	*upstream
	blobs  atomic.Int64 // that were sent
	broken atomic.Pointer[godigest.Digest]
}

func (p *private) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if user, password, _ := r.BasicAuth(); user != "berth" || password != imagePassword {
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if strings.Contains(r.URL.Path, "/blobs/") {
		p.blobs.Add(1)
		if broken := p.broken.Load(); broken != nil && strings.HasSuffix(r.URL.Path, broken.String()) {
			w.WriteHeader(http.StatusForbidden)
			return
		}
	}
	p.upstream.ServeHTTP(w, r)
}

// hasPassword gives builder the password of a private registry.
func (w *world) hasPassword(host string) {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "credentials.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"oci://%s/team": {"username": "berth", "password": %q, "orgs": [%q]}}`, host, imagePassword, w.org), 0o600); err != nil {
		w.t.Fatal(err)
	}
	ring, err := keyring.Read(file, keyring.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.worker.Resolver = source.NewResolver(source.Config{Keys: ring})
}

// Builder copies a private image itself, with its signatures: no job, no row and no
// log line has the password. Broken off and begun again it sends what is missing.
func TestPrivateImage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	up := &private{upstream: newUpstream(t)}
	server := httptest.NewServer(up)
	defer server.Close()
	host := server.Listener.Addr().String()
	signature := up.refer(t, ocispec.Descriptor{MediaType: dockerList, Digest: up.image, Size: up.parts[up.image].Size}, "a signature")
	ofSignature := up.refer(t, signature, "a timestamp of the signature")

	w.hasPassword(host)
	web := component{name: "web", buildDigest: repeated("1"), source: source.Source{Kind: source.KindImage, Repo: host + "/team/web", Ref: "1.2"}}

	last := godigest.FromString("a timestamp of the signature")
	up.broken.Store(&last)
	_, builds := w.addConfig(web)
	w.advance(builds["web"])
	broken := w.ended(builds["web"])
	if broken.State != "failed" || !strings.Contains(broken.Error, `does not open it`) {
		t.Fatalf("a registry that stops giving out blobs: %+v", broken)
	}
	up.broken.Store(nil)
	up.blobs.Store(0)
	again := w.rebuild(web)
	w.advance(again)
	got := w.ended(again)
	if got.State != "succeeded" || got.Digest != up.image.String() || got.Repository != w.org+"/hello/web" {
		t.Fatalf("build: %+v", got)
	}
	// Two platforms with a config and a layer each, and two referrers with a layer and
	// one config for both: 7. The last one was refused, and three more may have been
	// under way.
	if n := up.blobs.Load(); n < 1 || n > 4 {
		t.Errorf("%d blobs were sent again, want 1 to 4 of 7", n)
	}
	if n := w.count("SELECT count(*) FROM berth.runner_jobs"); n != 0 {
		t.Errorf("%d jobs, want none", n)
	}
	if provenance := w.text("SELECT provenance::text FROM berth.builds WHERE id = $1", again); !strings.Contains(provenance, `"copied_by": "builder"`) {
		t.Errorf("provenance: %s", provenance)
	}
	rows := w.text("SELECT string_agg(b::text, ' ') FROM berth.builds b")
	if strings.Contains(rows, imagePassword) {
		t.Error("the password is in a row")
	}

	layout, err := oci.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.remote(w.token(w.org, "pull"), got.Repository).Pull(t.Context(), up.image, layout, oci.TransferOptions{Referrers: true}); err != nil {
		t.Fatal(err)
	}
	for name, dgst := range map[string]godigest.Digest{"signature": signature.Digest, "timestamp": ofSignature.Digest} {
		if _, err := layout.Resolve(t.Context(), dgst.String()); err != nil {
			t.Errorf("the %s did not arrive: %v", name, err)
		}
	}
}

// imageSigner signs images as cosign does.
type imageSigner struct {
	key    *ecdsa.PrivateKey
	public string // PEM
}

func newImageSigner(t *testing.T) imageSigner {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return imageSigner{key: key, public: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))}
}

// sign puts a signature under the tag of an image. about is what it says it is of.
func (u *upstream) sign(t *testing.T, by imageSigner, about godigest.Digest) {
	t.Helper()
	payload := fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":""},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`, about)
	sum := sha256.Sum256(payload)
	sig, err := ecdsa.SignASN1(rand.Reader, by.key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	layer := u.put(attest.SimpleSigningType, payload)
	layer.Annotations = map[string]string{attest.AnnotationSignature: base64.StdEncoding.EncodeToString(sig)}
	desc := u.putJSON(t, ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: u.put(ocispec.MediaTypeImageConfig, []byte(`{}`)), Layers: []ocispec.Descriptor{layer},
	})
	u.named[strings.Replace(u.image.String(), ":", "-", 1)+".sig"] = desc.Digest
}

// A private image with image_key is copied when that key signed it, and nothing of it is
// when it did not; also when the image is in the registry already, under another key.
func TestPrivateImageIsSigned(t *testing.T) {
	t.Parallel()
	vendor, other := newImageSigner(t), newImageSigner(t)
	for _, tc := range []struct {
		name    string
		sign    func(t *testing.T, u *upstream)
		key     string
		problem string
	}{
		{name: "signed by the key", key: vendor.public, sign: func(t *testing.T, u *upstream) { u.sign(t, vendor, u.image) }},
		{name: "not signed", key: vendor.public, sign: func(*testing.T, *upstream) {}, problem: "no signature hangs on it"},
		{name: "signed by another key", key: vendor.public, sign: func(t *testing.T, u *upstream) { u.sign(t, other, u.image) }, problem: "is not signed by image_key"},
		{name: "with the signature of another image", key: vendor.public, sign: func(t *testing.T, u *upstream) {
			u.sign(t, vendor, godigest.FromString("another image"))
		}, problem: "it is of image"},
		{name: "with a key that is none", key: "not a key", sign: func(t *testing.T, u *upstream) { u.sign(t, vendor, u.image) }, problem: "image_key"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			up := &private{upstream: newUpstream(t)}
			server := httptest.NewServer(up)
			defer server.Close()
			host := server.Listener.Addr().String()
			tc.sign(t, up.upstream)
			w.hasPassword(host)
			src := source.Source{Kind: source.KindImage, Repo: host + "/team/web", Ref: "1.2"}
			_, builds := w.addConfig(component{name: "web", buildDigest: repeated("1"), source: src, imageKey: tc.key})
			w.advance(builds["web"])
			got := w.ended(builds["web"])
			if tc.problem != "" {
				if got.State != "failed" || !strings.Contains(got.Error, tc.problem) || got.Digest != "" {
					t.Fatalf("build: %+v, want it refused: %s", got, tc.problem)
				}
				if n := w.count("SELECT count(*) FROM berth.runner_jobs"); n != 0 {
					t.Errorf("%d jobs, want none", n)
				}
				layout, err := oci.Open(t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				if err := w.remote(w.token(w.org, "pull"), w.org+"/hello/web").Pull(t.Context(), up.image, layout, oci.TransferOptions{}); err == nil {
					t.Error("the refused image is in the registry")
				}
				return
			}
			if got.State != "succeeded" || got.Digest != up.image.String() {
				t.Fatalf("build: %+v", got)
			}
			_, builds = w.addConfig(component{name: "web", buildDigest: repeated("2"), source: src, imageKey: other.public})
			w.advance(builds["web"])
			if again := w.ended(builds["web"]); again.State != "failed" || !strings.Contains(again.Error, "is not signed by image_key") {
				t.Errorf("the same image under another key: %+v", again)
			}
		})
	}
}

// A private image is copied by builder and judged by the Build Runner, which gets its digest
// and no key; what it denies is in no release, and the build says why.
func TestPrivateImageIsJudged(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		answer policy.Answer
		want   string
	}{{policy.Warn, "succeeded"}, {policy.Deny, "failed"}} {
		t.Run(string(tc.answer), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			up := &private{upstream: newUpstream(t)}
			server := httptest.NewServer(up)
			defer server.Close()
			host := server.Listener.Addr().String()
			w.hasPassword(host)
			_, builds := w.addConfig(component{
				name: "web", buildDigest: repeated("1"), source: source.Source{Kind: source.KindImage, Repo: host + "/team/web", Ref: "1.2"},
				policies: `[{"name": "p", "engine": "opa", "text": "package berth"}]`,
			})
			web := builds["web"]
			w.advance(web)
			_, spec := w.jobOf(web)
			copied := spec.Source.Copied
			if spec.Source.Kind != jobspec.SourceCopied || copied == nil || copied.Digest != up.image.String() || copied.Repository != spec.Source.Push || len(spec.Policies) != 1 {
				t.Fatalf("the job: %+v", spec.Source)
			}
			there, err := w.worker.Registry.Has(t.Context(), w.org, copied.Repository, copied.Digest)
			if err != nil || !there {
				t.Fatalf("the image is in the registry before it is judged: %v, %v", there, err)
			}
			result := jobspec.Result{Judgement: said(tc.answer)}
			state := model.JobFailed
			if tc.answer != policy.Deny {
				result.Artifact, state = copied, model.JobSucceeded
			} else {
				result.Error = result.Judgement.Denies()
			}
			w.report(web, state, result)
			w.advance(web)
			got := w.ended(web)
			provenance := w.text("SELECT provenance::text FROM berth.builds WHERE id = $1", web)
			if got.State != tc.want || !strings.Contains(provenance, `"judgement"`) {
				t.Fatalf("build: %+v, provenance %s", got, provenance)
			}
			if tc.answer == policy.Deny {
				if !strings.Contains(got.Error, "denied by policy") || w.releases() != "" {
					t.Errorf("build: %+v, releases %q", got, w.releases())
				}
				return
			}
			if !strings.Contains(provenance, `"copied_by": "builder"`) || got.Digest != up.image.String() {
				t.Errorf("build: %+v, provenance %s", got, provenance)
			}
		})
	}
}
