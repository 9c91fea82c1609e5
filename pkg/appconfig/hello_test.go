package appconfig_test

import (
	"flag"
	"io/fs"
	"os"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/graph"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// hello reads examples/hello into memory, so that a test can change it.
func hello(t *testing.T) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	root := os.DirFS("../../examples/hello")
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, name)
		out[name] = &fstest.MapFile{Data: data, Mode: 0o644}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// digests gives the build and deploy digests by buildable.
func digests(app *appconfig.App) map[string]string {
	out := map[string]string{
		"sandbox build": app.Sandbox.BuildDigest("src"), "sandbox deploy": app.Sandbox.DeployDigest(),
	}
	for i := range app.Components {
		c := &app.Components[i]
		out[c.Name+" build"], out[c.Name+" deploy"] = c.BuildDigest("src"), c.DeployDigest()
	}
	return out
}

func TestHelloIsClean(t *testing.T) {
	t.Parallel()
	app, diags := check.Folder(hello(t), appconfig.LoadOptions{})
	notYet := []string{"inputs.toml:4 note", "stack.toml:4 note"} // its headings, its stack's text
	if diff := cmp.Diff(notYet, unsupported(diags)); diff != "" {
		t.Fatalf("what is said (-want +got):\n%s\n%s", diff, appconfigtest.Render(diags))
	}
	g, _ := graph.New(app)
	if diff := cmp.Diff([][]string{{"greeting", "key"}, {"card"}}, g.Layers()); diff != "" {
		t.Errorf("layers (-want +got):\n%s", diff)
	}
	var sources []string
	for _, s := range appconfig.Sources(app) {
		sources = append(sources, s.Block+" "+s.Name+" "+string(s.Kind)+" "+s.Directory)
	}
	want := []string{
		"sandbox  local src/data-dir", "component card local src/document", "component greeting local src/document",
		"component key local src/key",
	}
	if diff := cmp.Diff(want, sources); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	if app.Component("card").BuildDigest("src") != app.Component("greeting").BuildDigest("src") {
		t.Error("card and greeting are one module and have two build digests")
	}
	own, ok := app.Action("files_intact").HealthCheck()
	if !ok || own != (appconfig.HealthCheck{UnhealthyAfter: 3, HealthyAfter: 2}) {
		t.Errorf("health check: got %+v, %v", own, ok)
	}
	if !app.Input("passphrase").Sensitive {
		t.Error("the passphrase is not sensitive")
	}
}

func TestHelloOneVarChangesOneDeployDigest(t *testing.T) {
	t.Parallel()
	before := appconfigtest.Load(t, hello(t))
	changed := hello(t)
	file := changed["components/card.toml"]
	file.Data = append(file.Data, "extra = \"1\"\n"...)
	after := appconfigtest.Load(t, changed)

	var moved []string
	was := digests(before)
	for name, digest := range digests(after) {
		if was[name] != digest {
			moved = append(moved, name)
		}
	}
	if diff := cmp.Diff([]string{"card deploy"}, moved); diff != "" {
		t.Errorf("changed digests (-want +got):\n%s", diff)
	}
	if before.Digest() == after.Digest() {
		t.Error("the app's digest did not change")
	}
}

// TestHelloDigests pins the digests: they are stored with every release, so a
// change of how they are computed builds and deploys everything again. Rewrite
// the golden file only when the example itself changed.
func TestHelloDigests(t *testing.T) {
	t.Parallel()
	app := appconfigtest.Load(t, hello(t))
	got := "app " + app.Digest() + "\n"
	all := digests(app)
	for _, name := range []string{"sandbox", "card", "greeting", "key"} {
		got += name + " build " + all[name+" build"] + "\n" + name + " deploy " + all[name+" deploy"] + "\n"
	}
	appconfigtest.Golden(t, "hello_digests.txt", got, *update)
}
