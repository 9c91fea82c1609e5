package registry_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/services/builder/internal/registry"
)

// distributionClient walks the OCI distribution specification 1.1 as its four
// workflows: pull, push, content discovery, content management. Each test names the
// end point (end-1 … end-13) that it is about. What of them this registry does not
// promise stands in docs/reference/artifacts.md#conformance, and is asked here too.
type distributionClient struct {
	t           *testing.T
	host, token string
}

type distributionAnswer struct {
	status int
	header http.Header
	body   []byte
}

// do sends one request; path begins behind the repository, or is what a Location
// said.
func (c distributionClient) do(method, path string, body []byte, header ...string) distributionAnswer {
	c.t.Helper()
	if !strings.HasPrefix(path, "/v2/") {
		path = "/v2/org_a/conformance" + path
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, "http://"+c.host+path, bytes.NewReader(body))
	must(c.t, err)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := http.DefaultClient.Do(req)
	must(c.t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	must(c.t, err)
	return distributionAnswer{res.StatusCode, res.Header, raw}
}

// want fails unless the status is one of these.
func (c distributionClient) want(what string, got distributionAnswer, status ...int) distributionAnswer {
	c.t.Helper()
	if !slices.Contains(status, got.status) {
		c.t.Fatalf("%s: status %d %s, want %v", what, got.status, got.body, status)
	}
	if got.status >= 400 && len(got.body) > 0 {
		var problem struct {
			Errors []struct {
				Code string `json:"code"`
			} `json:"errors"`
		}
		if json.Unmarshal(got.body, &problem) != nil || len(problem.Errors) == 0 || problem.Errors[0].Code == "" || problem.Errors[0].Code != strings.ToUpper(problem.Errors[0].Code) {
			c.t.Errorf("%s: the error is not of the specification's form: %s", what, got.body)
		}
	}
	return got
}

// location is the address that ends an upload, with its digest.
func (c distributionClient) location(got distributionAnswer, dgst digest.Digest) string {
	c.t.Helper()
	u, err := url.Parse(got.header.Get("Location"))
	if err != nil || u.Path == "" {
		c.t.Fatalf("Location %q: %v", got.header.Get("Location"), err)
	}
	if dgst != "" {
		query := u.Query()
		query.Set("digest", dgst.String())
		u.RawQuery = query.Encode()
	}
	return u.RequestURI()
}

func (c distributionClient) pushBlob(raw []byte) digest.Digest {
	c.t.Helper()
	dgst := digest.FromBytes(raw)
	begun := c.want("begin an upload (end-4a)", c.do(http.MethodPost, "/blobs/uploads/", nil), http.StatusAccepted)
	c.want("finish an upload (end-6)", c.do(http.MethodPut, c.location(begun, dgst), raw, "Content-Type", "application/octet-stream"), http.StatusCreated)
	return dgst
}

func (c distributionClient) manifest(artifactType string, subject *ocispec.Descriptor, layer []byte) ([]byte, digest.Digest) {
	c.t.Helper()
	raw, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: artifactType, Subject: subject,
		Config: ocispec.Descriptor{MediaType: ocispec.MediaTypeEmptyJSON, Digest: c.pushBlob([]byte("{}")), Size: 2},
		Layers: []ocispec.Descriptor{{MediaType: "application/octet-stream", Digest: c.pushBlob(layer), Size: int64(len(layer))}},
	})
	must(c.t, err)
	return raw, digest.FromBytes(raw)
}

func (c distributionClient) pushManifest(reference string, raw []byte) distributionAnswer {
	c.t.Helper()
	return c.want("push a manifest (end-7)", c.do(http.MethodPut, "/manifests/"+reference, raw, "Content-Type", ocispec.MediaTypeImageManifest), http.StatusCreated)
}

// conforming is a registry of its own, and a client that may do everything in it.
func conforming(t *testing.T) distributionClient {
	t.Helper()
	f := start(t, nil)
	return distributionClient{t: t, host: f.host, token: f.issue(registry.Grant{OrgID: "org_a", Actions: []registry.Action{registry.ActionPull, registry.ActionPush, registry.ActionDelete}})}
}

