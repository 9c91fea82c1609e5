package main

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// start serves a directory and returns host and port.
func start(t *testing.T, dir string) string {
	t.Helper()
	s, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func reference(t *testing.T, text string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(text)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func digest(t *testing.T, of interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	hash, err := of.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash.String()
}

func image(t *testing.T) v1.Image {
	t.Helper()
	made, err := random.Image(512, 2)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestRestartKeepsImages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	host := start(t, dir)
	first, second := image(t), image(t)
	index, err := random.Index(512, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range []v1.Image{first, second} {
		if err := remote.Write(reference(t, host+"/team/web:1"), each); err != nil {
			t.Fatal(err)
		}
	}
	if err := remote.WriteIndex(reference(t, host+"/team/many:1"), index); err != nil {
		t.Fatal(err)
	}

	host = start(t, dir)
	for ref, want := range map[string]v1.Image{
		host + "/team/web:1":                    second,
		host + "/team/web@" + digest(t, second): second,
		host + "/team/web@" + digest(t, first):  first, // its tag has moved on
	} {
		got, err := remote.Image(reference(t, ref))
		if err != nil {
			t.Fatalf("%s: %v", ref, err)
		}
		if digest(t, got) != digest(t, want) {
			t.Errorf("%s is %s, want %s", ref, digest(t, got), digest(t, want))
		}
		if err := validate.Image(got); err != nil { // reads and checks each layer
			t.Errorf("%s: %v", ref, err)
		}
	}
	got, err := remote.Index(reference(t, host+"/team/many:1"))
	if err != nil {
		t.Fatal(err)
	}
	if digest(t, got) != digest(t, index) {
		t.Errorf("index is %s, want %s", digest(t, got), digest(t, index))
	}
}

func TestDeletedStaysDeleted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	host := start(t, dir)
	if err := remote.Write(reference(t, host+"/web:1"), image(t)); err != nil {
		t.Fatal(err)
	}
	if err := remote.Delete(reference(t, host+"/web:1")); err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{host, start(t, dir)} {
		if _, err := remote.Get(reference(t, host+"/web:1")); err == nil {
			t.Error("a deleted tag is served")
		}
	}
}

func TestListensOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), "0.0.0.0:0", t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("listening on all addresses: got %v, want an error about loopback", err)
	}
}
