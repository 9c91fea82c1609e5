package oci

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
)

// TransferOptions of Push and Pull; the zero value is good.
type TransferOptions struct {
	// Progress gets how many bytes of the artifact are at the destination
	// and how many there are in all; what was there before counts as done. It
	// is called from one goroutine at a time and should return soon.
	Progress func(done, total int64)
	// Concurrency is the number of blobs under way at once; 0 means 4.
	Concurrency int
	// Tag names the artifact at the registry that it is pushed to; "" is no tag.
	Tag string
	// Referrers takes along what refers to the artifact or to a part of it:
	// signatures, SBOMs, provenance.
	Referrers bool
	// Note gets a line for people about each referrer that is left out; nil drops
	// them.
	Note func(text string)
	// MaxBytes refuses an artifact that says it is larger; 0 means no limit.
	MaxBytes int64
}

const (
	defaultConcurrency = 4

	// blobAttempts is how often one blob is tried within a transfer; it goes
	// on where it broke off.
	blobAttempts = 3
)

// Push copies the artifact that ref (a digest or a tag) names in the layout to
// the registry. Blobs that the registry has are not sent again, so a push that
// broke off is simply repeated.
func (r Remote) Push(ctx context.Context, src *Layout, ref string, opt TransferOptions) (digest.Digest, error) {
	root, err := src.Resolve(ctx, ref)
	if err != nil {
		return "", err
	}
	repo, err := r.open()
	if err != nil {
		return "", err
	}
	t := transfer{src: src, dst: repo, repo: repo, opt: opt}
	if err := t.run(ctx, manifest{desc: root}); err != nil {
		return "", fmt.Errorf("push %s to %s: %w", root.Digest, r, err)
	}
	return root.Digest, nil
}

// Pull copies an artifact from the registry into the layout, verifies every blob
// of it, also those that were there before, and replaces what was changed on
// disk. Afterwards the layout resolves dgst. It may be repeated; a download
// that broke off, even with the process, goes on where it was.
func (r Remote) Pull(ctx context.Context, dgst digest.Digest, dst *Layout, opt TransferOptions) error {
	repo, err := r.open()
	if err != nil {
		return err
	}
	root, err := readRoot(ctx, repo, dgst)
	if err != nil {
		return fmt.Errorf("pull from %s: %w", r, err)
	}
	w, err := dst.begin(ctx)
	if err != nil {
		return err
	}
	defer w.end()
	w.unsynced = true
	t := transfer{src: registryReferrers{repo}, dst: healing{w}, opt: opt}
	if err := t.run(ctx, root); err != nil {
		return fmt.Errorf("pull %s from %s: %w", dgst, r, err)
	}
	// As for the blobs, no disk is waited for.
	return dst.editIndexAnd(ctx, false, func(entries []ocispec.Descriptor) []ocispec.Descriptor {
		for _, desc := range append(t.referrers, root.desc) {
			entries = withEntry(entries, desc)
		}
		return entries
	})
}

// Copy copies an artifact of the repository to another one, of this registry or of
// another, without keeping any of it on disk, and returns its size. Blobs that the
// other one has are not sent again, and within one registry none is sent at all. When
// the download of a blob breaks off, it resumes where it was if the registry can do
// that.
func (r Remote) Copy(ctx context.Context, dgst digest.Digest, dst Remote, opt TransferOptions) (int64, error) {
	from, err := r.open()
	if err != nil {
		return 0, err
	}
	to, err := dst.open()
	if err != nil {
		return 0, err
	}
	root, err := readRoot(ctx, from, dgst)
	if err != nil {
		return 0, fmt.Errorf("copy from %s: %w", r, err)
	}
	t := transfer{src: onward{registryReferrers{from}}, dst: to, repo: to, opt: opt}
	if r.Registry == dst.Registry {
		t.mount = func(ctx context.Context, desc ocispec.Descriptor) error {
			return to.Mount(ctx, desc, r.Repository, func() (io.ReadCloser, error) { return t.src.Fetch(ctx, desc) })
		}
	}
	if err := t.run(ctx, root); err != nil {
		return 0, fmt.Errorf("copy %s from %s to %s: %w", dgst, r, dst, err)
	}
	return t.meter.total, nil
}

// readRoot reads the manifest that an artifact begins with.
func readRoot(ctx context.Context, repo *remote.Repository, dgst digest.Digest) (manifest, error) {
	if err := dgst.Validate(); err != nil {
		return manifest{}, fmt.Errorf("digest %q: %w", dgst, err)
	}
	desc, body, err := repo.Manifests().FetchReference(ctx, dgst.String())
	if err != nil {
		return manifest{}, err
	}
	defer body.Close()
	if desc.Digest != dgst {
		return manifest{}, fmt.Errorf("the registry answered %s for %s", desc.Digest, dgst)
	}
	if desc.Size > maxManifestBytes {
		return manifest{}, fmt.Errorf("manifest %s: %d bytes, at most %d allowed", dgst, desc.Size, maxManifestBytes)
	}
	raw, err := content.ReadAll(body, desc) // and hashes it
	if err != nil {
		return manifest{}, fmt.Errorf("manifest %s: %w", dgst, err)
	}
	return manifest{desc, raw}, nil
}

