package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What is saved in a folder is reported, also in one that was made just now with
// files in it; what is never built is not.
func TestWatch(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{"services/ctl-api", ".bin/build", "sdk/node_modules"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	watched, err := watch(root, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	defer watched.close()
	saved := make(chan string)
	go watched.report(t.Context(), saved)
	save := func(file string) {
		t.Helper()
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("package x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want string) {
		t.Helper()
		for limit := time.After(30 * time.Second); ; {
			select {
			case file := <-saved:
				if file == want {
					return
				}
				if ignored(file) {
					t.Errorf("%s was reported", file)
				}
			case <-limit:
				t.Fatalf("%s was not reported", want)
			}
		}
	}
	save(".bin/build/ctl-api")
	save("sdk/node_modules/x.go")
	save("services/ctl-api/main.go")
	expect("services/ctl-api/main.go")
	save("services/ctl-api/internal/fresh/fresh.go")
	expect("services/ctl-api/internal/fresh/fresh.go")
	save("services/ctl-api/internal/fresh/fresh.go")
	expect("services/ctl-api/internal/fresh/fresh.go")

	// Editors write another file and rename it.
	save("services/ctl-api/main.go~")
	if err := os.Rename(filepath.Join(root, "services/ctl-api/main.go~"), filepath.Join(root, "services/ctl-api/main.go")); err != nil {
		t.Fatal(err)
	}
	expect("services/ctl-api/main.go")
}
