package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/intake"
)

// maxManifestBytes is distribution's own limit.
const maxManifestBytes = 4 << 20

// referrerTag is the tag under which clients of registries without the
// referrers API keep the index of a subject. The index is kept there, so both
// kinds of clients see the same.
var referrerTag = regexp.MustCompile(`^(sha256-[0-9a-f]{64}|sha512-[0-9a-f]{128})$`)

// referrerIndex is the referrers API of OCI 1.1 on top of distribution, which
// has none: what is pushed with a subject is added to the subject's index.
type referrerIndex struct {
	app   http.Handler
	locks Locker
}

// putManifest passes a manifest on and, if it has a subject, indexes it. The
// client hears of success after both, and repeats if it hears nothing.
func (x *referrerIndex) putManifest(w http.ResponseWriter, req *http.Request, target route) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxManifestBytes))
	if errors.Is(err, intake.ErrSlow) || errors.Is(err, intake.ErrFull) {
		refuseBody(w, err)
		return
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, codeManifest, "the manifest is too large or was cut off")
		return
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	answer := newRecorder()
	x.app.ServeHTTP(answer, req)
	if subject, desc, ok := subjectOf(req.Header.Get("Content-Type"), raw); ok && answer.status == http.StatusCreated {
		if err := x.add(req.Context(), target.repository, subject, desc); err != nil {
			writeError(w, http.StatusServiceUnavailable, codeUnavailable, "the manifest is stored, but its subject's index could not be updated")
			return
		}
		answer.Header().Set("OCI-Subject", subject.String())
	}
	answer.replay(w)
}

// subjectOf reads from a manifest what the index needs.
func subjectOf(mediaType string, raw []byte) (subject digest.Digest, desc ocispec.Descriptor, ok bool) {
	var m struct {
		ArtifactType string              `json:"artifactType"`
		Config       ocispec.Descriptor  `json:"config"`
		Subject      *ocispec.Descriptor `json:"subject"`
		Annotations  map[string]string   `json:"annotations"`
	}
	if json.Unmarshal(raw, &m) != nil || m.Subject == nil || m.Subject.Digest.Validate() != nil {
		return "", desc, false
	}
	desc = ocispec.Descriptor{
		MediaType: mediaType, Digest: digest.FromBytes(raw), Size: int64(len(raw)),
		ArtifactType: m.ArtifactType, Annotations: m.Annotations,
	}
	if desc.ArtifactType == "" {
		desc.ArtifactType = m.Config.MediaType
	}
	return m.Subject.Digest, desc, true
}

// add puts desc into the subject's index, which it rewrites under a lock.
func (x *referrerIndex) add(ctx context.Context, repository string, subject digest.Digest, desc ocispec.Descriptor) error {
	return x.locks.Locked(ctx, "referrers of "+repository+"@"+subject.String(), func(ctx context.Context) error {
		return x.addLocked(ctx, repository, subject, desc)
	})
}

func (x *referrerIndex) addLocked(ctx context.Context, repository string, subject digest.Digest, desc ocispec.Descriptor) error {
	entries, err := x.read(ctx, repository, subject)
	if err != nil {
		return err
	}
	same := func(e ocispec.Descriptor) bool { return e.Digest == desc.Digest }
	if slices.ContainsFunc(entries, same) {
		return nil
	}
	raw, err := json.Marshal(indexOf(append(entries, desc)))
	if err != nil {
		return err
	}
	answer := x.call(ctx, http.MethodPut, manifestPath(repository, tagOf(subject)), raw)
	if answer.status != http.StatusCreated {
		return fmt.Errorf("write referrers: status %d", answer.status)
	}
	return nil
}

// read returns the entries whose manifests still exist: distribution would
// refuse an index with others.
func (x *referrerIndex) read(ctx context.Context, repository string, subject digest.Digest) ([]ocispec.Descriptor, error) {
	answer := x.call(ctx, http.MethodGet, manifestPath(repository, tagOf(subject)), nil)
	if answer.status == http.StatusNotFound {
		return nil, nil
	}
	if answer.status != http.StatusOK {
		return nil, fmt.Errorf("read referrers: status %d", answer.status)
	}
	var index ocispec.Index
	if err := json.Unmarshal(answer.body.Bytes(), &index); err != nil {
		return nil, fmt.Errorf("read referrers: %w", err)
	}
	return slices.DeleteFunc(index.Manifests, func(e ocispec.Descriptor) bool {
		return e.Digest.Validate() != nil || x.call(ctx, http.MethodHead, manifestPath(repository, e.Digest.String()), nil).status == http.StatusNotFound
	}), nil
}

// list answers GET /v2/<name>/referrers/<digest>. A subject without referrers,
// or that does not exist, has an empty list.
func (x *referrerIndex) list(w http.ResponseWriter, req *http.Request, target route) {
	entries, err := x.read(req.Context(), target.repository, digest.Digest(target.reference))
	if err != nil {
		writeError(w, http.StatusInternalServerError, codeUnknown, "the referrers cannot be read")
		return
	}
	if want := req.URL.Query().Get("artifactType"); want != "" {
		entries = slices.DeleteFunc(entries, func(e ocispec.Descriptor) bool { return e.ArtifactType != want })
		w.Header().Set("OCI-Filters-Applied", "artifactType")
	}
	raw, err := json.Marshal(indexOf(entries))
	if err != nil {
		writeError(w, http.StatusInternalServerError, codeUnknown, "the referrers cannot be read")
		return
	}
	w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
	w.WriteHeader(http.StatusOK)
	w.Write(raw)
}

// listTags hides the tags that are indexes of referrers. Distribution finds no
// tags in a bucket that has no such repository; on a disk it says that it is
// unknown, and so does this.
func (r *Registry) listTags(w http.ResponseWriter, req *http.Request, target route) {
	shelf := r.shelfOf(target.repository)
	answer := newRecorder()
	shelf.app.ServeHTTP(answer, req)
	var list struct {
		Name string   `json:"name"`
		Tags []string `json:"tags"`
	}
	if answer.status == http.StatusOK && json.Unmarshal(answer.body.Bytes(), &list) == nil {
		if len(list.Tags) == 0 && !shelf.files.hasTags(req.Context(), target.repository) {
			writeError(w, http.StatusNotFound, codeNameUnknown, unknownName)
			return
		}
		list.Tags = slices.DeleteFunc(list.Tags, referrerTag.MatchString)
		if raw, err := json.Marshal(list); err == nil {
			answer.body = *bytes.NewBuffer(raw)
			answer.Header().Del("Content-Length")
		}
	}
	answer.replay(w)
}

func indexOf(entries []ocispec.Descriptor) ocispec.Index {
	if entries == nil {
		entries = []ocispec.Descriptor{} // the specification wants [], not null
	}
	return ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: entries,
	}
}

func tagOf(subject digest.Digest) string { return strings.Replace(subject.String(), ":", "-", 1) }
