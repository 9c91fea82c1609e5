package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/pkg/releaselist"
	"github.com/berth-dev/berth/pkg/visible"
)

// verifyRelease checks a release's signed list, and what is next to it.
func verifyRelease(path string, keyFiles []string, stdout io.Writer) error {
	keys, err := readKeys(keyFiles)
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	list, err := releaselist.Verify(raw, keys)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	good, err := list.Check(filepath.Dir(path))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "release %s · %d of %d files are here and good\n", visible.Line(list.Version), len(good), len(list.Files))
	for _, image := range list.Images {
		if err == nil {
			_, err = fmt.Fprintf(stdout, "  image %s %s\n", visible.Line(image.Name), visible.Line(image.Digest))
		}
	}
	return err
}
