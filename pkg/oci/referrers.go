package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

// Bounds of what is taken along because it refers to an artifact: anyone who may push
// to the source can add to it. An image signed each day for a year is within them.
const (
	maxReferrers     = 500
	maxReferrerDepth = 4 // the signature of the SBOM of an image is at 2
	maxReferrerBytes = 1 << 30
)

// A referring source knows what refers to a manifest.
type referring interface {
	// referrers lists manifests that say that subject is theirs. It is not believed.
	referrers(ctx context.Context, subject ocispec.Descriptor) ([]ocispec.Descriptor, error)
}

// addReferrers adds what refers to the graph's manifests: signatures, SBOMs,
// provenance, and what refers to these. What is over a bound, is gone, or has
// another subject is left out and told to note.
func (g *graph) addReferrers(ctx context.Context, src content.Fetcher, note func(string)) error {
	lister, ok := src.(referring)
	if !ok {
		return nil
	}
	if note == nil {
		note = func(string) {}
	}
	depth := map[digest.Digest]int{}
	var bytes int64
	for i := 0; i < len(g.manifests); i++ { // it grows
		subject := g.manifests[i].desc
		found, err := lister.referrers(ctx, subject)
		if err != nil {
			return fmt.Errorf("referrers of %s: %w", subject.Digest, err)
		}
		for _, desc := range found {
			if g.seen[desc.Digest] || !IsManifest(desc.MediaType) {
				continue
			}
			size, err := sizeOfReferrer(ctx, src, desc, subject)
			why := ""
			switch {
			case errors.Is(err, ErrNotFound):
				why = "it is not there"
			case errors.Is(err, errOtherSubject):
				why = err.Error()
			case err != nil:
				return fmt.Errorf("referrer %s: %w", desc.Digest, err)
			case depth[subject.Digest] >= maxReferrerDepth:
				why = fmt.Sprintf("it is more than %d steps away from the artifact", maxReferrerDepth)
			case len(g.referrers) >= maxReferrers:
				why = fmt.Sprintf("there are more than %d", maxReferrers)
			case bytes+size > maxReferrerBytes:
				why = fmt.Sprintf("all of them have more than %d bytes", maxReferrerBytes)
			}
			if why != "" {
				note(fmt.Sprintf("left out %s, which refers to %s: %s", desc.Digest, subject.Digest, why))
				continue
			}
			bytes += size
			before := len(g.manifests)
			switch err := g.add(ctx, src, desc); {
			case errors.Is(err, ErrNotFound): // a part of it
				note(fmt.Sprintf("left out %s, which refers to %s: it is not complete", desc.Digest, subject.Digest))
				continue
			case err != nil:
				return err
			}
			g.referrers = append(g.referrers, plain(desc))
			for _, m := range g.manifests[before:] {
				depth[m.desc.Digest] = depth[subject.Digest] + 1
			}
		}
	}
	return nil
}

var errOtherSubject = errors.New("it refers to something else")

// sizeOfReferrer is what a referrer and its parts say they have, in bytes.
func sizeOfReferrer(ctx context.Context, src content.Fetcher, desc, subject ocispec.Descriptor) (int64, error) {
	raw, err := fetchManifest(ctx, src, desc)
	if err != nil {
		return 0, err
	}
	if subjectOf(raw) != subject.Digest {
		return 0, errOtherSubject
	}
	parts, err := references(desc, raw)
	if err != nil {
		return 0, errOtherSubject
	}
	size := desc.Size
	for _, part := range parts {
		if part.Digest != subject.Digest {
			size += part.Size
		}
	}
	return size, nil
}

// registryReferrers adds to a repository what it says of referrers: by the API,
// or by the tag "sha256-…" where the registry lacks it.
type registryReferrers struct{ *remote.Repository }

func (r registryReferrers) referrers(ctx context.Context, subject ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	var all []ocispec.Descriptor
	err := r.Referrers(ctx, subject, "", func(page []ocispec.Descriptor) error {
		if all = append(all, page...); len(all) > maxReferrers*2 {
			return errEnough
		}
		return nil
	})
	answer, answered := errors.AsType[*errcode.ErrorResponse](err)
	switch {
	case err == nil, errors.Is(err, errEnough):
		return all, nil
	case errors.Is(err, ErrNotFound):
		return nil, nil
	case answered && answer.StatusCode < http.StatusInternalServerError && answer.StatusCode != http.StatusTooManyRequests:
		return nil, nil // a registry that knows of none, in its own words
	}
	return nil, err
}

// referrers shadows what oras finds: manifests of the folder's index by their
// subject.
func (f folder) referrers(ctx context.Context, subject ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	entries, err := f.entries()
	if err != nil {
		return nil, err
	}
	return withSubject(ctx, f, entries, subject.Digest)
}

// withSubject are the manifests of a list that have the subject. Those that cannot
// be read have none.
func withSubject(ctx context.Context, src content.Fetcher, entries []ocispec.Descriptor, subject digest.Digest) ([]ocispec.Descriptor, error) {
	var found []ocispec.Descriptor
	for _, desc := range entries {
		if !IsManifest(desc.MediaType) || desc.Digest == subject {
			continue
		}
		raw, err := fetchManifest(ctx, src, desc)
		if errors.Is(err, ErrNotFound) || errors.Is(err, io.ErrUnexpectedEOF) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if subjectOf(raw) == subject {
			found = append(found, desc)
		}
	}
	return found, nil
}

// subjectOf is the digest of what a manifest refers to as its subject, "" when it
// has none.
func subjectOf(manifest []byte) digest.Digest {
	var m struct {
		Subject *ocispec.Descriptor `json:"subject"`
	}
	if json.Unmarshal(manifest, &m) != nil || m.Subject == nil {
		return ""
	}
	return m.Subject.Digest
}
