package plugins_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/plugins"
	"github.com/berth-dev/berth/runner/agent/scripts"
)

func job(edit ...func(*jobspec.Spec)) jobspec.Spec {
	s := jobspec.Spec{
		Kind: jobspec.KindPlugin, Operation: jobspec.OperationPlan, InstallID: "ins_1",
		Resource: &jobspec.Resource{Name: "hello"}, Artifact: &jobspec.Artifact{Repository: "org/app/hello", Digest: "sha256:a"},
		Work: jobspec.Work{Plugin: &jobspec.Plugin{Type: "greeting", Signer: "key", Config: map[string]any{"text": "ahoy"}}},
	}
	for _, e := range edit {
		e(&s)
	}
	return s
}

// What was accepted is one plugin, by one key, with its permissions, for one
// component; its config at a deploy does not count.
func TestRefused(t *testing.T) {
	t.Parallel()
	given := job()
	digest, err := jobspec.PluginScript("hello", *given.Plugin, *given.Artifact).Digest()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name    string
		edit    func(*jobspec.Spec)
		refused bool
	}{
		{"as it was accepted", func(*jobspec.Spec) {}, false},
		{"its apply", func(s *jobspec.Spec) { s.Operation = jobspec.OperationApply }, false},
		{"a teardown", func(s *jobspec.Spec) { s.Destroy = true }, false},
		{"another config", func(s *jobspec.Spec) { s.Plugin.Config = map[string]any{"text": "aloha"} }, false},
		{"from another repository", func(s *jobspec.Spec) { s.Artifact.Repository = "org/app/other" }, false},
		{"another artifact", func(s *jobspec.Spec) { s.Artifact.Digest = "sha256:b" }, true},
		{"another signer", func(s *jobspec.Spec) { s.Plugin.Signer = "other" }, true},
		{"another type", func(s *jobspec.Spec) { s.Plugin.Type = "other" }, true},
		{"the network as well", func(s *jobspec.Spec) { s.Plugin.Network = true }, true},
		{"the install's directory as well", func(s *jobspec.Spec) { s.Plugin.InstallDir = true }, true},
		{"for another component", func(s *jobspec.Spec) { s.Resource.Name = "other" }, true},
		{"no plugin at all", func(s *jobspec.Spec) { s.Plugin = nil }, true},
		{"no artifact", func(s *jobspec.Spec) { s.Artifact = nil }, true},
		{"a build, which starts none", func(s *jobspec.Spec) { s.Operation, s.Plugin = jobspec.OperationBuild, nil }, false},
		{"no plugin's job", func(s *jobspec.Spec) { s.Kind = jobspec.KindHelmChart }, false},
	} {
		d := plugins.Refused(job(tc.edit), func(d string) bool { return d == digest })
		if (d != nil) != tc.refused {
			t.Errorf("%s: refused %v, want %v", tc.name, d, tc.refused)
		}
	}
}

func TestConfined(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name                  string
		edit                  func(*jobspec.Spec)
		confined, seesInstall bool
	}{
		{"by default", func(*jobspec.Spec) {}, true, false},
		{"with the network", func(s *jobspec.Spec) { s.Plugin.Network = true }, false, false},
		{"with the install's directory", func(s *jobspec.Spec) { s.Plugin.InstallDir = true }, true, true},
		{"a plugin that says nothing", func(s *jobspec.Spec) { s.Plugin = nil }, true, false},
		{"a build", func(s *jobspec.Spec) { s.Operation, s.InstallID, s.Plugin = jobspec.OperationBuild, "", nil }, false, false},
		{"another engine", func(s *jobspec.Spec) { s.Kind = jobspec.KindTerraformModule }, false, true},
	} {
		if c, i := plugins.Confined(job(tc.edit)), plugins.SeesInstall(job(tc.edit)); c != tc.confined || i != tc.seesInstall {
			t.Errorf("%s: confined %v, sees the install %v; want %v, %v", tc.name, c, i, tc.confined, tc.seesInstall)
		}
	}
}