func TestConformancePull(t *testing.T) {
	t.Parallel()
	c := conforming(t)
	blob := bytes.Repeat([]byte("0123456789"), 1000)
	raw, dgst := c.manifest("application/vnd.example", nil, blob)
	c.pushManifest("1.0", raw)

	if got := c.want("the version check (end-1)", c.do(http.MethodGet, "/v2/", nil), http.StatusOK); got.header.Get("Docker-Distribution-Api-Version") == "" {
		t.Log("note: no Docker-Distribution-Api-Version, which clients may no longer want")
	}
	c.want("another repository", c.do(http.MethodHead, "/v2/org_a/nothing/manifests/1.0", nil), http.StatusNotFound)
	for _, reference := range []string{"1.0", dgst.String()} {
		head := c.want("head of a manifest (end-3)", c.do(http.MethodHead, "/manifests/"+reference, nil, "Accept", ocispec.MediaTypeImageManifest), http.StatusOK)
		if head.header.Get("Content-Length") != fmt.Sprint(len(raw)) || head.header.Get("Docker-Content-Digest") != dgst.String() {
			t.Errorf("head: %v", head.header)
		}
		got := c.want("a manifest (end-3)", c.do(http.MethodGet, "/manifests/"+reference, nil, "Accept", ocispec.MediaTypeImageManifest), http.StatusOK)
		if !bytes.Equal(got.body, raw) || got.header.Get("Content-Type") != ocispec.MediaTypeImageManifest {
			t.Errorf("manifest %s: %q", reference, got.body)
		}
	}
	c.want("no such tag", c.do(http.MethodGet, "/manifests/2.0", nil), http.StatusNotFound)
	c.want("no such digest", c.do(http.MethodGet, "/manifests/"+digest.FromString("x").String(), nil), http.StatusNotFound)

	path := "/blobs/" + digest.FromBytes(blob).String()
	if head := c.want("head of a blob (end-2)", c.do(http.MethodHead, path, nil), http.StatusOK); head.header.Get("Content-Length") != "10000" {
		t.Errorf("head of a blob: %v", head.header)
	}
	if got := c.want("a blob (end-2)", c.do(http.MethodGet, path, nil), http.StatusOK); !bytes.Equal(got.body, blob) {
		t.Errorf("blob of %d bytes", len(got.body))
	}
	if got := c.want("a part of a blob", c.do(http.MethodGet, path, nil, "Range", "bytes=5-14"), http.StatusPartialContent); string(got.body) != "5678901234" {
		t.Errorf("part of a blob: %q", got.body)
	}
	c.want("no such blob", c.do(http.MethodGet, "/blobs/"+digest.FromString("x").String(), nil), http.StatusNotFound)
}

