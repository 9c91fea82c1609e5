package stage_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/rehearse/stage"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/graph"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

const kitchenSink = "../../../../examples/kitchen-sink"

func load(t *testing.T, dir string) *appconfig.App {
	t.Helper()
	app, diags := check.Format(os.DirFS(dir), appconfig.LoadOptions{SkipSources: true})
	for _, d := range diags {
		if d.Severity == place.Error {
			t.Errorf("%s: %v", dir, d)
		}
	}
	return app
}

// With stand-ins for everything the folder is deployable, whatever it holds; names,
// the graph, and who stands in are as they were.
func TestEverythingHasAStandIn(t *testing.T) {
	t.Parallel()
	app := load(t, kitchenSink)
	stands := stage.StandIns{stage.Sandbox: "the sandbox"}
	for _, c := range app.Components {
		stands[stage.Component(c.Name)] = `no "` + c.Name + "\"\n\\"
	}
	for _, a := range app.Actions {
		stands[stage.Action(a.Name)] = "no action"
	}
	to := t.TempDir()
	if err := stage.Write(kitchenSink, to, app, stage.Changes{StandIns: stands}); err != nil {
		t.Fatal(err)
	}
	staged, diags := check.Folder(os.DirFS(to), appconfig.LoadOptions{SkipSources: true})
	for _, d := range diags {
		if d.Severity == place.Error {
			t.Error(d)
		}
	}
	got := stage.StandIns{}
	for part, why := range staged.StandIns() {
		got[stage.Part(part)] = why
	}
	if diff := cmp.Diff(stands, got); diff != "" {
		t.Errorf("stand-ins (-want +got):\n%s", diff)
	}
	was, _ := graph.New(app)
	is, _ := graph.New(staged)
	for _, name := range was.Nodes {
		if diff := cmp.Diff(was.Needs(name), is.Needs(name)); diff != "" {
			t.Errorf("%s needs (-want +got):\n%s", name, diff)
		}
	}
	for _, obstacle := range check.Obstacles(staged) {
		t.Errorf("there is still %v", obstacle)
	}
}

// Without stand-ins it is the folder, but for what git keeps.
func TestNothingIsChangedWithoutStandIns(t *testing.T) {
	t.Parallel()
	to := t.TempDir()
	if err := stage.Write(kitchenSink, to, load(t, kitchenSink), stage.Changes{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(contents(t, kitchenSink), contents(t, to)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(filepath.Join(dir, name))
		all[name] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A link of the folder that leads out of it is copied as a link: what it leads to is
// not read, and a stand-in does not write through it.
func TestLinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	outside, from, to := filepath.Join(t.TempDir(), "outside.toml"), t.TempDir(), t.TempDir()
	const was = "name = \"a\"\ntype = \"job\"\nimage_url = \"x\"\ntag = \"1\"\n"
	for path, text := range map[string]string{outside: was, filepath.Join(from, "metadata.toml"): "version = \"v2\"\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(from, "components"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(from, "components", "a.toml")); err != nil {
		t.Fatal(err)
	}
	app := &appconfig.App{Components: []appconfig.Component{{Name: "a", Type: appconfig.TypeJob, At: place.Place{File: "components/a.toml"}}}}
	if err := stage.Write(from, to, app, stage.Changes{StandIns: stage.StandIns{stage.Component("a"): "no jobs"}}); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(outside); err != nil || string(raw) != was {
		t.Errorf("the file outside is %q (%v)", raw, err)
	}
	if info, err := os.Lstat(filepath.Join(to, "components", "a.toml")); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the stand-in is %v (%v)", info, err)
	}
}

func TestObstacles(t *testing.T) {
	t.Parallel()
	app := load(t, kitchenSink)
	got := stage.Obstacles(app, nil)
	for _, obstacle := range check.Obstacles(app) {
		part, ok := stage.PartAt(app, obstacle.At)
		if !ok || got.Why(part) == "" {
			t.Errorf("%v is of no part that gets a stand-in", obstacle)
		}
	}
	if got.None() {
		t.Error("the kitchen sink has no obstacle: remove this test with the last row that refuses an app")
	}
}

func TestHopeless(t *testing.T) {
	t.Parallel()
	action := func(name, script string) appconfig.Action {
		return appconfig.Action{Name: name, Steps: []appconfig.Step{{Name: "a", InlineContents: &place.Text{Contents: script}}}}
	}
	app := &appconfig.App{Actions: []appconfig.Action{
		action("cloud", "set -e\nx=$(aws sts get-caller-identity)"), action("cluster", "test -n x && kubectl get pods | wc -l"),
		action("comment", "# kubectl get pods\n  # aws s3 ls\necho paws and laws"), action("told", "echo \"the aws region\""),
		action("azure", "if ! az aks show; then exit 1; fi"), action("quoted", "bash -c 'gcloud info'"), action("set", "AWS_PAGER= aws s3 ls"), action("file", "cat kubectl.txt"),
	}}
	for cluster, want := range map[bool][]string{true: {"action/azure", "action/cloud", "action/quoted", "action/set"}, false: {"action/azure", "action/cloud", "action/cluster", "action/quoted", "action/set"}} {
		var got []string
		for part := range stage.Hopeless(app, cluster) {
			got = append(got, string(part))
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("with a cluster %v (-want +got):\n%s", cluster, diff)
		}
	}
}

func TestReads(t *testing.T) {
	t.Parallel()
	app := load(t, "../../../../services/e2e/testdata/rehearse/rds")
	madeUp := func(path string) bool { return strings.HasPrefix(path, "components.database.") }
	want := []string{"components.database.outputs.address", "components.database.outputs.port"}
	if diff := cmp.Diff(want, stage.Reads(app, stage.Component("settings"), madeUp)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := stage.Reads(app, stage.Action("told"), madeUp); got != nil {
		t.Errorf("the action reads %v", got)
	}
}

func TestUsersOfABuild(t *testing.T) {
	t.Parallel()
	app := load(t, "../../../../services/e2e/testdata/rehearse/runbooks")
	for item, want := range map[string][]stage.Part{
		"sandbox/sandbox": {stage.Sandbox}, "component/note": {stage.Component("note")},
		"scripts/https://git.example.invalid/acme/scripts.git//seed@main": {stage.Action("scripts")}, "scripts/other": nil,
	} {
		kind, name, _ := strings.Cut(item, "/")
		if diff := cmp.Diff(want, stage.UsersOf(app, name, kind)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", item, diff)
		}
	}
}
