package buildkit_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/runner/agent/buildkit"
)

// The credentials of an org reach the builds of that org, and of no other.
func TestGiveModules(t *testing.T) {
	t.Parallel()
	secrets := t.TempDir()
	write := func(mode fs.FileMode, text string, at ...string) {
		file := filepath.Join(append([]string{secrets}, at...)...)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write(0o600, `{"https://h": {"token": "of-org-a-1"}}`, "orga", "modules.json")
	write(0o600, `{"https://h": {"username": "u", "password": "of-org-b-2"}}`, "orgb", "secrets", "modules.json")
	write(0o644, `{"https://h": {"token": "of-org-c-3"}}`, "orgc", "modules.json")
	write(0o600, `{"https://h": {"tokens": "of-org-d-4"}}`, "orgd", "modules.json")
	s := buildkit.New(buildkit.Config{Settings: buildkit.Settings{Secrets: secrets}, Dir: t.TempDir()})
	for _, tc := range []struct{ org, hidden, says string }{
		{"orga", "of-org-a-1", ""}, {"orgb", "of-org-b-2", ""}, {"orge", "", ""}, {"orgc", "", "chmod 600"}, {"orgd", "", "it is no JSON object"},
	} {
		dir := t.TempDir()
		err := s.GiveModules(tc.org, dir)
		refusal, _ := errors.AsType[*buildkit.Refusal](err)
		if (refusal == nil) != (tc.says == "") || refusal != nil && (!strings.Contains(refusal.Message, tc.says) || strings.Contains(refusal.Message, "of-org")) {
			t.Errorf("%s: %v, want …%s", tc.org, err, tc.says)
		}
		hidden := buildkit.Hidden(dir)
		if tc.hidden == "" && len(hidden) > 0 || tc.hidden != "" && !slices.Contains(hidden, tc.hidden) {
			t.Errorf("%s: hidden %q, want %q", tc.org, hidden, tc.hidden)
		}
		raw, _ := os.ReadFile(filepath.Join(dir, "modules.json"))
		for _, other := range []string{"of-org-a-1", "of-org-b-2"} {
			if other != tc.hidden && strings.Contains(string(raw), other) {
				t.Errorf("%s got the credentials of another org", tc.org)
			}
		}
	}
	if err := (*buildkit.Service)(nil).GiveModules("orga", t.TempDir()); err != nil {
		t.Errorf("a runner that builds nothing: %v", err)
	}
}
