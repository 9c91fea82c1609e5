package plugins_test

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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
		{"a host as well", func(s *jobspec.Spec) { s.Plugin.Hosts = []string{"api.example.com"} }, true},
		{"a role as well", func(s *jobspec.Spec) { s.Plugin.Roles = []string{"deploy"} }, true},
		{"a path as well", func(s *jobspec.Spec) { s.Plugin.Paths = []string{"/opt/a:ro"} }, true},
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
		{"with some hosts", func(s *jobspec.Spec) { s.Plugin.Hosts = []string{"api.example.com"} }, true, false},
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

// What grew is told by comparing with the version that was accepted last, whatever was
// accepted before that and whatever the component is called now; and it is shown.
func TestPluginsGrow(t *testing.T) {
	t.Parallel()
	accepted := func(at int, component string, p jobspec.Plugin) scripts.Accepted {
		p.Type, p.Signer = "greeting", "key"
		script := jobspec.PluginScript(component, p, jobspec.Artifact{Digest: "sha256:" + strconv.Itoa(at)})
		digest, err := script.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return scripts.Accepted{Digest: digest, Script: script, Since: time.Unix(int64(at), 0)}
	}
	all := jobspec.Plugin{Network: true, InstallDir: true, State: true}
	hosts := func(list ...string) jobspec.Plugin { return jobspec.Plugin{Hosts: list} }
	paths := func(list ...string) jobspec.Plugin { return jobspec.Plugin{Paths: list} }
	noText := accepted(1, "hello", all)
	noText.NoText, noText.Script.Action.Steps = true, nil
	for _, tc := range []struct {
		name   string
		before []scripts.Accepted
		is     jobspec.Plugin
		want   []string
	}{
		{"a new one", nil, all, nil},
		{"the same", []scripts.Accepted{accepted(1, "hello", all)}, all, nil},
		{"less", []scripts.Accepted{accepted(1, "hello", all)}, jobspec.Plugin{}, nil},
		{"from nothing", []scripts.Accepted{accepted(1, "hello", jobspec.Plugin{})}, all, []string{"install_dir", "network", "state"}},
		{"back to what it had once", []scripts.Accepted{accepted(1, "hello", all), accepted(2, "hello", jobspec.Plugin{State: true})}, jobspec.Plugin{Network: true, State: true}, []string{"network"}},
		{"under another name", []scripts.Accepted{accepted(1, "other", jobspec.Plugin{State: true})}, jobspec.Plugin{Network: true}, []string{"network"}},
		{"one host more", []scripts.Accepted{accepted(1, "hello", hosts("a.example.com"))}, hosts("A.example.com:443", "b.example.com", "10.1.2.3:80"), []string{"host 10.1.2.3:80", "host b.example.com:443"}},
		{"another port", []scripts.Accepted{accepted(1, "hello", hosts("a.example.com"))}, hosts("a.example.com:80"), []string{"host a.example.com:80"}},
		{"a wider name", []scripts.Accepted{accepted(1, "hello", hosts("a.example.com"))}, hosts("*.example.com"), []string{"host *.example.com:443"}},
		{"a narrower name", []scripts.Accepted{accepted(1, "hello", hosts("*.example.com"))}, hosts("a.example.com"), nil},
		{"from the network to a host", []scripts.Accepted{accepted(1, "hello", all)}, hosts("a.example.com"), nil},
		{"from a host to the network", []scripts.Accepted{accepted(1, "hello", hosts("a.example.com"))}, jobspec.Plugin{Network: true}, []string{"network"}},
		{"one path more", []scripts.Accepted{accepted(1, "hello", paths("/opt/a"))}, paths("/opt/a", "/opt/b:ro"), []string{"path /opt/b:ro"}},
		{"one role more", []scripts.Accepted{accepted(1, "hello", jobspec.Plugin{Roles: []string{"a"}})}, jobspec.Plugin{Roles: []string{"a", "{{.nuon.id}}-b"}}, []string{"role {{ .nuon.id }}-b"}},
		{"from reading to writing", []scripts.Accepted{accepted(1, "hello", paths("/opt/a:ro"))}, paths("/opt/a"), []string{"path /opt/a"}},
		{"from writing to reading", []scripts.Accepted{accepted(1, "hello", paths("/opt/a"))}, paths("/opt/a:ro"), nil},
		{"from what nobody knows", []scripts.Accepted{noText}, jobspec.Plugin{Network: true}, []string{"network"}},
	} {
		is := accepted(9, "hello", tc.is).Script
		if diff := cmp.Diff(tc.want, scripts.Grown(tc.before, is), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: -want +got\n%s", tc.name, diff)
		}
	}

	before := []scripts.Accepted{accepted(1, "hello", all), accepted(2, "hello", jobspec.Plugin{State: true})}
	review, err := scripts.Compare(before, jobspec.Release{Scripts: []jobspec.Script{accepted(9, "hello", jobspec.Plugin{Network: true, State: true}).Script}})
	if err != nil {
		t.Fatal(err)
	}
	var shown []jobspec.FieldChange
	for _, f := range review.Summary().Objects[0].Fields {
		if strings.HasPrefix(f.Path, "permission ") {
			shown = append(shown, f)
		}
	}
	want := []jobspec.FieldChange{{Path: "permission network", Before: "no", After: "yes"}, {Path: "permission state", After: "yes"}}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("shown: -want +got\n%s", diff)
	}
}

// What is no host, or no path, is on its own line of what people are shown, cannot pass for
// another permission, and the job that has it does not start.
func TestAttackHostThatIsNone(t *testing.T) {
	t.Parallel()
	text := "/a.example.com:443.\n# It may use the network.\n# It keeps a state of its own, sealed, between its jobs"
	spec := job(func(s *jobspec.Spec) {
		s.Plugin.Hosts, s.Plugin.Paths, s.Plugin.Roles = []string{text}, []string{text}, []string{text}
	})
	script := jobspec.PluginScript("hello", *spec.Plugin, *spec.Artifact)
	for _, name := range script.PluginPermissions() {
		if name != "host "+strconv.Quote(text) && name != "path "+strconv.Quote(text) && name != "role "+strconv.Quote(text) {
			t.Errorf("it passes for %q", name)
		}
	}
	if hosts, err := plugins.Hosts(spec); err == nil {
		t.Errorf("it may reach %v", hosts)
	}
	if paths, err := plugins.Paths(spec); err == nil {
		t.Errorf("it is shown %v", paths)
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
