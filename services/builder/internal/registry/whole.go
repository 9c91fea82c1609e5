package registry

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/distribution/distribution/v3"
	"github.com/distribution/distribution/v3/registry/storage"
	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/intake"
)

// wholeBytes is how large a blob may be that is taken in the request that announces
// it. Such a request holds it in memory.
const wholeBytes = 64 << 10

// wholeBlobs takes blobs in one request (end-4b of the specification), which
// distribution answers by the beginning of an upload: three requests and a dozen
// files for what may be a configuration of 200 bytes.
type wholeBlobs struct{ repositories distribution.Namespace }

func newWholeBlobs(files contents) (wholeBlobs, error) {
	repositories, err := storage.NewRegistry(context.Background(), files)
	return wholeBlobs{repositories}, err
}

// takes tells whether a request is such a one. Others begin an upload, as the
// specification allows.
func (wholeBlobs) takes(req *http.Request, target route) bool {
	query := req.URL.Query()
	return target.name == routeUpload && req.Method == http.MethodPost && len(query["digest"]) == 1 && !query.Has("mount") &&
		req.ContentLength >= 0 && req.ContentLength <= wholeBytes && digest.Digest(query.Get("digest")).Algorithm() == digest.Canonical
}

func (b wholeBlobs) serve(w http.ResponseWriter, req *http.Request, target route) {
	want := digest.Digest(req.URL.Query().Get("digest"))
	raw, err := io.ReadAll(io.LimitReader(req.Body, wholeBytes+1))
	switch {
	case errors.Is(err, intake.ErrSlow) || errors.Is(err, intake.ErrFull):
		refuseBody(w, err)
		return
	case err != nil || int64(len(raw)) != req.ContentLength:
		writeError(w, http.StatusBadRequest, codeSizeInvalid, "the blob was cut off")
		return
	case want.Validate() != nil || digest.FromBytes(raw) != want:
		writeError(w, http.StatusBadRequest, codeDigest, "the digest is not that of the blob")
		return
	}
	if err := b.put(req.Context(), target.repository, want, raw); err != nil {
		logTarget.Load().ErrorContext(req.Context(), "registry storage failed", "repository", target.repository, "err", err)
		writeError(w, http.StatusInternalServerError, codeUnknown, "the blob cannot be stored")
		return
	}
	w.Header().Set("Location", "/v2/"+target.repository+"/blobs/"+want.String())
	w.Header().Set("Docker-Content-Digest", want.String())
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusCreated)
}

// put stores a blob, and nothing when the repository has it.
func (b wholeBlobs) put(ctx context.Context, repository string, dgst digest.Digest, raw []byte) error {
	name, err := reference.WithName(repository)
	if err != nil {
		return err
	}
	found, err := b.repositories.Repository(ctx, name)
	if err != nil {
		return err
	}
	blobs := found.Blobs(ctx)
	if _, err := blobs.Stat(ctx, dgst); err == nil {
		return nil
	}
	_, err = blobs.Put(ctx, "application/octet-stream", raw)
	return err
}
