package conformance_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/conformance"
)

// changed is the shell plugin with one text of one of its files replaced.
func changed(t *testing.T, file, from, to string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(example)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, file)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(raw, []byte(from)) {
		t.Fatalf("%s has no %q", file, from)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(raw, []byte(from), []byte(to)), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Another version of a plugin has to make the same of what the one before left, and
// each way in which it does not is named.
func TestReplay(t *testing.T) {
	t.Parallel()
	recording := filepath.Join(t.TempDir(), "recording")
	names, err := conformance.Record(t.Context(), example, recording)
	if err != nil || len(names) != 6 {
		t.Fatalf("recorded %v, %v", names, err)
	}
	err = fs.WalkDir(os.DirFS(recording), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := os.ReadFile(filepath.Join(recording, name))
		if bytes.Contains(raw, []byte("canary")) || bytes.Contains(raw, []byte(os.TempDir())) {
			t.Errorf("%s has the secret, or a path of this machine: %s", name, raw)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conformance.Record(t.Context(), example, recording); err == nil {
		t.Error("a recording is written over")
	}
	for _, tc := range []struct {
		name, file, from, to string
		want                 map[string]string // what differs, by change; the others are the same
	}{
		{"the same version", "plugin.json", "1.1.0", "1.2.0", nil},
		{"it forgot where it keeps its state", "greeting.sh", "$BERTH_STATE_DIR/place", "$BERTH_STATE_DIR/where", map[string]string{
			"01-create": "after/state/where is new", "02-nothing": "plan/result.json is", "03-update": `it was "{\"action\":\"update\"`,
			"04-replace": "after/install/hall/demo.txt is new", "05-destroy": "after/install/cellar/demo.txt is new",
		}},
		{"an output is gone", "greeting.sh", "receipt", "ticket", map[string]string{
			"01-create": "apply/outputs.json is", "03-update": "apply/outputs.json is", "04-replace": "apply/outputs.json is",
		}},
		{"configs of before are refused", "plugin.json", `"maxLength": 200`, `"maxLength": 4`, map[string]string{
			"03-update": "does not fit the plugin's schema any more",
		}},
	} {
		all, err := conformance.Replay(t.Context(), changed(t, tc.file, tc.from, tc.to), recording)
		if err != nil && tc.name == "configs of before are refused" {
			continue // its own conformance.json does not fit either
		}
		if err != nil || len(all) != len(names) {
			t.Fatalf("%s: %+v, %v", tc.name, all, err)
		}
		for _, r := range all {
			if want, differs := tc.want[r.Name]; differs != (r.Status == conformance.Broken) || !strings.Contains(r.Why, want) {
				t.Errorf("%s: %s is %s: %s; want %q", tc.name, r.Name, r.Status, r.Why, want)
			}
		}
	}
	if _, err := conformance.Replay(t.Context(), example, t.TempDir()); err == nil || !strings.Contains(err.Error(), "no recording") {
		t.Errorf("an empty directory: %v", err)
	}
}
