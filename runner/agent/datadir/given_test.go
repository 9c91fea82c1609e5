package datadir_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/runner/agent/datadir"
)

// The Secret of a pod is mounted, then changed, then deleted; the runner enrols
// meanwhile.
func TestTake(t *testing.T) {
	t.Parallel()
	d, err := datadir.At(filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	given := t.TempDir()
	put := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o444); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		name   string
		before func()
		want   map[string]string
	}{
		{"nothing is given", func() {}, map[string]string{}},
		{"all is taken", func() {
			put(filepath.Join(given, "trust.json"), "whom")
			put(filepath.Join(given, "enrolment"), "secret")
			put(filepath.Join(given, "ca.crt"), "authority")
		}, map[string]string{"trust.json": "whom", "secrets/enrolment": "secret", "authorities/ca.crt": "authority"}},
		{"what is new is taken", func() {
			if err := os.Remove(filepath.Join(given, "trust.json")); err != nil {
				t.Fatal(err)
			}
			put(filepath.Join(given, "trust.json"), "others")
		}, map[string]string{"trust.json": "others", "secrets/enrolment": "secret", "authorities/ca.crt": "authority"}},
		{"an enrolled runner takes no secret", func() {
			put(d.Runner(), "{}")
			if err := datadir.Remove(d.Enrolment()); err != nil {
				t.Fatal(err)
			}
		}, map[string]string{"trust.json": "others", "authorities/ca.crt": "authority", "runner.json": "{}"}},
		{"what is taken away there stays", func() {
			if err := os.RemoveAll(given); err != nil {
				t.Fatal(err)
			}
		}, map[string]string{"trust.json": "others", "authorities/ca.crt": "authority", "runner.json": "{}"}},
	} {
		step.before()
		if err := d.Take(given); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		got := map[string]string{}
		err := filepath.WalkDir(d.Path(), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			name, _ := filepath.Rel(d.Path(), path)
			got[name] = string(text)
			if info, statErr := entry.Info(); statErr == nil && name != "runner.json" && info.Mode() != 0o600 {
				t.Errorf("%s: mode of %s is %s", step.name, name, info.Mode())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}