func TestNarrow(t *testing.T) {
	t.Parallel()
	tree := map[string]any{
		"name": "acme", "id": "ins_1",
		"components": map[string]any{
			"db":  map[string]any{"outputs": map[string]any{"host": "h", "port": 1}},
			"web": map[string]any{"outputs": map[string]any{"url": "u", "list": []any{"a", "b"}}},
		},
	}
	named := [][]string{{"name"}, {"components", "db", "outputs", "host"}, {"components", "web", "outputs", "list", "1"}}
	keep := func(path []string) bool {
		for _, name := range named {
			n := min(len(name), len(path))
			if cmp.Equal(name[:n], path[:n]) {
				return true
			}
		}
		return false
	}
	want := map[string]any{
		"name": "acme",
		"components": map[string]any{
			"db":  map[string]any{"outputs": map[string]any{"host": "h"}},
			"web": map[string]any{"outputs": map[string]any{"list": []any{"a", "b"}}},
		},
	}
	if diff := cmp.Diff(want, plugins.Narrow(tree, keep)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := plugins.Narrow(tree, func([]string) bool { return false }); !cmp.Equal(got, map[string]any{}) {
		t.Errorf("nothing named: %v", got)
	}
}

// An accepted plugin stays accepted when a release does not bring it any more, a
// script does not; and another version of it is shown as a change.
func TestPluginsStayAccepted(t *testing.T) {
	t.Parallel()
	accept := func(s jobspec.Script) scripts.Accepted {
		digest, err := s.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return scripts.Accepted{Digest: digest, Script: s}
	}
	of := func(digest string) jobspec.Script {
		return jobspec.PluginScript("hello", jobspec.Plugin{Type: "greeting", Signer: "key"}, jobspec.Artifact{Digest: digest})
	}
	before := []scripts.Accepted{accept(of("sha256:a")), accept(jobspec.Script{Action: jobspec.Action{Name: "old"}})}
	if got := plugins.Kept(before); len(got) != 1 || got[0] != before[0].Digest {
		t.Errorf("kept %v", got)
	}
	review, err := scripts.Compare(before, jobspec.Release{})
	if err != nil || len(review.Gone) != 1 || review.Gone[0].Script.Action.Name != "old" {
		t.Errorf("gone: %+v, %v", review.Gone, err)
	}
	review, err = scripts.Compare(before, jobspec.Release{Scripts: []jobspec.Script{of("sha256:b")}})
	if err != nil || len(review.Changed) != 1 || len(review.New) != 0 {
		t.Fatalf("another version: %+v, %v", review, err)
	}
	text := ""
	for _, o := range review.Summary().Objects {
		text += o.Address + " " + o.Action + "\n"
	}
	if !strings.Contains(text, "plugin greeting of component hello update") {
		t.Errorf("shown as\n%s", text)
	}
}

// A later release without the plugin does not take it out, settings that schedule
// nothing do not either; only an acceptance of nothing does.
func TestAcceptedPluginOutlivesItsRelease(t *testing.T) {
	t.Parallel()
	set, err := scripts.Open(filepath.Join(t.TempDir(), "accepted.json"))
	if err != nil {
		t.Fatal(err)
	}
	p := jobspec.PluginScript("hello", jobspec.Plugin{Type: "greeting", Signer: "key"}, jobspec.Artifact{Digest: "sha256:a"})
	digest, err := p.Digest()
	if err != nil {
		t.Fatal(err)
	}
	accept := func(r jobspec.Release, keep []string) {
		t.Helper()
		_, version := set.Position()
		if err := set.Replace(scripts.Acceptance{From: version, Release: r, Keep: keep, JobID: "job"}); err != nil {
			t.Fatal(err)
		}
		if err := set.Settle(nil); err != nil {
			t.Fatal(err)
		}
	}
	accept(jobspec.Release{ID: "rel_1", Scripts: []jobspec.Script{p}}, nil)
	accept(jobspec.Release{ID: "rel_2"}, plugins.Kept(set.List()))
	if _, found := set.Get(digest); !found {
		t.Error("it is not accepted any more, and what it made cannot be removed")
	}
	accept(jobspec.Release{}, nil)
	if _, found := set.Get(digest); found {
		t.Error("it is still accepted after everything was forgotten")
	}
}
