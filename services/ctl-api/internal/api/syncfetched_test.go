package api_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig/bundle"
	"github.com/berth-dev/berth/pkg/appconfig/fetch"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// What stands elsewhere comes with the bundle: it is checked by its digests, is
// part of the config, and nothing is fetched here.
func TestSyncOfFetchedContents(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	const readme, block = "https://example.invalid/README.md", "git::https://example.invalid/shared.git//meta.toml?ref=v1"
	folder := with(hello(), "metadata.toml", "version = \"v2\"\ndisplay_name = \"Hello\"\nreadme = \""+readme+"\"\nsource = \""+block+"\"\n")
	packed := func(text string) []byte {
		packed, err := bundle.Make(folder, map[string]fetch.Result{
			readme: {Contents: []byte(text)}, block: {Contents: []byte("description = \"From there\"\n")},
		})
		if err != nil {
			t.Fatal(err)
		}
		return packed.Packs[0].Bytes // there are few files
	}
	request := func(archive []byte) ctlapi.SyncRequest {
		req := c.upload(hello())
		req.BundleDigest = c.putIndex(c.put(archive, digestOf(archive)))
		return req
	}
	sync := func(archive []byte, status int) *ctlapi.SyncAppResponse {
		t.Helper()
		got, err := c.SyncAppWithResponse(t.Context(), "hello", nil, request(archive))
		must(t, got, err, status)
		return got
	}
	first := sync(packed("# One\n"), http.StatusCreated).JSON201
	if again := sync(packed("# One\n"), http.StatusOK).JSON200; again.Config.ID != first.Config.ID {
		t.Errorf("the same contents made config %+v", again.Config)
	}
	if other := sync(packed("# Two\n"), http.StatusCreated).JSON201; other.Config.Number != 2 {
		t.Errorf("other contents made config %+v", other.Config)
	}
	config, err := c.GetConfigWithResponse(t.Context(), "hello@2", nil)
	must(t, config, err, http.StatusOK)
	want := []ctlapi.FetchedFile{
		{File: "metadata.toml", Key: "readme", Address: readme, Digest: digestOf([]byte("# Two\n")), SizeBytes: 6},
		{File: "metadata.toml", Key: "source", Address: block, Digest: digestOf([]byte("description = \"From there\"\n")), SizeBytes: 27},
	}
	if diff := cmp.Diff(want, config.JSON200.Fetched); diff != "" {
		t.Errorf("fetched (-want +got):\n%s", diff)
	}
	diff, err := c.DiffConfigsWithResponse(t.Context(), "hello@1", &ctlapi.DiffConfigsParams{To: "2"})
	must(t, diff, err, http.StatusOK)
	if got := cmp.Diff([]string{"metadata changed: readme.contents"}, told(diff.JSON200.Changes)); got != "" {
		t.Errorf("configs 1 and 2 (-want +got):\n%s", got)
	}
	plan, err := c.SyncAppWithResponse(t.Context(), "hello", &ctlapi.SyncAppParams{DryRun: new(true)}, request(packed("# Three\n")))
	must(t, plan, err, http.StatusOK)
	if got := cmp.Diff([]string{"metadata changed: readme.contents"}, told(plan.JSON200.Changes)); got != "" {
		t.Errorf("plan (-want +got):\n%s", got)
	}

	// An index that lies, and a bundle that lacks what its folder names.
	lie := repack(t, packed("# One\n"), func(name string, data []byte) []byte {
		if name == ".fetched/index.json" {
			return bytes.Replace(data, []byte(hexOf("# One\n")), []byte(hexOf("# Two\n")), 1)
		}
		return data
	})
	p := problemOf(t, sync(lie, http.StatusUnprocessableEntity), nil, http.StatusUnprocessableEntity, "bundle_invalid")
	if !strings.Contains(p.Title+*p.Detail, "sha256:"+hexOf("# Two\n")+", and the bundle has no such contents") {
		t.Errorf("the lie is told as %+v", p)
	}
	bare := repack(t, packed("# One\n"), func(name string, data []byte) []byte {
		if strings.HasPrefix(name, ".fetched/") {
			return nil
		}
		return data
	})
	p = problemOf(t, sync(bare, http.StatusUnprocessableEntity), nil, http.StatusUnprocessableEntity, "config_invalid")
	var codes []string
	for _, e := range *p.Errors {
		codes = append(codes, *e.File+" "+*e.Code)
	}
	if got := cmp.Diff([]string{"metadata.toml fetch", "metadata.toml fetch"}, codes); got != "" {
		t.Errorf("faults (-want +got):\n%s", got)
	}
}

func hexOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func digestOf(data []byte) string { return "sha256:" + hexOf(string(data)) }

// repack packs a bundle again with its files changed; nil leaves one out.
func repack(t *testing.T, archive []byte, change func(name string, data []byte) []byte) []byte {
	t.Helper()
	zipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if data = change(h.Name, data); data == nil {
			continue
		}
		if err := w.WriteHeader(&tar.Header{Name: h.Name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(data))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
