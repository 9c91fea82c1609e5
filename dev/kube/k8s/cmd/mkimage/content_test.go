package main

import (
	"archive/tar"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// write makes a file for a test and returns its path.
func write(t *testing.T, dir, base, text string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(dir, base)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return file
}

// rootfs makes a tar file with one file in it.
func rootfs(t *testing.T, path, text string) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "rootfs.tar"))
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(file)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: 0o644, Size: int64(len(text))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}

func TestPush(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	dir := t.TempDir()
	web := write(t, dir, "web", "an executable", 0o755)
	write(t, dir, "assets/style.css", "a style", 0o600)
	if err := os.Symlink("web", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	c := content{
		Base:  rootfs(t, "etc/motd", "hello"),
		Files: []file{{From: web}, {From: filepath.Join(dir, "assets"), To: "/srv/assets"}, {From: filepath.Join(dir, "link")}},
		Args:  []string{"serve"}, User: "65532", Arch: "amd64",
	}
	to := strings.TrimPrefix(server.URL, "http://") + "/team/web:1"
	pushed, err := push(t.Context(), to, c)
	if err != nil {
		t.Fatal(err)
	}
	again, err := push(t.Context(), to, c)
	if err != nil || again != pushed {
		t.Errorf("the same content again: got %s, %v; want %s", again, err, pushed)
	}

	ref, err := name.NewDigest(pushed)
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	run := append(config.Config.Entrypoint, config.Config.Cmd...)
	if diff := cmp.Diff([]string{"/web", "serve"}, run); diff != "" {
		t.Errorf("what it runs (-want +got):\n%s", diff)
	}

	got := map[string]string{}
	flat := tar.NewReader(mutate.Extract(image))
	for {
		header, err := flat.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(flat)
		if err != nil {
			t.Fatal(err)
		}
		got[header.Name] = header.FileInfo().Mode().String() + " " + string(text)
	}
	want := map[string]string{
		"etc/motd":             "-rw-r--r-- hello",
		"tmp":                  "dtrwxrwxrwx ",
		"web":                  "-rwxr-xr-x an executable",
		"srv/assets":           "drwxr-xr-x ",
		"srv/assets/style.css": "-rw-r--r-- a style",
		"link":                 "-rwxr-xr-x an executable", // what a named link points to
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestNothingToRun(t *testing.T) {
	t.Parallel()
	_, err := content{Base: rootfs(t, "etc/motd", "hello")}.image()
	if err == nil || !strings.Contains(err.Error(), "--entry") {
		t.Errorf("got %v, want an error about --entry", err)
	}
}
