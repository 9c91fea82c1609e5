package terraformtest

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Required asks for the provider in a module.
const Required = `
terraform {
  required_providers {
    world = { source = "berth.test/berth/world" }
  }
}
`

// Mirror makes a mirror with the provider in a directory, and returns the path of a
// configuration that names it (TF_CLI_CONFIG_FILE).
func Mirror(t *testing.T, dir string) (config string) {
	t.Helper()
	pkg := filepath.Join(dir, "mirror", "berth.test", "berth", "world", "1.0.0", runtime.GOOS+"_"+runtime.GOARCH)
	if err := os.MkdirAll(pkg, 0o755); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := place(program, filepath.Join(pkg, "terraform-provider-world_v1.0.0")); err != nil {
		t.Fatal(err)
	}
	config = filepath.Join(dir, "mirror.tfrc")
	text := "provider_installation {\n  filesystem_mirror {\n    path = \"" + filepath.Join(dir, "mirror") + "\"\n  }\n}\n"
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return config
}

// place links a program, or copies it where that is on another disk.
func place(from, to string) error {
	if os.Link(from, to) == nil {
		return os.Chmod(to, 0o755)
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if closed := out.Close(); err == nil {
		err = closed
	}
	return err
}