func TestConformancePush(t *testing.T) {
	t.Parallel()
	c := conforming(t)
	blob := bytes.Repeat([]byte("abcdefghij"), 100)
	dgst := digest.FromBytes(blob)

	// In one request. A registry that cannot do that begins an upload.
	got := c.want("in one POST (end-4b)", c.do(http.MethodPost, "/blobs/uploads/?digest="+url.QueryEscape(dgst.String()), blob, "Content-Type", "application/octet-stream"), http.StatusCreated, http.StatusAccepted)
	if got.status == http.StatusAccepted {
		c.want("go on with a PUT (end-6)", c.do(http.MethodPut, c.location(got, dgst), blob, "Content-Type", "application/octet-stream"), http.StatusCreated)
	}
	c.want("it is there", c.do(http.MethodHead, "/blobs/"+dgst.String(), nil), http.StatusOK)

	// In chunks; one out of order is refused, and the upload goes on.
	chunked := bytes.Repeat([]byte("klmnopqrst"), 100)
	begun := c.want("begin (end-4a)", c.do(http.MethodPost, "/blobs/uploads/", nil), http.StatusAccepted)
	first := c.want("a chunk (end-5)", c.do(http.MethodPatch, c.location(begun, ""), chunked[:400], "Content-Type", "application/octet-stream", "Content-Range", "0-399"), http.StatusAccepted)
	if first.header.Get("Range") != "0-399" {
		t.Errorf("Range after the first chunk: %q", first.header.Get("Range"))
	}
	c.want("a chunk out of order (end-5)", c.do(http.MethodPatch, c.location(first, ""), chunked[600:], "Content-Type", "application/octet-stream", "Content-Range", "600-999"), http.StatusRequestedRangeNotSatisfiable)
	where := c.want("how far it is (end-13)", c.do(http.MethodGet, c.location(first, ""), nil), http.StatusNoContent)
	if where.header.Get("Range") != "0-399" {
		t.Errorf("Range of the upload: %q", where.header.Get("Range"))
	}
	second := c.want("the next chunk", c.do(http.MethodPatch, c.location(where, ""), chunked[400:], "Content-Type", "application/octet-stream", "Content-Range", "400-999"), http.StatusAccepted)
	c.want("the end (end-6)", c.do(http.MethodPut, c.location(second, digest.FromBytes(chunked)), nil), http.StatusCreated)
	if got := c.do(http.MethodGet, "/blobs/"+digest.FromBytes(chunked).String(), nil); !bytes.Equal(got.body, chunked) {
		t.Errorf("the chunks became %d bytes", len(got.body))
	}

	// What is not what its digest says.
	begun = c.want("begin", c.do(http.MethodPost, "/blobs/uploads/", nil), http.StatusAccepted)
	c.want("a wrong digest", c.do(http.MethodPut, c.location(begun, digest.FromString("other")), blob, "Content-Type", "application/octet-stream"), http.StatusBadRequest)
	c.want("a manifest by a wrong digest", c.do(http.MethodPut, "/manifests/"+digest.FromString("other").String(), []byte(`{}`), "Content-Type", ocispec.MediaTypeImageManifest), http.StatusBadRequest)
	c.want("what is no manifest", c.do(http.MethodPut, "/manifests/1.0", []byte(`blabla`), "Content-Type", ocispec.MediaTypeImageManifest), http.StatusBadRequest)

	// Another repository takes it over.
	if got := c.want("mount (end-11)", c.do(http.MethodPost, "/v2/org_a/other/blobs/uploads/?from=org_a/conformance&mount="+url.QueryEscape(dgst.String()), nil), http.StatusCreated, http.StatusAccepted); got.status != http.StatusCreated {
		t.Error("a blob that is there was not mounted")
	}
	c.want("it is there too", c.do(http.MethodHead, "/v2/org_a/other/blobs/"+dgst.String(), nil), http.StatusOK)
	c.want("mount of what is not there (end-11)", c.do(http.MethodPost, "/v2/org_a/other/blobs/uploads/?from=org_a/conformance&mount="+url.QueryEscape(digest.FromString("x").String()), nil), http.StatusAccepted)

	raw, manifest := c.manifest("application/vnd.example", nil, blob)
	if got := c.pushManifest(manifest.String(), raw); got.header.Get("Location") == "" || got.header.Get("Docker-Content-Digest") != manifest.String() {
		t.Errorf("push by digest: %v", got.header)
	}
	begun = c.want("begin", c.do(http.MethodPost, "/blobs/uploads/", nil), http.StatusAccepted)
	c.want("give an upload up", c.do(http.MethodDelete, c.location(begun, ""), nil), http.StatusNoContent)
	c.want("it is gone", c.do(http.MethodGet, c.location(begun, ""), nil), http.StatusNotFound)
}

