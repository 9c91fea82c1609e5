package registry

import (
	"bytes"
	"context"
	"maps"
	"net/http"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// recorder keeps a small answer of distribution: of manifests and lists, never
// of blobs.
type recorder struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func newRecorder() *recorder { return &recorder{header: http.Header{}} }

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(p)
}

// replay sends a recorded answer.
func (r *recorder) replay(w http.ResponseWriter) {
	maps.Copy(w.Header(), r.header)
	r.WriteHeader(http.StatusOK)
	w.WriteHeader(r.status)
	w.Write(r.body.Bytes())
}

// manifestPath is where distribution has the manifest of a digest or a tag.
func manifestPath(repository, reference string) string {
	return "/v2/" + repository + "/manifests/" + reference
}

// call asks distribution for a manifest, or gives it an index.
func (x *referrerIndex) call(ctx context.Context, method, path string, body []byte) *recorder {
	answer := newRecorder()
	req, err := http.NewRequestWithContext(ctx, method, "http://registry.internal"+path, bytes.NewReader(body))
	if err != nil {
		answer.WriteHeader(http.StatusBadRequest)
		return answer
	}
	req.RequestURI = req.URL.RequestURI() // set as by a server
	if body != nil {
		req.Header.Set("Content-Type", ocispec.MediaTypeImageIndex)
	}
	for _, accept := range []string{ocispec.MediaTypeImageIndex, ocispec.MediaTypeImageManifest} {
		req.Header.Add("Accept", accept)
	}
	x.app.ServeHTTP(answer, req)
	answer.WriteHeader(http.StatusOK)
	return answer
}
