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

// Some modules have no file with their license, and name it elsewhere.
func TestStatedTerms(t *testing.T) {
	t.Parallel()
	const apache = "Licensed under the Apache License, Version 2.0 (the \"License\");"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string // "" for none
	}{
		{"nothing", map[string]string{"README.md": "# A module\n", "a.go": "package a\n"}, ""},
		{"the README", map[string]string{"README.md": "# A\r\n## License\r\n[Apache-2.0](http://x)\r\n\r\n(c) A\r\n# More\r\ntext"}, "[Apache-2.0](http://x)\n\n(c) A"},
		{"a README that only speaks of one", map[string]string{"README.md": "# A\nThis is no license\n## Licenses of others\nnone\n"}, ""},
		{"above the code", map[string]string{"in/a.go": "/*\nCopyright A\n\n   " + apache + "\n*/\n\n// Package a does.\npackage a\n"}, "Copyright A\n" + apache},
		{"below the code", map[string]string{"a.go": "package a\n\n// " + apache + "\n"}, ""},
		{"code that does not parse", map[string]string{"a.go": "// " + apache + "\npackage\n"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range c.files {
				file := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := image.StatedTerms(dir)
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				if len(got) != 0 {
					t.Errorf("terms are %q, want none", got)
				}
				return
			}
			if len(got) != 1 || !strings.HasSuffix(got[0], "\n\n"+c.want) {
				t.Errorf("terms are %q, want %q", got, c.want)
			}
		})
	}
}