func TestConformanceContentDiscovery(t *testing.T) {
	t.Parallel()
	c := conforming(t)
	raw, dgst := c.manifest("application/vnd.example", nil, []byte("a layer"))
	for _, tag := range []string{"b", "a", "d", "c"} {
		c.pushManifest(tag, raw)
	}
	for _, tc := range []struct {
		query string
		want  []string
		next  bool
	}{{"", []string{"a", "b", "c", "d"}, false}, {"?n=2", []string{"a", "b"}, true}, {"?n=2&last=b", []string{"c", "d"}, false}, {"?last=c", []string{"d"}, false}} {
		var list struct {
			Name string   `json:"name"`
			Tags []string `json:"tags"`
		}
		got := c.want("tags (end-8)", c.do(http.MethodGet, "/tags/list"+tc.query, nil), http.StatusOK)
		if err := json.Unmarshal(got.body, &list); err != nil || list.Name != "org_a/conformance" || !slices.Equal(list.Tags, tc.want) || tc.next && got.header.Get("Link") == "" {
			t.Errorf("tags%s: %s, Link %q, want %v", tc.query, got.body, got.header.Get("Link"), tc.want)
		}
	}

	subject := &ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: dgst, Size: int64(len(raw))}
	signature, ofSignature := c.manifest("application/vnd.example.signature", subject, []byte("a signature"))
	sbom, ofSBOM := c.manifest("application/vnd.example.sbom", subject, []byte("an SBOM"))
	for reference, raw := range map[string][]byte{ofSignature.String(): signature, ofSBOM.String(): sbom} {
		if got := c.pushManifest(reference, raw); got.header.Get("OCI-Subject") != dgst.String() {
			t.Errorf("OCI-Subject: %q", got.header.Get("OCI-Subject"))
		}
	}
	for query, want := range map[string][]digest.Digest{"": {ofSignature, ofSBOM}, "?artifactType=application/vnd.example.sbom": {ofSBOM}, "?artifactType=none": {}} {
		var index ocispec.Index
		got := c.want("referrers (end-12)", c.do(http.MethodGet, "/referrers/"+dgst.String()+query, nil), http.StatusOK)
		must(t, json.Unmarshal(got.body, &index))
		var found []digest.Digest
		for _, m := range index.Manifests {
			found = append(found, m.Digest)
			if m.ArtifactType == "" || m.Size == 0 {
				t.Errorf("referrer %+v says too little", m)
			}
		}
		slices.Sort(found)
		slices.Sort(want)
		if !slices.Equal(found, want) || got.header.Get("Content-Type") != ocispec.MediaTypeImageIndex || query != "" && got.header.Get("OCI-Filters-Applied") != "artifactType" {
			t.Errorf("referrers%s: %s, %v", query, got.body, got.header)
		}
	}
	empty := c.want("referrers of nothing (end-12)", c.do(http.MethodGet, "/referrers/"+digest.FromString("x").String(), nil), http.StatusOK)
	if !strings.Contains(string(empty.body), `"manifests":[]`) {
		t.Errorf("referrers of nothing: %s", empty.body)
	}
	c.want("referrers of what is no digest", c.do(http.MethodGet, "/referrers/latest", nil), http.StatusNotFound, http.StatusBadRequest)
}

func TestConformanceContentManagement(t *testing.T) {
	t.Parallel()
	c := conforming(t)
	raw, dgst := c.manifest("application/vnd.example", nil, []byte("a layer"))
	c.pushManifest("one", raw)
	c.pushManifest("two", raw)
	c.want("delete a tag (end-9)", c.do(http.MethodDelete, "/manifests/one", nil), http.StatusAccepted)
	c.want("the tag is gone", c.do(http.MethodGet, "/manifests/one", nil), http.StatusNotFound)
	c.want("what it named is not", c.do(http.MethodGet, "/manifests/two", nil), http.StatusOK)
	c.want("delete a manifest (end-9)", c.do(http.MethodDelete, "/manifests/"+dgst.String(), nil), http.StatusAccepted)
	c.want("the manifest is gone", c.do(http.MethodGet, "/manifests/"+dgst.String(), nil), http.StatusNotFound)
	blob := "/blobs/" + digest.FromString("a layer").String()
	c.want("delete a blob (end-10)", c.do(http.MethodDelete, blob, nil), http.StatusAccepted)
	c.want("the blob is gone", c.do(http.MethodGet, blob, nil), http.StatusNotFound)
	c.want("delete what is not there", c.do(http.MethodDelete, blob, nil), http.StatusNotFound)

	stranger := c
	stranger.token = ""
	stranger.want("without a token", stranger.do(http.MethodDelete, blob, nil), http.StatusUnauthorized)
}
