package scaffold

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"terraform {\n  required_version = \">= 1.6, < 2.0\"\n}\n": ">= 1.6, < 2.0", "required_version = \"1.6\"": "", "required_version = \">= one\"": "", "": "",
	} {
		if got := versionIn(source); got != want {
			t.Errorf("%q: got %q, want %q", source, got, want)
		}
	}
}

func TestComponentName(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		"web": "web", "My Bucket.v2": "my-bucket-v2", "-": "app", "base": "app", "Ünicode": "nicode",
		strings.Repeat("long-", 20): strings.Repeat("long-", 10) + "lon",
	} {
		if got := componentName(from); got != want {
			t.Errorf("%q: got %q, want %q", from, got, want)
		}
	}
}

func TestSourcesAreCopiedOrUsedInPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	module := filepath.Join(dir, "module")
	for name, text := range map[string]string{
		"main.tf": "variable \"a\" {}\n", "other.tf": "variable \"a\" {}\n", "sub/x.txt": "x", ".terraform/cache": "x", "terraform.tfstate": "x",
		"terraform.tfstate.backup": "x", "prod.auto.tfvars": "secret", "terraform.tfvars": "secret", ".terraform.lock.hcl": "lock",
	} {
		write(t, filepath.Join(module, name), text)
	}
	files, err := Files(filepath.Join(dir, "app"), Options{Terraform: module})
	if err != nil {
		t.Fatal(err)
	}
	var copied []string
	for _, f := range files {
		if name, ok := strings.CutPrefix(f.Path, "src/module/"); ok {
			copied = append(copied, name)
		}
		if f.Path == "inputs.toml" && strings.Count(string(f.Data), "[[input]]") != 1 {
			t.Errorf("a variable of two files is asked for twice:\n%s", f.Data)
		}
	}
	if diff := cmp.Diff([]string{".terraform.lock.hcl", "main.tf", "other.tf", "sub/x.txt"}, copied); diff != "" {
		t.Errorf("copied (-want +got):\n%s", diff)
	}

	write(t, filepath.Join(dir, "app", "modules", "m", "main.tf"), "")
	files, err = Files(filepath.Join(dir, "app"), Options{Terraform: filepath.Join(dir, "app", "modules", "m")})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasPrefix(f.Path, "src/m/") {
			t.Errorf("%s is a copy of what is in the app already", f.Path)
		}
		if f.Path == "components/m.toml" && !strings.Contains(string(f.Data), `local_source = "modules/m"`) {
			t.Errorf("the component does not use it in place:\n%s", f.Data)
		}
	}
}

func TestSourcesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "empty", "README.md"), "")
	write(t, filepath.Join(dir, "linked", "main.tf"), "")
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "linked", "x")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "nameless", "Chart.yaml"), "version: 1.0.0\n")
	write(t, filepath.Join(dir, "around", "main.tf"), "")
	for _, tc := range []struct {
		name, app string
		o         Options
		want      string
	}{
		{"no module", "app", Options{Terraform: filepath.Join(dir, "empty")}, "has no .tf file"},
		{"no chart", "app", Options{Chart: filepath.Join(dir, "empty")}, "is not a Helm chart"},
		{"chart without a name", "app", Options{Chart: filepath.Join(dir, "nameless")}, "does not name the chart"},
		{"a link", "app", Options{Terraform: filepath.Join(dir, "linked")}, "is not a regular file"},
		{"the app would be in its source", "around/app", Options{Terraform: filepath.Join(dir, "around")}, "is inside its own source"},
	} {
		if _, err := Files(filepath.Join(dir, tc.app), tc.o); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
