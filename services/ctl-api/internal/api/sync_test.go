package api_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// actions tells what a sync did: "api build, sandbox reuse".
func actions(r *ctlapi.SyncResult) string {
	var all []string
	for _, it := range r.Items {
		text := it.Component + " " + string(it.Action)
		if it.DeployChanged {
			text += "*"
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func TestSyncFromFolderToRelease(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	folder := with(hello(), "metadata.toml", "version = \"v2\"\ndisplay_name = \"Hello\"\ndescription = \"Greets.\"\n")

	first := c.sync("hello", folder)
	if got, want := actions(first), "api build*, sandbox build*, web build*"; got != want || !first.Created || first.Config.Number != 1 || first.Release != nil {
		t.Fatalf("first sync: %s (%+v), want %s and config 1 without a release", got, first, want)
	}
	if n := d.count(`select count(*) from river_builder.river_job where kind = 'build_advance'`); n != 3 {
		t.Errorf("%d wake-ups of builder, want 3", n)
	}
	if again := c.sync("hello", folder); again.Created || again.Config.ID != first.Config.ID || again.Release != nil {
		t.Errorf("the same folder made another config or a release: %+v", again)
	}
	if n := d.count(`select count(*) from builds`); n != 3 {
		t.Errorf("%d builds after syncing twice, want 3", n)
	}

	d.finishBuilds("succeeded")
	one := c.sync("hello", folder)
	if one.Release == nil || one.Release.Number != 1 {
		t.Fatalf("all builds are there, and no release 1: %+v", one)
	}

	// A changed var makes a release at once and builds nothing.
	two := c.sync("hello", with(folder, "components/api.toml", strings.Replace(string(folder["components/api.toml"].Data), "text =", "other =", 1)))
	if got, want := actions(two), "api reuse*, sandbox reuse, web reuse"; got != want || two.Release == nil || two.Release.Number != 2 {
		t.Errorf("changed var: %s (%+v), want %s and release 2", got, two.Release, want)
	}
	// A changed source builds just that component.
	three := c.sync("hello", with(folder, "src/api/main.tf", "# another api\n"))
	if got, want := actions(three), "api build*, sandbox reuse, web reuse"; got != want || three.Release != nil {
		t.Errorf("changed source: %s (%+v), want %s and no release yet", got, three.Release, want)
	}
	// The folder as it was first is the newest when it is synced again: another
	// release of the same items, for which nothing is built.
	builds := d.count(`select count(*) from builds`)
	for i, want := range []bool{true, false} {
		back := c.sync("hello", folder)
		if back.Created != want || back.Config.Number != 4 || back.Release == nil || back.Release.Number != 3 {
			t.Errorf("the first folder again, sync %d: %+v, want config 4 and release 3, made: %t", i+1, back, want)
		}
	}
	if n := d.count(`select count(*) from builds`); n != builds {
		t.Errorf("%d builds were made for a folder that was built before", n-builds)
	}
	if diff := cmp.Diff(contents(c.release("hello@1")), contents(c.release("hello@3"))); diff != "" {
		t.Errorf("release 3 of the folder of release 1 (-1 +3):\n%s", diff)
	}

	config, err := c.GetConfigWithResponse(t.Context(), "hello@3", nil)
	must(t, config, err, http.StatusOK)
	var order []string
	for _, it := range config.JSON200.Items {
		order = append(order, it.Component)
	}
	if diff := cmp.Diff([]string{"sandbox", "api", "web"}, order); diff != "" || config.JSON200.State != ctlapi.ConfigStateBuilding {
		t.Errorf("items of config 3, dependencies first, %s (-want +got):\n%s", config.JSON200.State, diff)
	}
	inputs := []ctlapi.InputDefinition{
		{Name: "api_key", DisplayName: "API key", Description: "A secret.", Group: "all", Type: "string", Sensitive: true},
		{Name: "greeting", DisplayName: "Greeting", Description: "What is said.", Group: "all", Type: "string", Default: new("Ahoy")},
		{Name: "port", DisplayName: "Port", Description: "A number.", Group: "all", Type: "number"},
	}
	if diff := cmp.Diff(inputs, config.JSON200.Inputs); diff != "" {
		t.Errorf("inputs of config 3 (-want +got):\n%s", diff)
	}
	release, err := c.GetReleaseWithResponse(t.Context(), "hello@2")
	must(t, release, err, http.StatusOK)
	if r := release.JSON200; len(r.Items) != 3 || r.Config.Number != 2 || r.MadeBy != "sync" {
		t.Errorf("release 2: %+v", r)
	}
	app, err := c.GetAppWithResponse(t.Context(), "hello")
	must(t, app, err, http.StatusOK)
	if a := app.JSON200; a.Config.Number != 4 || a.Release.Number != 3 || a.DisplayName != "Hello" || a.Description != "Greets." {
		t.Errorf("app: %+v", a)
	}
}

// release is one with its items.
func (c *caller) release(ref string) ctlapi.Release {
	c.d.t.Helper()
	got, err := c.GetReleaseWithResponse(c.d.t.Context(), ref)
	must(c.d.t, got, err, http.StatusOK)
	return *got.JSON200
}

// contents is what a release brings, without what tells it from another one.
func contents(r ctlapi.Release) any {
	return []any{r.Digest, r.Items, r.Manifest.Items}
}

func TestSyncRetriesWhatFailed(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.sync("hello", hello())
	d.finishBuilds("failed")
	config, err := c.GetConfigWithResponse(t.Context(), "hello@1", nil)
	must(t, config, err, http.StatusOK)
	if config.JSON200.State != ctlapi.ConfigStateFailed {
		t.Fatalf("state is %s, want failed", config.JSON200.State)
	}
	before := config.JSON200.Version
	again := c.sync("hello", hello())
	if got, want := actions(again), "api build, sandbox build, web build"; got != want || again.Created {
		t.Fatalf("after failed builds: %s, want %s of the same config", got, want)
	}
	config, err = c.GetConfigWithResponse(t.Context(), "hello@1", nil)
	must(t, config, err, http.StatusOK)
	if config.JSON200.State != ctlapi.ConfigStateBuilding || config.JSON200.Version <= before {
		t.Errorf("state %s version %d, want building and above %d", config.JSON200.State, config.JSON200.Version, before)
	}
	d.finishBuilds("succeeded")
	if got := c.sync("hello", hello()); got.Release == nil {
		t.Errorf("no release after the retried builds succeeded: %+v", got)
	}
}

func TestSyncRefuses(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	good := c.upload(hello())
	refused := func(t *testing.T, req ctlapi.SyncRequest, status int, code string) ctlapi.Problem {
		t.Helper()
		got, err := c.SyncAppWithResponse(t.Context(), "hello", nil, req)
		return problemOf(t, got, err, status, code)
	}
	t.Run("an app that nobody asked to make", func(t *testing.T) {
		req := good
		req.CreateApp = false
		refused(t, req, http.StatusNotFound, "app_not_found")
	})
	t.Run("a bundle that is not uploaded", func(t *testing.T) {
		req := good
		req.BundleDigest = "sha256:" + strings.Repeat("0", 64)
		refused(t, req, http.StatusUnprocessableEntity, "blob_missing")
	})
	t.Run("a local source without its archive", func(t *testing.T) {
		req := good
		req.Sources = nil
		if p := refused(t, req, http.StatusUnprocessableEntity, "sources_invalid"); len(*p.Errors) != 3 {
			t.Errorf("%d faults, want one for each of the 3 sources", len(*p.Errors))
		}
	})
	t.Run("a bundle that is not one", func(t *testing.T) {
		req := good
		req.BundleDigest = good.Sources[0].Digest // an archive, but no index
		refused(t, req, http.StatusUnprocessableEntity, "bundle_invalid")
	})
	t.Run("a pack that is not uploaded", func(t *testing.T) {
		req := good
		req.BundleDigest = c.putIndex("sha256:" + strings.Repeat("1", 64))
		if p := refused(t, req, http.StatusUnprocessableEntity, "blob_missing"); !strings.Contains(*p.Remedy, "1111") {
			t.Errorf("remedy %q does not name the pack", *p.Remedy)
		}
	})
	t.Run("a pack of another org", func(t *testing.T) {
		theirs := with(hello(), "components/api.toml", "# theirs\n"+string(hello()["components/api.toml"].Data))
		d.org("umbrella").putBundle(theirs)
		req := good
		req.BundleDigest = c.putIndex(bundleOf(t, theirs).Packs[0].Digest)
		refused(t, req, http.StatusUnprocessableEntity, "blob_missing")
	})
	t.Run("packs of no app folder", func(t *testing.T) {
		req := good
		req.BundleDigest = c.putIndex(good.Sources[0].Digest)
		refused(t, req, http.StatusUnprocessableEntity, "config_invalid")
	})
	if n := d.count(`select (select count(*) from apps) + (select count(*) from configs) + (select count(*) from builds)`); n != 0 {
		t.Errorf("refused syncs left %d rows", n)
	}
}

// What is wrong with a folder is told with file, line and column, as the
// command line tells it.
func TestSyncTellsWhereTheFaultIs(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	// The bundle of a folder with errors is not made by our own packer.
	folder := with(hello(), "components/web.toml", "name = \"web\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.4\"\ndependencies = [\"nothing\"]\n[berth]\nlocal_source = \"src/web\"\n")
	req := c.upload(folder)
	got, err := c.SyncAppWithResponse(t.Context(), "hello", nil, req)
	p := problemOf(t, got, err, http.StatusUnprocessableEntity, "config_invalid")
	if p.Errors == nil || len(*p.Errors) != 1 {
		t.Fatalf("want one fault: %s", got.Body)
	}
	if e := (*p.Errors)[0]; *e.File != "components/web.toml" || *e.Line != 4 || *e.Code != "reference" {
		t.Errorf("fault: %s", got.Body)
	}
}

// A policy that Kyverno refuses refuses the sync, with its file and key, unless
// the caller takes it as it is.
func TestSyncOfAnInvalidPolicy(t *testing.T) {
	t.Parallel()
	c := newDoor(t).org("initech")
	folder := with(with(hello(), "policies/p.toml", "type = \"helm_chart\"\ncontents = \"./p.yaml\"\n"),
		"policies/p.yaml", "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nspec:\n  rules:\n  - name: r\n    messages: x\n")
	req := c.upload(folder)
	got, err := c.SyncAppWithResponse(t.Context(), "hello", nil, req)
	p := problemOf(t, got, err, http.StatusUnprocessableEntity, "config_invalid")
	if e := (*p.Errors)[0]; *e.File != "policies/p.yaml" || *e.Line != 6 || *e.Code != "policy" || !strings.Contains(e.Message, `the key "messages" in rule "r"`) {
		t.Errorf("fault: %s", got.Body)
	}
	req.AllowInvalidPolicies = true
	got, err = c.SyncAppWithResponse(t.Context(), "hello", nil, req)
	must(t, got, err, http.StatusCreated)
	if !strings.Contains(string(got.Body), `the key \"messages\" in rule`) {
		t.Errorf("nothing warns of the policy: %s", got.Body)
	}
}

func TestSyncNeverDeletesBySilence(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.sync("hello", hello())
	smaller := with(with(hello(), "components/web.toml", ""), "src/web/main.tf", "")
	req := c.upload(smaller)
	got, err := c.SyncAppWithResponse(t.Context(), "hello", nil, req)
	problemOf(t, got, err, http.StatusConflict, "would_remove")

	req.Prune = true
	got, err = c.SyncAppWithResponse(t.Context(), "hello", nil, req)
	refused := problemOf(t, got, err, http.StatusUnprocessableEntity, "not_confirmed")
	if len(*refused.Errors) != 1 || (*refused.Errors)[0].Message != "component web" {
		t.Errorf("what goes: %+v", *refused.Errors)
	}
	plan, err := c.SyncAppWithResponse(t.Context(), "hello", &ctlapi.SyncAppParams{DryRun: new(true)}, req)
	must(t, plan, err, http.StatusOK)
	if n := d.count(`select count(*) from configs`); n != 1 {
		t.Fatalf("%d configs after a removal that nobody confirmed, want 1", n)
	}
	req.Confirm = "hello"
	got, err = c.SyncAppWithResponse(t.Context(), "hello", nil, req)
	must(t, got, err, http.StatusCreated)
	if diff := cmp.Diff([]string{"web"}, got.JSON201.Removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	// What comes back is part of the app again.
	if back := c.sync("hello", with(hello(), "src/web/main.tf", "# new web\n")); len(back.Items) != 3 || len(back.Removed) != 0 {
		t.Errorf("web is back: %+v", back)
	}
	if n := d.count(`select count(*) from components where tombstoned_at is not null`); n != 0 {
		t.Errorf("%d tombstones left, want none", n)
	}
}

func TestDryRunChangesNothing(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	req := c.upload(hello())
	records := d.count(`select count(*) from chain_records`)
	got, err := c.SyncAppWithResponse(t.Context(), "hello", &ctlapi.SyncAppParams{DryRun: new(true)}, req)
	must(t, got, err, http.StatusOK)
	if r := got.JSON200; actions(r) != "api build*, sandbox build*, web build*" || !r.DryRun || !r.Created || r.Config != nil {
		t.Errorf("dry run: %s", got.Body)
	}
	if n := d.count(`select (select count(*) from apps) + (select count(*) from builds) + (select count(*) from river_builder.river_job)`); n != 0 {
		t.Errorf("a dry run left %d rows", n)
	}
	if n := d.count(`select count(*) from chain_records`); n != records {
		t.Errorf("a dry run was recorded as a mutation")
	}
}

// Two people sync at once: the app's row makes it one after the other.
func TestSyncsAtOnce(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.sync("hello", hello())
	folders := []fstest.MapFS{hello(), with(hello(), "src/api/main.tf", "# 1\n"), with(hello(), "src/api/main.tf", "# 2\n"), with(hello(), "src/api/main.tf", "# 2\n")}
	reqs := make([]ctlapi.SyncRequest, len(folders))
	for i, folder := range folders {
		reqs[i] = c.upload(folder)
	}
	var group sync.WaitGroup
	for _, req := range reqs {
		group.Go(func() {
			got, err := c.SyncAppWithResponse(t.Context(), "hello", nil, req)
			if err != nil || got.StatusCode()/100 != 2 {
				t.Errorf("sync: %v %s", err, got.Body)
			}
		})
	}
	group.Wait()
	configs, err := c.ListConfigsWithResponse(t.Context(), "hello", nil)
	must(t, configs, err, http.StatusOK)
	// In which order they came is open. Each differs from the one before, or it
	// would have made nothing.
	different, last := map[string]bool{}, ""
	for i, config := range configs.JSON200.Items {
		if want := len(configs.JSON200.Items) - i; config.Number != want || config.Digest == last {
			t.Errorf("config %d of %s after one of %s, want number %d and another digest", config.Number, config.Digest, last, want)
		}
		different[config.Digest], last = true, config.Digest
	}
	if len(different) != 3 {
		t.Errorf("%d different configs of three different folders", len(different))
	}
	if n := d.count(`select count(*) from builds`); n != 5 {
		t.Errorf("%d builds, want 3 and one for each new source", n)
	}
}

func TestRebuildAndPromote(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.released("hello", hello())

	builds, err := c.CreateBuildsWithResponse(t.Context(), nil, ctlapi.BuildRequest{App: "hello", Components: []string{"api"}})
	must(t, builds, err, http.StatusAccepted)
	if len(builds.JSON202.Items) != 1 || builds.JSON202.Items[0].State != ctlapi.BuildStateQueued {
		t.Fatalf("rebuild: %s", builds.Body)
	}
	fresh := builds.JSON202.Items[0].ID
	early, err := c.CreateReleaseWithResponse(t.Context(), "hello", nil, ctlapi.ReleaseRequest{Builds: []string{fresh}})
	problemOf(t, early, err, http.StatusConflict, "build_not_succeeded")

	d.finishBuilds("succeeded")
	made, err := c.CreateReleaseWithResponse(t.Context(), "hello", nil, ctlapi.ReleaseRequest{Builds: []string{fresh}})
	must(t, made, err, http.StatusCreated)
	if r := made.JSON201; r.Number != 2 || r.MadeBy != "promotion" || !slices.ContainsFunc(r.Items, func(it ctlapi.ReleaseItem) bool { return it.BuildID == fresh }) {
		t.Errorf("release of the new build: %s", made.Body)
	}
	same, err := c.CreateReleaseWithResponse(t.Context(), "hello", nil, ctlapi.ReleaseRequest{Builds: []string{fresh}})
	must(t, same, err, http.StatusOK)
	if same.JSON200.ID != made.JSON201.ID {
		t.Errorf("the same choice made another release")
	}
	// Back to the first build: what is made last is the newest, and syncing the
	// newest folder leaves it so.
	var before []string
	for _, it := range c.release("hello@1").Items {
		before = append(before, it.BuildID)
	}
	back, err := c.CreateReleaseWithResponse(t.Context(), "hello", nil, ctlapi.ReleaseRequest{Builds: before})
	must(t, back, err, http.StatusCreated)
	if got := c.sync("hello", hello()); back.JSON201.Number != 3 || got.Created || got.Release == nil || got.Release.Number != 3 {
		t.Errorf("release of the first builds: %s, and a sync: %+v; want release 3", back.Body, got)
	}
	if diff := cmp.Diff(contents(c.release("hello@1")), contents(c.release("hello@3"))); diff != "" {
		t.Errorf("release 3 of the builds of release 1 (-1 +3):\n%s", diff)
	}

	cancelled, err := c.CancelBuildWithResponse(t.Context(), fresh, nil)
	must(t, cancelled, err, http.StatusAccepted)
	if cancelled.JSON202.CancelRequestedAt != nil {
		t.Errorf("a finished build was asked to stop")
	}
	none, err := c.CreateBuildsWithResponse(t.Context(), nil, ctlapi.BuildRequest{App: "hello", Components: []string{"nothing"}})
	problemOf(t, none, err, http.StatusUnprocessableEntity, "invalid")
}

// What is newest goes by the syncs: a release that is made later of a config
// that was synced earlier is not what gets deployed when nobody names a release.
func TestNewestReleaseIsThatOfTheNewestConfig(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	older, newer := hello(), with(hello(), "src/api/main.tf", "# another api\n")
	c.sync("hello", older)
	c.sync("hello", newer)
	d.finishBuilds("succeeded")
	if got := c.sync("hello", newer); got.Created || got.Release == nil || got.Release.Number != 1 {
		t.Fatalf("the newer folder: %+v, want release 1 of a config that was there", got)
	}
	made, err := c.CreateReleaseWithResponse(t.Context(), "hello", nil, ctlapi.ReleaseRequest{Config: new(1)})
	must(t, made, err, http.StatusCreated)
	if made.JSON201.Number != 2 || made.JSON201.Config.Number != 1 {
		t.Fatalf("release of config 1: %s", made.Body)
	}

	app, err := c.GetAppWithResponse(t.Context(), "hello")
	must(t, app, err, http.StatusOK)
	if a := app.JSON200; a.Config.Number != 2 || a.Release.Number != 1 {
		t.Errorf("the app stands at config %d with release %d, want 2 with 1", a.Config.Number, a.Release.Number)
	}
	req := acme()
	req.Provision = true
	install, err := c.CreateInstallWithResponse(t.Context(), nil, req)
	must(t, install, err, http.StatusCreated)
	w, err := c.GetWorkflowWithResponse(t.Context(), *install.JSON201.WorkflowID, nil)
	must(t, w, err, http.StatusOK)
	if r := w.JSON200.Release; r == nil || r.Number != 1 {
		t.Errorf("the workflow provisions release %+v, want 1, of config 2", r)
	}
}

// A request that waits is answered once the build has moved.
func TestWaitForBuild(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	first := c.sync("hello", hello())
	id := *first.Items[0].BuildID
	queued, err := c.GetBuildWithResponse(t.Context(), id, nil)
	must(t, queued, err, http.StatusOK)
	if w := queued.JSON200.Wait; w == nil || w.On != "builder" {
		t.Errorf("a queued build does not say what it waits for: %s", queued.Body)
	}
	done := make(chan *ctlapi.GetBuildResponse, 1)
	go func() {
		got, err := c.GetBuildWithResponse(t.Context(), id, &ctlapi.GetBuildParams{Wait: new("30s"), AfterVersion: new(int64(1))})
		if err != nil {
			t.Error(err)
		}
		done <- got
	}()
	d.finishBuilds("succeeded")
	got := <-done
	must(t, got, nil, http.StatusOK)
	if got.JSON200.State != ctlapi.BuildStateSucceeded || got.JSON200.Version != 3 {
		t.Errorf("answered %s version %d, want succeeded and 3", got.JSON200.State, got.JSON200.Version)
	}
	now, err := c.GetBuildWithResponse(t.Context(), id, &ctlapi.GetBuildParams{Wait: new("30s"), AfterVersion: new(int64(1))})
	must(t, now, err, http.StatusOK)
}

func TestBlobs(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	const digest = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" // of hello
	missing, err := c.FindMissingBlobsWithResponse(t.Context(), nil, ctlapi.BlobDigests{Digests: []string{digest, digest}})
	must(t, missing, err, http.StatusOK)
	if diff := cmp.Diff([]string{digest}, missing.JSON200.Missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	wrong, err := c.PutBlobWithBodyWithResponse(t.Context(), digest, "application/octet-stream", strings.NewReader("hallo"))
	problemOf(t, wrong, err, http.StatusUnprocessableEntity, "digest_mismatch")
	for _, status := range []int{http.StatusCreated, http.StatusOK} {
		got, err := c.PutBlobWithBodyWithResponse(t.Context(), digest, "application/octet-stream", strings.NewReader("hello"))
		must(t, got, err, status)
	}
	missing, err = c.FindMissingBlobsWithResponse(t.Context(), nil, ctlapi.BlobDigests{Digests: []string{digest}})
	must(t, missing, err, http.StatusOK)
	if len(missing.JSON200.Missing) != 0 {
		t.Errorf("still missing: %v", missing.JSON200.Missing)
	}
}

// A release says where its folder comes from. The same folder again, with other
// words, is the same release.
func TestReleaseSaysWhereItComesFrom(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	folder := hello()
	c.sync("hello", folder)
	d.finishBuilds("succeeded")
	if first := c.sync("hello", folder); first.Release == nil || c.release("hello@1").Origin != nil {
		t.Fatalf("a sync that says nothing has an origin: %+v", first)
	}
	said := ctlapi.Origin{Message: "Ask for the port", Commit: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", Author: "Ann", Modified: true}
	changed := with(folder, "components/api.toml", strings.Replace(string(folder["components/api.toml"].Data), "text =", "other =", 1))
	for _, origin := range []ctlapi.Origin{said, {Message: "Something else"}} {
		request := c.upload(changed)
		request.Origin = &origin
		resp, err := c.SyncAppWithResponse(t.Context(), "hello", &ctlapi.SyncAppParams{}, request)
		if err != nil || resp.StatusCode()/100 != 2 {
			t.Fatalf("%v: %s", err, resp.Body)
		}
		if diff := cmp.Diff(&said, c.release("hello@2").Origin); diff != "" {
			t.Errorf("origin of the release (-want +got):\n%s", diff)
		}
	}
	request := c.upload(folder)
	request.Origin = &ctlapi.Origin{Message: strings.Repeat("x", 2001)}
	resp, err := c.SyncAppWithResponse(t.Context(), "hello", &ctlapi.SyncAppParams{}, request)
	must(t, resp, err, http.StatusUnprocessableEntity)
}
