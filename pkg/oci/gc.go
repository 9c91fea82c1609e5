package oci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// GCOptions says what GC keeps.
type GCOptions struct {
	// Keep lists artifacts that stay though no tag names them.
	Keep []digest.Digest
	// MinAge spares artifacts and partial downloads younger than this, by the
	// time of their file: what was just pulled and is not yet in Keep. 0
	// spares nothing.
	MinAge time.Duration
}

// GC removes every artifact that is neither tagged nor kept nor refers to one that
// stays, and the blobs that only such artifacts use. It waits for running pushes and pulls and
// holds off new ones. freed counts bytes. An artifact that stays but cannot be
// read stops it before anything is removed.
func (l *Layout) GC(ctx context.Context, opt GCOptions) (freed int64, err error) {
	unlock, err := lockFile(ctx, filepath.Join(l.dir, ".lock"), exclusive)
	if err != nil {
		return 0, fmt.Errorf("gc: lock layout: %w", err)
	}
	defer unlock()
	limit := time.Now().Add(-opt.MinAge)

	index, err := l.readIndex()
	if err != nil {
		return 0, fmt.Errorf("gc: %w", err)
	}
	stays := func(desc ocispec.Descriptor) bool {
		return refName(desc) != "" || slices.Contains(opt.Keep, desc.Digest) || l.youngerThan(desc.Digest, limit)
	}
	live := map[digest.Digest]bool{}
	for _, desc := range index.Manifests {
		if !stays(desc) {
			continue
		}
		if err := l.mark(ctx, desc, live); err != nil {
			return 0, fmt.Errorf("gc: %w", err)
		}
	}
	if err := l.markReferrers(ctx, index.Manifests, live); err != nil {
		return 0, fmt.Errorf("gc: %w", err)
	}
	// Index first: a crash in between leaves blobs without an entry, which the
	// next run removes, and never an entry without its blobs.
	err = l.editIndex(ctx, func(entries []ocispec.Descriptor) []ocispec.Descriptor {
		return slices.DeleteFunc(slices.Clone(entries), func(desc ocispec.Descriptor) bool { return !live[desc.Digest] })
	})
	if err != nil {
		return 0, fmt.Errorf("gc: %w", err)
	}
	return l.sweep(live, limit)
}

// mark adds desc and all that it refers to.
func (l *Layout) mark(ctx context.Context, desc ocispec.Descriptor, live map[digest.Digest]bool) error {
	if live[desc.Digest] {
		return nil
	}
	live[desc.Digest] = true
	children, err := successors(ctx, l, desc)
	if err != nil {
		return err
	}
	for _, child := range children {
		if err := l.mark(ctx, child, live); err != nil {
			return err
		}
	}
	return nil
}

// markReferrers adds what refers to what stays, and what refers to that.
func (l *Layout) markReferrers(ctx context.Context, entries []ocispec.Descriptor, live map[digest.Digest]bool) error {
	subjects := map[digest.Digest]digest.Digest{} // by what has them
	for _, desc := range entries {
		if live[desc.Digest] || !IsManifest(desc.MediaType) {
			continue
		}
		raw, err := fetchManifest(ctx, l, desc)
		if err != nil {
			continue // it goes: what goes need not be readable
		}
		if subject := subjectOf(raw); subject != "" {
			subjects[desc.Digest] = subject
		}
	}
	for again := true; again; {
		again = false
		for _, desc := range entries {
			if live[desc.Digest] || subjects[desc.Digest] == "" || !live[subjects[desc.Digest]] {
				continue
			}
			if err := l.mark(ctx, desc, live); err != nil {
				return err
			}
			again = true
		}
	}
	return nil
}

func (l *Layout) youngerThan(dgst digest.Digest, limit time.Time) bool {
	file, err := l.blobPath(dgst)
	if err != nil {
		return false
	}
	info, err := os.Stat(file)
	return err == nil && info.ModTime().After(limit)
}

// sweep removes files of blobs/ and ingest/ that are not live and not young.
func (l *Layout) sweep(live map[digest.Digest]bool, limit time.Time) (freed int64, err error) {
	for _, area := range []string{"blobs", "ingest"} {
		walkErr := filepath.WalkDir(filepath.Join(l.dir, area), func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			dgst := digest.NewDigestFromEncoded(digest.Algorithm(filepath.Base(filepath.Dir(file))), entry.Name())
			if live[dgst] || info.ModTime().After(limit) {
				return nil
			}
			if err := os.Remove(file); err != nil {
				return err
			}
			freed += info.Size()
			return nil
		})
		err = errors.Join(err, walkErr)
	}
	if err != nil {
		return freed, fmt.Errorf("gc: %w", err)
	}
	return freed, nil
}
