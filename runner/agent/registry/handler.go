package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/oci"
)

// Error codes of the distribution protocol.
const (
	codeManifestUnknown = "MANIFEST_UNKNOWN"
	codeBlobUnknown     = "BLOB_UNKNOWN"
	codeNameUnknown     = "NAME_UNKNOWN"
	codeUnsupported     = "UNSUPPORTED"
	codeDigest          = "DIGEST_INVALID"
	codeUnknown         = "UNKNOWN"
)

// path is all that is asked for here: a repository has one element, and a
// reference is a tag or a digest.
var path = regexp.MustCompile(`^/v2/([a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)/(manifests|blobs|referrers)/([A-Za-z0-9_][A-Za-z0-9._:-]*)$`)

// Handler answers pulls of the images of a layout by the OCI distribution
// protocol, read only. It may serve while other processes write to the layout.
func Handler(l *oci.Layout, log *slog.Logger) http.Handler {
	return &handler{images: &images{layout: l, known: map[digest.Digest]oci.Contents{}}, log: log}
}

type handler struct {
	images *images
	log    *slog.Logger
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, codeUnsupported, "this registry only gives out")
		return
	case r.URL.Path == "/v2/" || r.URL.Path == "/v2":
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("{}"))
		return
	}
	m := path.FindStringSubmatch(r.URL.Path)
	if m == nil || r.URL.RawPath != "" { // also what is spelled in another way
		refuse(w, http.StatusNotFound, codeNameUnknown, errNotServed.Error())
		return
	}
	switch m[2] {
	case "manifests":
		h.manifest(w, r, m[1], m[3])
	case "blobs":
		h.blob(w, r, m[1], digest.Digest(m[3]))
	case "referrers":
		h.referrers(w, r, m[1], digest.Digest(m[3]))
	}
}

// referrers lists what refers to a manifest: nothing, where it is not served.
func (h *handler) referrers(w http.ResponseWriter, r *http.Request, repository string, subject digest.Digest) {
	if subject.Validate() != nil {
		refuse(w, http.StatusBadRequest, codeDigest, "referrers are asked for by the digest of their subject")
		return
	}
	found, err := h.images.referrers(r.Context(), repository, subject)
	if err != nil {
		h.fail(w, r, codeManifestUnknown, err)
		return
	}
	if want := r.URL.Query().Get("artifactType"); want != "" {
		found = slices.DeleteFunc(found, func(d ocispec.Descriptor) bool { return d.ArtifactType != want })
		w.Header().Set("OCI-Filters-Applied", "artifactType")
	}
	raw, err := json.Marshal(ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: found})
	if err != nil {
		h.fail(w, r, codeManifestUnknown, err)
		return
	}
	w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(raw))
}

func (h *handler) manifest(w http.ResponseWriter, r *http.Request, repository, reference string) {
	dgst, err := digest.Parse(reference)
	if err != nil {
		dgst, err = h.images.tagged(repository, reference)
	}
	if err != nil {
		h.fail(w, r, codeManifestUnknown, err)
		return
	}
	desc, err := h.images.part(r.Context(), repository, dgst)
	if err == nil && !oci.IsManifest(desc.MediaType) {
		err = errNotServed
	}
	if err != nil {
		h.fail(w, r, codeManifestUnknown, err)
		return
	}
	raw, err := h.images.layout.ReadManifest(r.Context(), desc)
	if err != nil {
		h.fail(w, r, codeManifestUnknown, err)
		return
	}
	identify(w, dgst)
	w.Header().Set("Content-Type", desc.MediaType)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(raw))
}

// blob answers with a file, or the range of it that is asked for. Who pulls
// verifies what it gets by the digest.
func (h *handler) blob(w http.ResponseWriter, r *http.Request, repository string, dgst digest.Digest) {
	if dgst.Validate() != nil {
		h.fail(w, r, codeBlobUnknown, errNotServed)
		return
	}
	if _, err := h.images.part(r.Context(), repository, dgst); err != nil {
		h.fail(w, r, codeBlobUnknown, err)
		return
	}
	file, err := h.images.layout.Open(dgst)
	if err != nil {
		h.fail(w, r, codeBlobUnknown, err)
		return
	}
	defer file.Close()
	identify(w, dgst)
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Time{}, file)
}

// identify names the content, which never changes.
func identify(w http.ResponseWriter, dgst digest.Digest) {
	w.Header().Set("Docker-Content-Digest", dgst.String())
	w.Header().Set("ETag", `"`+dgst.String()+`"`)
}

func (h *handler) fail(w http.ResponseWriter, r *http.Request, code string, err error) {
	if errors.Is(err, errNotServed) || errors.Is(err, oci.ErrNotFound) {
		refuse(w, http.StatusNotFound, code, errNotServed.Error())
		return
	}
	h.log.ErrorContext(r.Context(), "image cannot be served", "path", r.URL.Path, "err", err)
	refuse(w, http.StatusInternalServerError, codeUnknown, "the image cannot be read; deploy its component again to fetch it again")
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	type problem struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string][]problem{"errors": {{code, message}}}) // nobody is left to tell
}
