package appconfigtest

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/bundle"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// Minimal is the smallest folder without problems; tests change it.
var Minimal = map[string]string{
	"metadata.toml":    `version = "v2"`,
	"sandbox.toml":     "terraform_version = \"1.11.4\"\n[berth]\nlocal_source = \"src/base\"\n[vars]\nsize = \"small\"\n",
	"runner.toml":      `runner_type = "local"`,
	"stack.toml":       "type = \"local\"\n",
	"src/base/main.tf": VariablesOf("size", "x", "y", "z") + OutputsOf("host", "id", "region", "token", "url", "x", "y", "z"),
}

// OutputsOf declares outputs of a module.
func OutputsOf(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString("output \"" + name + "\" {\n  value = \"\"\n}\n")
	}
	return b.String()
}

// VariablesOf declares variables that need no value.
func VariablesOf(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString("variable \"" + name + "\" {\n  default = null\n}\n")
	}
	return b.String()
}

// Module is a component file that is right as it is.
func Module(name string, more ...string) string {
	return "name = \"" + name + "\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.4\"\n" +
		strings.Join(more, "\n") + "\n[berth]\nlocal_source = \"src/base\"\n"
}

// Folder makes an app folder from the minimal one; "" removes a file.
func Folder(files ...map[string]string) fstest.MapFS {
	merged := maps.Clone(Minimal)
	for _, f := range files {
		maps.Copy(merged, f)
	}
	out := fstest.MapFS{}
	for name, contents := range merged {
		if contents != "" {
			out[name] = &fstest.MapFile{Data: []byte(contents), Mode: 0o644}
		}
	}
	return out
}

// Load reads a folder that has no errors.
func Load(t *testing.T, fsys fs.FS) *appconfig.App {
	t.Helper()
	app, diags := check.Folder(fsys, appconfig.LoadOptions{})
	Right(t, diags)
	return app
}

// Right fails the test when a folder has errors.
func Right(t *testing.T, diags []place.Diagnostic) {
	t.Helper()
	if place.HasErrors(diags) {
		t.Fatalf("the folder has errors:\n%s", Render(diags))
	}
}

// Render writes diagnostics as people see them, one a line.
func Render(diags []place.Diagnostic) string {
	var b strings.Builder
	for _, d := range diags {
		b.WriteString(d.String() + "\n")
	}
	return b.String()
}

// Golden compares with a file of testdata, or writes it when update is set.
func Golden(t *testing.T, name, got string, update bool) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// WriteFile writes a file and the folders above it.
func WriteFile(t *testing.T, path, contents string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(contents), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Symlink makes a link at path.
func Symlink(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// Archives are the packs of a bundle as bundle.Open takes them.
func Archives(b bundle.Bundle) [][]byte {
	var all [][]byte
	for _, pack := range b.Packs {
		all = append(all, pack.Bytes)
	}
	return all
}
