package image_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/dev/image"
)

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// Those of the image maker, which links real modules.
func TestLicenses(t *testing.T) {
	t.Parallel()
	self := filepath.Join(t.TempDir(), "images")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", self, "../images")
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	licenses := image.Licenses{Modules: goEnv(t, "GOMODCACHE"), GoRoot: goEnv(t, "GOROOT")}
	text, err := licenses.Of([]string{self})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nGo 1.", "\noras.land/oras-go/v2@v", "\ngithub.com/CycloneDX/cyclonedx-go@v", "\n" + image.RootsModule + "@", "Copyright 2009 The Go Authors.", "Apache License\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in the text", want)
		}
	}
	if n := strings.Count(string(text), "Copyright 2009 The Go Authors."); n > 1 {
		t.Errorf("the license of Go is there %d times, want once", n)
	}
	again, err := licenses.Of([]string{self, self})
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("the same executable again gives another text, %v", err)
	}

	// What has no terms must not be shipped.
	licenses.Modules = t.TempDir()
	if _, err := licenses.Of([]string{self}); err == nil || !strings.Contains(err.Error(), "license of ") {
		t.Errorf("without modules: %v", err)
	}
	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, "license.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	licenses.GoRoot = empty
	if _, err := licenses.Of([]string{self}); err == nil || !strings.Contains(err.Error(), "license of Go: it has none") {
		t.Errorf("code is no license: %v", err)
	}
}
