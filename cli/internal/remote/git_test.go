package remote_test

import (
	"context"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-dev/berth/cli/internal/remote"
	"github.com/berth-dev/berth/pkg/appconfig/fetch"
)

// git runs git in a directory.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=Test", "-c", "user.email=test@example.invalid"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// repository makes one with a commit, a tag on it, and another commit.
func repository(t *testing.T) (dir, first string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "repo")
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a/b/values.yaml": "v: 1\n", "README.md": "one\n", "large": strings.Repeat("x", fetch.MaxBytes+1)} {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"a/inside": "b/values.yaml", "a/dir": "b", "a/out": "/etc/passwd", "a/up": "../../secret", "a/up-and-back": "../../repo/README.md", "a/nothing": "gone", "a/loop": "loop", "dirout": "/etc",
	} {
		if err := os.Symlink(target, filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			t.Fatal(err)
		}
	}
	git(t, dir, "init", "--quiet", "-b", "main")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "--quiet", "-m", "One")
	git(t, dir, "tag", "v1")
	first = git(t, dir, "rev-parse", "HEAD")
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("two\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "commit", "--quiet", "-am", "Two")
	if err := os.WriteFile(filepath.Join(filepath.Dir(dir), "secret"), []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, first
}

func TestGit(t *testing.T) {
	t.Parallel()
	dir, first := repository(t)
	git(t, dir, "branch", "feat/x", "v1")
	repo := "git::file://" + dir + "//"
	texts := map[string]string{
		"README.md": "two\n", "README.md?ref=main": "two\n", "README.md?ref=v1": "one\n", "README.md?ref=feat/x": "one\n", "README.md?ref=" + first: "one\n",
		"a/b/values.yaml": "v: 1\n", "a/inside": "v: 1\n", "a/dir/values.yaml?ref=v1": "v: 1\n",
	}
	problems := map[string]string{
		"a/out": "is a symlink that points outside of the repository", "a/up": "is a symlink that points outside of the repository", "a/up-and-back": "is a symlink that points outside of the repository",
		"dirout/passwd": "is a symlink that points outside of the repository", "a/nothing": "is a symlink to nothing", "a/loop": "is a symlink to nothing",
		"a": "is a directory", "gone": "is not a file of the repository", "README.md/x": "is not a file of the repository", "large": "is larger than 1 MiB",
		"README.md?ref=gone": "names a ref that the repository does not have", "README.md?ref=" + strings.Repeat("0", 39) + "1": "names a ref that the repository does not have",
	}
	var addresses []string
	for name := range texts {
		addresses = append(addresses, repo+name)
	}
	for name := range problems {
		addresses = append(addresses, repo+name)
	}
	results, told := fetched(t, append(addresses, "git::file://"+dir+"-gone//x")...)
	for name, want := range texts {
		if r := results[repo+name]; string(r.Contents) != want {
			t.Errorf("%s: got %+v, want %q", name, r, want)
		}
	}
	for name, want := range problems {
		refused(t, name, results[repo+name], want)
	}
	refused(t, "no repository", results["git::file://"+dir+"-gone//x"], "is not a repository")
	if len(told) != len(texts) {
		t.Errorf("told:\n%s", strings.Join(told, "\n"))
	}
}

// overHTTP serves a repository by git's own server, and counts what is asked.
func overHTTP(t *testing.T, dir string) (url string, packs *atomic.Int32) {
	t.Helper()
	packs = &atomic.Int32{}
	backend := &cgi.Handler{
		Path: filepath.Join(git(t, dir, "--exec-path"), "git-http-backend"), Root: "/repos",
		Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(dir), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"},
	}
	url = serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/private"):
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		case strings.HasPrefix(r.URL.Path, "/moved/"):
			http.Redirect(w, r, "file://"+dir+strings.TrimPrefix(r.URL.Path, "/moved")+"?"+r.URL.RawQuery, http.StatusFound)
		default:
			if r.Method == http.MethodPost {
				packs.Add(1)
			}
			backend.ServeHTTP(w, r)
		}
	})
	return url, packs
}

