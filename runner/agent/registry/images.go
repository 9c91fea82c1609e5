// Package registry serves the images of an install to the kubelets of its
// cluster, from the install's own registry, also while everybody else is away.
//
// The own registry (an OCI layout, package oci) holds more: plans, sealed; the
// artifacts that engines unpack. What is served are the images that Keep named,
// each as a repository of its component, and nothing else, however it is asked
// for. In the layout they are named by tags:
//
//	images/<repository>@<digest>   the image may be pulled by its digest
//	images/<repository>:<tag>      and by this tag, which may move
//
// What refers to such an image (signatures, SBOMs, provenance) came with it, and is
// served with it.
package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/oci"
)

// tagPrefix begins the tags of what is served, in the layout.
const tagPrefix = "images/"

// errNotServed is the answer to everything that is not to be had here, whether
// it exists or not.
var errNotServed = errors.New("not known to this registry")

// Image is an image of the layout under the name that kubelets know it by.
type Image struct {
	Repository, Tag string // Tag may be empty
	Digest          digest.Digest
}

// Keep has an image served from now on; it stays in the layout. What is not an
// image is refused.
func Keep(ctx context.Context, l *oci.Layout, i Image) error {
	c, err := oci.ReadContents(ctx, l, i.Digest)
	if err != nil {
		return err
	}
	if !c.Image || c.Own {
		return fmt.Errorf("%s is not a container image", i.Digest)
	}
	if err := l.Tag(ctx, c.Root, tagPrefix+i.Repository+"@"+i.Digest.String()); err != nil || i.Tag == "" {
		return err
	}
	return l.Tag(ctx, c.Root, tagPrefix+i.Repository+":"+i.Tag)
}

// images finds what may be served. It is safe for concurrent use, and sees what
// other processes write to the layout.
type images struct {
	layout *oci.Layout

	mu sync.Mutex
	// known are contents by the digest of their root, which never change.
	known map[digest.Digest]oci.Contents
}

// tagged finds the image that a tag names.
func (i *images) tagged(repository, tag string) (digest.Digest, error) {
	entries, err := i.layout.Artifacts()
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if nameOf(e) == tagPrefix+repository+":"+tag {
			return e.Digest, nil
		}
	}
	return "", errNotServed
}

// part finds a manifest or a blob of the images of a repository, or of what refers
// to them.
func (i *images) part(ctx context.Context, repository string, dgst digest.Digest) (ocispec.Descriptor, error) {
	entries, err := i.layout.Artifacts()
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	i.forget(entries)
	var found ocispec.Descriptor
	err = errNotServed
	for _, e := range entries {
		c, readErr := i.contents(ctx, e.Digest)
		if readErr != nil {
			continue // what is damaged is not served
		}
		part, has := c.Parts[dgst]
		switch {
		case !has:
		case c.Own && c.Refers[dgst]: // about an image, which it has nothing of
		case c.Own && dgst != ocispec.DescriptorEmptyJSON.Digest:
			// An image can be made that claims a blob of the install's own as a
			// layer; by that it does not become public.
			return ocispec.Descriptor{}, errNotServed
		case err != nil && (keeps(e, c, repository) || i.refers(ctx, entries, repository, c)):
			found, err = part, nil
		}
	}
	return found, err
}

// keeps tells whether an entry of the layout is an image of the repository.
func keeps(e ocispec.Descriptor, c oci.Contents, repository string) bool {
	return c.Image && strings.HasPrefix(nameOf(e), tagPrefix+repository+"@")
}

// maxSubjects is more than a copy takes along: the signature of the SBOM of an image
// is two steps away from it.
const maxSubjects = 8

// refers tells whether an artifact refers to an image of the repository, or to a part
// of one, or to something that does.
func (i *images) refers(ctx context.Context, entries []ocispec.Descriptor, repository string, c oci.Contents) bool {
	for range maxSubjects {
		if c.Subject == "" || c.Own {
			return false
		}
		next := oci.Contents{}
		for _, e := range entries {
			at, err := i.contents(ctx, e.Digest)
			if err != nil {
				continue
			}
			if part, has := at.Parts[c.Subject]; has && oci.IsManifest(part.MediaType) && keeps(e, at, repository) {
				return true
			}
			if e.Digest == c.Subject {
				next = at
			}
		}
		c = next
	}
	return false
}

// referrers are what refers to a manifest of the repository, in the layout's order.
func (i *images) referrers(ctx context.Context, repository string, subject digest.Digest) ([]ocispec.Descriptor, error) {
	entries, err := i.layout.Artifacts()
	if err != nil {
		return nil, err
	}
	found := []ocispec.Descriptor{}
	for _, e := range entries {
		c, err := i.contents(ctx, e.Digest)
		if err != nil || c.Subject != subject || c.Own || !i.refers(ctx, entries, repository, c) {
			continue
		}
		if slices.ContainsFunc(found, func(d ocispec.Descriptor) bool { return d.Digest == e.Digest }) {
			continue // it has a tag, too
		}
		found = append(found, ocispec.Descriptor{
			MediaType: c.Root.MediaType, Digest: e.Digest, Size: c.Root.Size, ArtifactType: c.Type, Annotations: c.Annotations,
		})
	}
	return found, nil
}

func nameOf(e ocispec.Descriptor) string { return e.Annotations[ocispec.AnnotationRefName] }

func (i *images) contents(ctx context.Context, root digest.Digest) (oci.Contents, error) {
	i.mu.Lock()
	c, known := i.known[root]
	i.mu.Unlock()
	if known {
		return c, nil
	}
	c, err := oci.ReadContents(ctx, i.layout, root)
	if err != nil {
		return c, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.known[root] = c
	return c, nil
}

// forget drops the contents of what is not in the layout any more.
func (i *images) forget(entries []ocispec.Descriptor) {
	i.mu.Lock()
	defer i.mu.Unlock()
	maps.DeleteFunc(i.known, func(root digest.Digest, _ oci.Contents) bool {
		return !slices.ContainsFunc(entries, func(e ocispec.Descriptor) bool { return e.Digest == root })
	})
}
