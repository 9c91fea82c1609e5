package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/durable"
)

// readIndex needs no lock: the file is replaced whole.
func (l *Layout) readIndex() (ocispec.Index, error) {
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex}
	raw, err := os.ReadFile(filepath.Join(l.dir, ocispec.ImageIndexFile))
	if errors.Is(err, fs.ErrNotExist) {
		return index, nil
	}
	if err != nil {
		return index, err
	}
	if err := json.Unmarshal(raw, &index); err != nil {
		return index, fmt.Errorf("%s: %w", filepath.Join(l.dir, ocispec.ImageIndexFile), err)
	}
	return index, nil
}

// editIndex replaces the entries under a lock, so that no edit of another
// goroutine or process is lost.
func (l *Layout) editIndex(ctx context.Context, edit func([]ocispec.Descriptor) []ocispec.Descriptor) error {
	unlock, err := lockFile(ctx, filepath.Join(l.dir, ".index.lock"), exclusive)
	if err != nil {
		return fmt.Errorf("lock index: %w", err)
	}
	defer unlock()
	index, err := l.readIndex()
	if err != nil {
		return err
	}
	before, err := json.Marshal(index.Manifests)
	if err != nil {
		return err
	}
	if index.Manifests = edit(index.Manifests); index.Manifests == nil {
		index.Manifests = []ocispec.Descriptor{} // the specification wants [], not null
	}
	if after, err := json.Marshal(index.Manifests); err != nil || bytes.Equal(before, after) {
		return err
	}
	raw, err := json.Marshal(index)
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(l.dir, ocispec.ImageIndexFile), raw, 0o600)
}

// withEntry lists desc, unless it is listed under a tag or without.
func withEntry(entries []ocispec.Descriptor, desc ocispec.Descriptor) []ocispec.Descriptor {
	if slices.ContainsFunc(entries, sameArtifact(desc)) {
		return entries
	}
	return append(entries, plain(desc))
}

// withTag gives desc the tag and takes it from whatever had it.
func withTag(entries []ocispec.Descriptor, desc ocispec.Descriptor, tag string) []ocispec.Descriptor {
	entries = withoutTag(entries, tag)
	entries = slices.DeleteFunc(entries, func(e ocispec.Descriptor) bool {
		return e.Digest == desc.Digest && refName(e) == ""
	})
	tagged := plain(desc)
	tagged.Annotations = maps.Clone(tagged.Annotations)
	if tagged.Annotations == nil {
		tagged.Annotations = map[string]string{}
	}
	tagged.Annotations[ocispec.AnnotationRefName] = tag
	return append(entries, tagged)
}

func withoutTag(entries []ocispec.Descriptor, tag string) []ocispec.Descriptor {
	i := slices.IndexFunc(entries, func(e ocispec.Descriptor) bool { return refName(e) == tag })
	if i < 0 {
		return entries
	}
	untagged := plain(entries[i])
	return withEntry(slices.Delete(slices.Clone(entries), i, i+1), untagged)
}

func refName(desc ocispec.Descriptor) string { return desc.Annotations[ocispec.AnnotationRefName] }

func sameArtifact(desc ocispec.Descriptor) func(ocispec.Descriptor) bool {
	return func(e ocispec.Descriptor) bool { return e.Digest == desc.Digest }
}

// plain is the descriptor of the artifact alone, without its tag.
func plain(desc ocispec.Descriptor) ocispec.Descriptor {
	if refName(desc) == "" {
		return desc
	}
	desc.Annotations = maps.Clone(desc.Annotations)
	delete(desc.Annotations, ocispec.AnnotationRefName)
	if len(desc.Annotations) == 0 {
		desc.Annotations = nil
	}
	return desc
}
