package engine_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-dev/berth/pkg/jobspec"
)

const (
	gitPassword   = "git-password-9f8e7d"
	registryToken = "registry-token-1a2b3c"
)

// gitServer is git's own server behind a password.
func gitServer(t *testing.T, r repository) *httptest.Server {
	t.Helper()
	path, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{Path: filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"), Env: []string{"GIT_HTTP_EXPORT_ALL=1", "GIT_PROJECT_ROOT=" + filepath.Dir(r.dir)}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if user, password, _ := req.BasicAuth(); user != "reader" || password != gitPassword {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, req)
	}))
	t.Cleanup(s.Close)
	return s
}

// moduleRegistry speaks the registry's protocol to who has its token.
func moduleRegistry(t *testing.T, leads map[string]string, archive []byte) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") != "Bearer "+registryToken {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		switch path := req.URL.Path; {
		case path == "/.well-known/terraform.json":
			fmt.Fprint(w, `{"modules.v1": "/api/modules/"}`)
		case strings.HasSuffix(path, "/versions"):
			fmt.Fprint(w, `{"modules": [{"versions": [{"version": "1.0.0"}, {"version": "1.2.0"}, {"version": "1.3.0-beta"}, {"version": "2.0.0"}]}]}`)
		case strings.HasSuffix(path, "/download") && leads[path] != "":
			w.Header().Set("X-Terraform-Get", leads[path])
			w.WriteHeader(http.StatusNoContent)
		case strings.HasSuffix(path, ".tgz"):
			_, _ = w.Write(archive)
		default:
			http.NotFound(w, req)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// tgz packs entries; one whose name ends with "@" is a link to its contents.
