package engine_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// A module's providers come from the operator's mirror and cache, without the
// network, and the cache is as it was. The provider is none, so only init works.
func TestMirrorAndCacheOfProviders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	place := func(root, name string) {
		t.Helper()
		path := filepath.Join(dir, root, "example.test/acme", name, "1.0.0", runtime.GOOS+"_"+runtime.GOARCH, "terraform-provider-"+name+"_v1.0.0")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/false\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	place("mirror", "cached")
	place("mirror", "mirrored")
	place("cache", "cached")
	config := filepath.Join(dir, "terraformrc")
	text := "provider_installation {\n  filesystem_mirror {\n    path = \"" + filepath.Join(dir, "mirror") + "\"\n  }\n}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	i := newInstall(t, `terraform {
  required_providers {
    cached   = { source = "example.test/acme/cached" }
    mirrored = { source = "example.test/acme/mirrored" }
  }
}
`)
	j := i.plan(t, nil)
	j.env["TF_CLI_CONFIG_FILE"], j.env["TF_PLUGIN_CACHE_DIR"] = config, filepath.Join(dir, "cache")
	j.env["TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE"] = "1"
	j.run(t)
	wantContains(t, "log", j.log(t), "Using example.test/acme/cached v1.0.0 from the shared cache directory")
	wantContains(t, "log", j.log(t), "Installed example.test/acme/mirrored v1.0.0")
	wantContains(t, "log", j.log(t), "Terraform has been successfully initialized")
	var packages []string
	err := filepath.WalkDir(filepath.Join(dir, "cache"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			packages = append(packages, filepath.Base(path))
		}
		return err
	})
	if err != nil || len(packages) != 1 {
		t.Errorf("the shared cache has %v, %v", packages, err)
	}
}
