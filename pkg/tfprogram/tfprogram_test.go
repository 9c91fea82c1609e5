package tfprogram_test

import (
	"archive/zip"
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-dev/berth/pkg/tfprogram"
)

func TestUnpack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	archive := func(name, content string) string {
		path := filepath.Join(dir, name+".zip")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		z := zip.NewWriter(f)
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(content))
		}
		if err == nil {
			err = z.Close()
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	target := filepath.Join(dir, "bin")
	if err := tfprogram.Unpack(archive("terraform", "#!/bin/sh\n"), "terraform", target); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(target)
	if err != nil || info.Mode().Perm() != 0o755 || info.Size() != 10 {
		t.Errorf("%v, %v", info, err)
	}
	other := filepath.Join(dir, "other")
	if err := tfprogram.Unpack(archive("tofu", "x"), "terraform", other); err == nil {
		t.Error("an archive without the program was unpacked")
	}
	if _, err := os.Stat(other); !os.IsNotExist(err) {
		t.Errorf("something was left: %v", err)
	}
}