func tgz(t *testing.T, entries ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for i := 0; i < len(entries); i += 2 {
		name, link := strings.CutSuffix(entries[i], "@")
		h := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(entries[i+1])), Typeflag: tar.TypeReg}
		if link {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, entries[i+1], 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if !link {
			if _, err := w.Write([]byte(entries[i+1])); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func moduleKeys(git, registry string) string {
	return fmt.Sprintf(`{%q: {"username": "reader", "password": %q}, %q: {"token": %q}}`, git, gitPassword, registry, registryToken)
}

// noSecretIn looks for credentials, as they are and as they travel, in all that a job
// left.
func (j *jobDir) noSecretIn(t *testing.T) {
	t.Helper()
	secrets := []string{gitPassword, registryToken, base64.StdEncoding.EncodeToString([]byte("reader:" + gitPassword))}
	err := filepath.WalkDir(j.path, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || path == filepath.Join(j.path, "in/build/modules.json") {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, secret := range secrets {
			if bytes.Contains(raw, []byte(secret)) {
				t.Errorf("%s has a credential in it", path)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestBuildPacksPrivateModules(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	first := r.commit(t, map[string]string{
		"modules/net/main.tf":  "module \"part\" {\n  source = \"../part\"\n}\noutput \"net\" {\n  value = module.part.part\n}\n",
		"modules/part/main.tf": "output \"part\" {\n  value = \"first\"\n}\n",
	})
	r.git(t, "tag", "v1.0")
	git := gitServer(t, r)
	repo := git.URL + "/" + filepath.Base(r.dir)
	packed := tgz(t, "top/main.tf", "output \"packed\" {\n  value = 1\n}\n")
	registry := moduleRegistry(t, map[string]string{
		"/api/modules/acme/net/aws/1.2.0/download":  "git::" + repo + "//modules/net?ref=" + first,
		"/api/modules/acme/pack/aws/2.0.0/download": "./pack.tgz//*?archive=tar.gz",
	}, packed)
	host := strings.TrimPrefix(registry.URL, "http://")
	source := map[string]string{
		"main.tf": "module \"git\" {\n  source = \"git::" + repo + "//modules/net?ref=v1.0\" # tag\n}\n" +
			"module \"reg\" {\n  source  = \"" + host + "/acme/net/aws\"\n  version = \"~> 1.0\"\n}\nmodule \"own\" {\n  source = \"./own\"\n}\n",
		"own/main.tf.json": `{"module": {"pack": {"source": "` + host + `/acme/pack/aws", "version": "2.0.0"}}}`,
	}
	run := func(before []jobspec.Module) (*jobDir, jobspec.Result) {
		j := archiveJob(t, source)
		j.spec.Source.Modules = before
		j.write(t, "in/build/modules.json", moduleKeys(git.URL, registry.URL))
		result := j.must(t)
		j.noSecretIn(t)
		return j, result
	}
	j, result := run(nil)
	digest := result.Modules[2].Digest
	want := []jobspec.Module{
		{Source: "git::" + repo + "?ref=v1.0", From: repo, Commit: first, Moves: true},
		{Source: host + "/acme/net/aws", Wanted: "~> 1.0", Version: "1.2.0", From: repo, Commit: first, Moves: true},
		{Source: host + "/acme/pack/aws", Wanted: "2.0.0", Version: "2.0.0", From: registry.URL + "/api/modules/acme/pack/aws/2.0.0/pack.tgz", Digest: digest},
	}
	if diff := cmp.Diff(want, result.Modules); diff != "" || !strings.HasPrefix(digest, "sha256:") {
		t.Errorf("modules (-want +got):\n%s", diff)
	}
	wantContains(t, "log", j.log(t), "fetched module "+host+"/acme/net/aws from "+repo+", version 1.2.0, commit "+first)
	files := j.artifact(t)
	for name, text := range files {
		if strings.Contains(text, "git::") || strings.Contains(text, host) {
			t.Errorf("%s still names the server:\n%s", name, text)
		}
	}
	wantContains(t, "main.tf", files["main.tf"], "source = \"./.berth/modules/")
	wantContains(t, "own/main.tf.json", files["own/main.tf.json"], "\"../.berth/modules/")
	data := t.TempDir()
	for _, args := range [][]string{{"init", "-backend=false", "-input=false", "-no-color"}, {"validate", "-no-color"}} {
		cmd := exec.Command(terraformPath(t), args...)
		cmd.Dir, cmd.Env = filepath.Join(j.path, "out/artifact"), []string{"HOME=" + data, "TF_DATA_DIR=" + data, "HTTPS_PROXY=http://127.0.0.1:1", "CHECKPOINT_DISABLE=1", "PATH=/nowhere"}
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("terraform %s of what was packed: %v\n%s", args[0], err, said)
		}
	}

	again, second := run(result.Modules)
	if diff := cmp.Diff(files, again.artifact(t)); diff != "" {
		t.Errorf("the same is packed differently:\n%s", diff)
	}
	if diff := cmp.Diff(want, second.Modules); diff != "" {
		t.Errorf("modules again (-want +got):\n%s", diff)
	}
	moved := r.commit(t, map[string]string{"modules/part/main.tf": "output \"part\" {\n  value = \"second\"\n}\n"})
	r.git(t, "tag", "-f", "v1.0")
	third, result := run(result.Modules)
	want[0].Commit, want[0].Before = moved, first
	if diff := cmp.Diff(want, result.Modules); diff != "" {
		t.Errorf("modules after the tag moved (-want +got):\n%s", diff)
	}
	if cmp.Equal(files, third.artifact(t), cmpopts.EquateEmpty()) {
		t.Error("the tag moved, and the artifact is the same")
	}
	wantContains(t, "log", third.log(t), "it has moved, an earlier build had "+first)
}

func TestModulesThatMayNotBeFetched(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.commit(t, map[string]string{"main.tf": "# empty"})
	git := gitServer(t, r)
	repo := git.URL + "/" + filepath.Base(r.dir)
	var mu sync.Mutex
	var stolen []string
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		stolen = append(stolen, req.URL.Path+" "+req.Header.Get("Authorization"))
		http.NotFound(w, req)
	}))
	t.Cleanup(thief.Close)
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		leads := map[string]string{
			"/api/a/file/x/1.0.0/download": "file:///etc", "/api/a/path/x/1.0.0/download": "/../../etc", "/api/a/local/x/1.0.0/download": "git::http://127.0.0.1:1/r.git",
			"/api/a/cloud/x/1.0.0/download": "https://169.254.169.254/latest.zip", "/api/a/climb/x/1.0.0/download": "/climb.tgz", "/api/a/link/x/1.0.0/download": "/link.tgz",
			"/api/a/bare/x/1.0.0/download": "/bare.tgz//nowhere", "/api/a/cmd/x/1.0.0/download": "git::ext::sh -c id",
		}
		switch path := req.URL.Path; {
		case strings.HasPrefix(path, "/away"):
			http.Redirect(w, req, thief.URL+path, http.StatusFound)
		case path == "/.well-known/terraform.json":
			fmt.Fprint(w, `{"modules.v1": "/api/"}`)
		case strings.HasSuffix(path, "/versions"):
			fmt.Fprint(w, `{"modules": [{"versions": [{"version": "1.0.0"}]}]}`)
		case path == "/climb.tgz":
			_, _ = w.Write(tgz(t, "../../main.tf", "x"))
		case path == "/link.tgz":
			_, _ = w.Write(tgz(t, "etc@", "/etc", "etc/x.tf", "x"))
		case path == "/bare.tgz":
			_, _ = w.Write(tgz(t, "main.tf", ""))
		case path == "/escape.tgz":
			_, _ = w.Write(tgz(t, "main.tf", "module \"up\" {\n  source = \"../../..\"\n}\n"))
		case leads[path] != "":
			w.Header().Set("X-Terraform-Get", leads[path])
		default:
			http.NotFound(w, req)
		}
	}))
	t.Cleanup(registry.Close)
	host := strings.TrimPrefix(registry.URL, "http://")
	good := strings.Replace(moduleKeys(git.URL, registry.URL), "{", fmt.Sprintf("{%q: {\"token\": %q}, ", thief.URL, registryToken), 1)
	for _, tc := range []struct{ name, source, keys, want string }{
		{"no credentials", "git::" + strings.Replace(repo, "http://", "https://", 1), "", "it leads to the Build Runner's own machine"},
		{"credentials of another path", "git::" + repo, strings.Replace(good, git.URL, git.URL+"/other", 1), "which needs credentials"},
		{"wrong credentials", "git::" + repo, strings.Replace(good, gitPassword, "wrong-password", 1), "refuses these credentials (401, the entry " + git.URL},
		{"a file with a mistake", "git::" + repo, `{"git": {"token": "` + registryToken + `"}}`, `credentials of modules: "git" is no https:// address`},
		{"a git server that redirects", "git::" + registry.URL + "/away/r.git", good, "redirects to another host"},
		{"an archive that redirects", registry.URL + "/away/x.zip", good, "the server answers 404 without"},
		{"a directory above", "git::" + repo + "//../x", good, "leads out of it"},
		{"a directory that is not there", "git::" + repo + "//nowhere", good, `there is no directory "nowhere"`},
		{"a ref that is not there", "git::" + repo + "?ref=v9", good, `no branch or tag "v9"`},
		{"an option as ref", "git::" + repo + "?ref=--upload-pack=id", good, "cannot be a branch"},
		{"credentials in the address", "git::https://u:" + gitPassword + "@h.example/x.git", good, "has credentials in it"},
		{"a key in the address", "git::" + repo + "?sshkey=" + registryToken, good, "more than ref and depth"},
		{"the address of secrets", "git::https://169.254.169.254/x.git", good, "where cloud machines get their secrets"},
		{"the same, as another number", "https://[::ffff:169.254.169.254]/x.zip", good, "where cloud machines get their secrets"},
		{"any address of this machine", "https://0.0.0.0:1/x.zip", good, "the Build Runner's own machine"},
		{"in clear", "git::http://git.example.com/x.git", good, "not https"},
		{"a bucket", "s3::https://s3.amazonaws.com/b/x.zip", good, "addresses with s3:: are not fetched"},
		{"a file", "file:///etc", good, "addresses with file:// are not fetched"},
		{"a command", "git::ext::sh -c id", good, "addresses with ext:// are not fetched"},
		{"a registry's file", host + "/a/file/x", good, "addresses with file:// are not fetched"},
		{"a registry's path", host + "/a/path/x", good, "yet another one"},
		{"a registry's command", host + "/a/cmd/x", good, "addresses with ext:// are not fetched"},
		{"a registry that leads to this machine", host + "/a/local/x", good, "not https"},
		{"a registry that leads to secrets", host + "/a/cloud/x", good, "where cloud machines get their secrets"},
		{"an archive that climbs", host + "/a/climb/x", good, "leads out of it"},
		{"an archive with links", host + "/a/link/x", good, "neither a file nor a directory"},
		{"an archive without the directory", host + "/a/bare/x", good, `there is no directory "nowhere"`},
		{"a module that calls out of its archive", registry.URL + "/escape.tgz", good, "outside of its repository"},
		{"no address", "what is this", good, "neither a path"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			j := archiveJob(t, map[string]string{"main.tf": "module \"m\" {\n  source = \"" + tc.source + "\"\n}\n"})
			if tc.keys != "" {
				j.write(t, "in/build/modules.json", tc.keys)
			}
			result := j.run(t)
			wantContains(t, "error", result.Error, tc.want)
			if result.Outcome != jobspec.OutcomeFailed || result.Remedy == "" {
				t.Errorf("outcome %s, remedy %q", result.Outcome, result.Remedy)
			}
			for _, text := range []string{result.Error, result.Remedy, j.log(t)} {
				for _, secret := range []string{gitPassword, registryToken} {
					if strings.Contains(text, secret) {
						t.Errorf("a credential is in %q", text)
					}
				}
			}
			t.Logf("%s; %s", result.Error, result.Remedy)
		})
	}
	t.Cleanup(func() {
		if len(stolen) != 1 { // that of the archive; git's is not asked
			t.Errorf("the other host was asked %q", stolen)
		}
		for _, line := range stolen {
			if !strings.HasSuffix(line, " ") {
				t.Errorf("the credentials followed a redirect: %s", line)
			}
		}
	})
}
