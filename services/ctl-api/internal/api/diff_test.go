package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// told is a diff in short: "component api changed build: source.digest".
func told(objects []ctlapi.DiffObject) []string {
	all := []string{}
	for _, o := range objects {
		line := strings.TrimSpace(string(o.Kind)+" "+o.Name) + " " + string(o.Change)
		if o.Build {
			line += " build"
		}
		if o.Deploy {
			line += " deploy"
		}
		var paths []string
		for _, f := range o.Fields {
			paths = append(paths, f.Path)
		}
		if len(paths) > 0 {
			line += ": " + strings.Join(paths, ", ")
		}
		all = append(all, line)
	}
	return all
}

func TestDiffConfigsAndReleases(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.released("hello", hello())
	api := string(hello()["components/api.toml"].Data)
	second := with(hello(), "components/api.toml", strings.Replace(api, "text =", "other =", 1))
	second = with(second, "src/web/main.tf", "# another web\n")
	second = with(second, "inputs.toml", strings.Replace(string(hello()["inputs.toml"].Data), "sensitive = true", "sensitive = true\ndefault = \""+canary+"\"", 1))
	c.released("hello", second)
	c.released("other", hello())

	configs, err := c.DiffConfigsWithResponse(t.Context(), "hello@1", &ctlapi.DiffConfigsParams{To: "2"})
	must(t, configs, err, http.StatusOK)
	want := []string{
		"input api_key changed: default",
		"component api changed deploy: terraform_module.vars.other, terraform_module.vars.text",
		"component web changed build: source.digest",
	}
	if diff := cmp.Diff(want, told(configs.JSON200.Changes)); diff != "" {
		t.Errorf("configs 1 and 2 (-want +got):\n%s", diff)
	}
	if g := configs.JSON200; g.App.Name != "hello" || g.From.Number != 1 || g.To.Number != 2 {
		t.Errorf("what was compared: %+v %+v %+v", g.App, g.From, g.To)
	}
	if strings.Contains(string(configs.Body), canary) {
		t.Errorf("a sensitive default is shown: %s", configs.Body)
	}
	same, err := c.DiffConfigsWithResponse(t.Context(), "hello@2", &ctlapi.DiffConfigsParams{To: configs.JSON200.To.ID})
	must(t, same, err, http.StatusOK)
	if len(same.JSON200.Changes) != 0 {
		t.Errorf("a config differs from itself: %s", same.Body)
	}

	// A release of the same config differs by what was built again.
	builds, err := c.CreateBuildsWithResponse(t.Context(), nil, ctlapi.BuildRequest{App: "hello", Components: []string{"api"}})
	must(t, builds, err, http.StatusAccepted)
	d.finishBuilds("succeeded")
	made, err := c.CreateReleaseWithResponse(t.Context(), "hello", nil, ctlapi.ReleaseRequest{Builds: []string{builds.JSON202.Items[0].ID}})
	must(t, made, err, http.StatusCreated)
	releases, err := c.DiffReleasesWithResponse(t.Context(), "hello@2", &ctlapi.DiffReleasesParams{To: "3"})
	must(t, releases, err, http.StatusOK)
	if diff := cmp.Diff([]string{"component api changed: artifact.digest"}, told(releases.JSON200.Changes)); diff != "" {
		t.Errorf("releases 2 and 3 (-want +got):\n%s", diff)
	}
	releases, err = c.DiffReleasesWithResponse(t.Context(), made.JSON201.ID, &ctlapi.DiffReleasesParams{To: "hello@1"})
	must(t, releases, err, http.StatusOK)
	want = []string{
		"input api_key changed: default",
		"component api changed deploy: artifact.digest, terraform_module.vars.other, terraform_module.vars.text",
		"component web changed build: artifact.digest, source.digest",
	}
	if diff := cmp.Diff(want, told(releases.JSON200.Changes)); diff != "" {
		t.Errorf("releases 3 and 1 (-want +got):\n%s", diff)
	}

	nobody, err := c.DiffConfigsWithResponse(t.Context(), "hello@1", &ctlapi.DiffConfigsParams{To: "9"})
	problemOf(t, nobody, err, http.StatusNotFound, "not_found")
	two, err := c.DiffConfigsWithResponse(t.Context(), "hello@1", &ctlapi.DiffConfigsParams{To: "other@1"})
	problemOf(t, two, err, http.StatusUnprocessableEntity, "two_apps")
	gone, err := c.DiffReleasesWithResponse(t.Context(), "hello@9", &ctlapi.DiffReleasesParams{To: "1"})
	problemOf(t, gone, err, http.StatusNotFound, "not_found")

	// One's own next to somebody else's: the other is not there.
	stranger := d.org("umbrella")
	stranger.released("hello", hello())
	foreign, err := stranger.DiffConfigsWithResponse(t.Context(), "hello@1", &ctlapi.DiffConfigsParams{To: configs.JSON200.From.ID})
	problemOf(t, foreign, err, http.StatusNotFound, "not_found")
	theirs, err := stranger.DiffReleasesWithResponse(t.Context(), "hello@1", &ctlapi.DiffReleasesParams{To: made.JSON201.ID})
	problemOf(t, theirs, err, http.StatusNotFound, "not_found")
}
