package api_test

import (
	"net/http"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig/bundle"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

const ops = "[[steps]]\nname = \"a\"\ncommand = \"./a.sh\"\n[steps.public_repo]\nrepo = \"acme/ops\"\ndirectory = \"./scripts/\"\nbranch = \"main\"\n" +
	"[[steps]]\nname = \"b\"\ncommand = \"./b.sh\"\n[steps.public_repo]\nrepo = \"acme/ops\"\ndirectory = \"scripts\"\nbranch = \"main\"\n"

// Steps that run in a repository: each directory is built once, released with the
// components, and part of the digest of the scripts that name it. An install has no
// resource of it, and a folder without it removes nothing.
func TestSyncOfScripts(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	plain := hello()
	folder := with(with(plain, "actions/clean.toml", "name = \"clean\"\n"+ops), "actions/look.toml", "name = \"look\"\n"+ops)
	request := func(folder fstest.MapFS, text string) ctlapi.SyncRequest {
		req := c.upload(plain) // the archives of the sandbox and the components
		req.BundleDigest = c.putBundle(folder)
		if text == "" {
			return req
		}
		archive, content, err := bundle.ArchiveDirectory(fstest.MapFS{"a.sh": {Data: []byte(text)}}, ".")
		if err != nil {
			t.Fatal(err)
		}
		c.put(archive, content)
		req.Sources = append(req.Sources, ctlapi.SyncSource{Component: "acme/ops//scripts@main", Digest: content, Mapped: true})
		return req
	}
	sync := func(req ctlapi.SyncRequest) *ctlapi.SyncResult {
		t.Helper()
		got, err := c.SyncAppWithResponse(t.Context(), "hello", nil, req)
		if err != nil || got.JSON200 == nil && got.JSON201 == nil {
			t.Fatalf("sync answered %s, %v", got.Body, err)
		}
		if got.JSON201 != nil {
			return got.JSON201
		}
		return got.JSON200
	}
	scripts := func(release *ctlapi.NumberRef) map[string]string {
		t.Helper()
		if release == nil {
			t.Fatal("there is no release")
		}
		got, err := c.GetReleaseWithResponse(t.Context(), release.ID)
		must(t, got, err, http.StatusOK)
		digests := map[string]string{}
		for _, it := range got.JSON200.Manifest.Items {
			if it.Kind == "script" {
				digests[it.Name] = it.Digest
			}
		}
		return digests
	}

	first := sync(request(folder, ""))
	if diff := cmp.Diff("acme/ops//scripts@main build*, api build*, sandbox build*, web build*", actions(first)); diff != "" {
		t.Errorf("first sync (-want +got):\n%s", diff)
	}
	d.finishBuilds("succeeded")
	again := sync(request(folder, ""))
	if again.Created || again.Release == nil {
		t.Fatalf("the same folder: %+v, want its release", again)
	}
	one := scripts(again.Release)

	// The source map: another directory makes other scripts, of both actions.
	mapped := sync(request(folder, "echo two\n"))
	if diff := cmp.Diff("acme/ops//scripts@main build*, api reuse, sandbox reuse, web reuse", actions(mapped)); diff != "" {
		t.Errorf("mapped (-want +got):\n%s", diff)
	}
	d.finishBuilds("succeeded")
	two := scripts(sync(request(folder, "echo two\n")).Release)
	for _, name := range []string{"clean", "look"} {
		if one[name] == "" || two[name] == "" || one[name] == two[name] {
			t.Errorf("action %s: digest %q, then with another directory %q", name, one[name], two[name])
		}
	}
	if one["files_intact"] != two["files_intact"] {
		t.Error("another directory changes a script that does not run in it")
	}

	created, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, created, err, http.StatusCreated)
	if n := d.count(`select count(*) from resources where name like 'acme/ops%'`); n != 0 {
		t.Error("the install has a resource of the scripts")
	}
	without := sync(request(plain, ""))
	if len(without.Removed) > 0 || without.Release == nil {
		t.Errorf("a folder without the actions: %+v, want it released, and nothing removed", without)
	}
	back := sync(request(folder, "echo two\n"))
	if diff := cmp.Diff("acme/ops//scripts@main reuse*, api reuse, sandbox reuse, web reuse", actions(back)); diff != "" {
		t.Errorf("with the actions again (-want +got):\n%s", diff)
	}
}
