package buildkit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// OpenCache lays out in dir, which it makes, what buildctl imports from the image
// layout given, and returns the digest of what the layout lists. buildctl writes
// next to what it reads, and the layout is not to be written to.
func OpenCache(given, dir string) (digest string, err error) {
	var index ocispec.Index
	if err := layout(given).readJSON(ocispec.ImageIndexFile, &index); err != nil {
		return "", err
	}
	if len(index.Manifests) != 1 {
		return "", fmt.Errorf("it lists %d artifacts", len(index.Manifests))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return index.Manifests[0].Digest.String(), os.Symlink(filepath.Join(given, ocispec.ImageBlobsDir), filepath.Join(dir, ocispec.ImageBlobsDir))
}

// OfTheSource tells a build that fails by what its Dockerfile says from one that
// may have failed by a cache.
func OfTheSource(err error) bool {
	failure, ok := errors.AsType[*Error](err)
	if !ok {
		return false
	}
	for _, sign := range []string{"did not complete successfully", "parse error", "target stage", "unknown instruction"} {
		if strings.Contains(failure.Text, sign) {
			return true
		}
	}
	return false
}
