package api_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig/bundle"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// A source in a git repository is uploaded instead: the config holds the
// content, and what is built follows it.
func TestSyncOfMappedSource(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	folder := with(hello(), "sandbox.toml", "terraform_version = \"1.11.4\"\n[public_repo]\nrepo = \"acme/sandboxes\"\ndirectory = \"local\"\nbranch = \"main\"\n")
	// The archive of what the repository holds, of this text.
	mapped := func(text string) ctlapi.SyncRequest {
		req := c.upload(hello()) // the archives of the components
		digest := c.putBundle(folder)
		archive, content, err := bundle.ArchiveDirectory(fstest.MapFS{"main.tf": {Data: []byte(text)}}, ".")
		if err != nil {
			t.Fatal(err)
		}
		c.put(archive, content)
		req.BundleDigest = digest
		for i := range req.Sources {
			if req.Sources[i].Component == "sandbox" {
				req.Sources[i] = ctlapi.SyncSource{Component: "sandbox", Digest: content, Mapped: true}
			}
		}
		return req
	}
	sync := func(req ctlapi.SyncRequest, status int) *ctlapi.SyncAppResponse {
		t.Helper()
		got, err := c.SyncAppWithResponse(t.Context(), "hello", nil, req)
		must(t, got, err, status)
		return got
	}
	first := sync(mapped("# one\n"), http.StatusCreated).JSON201
	if diff := cmp.Diff("api build*, sandbox build*, web build*", actions(first)); diff != "" {
		t.Errorf("first sync (-want +got):\n%s", diff)
	}
	d.finishBuilds("succeeded")
	// The same content, the same config; a branch is not asked again.
	if again := sync(mapped("# one\n"), http.StatusOK).JSON200; again.Config.ID != first.Config.ID || again.Release == nil {
		t.Errorf("the same content: %+v, want config %s released", again, first.Config.ID)
	}
	other := sync(mapped("# two\n"), http.StatusCreated).JSON201
	if diff := cmp.Diff("api reuse, sandbox build*, web reuse", actions(other)); diff != "" || other.Config.Number != 2 {
		t.Errorf("other content: config %+v (-want +got):\n%s", other.Config, diff)
	}

	config, err := c.GetConfigWithResponse(t.Context(), "hello@2", nil)
	must(t, config, err, http.StatusOK)
	src := config.JSON200.Items[0].Source
	if src.Kind != ctlapi.BuildSourceKindLocal || src.Digest == nil || *src.Repo != "acme/sandboxes" || *src.Ref != "main" || *src.Directory != "local" {
		t.Errorf("the source of the sandbox: %+v", src)
	}
	diff, err := c.DiffConfigsWithResponse(t.Context(), "hello@1", &ctlapi.DiffConfigsParams{To: "2"})
	must(t, diff, err, http.StatusOK)
	if got := cmp.Diff([]string{"sandbox changed build: source.digest"}, told(diff.JSON200.Changes)); got != "" {
		t.Errorf("configs 1 and 2 (-want +got):\n%s", got)
	}

	// Without the map it is a git source again, of another config.
	plain := mapped("# two\n")
	plain.Sources = plain.Sources[1:]
	if got := sync(plain, http.StatusCreated).JSON201; got.Config.Number != 3 || got.Items[0].Reason == "unchanged" {
		t.Errorf("without a map: %+v", got)
	}
	config, err = c.GetConfigWithResponse(t.Context(), "hello@3", nil)
	must(t, config, err, http.StatusOK)
	if src := config.JSON200.Items[0].Source; src.Kind != ctlapi.BuildSourceKindGit || src.Digest != nil {
		t.Errorf("the source of the sandbox without a map: %+v", src)
	}

	// Only what stands in git can be stood in for, and only when it is said.
	wrong := mapped("# two\n")
	for i := range wrong.Sources {
		wrong.Sources[i].Mapped = !wrong.Sources[i].Mapped
	}
	p := problemOf(t, sync(wrong, http.StatusUnprocessableEntity), nil, http.StatusUnprocessableEntity, "sources_invalid")
	var codes []string
	for _, e := range *p.Errors {
		codes = append(codes, *e.Code)
	}
	if got := cmp.Diff([]string{"source_unknown", "source_not_git", "source_not_git"}, codes); got != "" {
		t.Errorf("faults (-want +got):\n%s", got)
	}
}

// A command line of another release is told what to do.
func TestSyncByAnotherCLI(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	d.server.MinCLIVersion = "1.4.0"
	c := d.org("initech")
	req := c.upload(hello())

	req.CliVersion = "1.3.0"
	got, err := c.SyncAppWithResponse(t.Context(), "hello", nil, req)
	p := problemOf(t, got, err, http.StatusUnprocessableEntity, "cli_outdated")
	if p.Remedy == nil || !strings.Contains(*p.Remedy, "1.4.0") {
		t.Errorf("no remedy: %s", got.Body)
	}
	// What a newer one says that this control plane does not know is refused
	// whole, not left out.
	status, _, answer := c.raw("POST", "/apps/hello/configs", `{"bundle_digest":"`+req.BundleDigest+`","create_app":true,"colour":"blue"}`)
	if status != http.StatusUnprocessableEntity || !strings.Contains(string(answer), "colour") {
		t.Errorf("an unknown field answered %d: %s", status, answer)
	}
	if n := d.count(`select (select count(*) from apps) + (select count(*) from configs) + (select count(*) from builds)`); n != 0 {
		t.Errorf("refused syncs left %d rows", n)
	}
	// Older keys mean what they meant: a request without any newer field.
	req.CliVersion = "1.4.0"
	first := c.sync("hello", hello(), func(r *ctlapi.SyncRequest) { r.CliVersion = "1.4.0" })
	if second := c.sync("hello", hello(), func(r *ctlapi.SyncRequest) { r.CliVersion = "2.0.0" }); second.Config.ID != first.Config.ID {
		t.Errorf("the same folder by another command line is config %s, want %s", second.Config.ID, first.Config.ID)
	}
	config, err := c.GetConfigWithResponse(t.Context(), "hello@1", nil)
	must(t, config, err, http.StatusOK)
	if config.JSON200.CliVersion != "1.4.0" {
		t.Errorf("config 1 is by %s, want 1.4.0", config.JSON200.CliVersion)
	}
}
