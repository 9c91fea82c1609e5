package apps

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/services/internal/model"
)

// Scripts are one item for each directory and ref. Those of git have one build
// digest, so that builds of one commit and directory are shared; uploaded ones are
// told apart by their content.
func TestItemsOfScripts(t *testing.T) {
	t.Parallel()
	step := func(ref string) appconfig.Step {
		return appconfig.Step{Command: "./a.sh", PublicRepo: &appconfig.Repo{Repo: "acme/ops", Directory: "scripts", Branch: ref}}
	}
	app := &appconfig.App{Actions: []appconfig.Action{
		{Name: "one", Steps: []appconfig.Step{step("main"), step("v1"), {Command: "true"}}},
		{Name: "two", Steps: []appconfig.Step{step("main"), step("dev")}},
	}}
	items, err := itemsOf(app, map[string]string{"acme/ops//scripts@dev": "sha256:d"}, map[string]bool{"acme/ops//scripts@dev": true})
	if err != nil {
		t.Fatal(err)
	}
	type got struct {
		Name   string
		Source Source
	}
	var all []got
	for _, it := range items {
		if it.Kind != model.KindScripts || it.Type != "scripts" {
			t.Errorf("%s: kind %s, type %s", it.Name, it.Kind, it.Type)
		}
		all = append(all, got{it.Name, it.Source})
	}
	git := func(ref string) Source { return Source{Kind: "git", Repo: "acme/ops", Ref: ref, Directory: "scripts"} }
	dev := git("dev")
	dev.Kind, dev.Digest = "local", "sha256:d"
	want := []got{{"acme/ops//scripts@main", git("main")}, {"acme/ops//scripts@v1", git("v1")}, {"acme/ops//scripts@dev", dev}}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Fatalf("items (-want +got):\n%s", diff)
	}
	if items[0].BuildDigest != items[1].BuildDigest || items[0].BuildDigest == items[2].BuildDigest {
		t.Errorf("build digests: main %s, v1 %s, uploaded %s", items[0].BuildDigest, items[1].BuildDigest, items[2].BuildDigest)
	}

	// What a release built of them is no part of the config.
	with := configDigest(app, nil)
	for i := range app.Actions {
		for j := range app.Actions[i].Steps {
			app.Actions[i].Steps[j].Artifact = &appconfig.Artifact{Digest: "sha256:a"}
		}
	}
	if configDigest(app, nil) != with {
		t.Error("what a release built is part of the config's digest")
	}
}