// transfer copies one artifact: manifests are read first, so that sizes are
// known; then blobs go side by side; then manifests, referred before
// referring. So an artifact whose manifest is at the destination is complete.
type transfer struct {
	src content.ReadOnlyStorage
	dst content.Storage
	opt TransferOptions
	// repo is dst where that is a registry.
	repo *remote.Repository
	// mount brings a blob over within one registry; nil where there are two.
	mount func(ctx context.Context, desc ocispec.Descriptor) error
	meter meter

	// there: the artifact may be at the destination already, so all is asked for
	// before it is sent.
	there bool

	referrers []ocispec.Descriptor // that came along
}

func (t *transfer) run(ctx context.Context, root manifest) error {
	g, err := readGraph(ctx, t.src, root)
	if err != nil {
		return err
	}
	if t.opt.Referrers {
		if err := g.addReferrers(ctx, t.src, t.opt.Note); err != nil {
			return err
		}
		t.referrers = g.referrers
	}
	if t.opt.MaxBytes > 0 && g.bytes > t.opt.MaxBytes {
		return fmt.Errorf("artifact has %d bytes, at most %d allowed", g.bytes, t.opt.MaxBytes)
	}
	t.meter.start(g.bytes, t.opt.Progress)
	t.there = true
	// What comes from another registry is not fetched in vain.
	_, fromRegistry := t.src.(onward)
	if t.repo != nil && (t.mount != nil || !fromRegistry && slices.ContainsFunc(g.blobs, small)) {
		if t.there, err = t.repo.Manifests().Exists(ctx, root.desc); err != nil {
			return fmt.Errorf("look for manifest %s: %w", root.desc.Digest, err)
		}
	}

	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(cmp.Or(t.opt.Concurrency, defaultConcurrency))
	for _, desc := range g.blobs {
		group.Go(func() error { return t.blob(groupCtx, desc) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return t.sendManifests(ctx, g, root.desc.Digest)
}

// sendManifests ends a transfer. The tag comes last, when there is nothing that
// belongs to the artifact and is still missing.
func (t *transfer) sendManifests(ctx context.Context, g *graph, root digest.Digest) error {
	tagged := manifest{}
	for i, m := range g.manifests {
		if t.repo != nil && t.opt.Tag != "" && m.desc.Digest == root {
			if tagged = m; i == len(g.manifests)-1 {
				break // the tag brings it
			}
		}
		if err := ignoreExisting(t.dst.Push(ctx, m.desc, bytes.NewReader(m.raw))); err != nil {
			return fmt.Errorf("manifest %s: %w", m.desc.Digest, err)
		}
		t.meter.add(m.desc.Size)
	}
	if tagged.raw == nil {
		return nil
	}
	if err := t.repo.PushReference(ctx, tagged.desc, bytes.NewReader(tagged.raw), t.opt.Tag); err != nil {
		return fmt.Errorf("tag %s: %w", t.opt.Tag, err)
	}
	if g.manifests[len(g.manifests)-1].desc.Digest == root {
		t.meter.add(tagged.desc.Size)
	}
	return nil
}

func small(desc ocispec.Descriptor) bool { return desc.Size <= smallBlobBytes }

// blob brings one blob over, in several attempts if the connection breaks.
func (t *transfer) blob(ctx context.Context, desc ocispec.Descriptor) error {
	p := &position{meter: &t.meter}
	exists := false
	if t.there || t.mount == nil && !small(desc) {
		var err error
		if exists, err = t.dst.Exists(ctx, desc); err != nil {
			return fmt.Errorf("look for blob %s: %w", desc.Digest, err)
		}
	}
	if !exists {
		for attempt := 1; ; attempt++ {
			err := ignoreExisting(t.send(ctx, desc, p))
			if err == nil {
				break
			}
			if attempt == blobAttempts || ctx.Err() != nil || !brokeOff(err) {
				return fmt.Errorf("blob %s: %w", desc.Digest, err)
			}
		}
	}
	p.set(desc.Size)
	return nil
}

func (t *transfer) send(ctx context.Context, desc ocispec.Descriptor, p *position) error {
	p.set(0)
	if t.mount != nil {
		return t.mount(ctx, desc)
	}
	if t.repo != nil && small(desc) {
		raw, err := content.FetchAll(ctx, t.src, desc) // which hashes it
		if err != nil {
			return err
		}
		return pushSmall(ctx, t.repo, desc, raw)
	}
	rc, err := t.src.Fetch(ctx, desc)
	if err != nil {
		return err
	}
	measured := p.measure(rc)
	defer measured.Close()
	return t.dst.Push(ctx, desc, measured)
}

// brokeOff tells an interrupted connection from an answer.
func brokeOff(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