// Several files of one commit are one fetch, and only they travel.
func TestGitOverHTTP(t *testing.T) {
	t.Parallel()
	dir, _ := repository(t)
	url, packs := overHTTP(t, dir)
	repo := "git::" + url + "/repos/repo/.git//"
	results, _ := fetched(t, repo+"README.md", repo+"a/inside", repo+"a/b/values.yaml", repo+"a/out", repo+"gone",
		"git::"+url+"/private/repo.git//x", "git::"+url+"/repos/gone//x", "git::"+url+"/moved/.git//README.md")
	for name, want := range map[string]string{"README.md": "two\n", "a/inside": "v: 1\n", "a/b/values.yaml": "v: 1\n"} {
		if r := results[repo+name]; string(r.Contents) != want {
			t.Errorf("%s: got %+v, want %q", name, r, want)
		}
	}
	refused(t, "a symlink out", results[repo+"a/out"], "points outside of the repository")
	refused(t, "no file", results[repo+"gone"], "is not a file")
	refused(t, "a private repository", results["git::"+url+"/private/repo.git//x"], "needs credentials")
	refused(t, "no repository", results["git::"+url+"/repos/gone//x"], "is not a repository")
	refused(t, "a redirect to a file", results["git::"+url+"/moved/.git//README.md"], "")
	if r := results["git::"+url+"/moved/.git//README.md"]; r.Problem == "" {
		t.Errorf("a redirect to a file is followed: %+v", r)
	}
	if n := packs.Load(); n == 0 || n > 12 {
		t.Errorf("the server was asked for %d packs", n)
	}
}

// Neither a hook of the user nor a setting of the repository runs, and what the
// environment says of another repository does not count.
// A repository that cannot be had names its cause at once, and the way round it.
func TestGitUnreachable(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusNotFound
		if strings.HasPrefix(r.URL.Path, "/private") {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			status = http.StatusUnauthorized
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	for repo, want := range map[string]string{
		"https://127.0.0.1:1/a/b.git":  "cannot be reached: git says",
		"https://git.invalid/a/b.git":  "cannot be reached: git says",
		server.URL + "/gone.git":       "is not a repository",
		server.URL + "/private/it.git": "needs credentials",
	} {
		address := "git::" + repo + "//values.yaml"
		began := time.Now()
		results, _ := fetched(t, address)
		refused(t, repo, results[address], want)
		if remedy := results[address].Remedy; !strings.HasSuffix(remedy, "berth sync --source-map "+repo+"=FOLDER") {
			t.Errorf("%s: the remedy is %q", repo, remedy)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("%s: told after %s", repo, took)
		}
	}
}

func TestGitRunsNothing(t *testing.T) {
	dir, _ := repository(t)
	home := t.TempDir()
	ran := filepath.Join(home, "ran")
	hooks := filepath.Join(home, "hooks")
	if err := os.MkdirAll(hooks, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, hook := range []string{"reference-transaction", "post-checkout", "post-merge", "fsmonitor", "askpass"} {
		if err := os.WriteFile(filepath.Join(hooks, hook), []byte("#!/bin/sh\necho "+hook+" >> "+ran+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	config := filepath.Join(home, "gitconfig")
	text := "[core]\n\thooksPath = " + hooks + "\n\tfsmonitor = " + hooks + "/fsmonitor\n\taskPass = " + hooks + "/askpass\n[init]\n\ttemplateDir = " + home + "\n[protocol \"ext\"]\n\tallow = always\n" +
		"[url \"ext::sh -c 'touch " + ran + "' \"]\n\tinsteadOf = https://rewritten.invalid/\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	url, _ := overHTTP(t, dir)
	t.Setenv("GIT_CONFIG_GLOBAL", config)
	t.Setenv("GIT_DIR", filepath.Join(home, "elsewhere"))
	t.Setenv("GIT_ASKPASS", filepath.Join(hooks, "askpass"))
	t.Setenv("GIT_TRACE", filepath.Join(home, "trace"))
	repo := "git::file://" + dir + "//"
	results, _ := fetched(t, repo+"README.md", "git::"+url+"/private/repo.git//x", "git::https://rewritten.invalid/repo.git//x")
	if r := results[repo+"README.md"]; string(r.Contents) != "two\n" {
		t.Errorf("got %+v", r)
	}
	refused(t, "what needs a password", results["git::"+url+"/private/repo.git//x"], "needs credentials")
	refused(t, "a program for a transport", results["git::https://rewritten.invalid/repo.git//x"], "not allowed")
	for _, name := range []string{"ran", "elsewhere", "trace"} {
		if data, err := os.ReadFile(filepath.Join(home, name)); err == nil || !os.IsNotExist(err) {
			t.Errorf("%s is there: %s", name, data)
		}
	}
}

// Nothing stays behind.
func TestCloseRemovesWhatWasCloned(t *testing.T) {
	dir, _ := repository(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Run("fetch", func(t *testing.T) { fetched(t, "git::file://"+dir+"//README.md") })
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// git is ended with all that it started.
func TestGitInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	f := remote.New(func(string) {})
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	address := "git::" + url + "/repo.git//x"
	began := time.Now()
	refused(t, "an interrupted fetch", f.Fetch(ctx, []string{address})[address], "was cut short")
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}
