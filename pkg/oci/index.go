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

// syncedIndexFile is the last index that is surely on the disk, while index.json is
// one that the system may still hold. After a power cut that one may be empty.
const syncedIndexFile = ".index.synced.json"

// readIndex needs no lock: the file is replaced whole.
func (l *Layout) readIndex() (ocispec.Index, error) {
	index, err := readIndexFile(filepath.Join(l.dir, ocispec.ImageIndexFile))
	if err == nil {
		return index, nil
	}
	if synced, syncedErr := readIndexFile(filepath.Join(l.dir, syncedIndexFile)); syncedErr == nil {
		return synced, nil
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNeverWritten) {
		return index, nil // and nothing was ever tagged: that would be on the disk
	}
	return index, err
}

// errNeverWritten says that an index has a name on the disk, and no contents.
var errNeverWritten = errors.New("the index is empty")

func readIndexFile(file string) (ocispec.Index, error) {
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex}
	raw, err := os.ReadFile(file)
	if err != nil {
		return index, err
	}
	if len(bytes.Trim(raw, "\x00")) == 0 {
		return index, errNeverWritten
	}
	if err := json.Unmarshal(raw, &index); err != nil {
		return index, fmt.Errorf("%s: %w", file, err)
	}
	return index, nil
}

// replaceIndex writes the index. Without sync it leaves it to the system when that
// reaches the disk; a power cut before brings the last synced one back, and so
// forgets what was only listed. Tags are always synced.
func (l *Layout) replaceIndex(raw []byte, sync bool) error {
	file, synced := filepath.Join(l.dir, ocispec.ImageIndexFile), filepath.Join(l.dir, syncedIndexFile)
	if sync {
		if err := durable.WriteFile(file, raw, 0o600); err != nil {
			return err
		}
		if err := os.Remove(synced); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	// The first one since keeps the file that is on the disk; later ones find it.
	// Where there is no index yet, an empty one after a power cut is as good.
	err := os.Link(file, synced)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
		return l.replaceIndex(raw, true) // a file system without links
	}
	return replaceFile(file, raw)
}

// replaceFile is durable.WriteFile that leaves it to the system when the file
// reaches the disk: after a power cut it may be empty, or have nothing but zeros.
func replaceFile(file string, raw []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = tmp.Write(raw)
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}

// editIndex replaces the entries under a lock, so that no edit of another
// goroutine or process is lost.
func (l *Layout) editIndex(ctx context.Context, edit func([]ocispec.Descriptor) []ocispec.Descriptor) error {
	return l.editIndexAnd(ctx, true, edit)
}

// editIndexAnd is editIndex, which replaceIndex ends.
func (l *Layout) editIndexAnd(ctx context.Context, sync bool, edit func([]ocispec.Descriptor) []ocispec.Descriptor) error {
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
	after, err := json.Marshal(index.Manifests)
	if err != nil {
		return err
	}
	_, noSynced := os.Lstat(filepath.Join(l.dir, syncedIndexFile))
	if bytes.Equal(before, after) && (!sync || noSynced != nil) {
		return nil // and what is there is on the disk, or need not be
	}
	raw, err := json.Marshal(index)
	if err != nil {
		return err
	}
	return l.replaceIndex(raw, sync)
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
