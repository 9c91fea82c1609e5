package plugins_test

import (
	"bytes"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/plugins"
	"github.com/berth-dev/berth/pkg/plugin/container/imagetest"
)

func run(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	var b bytes.Buffer
	root := plugins.Command(func(plural, singular, short string, verbs ...*cobra.Command) *cobra.Command {
		cmd := &cobra.Command{Use: plural, Short: short, SilenceErrors: true, SilenceUsage: true}
		cmd.AddCommand(verbs...)
		return cmd
	}, plugins.Doors{Args: cobra.ExactArgs(1), Packed: cobra.ExactArgs(2), Pushed: cobra.ExactArgs(2), Getenv: func(string) string { return "" }, Out: &b, Err: io.Discard, Format: func() (output.Options, error) { return output.Options{Format: output.Table}, nil }})
	root.SetArgs(args)
	err = root.ExecuteContext(t.Context())
	return strings.TrimSpace(b.String()), err
}

// imagePlugin is a plugin that names an image, which is not there yet.
func imagePlugin(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"plugin.json":      `{"contract":1,"type":"note","version":"1","image":"image","config":{"type":"object"},"permissions":{}}`,
		"conformance.json": "{}",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func image(t *testing.T, text string) (layout string, dgst digest.Digest) {
	t.Helper()
	layout = t.TempDir()
	return layout, imagetest.Layout(t, layout, ocispec.ImageConfig{Entrypoint: []string{"/x"}}, []imagetest.Entry{imagetest.File("x", text)})
}

// What a plugin has of a registry's image is what its tag named when it was packed: a
// tag that moves changes no plugin, and what is signed is refused once the image is
// another one.
func TestPack(t *testing.T) {
	t.Parallel()
	dir := imagePlugin(t)
	key := filepath.Join(t.TempDir(), "key.pem")
	if _, err := run(t, "sign", dir, "--key", key); err == nil || !strings.Contains(err.Error(), "berth plugins pack") {
		t.Errorf("signed without its image: %v", err)
	}
	first, firstDigest := image(t, "first")
	second, secondDigest := image(t, "second")
	r := &imagetest.Registry{}
	r.Move("1", first, firstDigest)
	server := httptest.NewServer(r)
	defer server.Close()
	name := strings.TrimPrefix(server.URL, "http://") + "/team/note"

	if out, err := run(t, "pack", dir, name+":1"); err != nil || out != firstDigest.String() {
		t.Fatalf("packed %q, %v, want %s", out, err, firstDigest)
	}
	r.Move("1", second, secondDigest)
	index := func() string {
		raw, err := os.ReadFile(filepath.Join(dir, "image", "index.json"))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if !strings.Contains(index(), firstDigest.String()) {
		t.Errorf("the tag moved, and the plugin with it: %s", index())
	}
	if out, err := run(t, "pack", dir, name+"@"+secondDigest.String()); err != nil || out != secondDigest.String() {
		t.Errorf("by digest: %q, %v", out, err)
	}
	if strings.Contains(index(), firstDigest.String()) {
		t.Errorf("the image before is still there: %s", index())
	}
	if out, err := run(t, "pack", dir, first); err != nil || out != firstDigest.String() {
		t.Errorf("from a layout: %q, %v", out, err)
	}
	if all, _ := filepath.Glob(filepath.Join(dir, "image", "blobs", "sha256", "*")); len(all) != 3 {
		t.Errorf("the image has %d blobs, want a manifest, a config and a layer", len(all))
	}
	if _, err := run(t, "sign", dir, "--key", key); err != nil {
		t.Error(err)
	}
}

func TestPackRefuses(t *testing.T) {
	t.Parallel()
	layout, _ := image(t, "x")
	noEntry := t.TempDir()
	imagetest.Layout(t, noEntry, ocispec.ImageConfig{Cmd: []string{"/x"}}, []imagetest.Entry{imagetest.File("x", "x")})
	ofScript := imagePlugin(t)
	if err := os.WriteFile(filepath.Join(ofScript, "plugin.json"), []byte(`{"contract":1,"executables":{"any":"x.sh"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	climbs := imagePlugin(t)
	if err := os.WriteFile(filepath.Join(climbs, "plugin.json"), []byte(`{"contract":1,"image":"../image"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ dir, image, want string }{
		{imagePlugin(t), noEntry, "has no entry point"},
		{imagePlugin(t), t.TempDir(), "is no OCI layout"},
		{imagePlugin(t), "registry.example.com/team/note", "nor the name of an image"},
		{imagePlugin(t), "registry.example.com/team/note@sha256:1", "nor the name of an image"},
		{t.TempDir(), layout, "it is no plugin"},
		{ofScript, layout, "names no directory for the image"},
		{climbs, layout, "names no directory for the image"},
	} {
		if _, err := run(t, "pack", tc.dir, tc.image); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("pack %s: %v, want %q", tc.image, err, tc.want)
		}
	}
}
