package bundle

import (
	"archive/tar"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig/digest"
)

// A bundle travels in packs, so that what is uploaded again after a change is
// the pack of the changed file and not the whole folder. Which pack a file is in
// follows from its name and from how many there are, so files that come and go
// leave the other packs as they are, until their number doubles.
const (
	filesPerPack = 64
	maxPacks     = 256 // the first power of two at which MaxFolderFiles fit
	bundleFormat = "berth.bundle/v1"
)

// Bundle is an app folder, packed.
type Bundle struct {
	// Index names the packs; its digest stands for the whole bundle.
	Index Pack
	Packs []Pack
}

// All lists what is uploaded, the index last: who finds that finds the packs.
func (b Bundle) All() []Pack { return append(slices.Clone(b.Packs), b.Index) }

// Pack is a part of a bundle: a tar.gz, or the index, which is JSON.
type Pack struct {
	Digest string // "sha256:" and the hash of the bytes, in hex
	Bytes  []byte
}

// bundleIndex is the JSON of an index.
type bundleIndex struct {
	Format string   `json:"format"`
	Packs  []string `json:"packs"` // digests
}

// packed divides files into packs. The same files give the same bytes.
func packed(files map[string][]byte) (Bundle, error) {
	number := 1
	for number*filesPerPack < len(files) {
		number *= 2
	}
	names := make([][]string, number)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		i := packOf(name, number)
		names[i] = append(names[i], name)
	}
	var out Bundle
	index := bundleIndex{Format: bundleFormat, Packs: []string{}}
	for _, group := range names {
		if len(group) == 0 {
			continue
		}
		var b archiveBuilder
		b.open()
		for _, name := range group {
			b.add(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg}, files[name])
		}
		archive, sum, err := b.finish()
		if err != nil {
			return Bundle{}, err
		}
		out.Packs = append(out.Packs, Pack{Digest: sum, Bytes: archive})
		index.Packs = append(index.Packs, sum)
	}
	raw, err := json.Marshal(index)
	if err != nil {
		return Bundle{}, err
	}
	out.Index = Pack{Digest: digest.SHA256(raw), Bytes: raw}
	return out, nil
}

// packOf says which of a number of packs, a power of two, a file is in.
func packOf(name string, number int) int {
	sum := sha256.Sum256([]byte(name))
	return int(binary.BigEndian.Uint32(sum[:4]) % uint32(number))
}

// PacksOf lists the digests of the packs that an index names. The index may
// come from anybody.
func PacksOf(index []byte) ([]string, error) {
	var read bundleIndex
	if err := json.Unmarshal(index, &read); err != nil || read.Format != bundleFormat {
		return nil, errors.New("the bundle's index is not one of " + bundleFormat)
	}
	if len(read.Packs) > maxPacks {
		return nil, fmt.Errorf("the bundle's index names %d packs; %d are possible", len(read.Packs), maxPacks)
	}
	digests := slices.Clone(read.Packs)
	slices.SortFunc(digests, cmp.Compare)
	if unique := slices.Compact(digests); len(unique) != len(read.Packs) {
		return nil, errors.New("the bundle's index names a pack twice")
	}
	return read.Packs, nil
}
