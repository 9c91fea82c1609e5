package plugins_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/plugin"
)

// shelf is a registry with one repository, for those who know the password.
type shelf struct {
	mu    sync.Mutex
	blobs map[digest.Digest][]byte
	tags  map[string]digest.Digest
}

func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if user, password, _ := r.BasicAuth(); user != "author" || password != "secret" {
		w.Header().Set("WWW-Authenticate", `Basic realm="shelf"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	kind, ref, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/team/greeting/"), "/")
	body, _ := io.ReadAll(r.Body)
	switch {
	case r.Method == http.MethodPost:
		if d := r.URL.Query().Get("digest"); d != "" && digest.FromBytes(body).String() == d {
			s.blobs[digest.Digest(d)] = body
			w.WriteHeader(http.StatusCreated)
			return
		}
		w.Header().Set("Location", "/v2/team/greeting/blobs/uploads/1")
		w.WriteHeader(http.StatusAccepted)
	case r.Method == http.MethodPut && kind == "manifests":
		d := digest.FromBytes(body)
		s.blobs[d] = body
		if digest.Digest(ref).Validate() != nil {
			s.tags[ref] = d
		}
		w.Header().Set("Docker-Content-Digest", d.String())
		w.WriteHeader(http.StatusCreated)
	case r.Method == http.MethodPut:
		s.blobs[digest.Digest(r.URL.Query().Get("digest"))] = body
		w.WriteHeader(http.StatusCreated)
	default:
		d := digest.Digest(ref)
		if tagged, found := s.tags[ref]; found {
			d = tagged
		}
		raw, found := s.blobs[d]
		if !found {
			http.NotFound(w, r)
			return
		}
		if kind == "manifests" {
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		}
		w.Header().Set("Docker-Content-Digest", d.String())
		w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
		_, _ = w.Write(raw)
	}
}

// A plugin that was pushed is what a builder fetches: signed, with all of its files. The
// same again changes nothing, and a tag is not taken from another version by mistake.
func TestPush(t *testing.T) {
	t.Parallel()
	at := t.TempDir()
	dir, key, config := filepath.Join(at, "greeting"), filepath.Join(at, "key.pem"), filepath.Join(at, "docker.json")
	if _, err := run(t, "new", dir); err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(dir, plugin.ManifestFile)
	raw, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	asks := strings.Replace(string(raw), `"permissions": {`, `"permissions": { "hosts": ["API.example.com", "10.1.2.3:80"], "paths": ["/etc/myapp:ro"],`, 1)
	if err := os.WriteFile(manifest, []byte(asks), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &shelf{blobs: map[digest.Digest][]byte{}, tags: map[string]digest.Digest{}}
	server := httptest.NewServer(s)
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	to := host + "/team/greeting:0.1.0"

	if err := os.WriteFile(config, []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, "push", dir, to, "--key", key, "--config", config); err == nil || !strings.Contains(err.Error(), "docker login "+host) {
		t.Errorf("without credentials: %v", err)
	}
	if err := os.WriteFile(config, []byte(`{"auths":{"`+host+`":{"auth":"YXV0aG9yOnNlY3JldA=="}}}`), 0o600); err != nil { // author:secret
		t.Fatal(err)
	}
	said, err := run(t, "push", dir, to, "--key", key, "--config", config)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := run(t, "sign", dir, "--key", key)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`type = "greeting"`, `oci_source = "oci://` + to + `"`, `signer = "` + signer + `"`, "state = true",
		`hosts = ["api.example.com:443", "10.1.2.3:80"]`, `paths = ["/etc/myapp:ro"]`,
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it says\n%s\nwithout %s", said, want)
		}
	}
	if strings.Contains(said, "network") {
		t.Errorf("it grants the network:\n%s", said)
	}

	first := s.tags["0.1.0"]
	remote, err := oci.ImageRemote(host + "/team/greeting")
	if err != nil {
		t.Fatal(err)
	}
	remote.Login = func(context.Context) (oci.Login, error) {
		return oci.Login{Username: "author", Password: "secret"}, nil
	}
	layout, err := oci.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fetched := filepath.Join(at, "fetched")
	if err := errors.Join(remote.Pull(t.Context(), first, layout, oci.TransferOptions{}), layout.Unpack(t.Context(), first, fetched, oci.Limits{})); err != nil {
		t.Fatal(err)
	}
	if _, err := plugin.Verify(signer, os.DirFS(fetched)); err != nil {
		t.Error(err)
	}
	var m struct {
		ArtifactType string `json:"artifactType"`
		Layers       []struct {
			MediaType string `json:"mediaType"`
		} `json:"layers"`
	}
	if err := json.Unmarshal(s.blobs[first], &m); err != nil || m.ArtifactType != "application/vnd.berth.plugin.v1" || m.Layers[0].MediaType != "application/vnd.oci.image.layer.v1.tar+gzip" {
		t.Errorf("pushed %+v, %v", m, err)
	}

	if _, err := run(t, "push", dir, to, "--signer", signer, "--config", config); err != nil || s.tags["0.1.0"] != first {
		t.Errorf("the same again: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("more"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, "push", dir, to, "--signer", signer, "--config", config); err == nil || !strings.Contains(err.Error(), "README.md") {
		t.Errorf("changed after it was signed: %v", err)
	}
	if _, err := run(t, "push", dir, to, "--key", key, "--config", config); err == nil || !strings.Contains(err.Error(), "--force") || s.tags["0.1.0"] != first {
		t.Errorf("over another version: %v", err)
	}
	if _, err := run(t, "push", dir, to, "--key", key, "--config", config, "--force"); err != nil || s.tags["0.1.0"] == first {
		t.Errorf("by force: %v", err)
	}
}

func TestPushRefuses(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "greeting")
	if _, err := run(t, "new", dir); err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(dir, "key.pem")
	for want, args := range map[string][]string{
		"needs --key":                   {"push", dir, "127.0.0.1:1/team/greeting:1"},
		"does not name a tag":           {"push", dir, "127.0.0.1:1/team/greeting", "--key", "k"},
		"write REGISTRY/REPOSITORY:TAG": {"push", dir, "127.0.0.1:1/team/greeting@sha256:1", "--key", "k"},
		"would be shipped with it":      {"push", dir, "127.0.0.1:1/team/greeting:1", "--key", inside, "--config", filepath.Join(t.TempDir(), "c.json")},
		"it is no plugin":               {"push", t.TempDir(), "127.0.0.1:1/team/greeting:1", "--key", "k"},
	} {
		if _, err := run(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
	if _, err := os.Stat(inside); err == nil {
		t.Error("it made a key inside of the plugin")
	}
}
