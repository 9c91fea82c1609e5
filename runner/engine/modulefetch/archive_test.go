package modulefetch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"strings"
	"testing"
)

// Entries that make nothing count too: an archive of a few megabytes holds millions.
func TestUnpackCountsAllEntries(t *testing.T) {
	t.Parallel()
	for name, entry := range map[string]tar.Header{
		"its own directory": {Typeflag: tar.TypeDir, Name: "./"},
		"global headers":    {Typeflag: tar.TypeXGlobalHeader, Name: "g", PAXRecords: map[string]string{"comment": "x"}},
	} {
		var packed bytes.Buffer
		zipped := gzip.NewWriter(&packed)
		w := tar.NewWriter(zipped)
		for range maxEntries + 1 {
			if err := w.WriteHeader(&entry); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := zipped.Close(); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		err = (&unpacking{root: root}).tar(&packed)
		if err == nil || !strings.Contains(err.Error(), "entries") {
			t.Errorf("%s: %v, want too many entries", name, err)
		}
		_ = root.Close()
	}
}
