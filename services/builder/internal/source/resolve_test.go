package source_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/services/builder/internal/source"
)

// repository is a real one, made by git: two commits on the default branch, a
// branch, a light and an annotated tag, and a commit that no ref names.
type repository struct {
	dir                          string // bare
	first, second, side, nowhere string
}

func newRepository(t *testing.T) repository {
	t.Helper()
	work := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = work
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	commit := func(text string) string {
		if err := os.WriteFile(filepath.Join(work, "main.tf"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		git("add", ".")
		git("commit", "-qm", text)
		return git("rev-parse", "HEAD")
	}
	r := repository{dir: filepath.Join(t.TempDir(), "repo.git")}
	git("init", "-q", "-b", "trunk")
	r.first = commit("one")
	git("tag", "light")
	git("tag", "-a", "-m", "version 1", "v1")
	git("tag", "-a", "-m", "a tag of a tag", "v1-signed", "v1")
	r.second = commit("two")
	git("checkout", "-qb", "feature/side")
	r.side = commit("side")
	git("checkout", "-qb", "lost")
	r.nowhere = commit("lost")
	git("checkout", "-q", "trunk")
	// Branch and tag of the same name: the branch is meant.
	git("tag", "feature/side", r.first)
	git("clone", "-q", "--bare", ".", r.dir)
	git("-C", r.dir, "update-ref", "-d", "refs/heads/lost")
	git("-C", r.dir, "config", "uploadpack.allowAnySHA1InWant", "true")
	git("-C", r.dir, "config", "uploadpack.allowFilter", "true")
	return r
}

// serve puts git's own HTTP server in front of a directory.
func serve(t *testing.T, dir string) (base string, transport http.RoundTripper) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(&cgi.Handler{
		Path:   filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"),
		Stderr: io.Discard,
		Env:    []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"},
	})
	t.Cleanup(server.Close)
	return server.URL, server.Client().Transport
}

func TestResolve(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	base, transport := serve(t, filepath.Dir(r.dir))
	doors := map[string]struct {
		repo     string
		resolver *source.Resolver
	}{
		"https": {base + "/repo.git", source.NewResolver(source.Config{Transport: transport})},
		"file":  {"file://" + r.dir, source.NewResolver(source.Config{AllowFile: true})},
		"map":   {"acme/thing", source.NewResolver(source.Config{Map: source.Map{"acme/thing": "file://" + r.dir}})},
	}
	for _, tc := range []struct{ name, ref, want, refused string }{
		{name: "the default branch", want: r.second},
		{name: "HEAD", ref: "HEAD", want: r.second},
		{name: "a branch", ref: "trunk", want: r.second},
		{name: "a branch before a tag", ref: "feature/side", want: r.side},
		{name: "a full name", ref: "refs/tags/feature/side", want: r.first},
		{name: "a tag", ref: "light", want: r.first},
		{name: "an annotated tag is its commit", ref: "v1", want: r.first},
		{name: "so is a tag of a tag", ref: "v1-signed", want: r.first},
		{name: "a commit that a ref names", ref: r.second, want: r.second},
		{name: "a commit in the history", ref: r.first, want: r.first},
		{name: "a commit that no ref names", ref: r.nowhere, want: r.nowhere},
		{name: "a commit that is not there", ref: strings.Repeat("d", 40), refused: "the repository has no commit " + strings.Repeat("d", 40) + ", or does not serve it"},
		{name: "no such name", ref: "main", refused: `the repository has no branch, tag or commit "main"; its branches: feature/side, trunk`},
	} {
		for door, d := range doors {
			t.Run(tc.name+" by "+door, func(t *testing.T) {
				t.Parallel()
				got, err := d.resolver.Resolve(t.Context(), source.Source{Kind: source.KindGit, Repo: d.repo, Ref: tc.ref})
				refused := ""
				if err != nil {
					refused = err.Error()
				}
				if got.Hash != tc.want || refused != tc.refused {
					t.Errorf("Resolve(%q) = %q, %q; want %q, %q", tc.ref, got.Hash, refused, tc.want, tc.refused)
				}
			})
		}
	}
}

func TestResolveFollowsAMovedBranch(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	resolver := source.NewResolver(source.Config{AllowFile: true})
	s := source.Source{Kind: source.KindGit, Repo: "file://" + r.dir, Ref: "trunk"}
	before, err := resolver.Resolve(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "git", "-C", r.dir, "update-ref", "refs/heads/trunk", r.side).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	after, err := resolver.Resolve(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if before.Hash != r.second || after.Hash != r.side {
		t.Errorf("before %s, after %s; want %s, %s", before.Hash, after.Hash, r.second, r.side)
	}
}

// What servers may do to us, and what is said of it.
func TestHostileServers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		handler   http.HandlerFunc
		want      string
		transient bool
	}{
		{"needs a password", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, " asks for credentials: it does not exist or is not public", false},
		{"not there", http.NotFound, " does not exist, or is not public", false},
		{"broken", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, " cannot be read now: its server answers 502 Bad Gateway", true},
		{"redirects to plain http", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/metadata?"+r.URL.RawQuery, http.StatusFound)
		}, " leads to an address that is not https", false},
		{"talks without end", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			hash := strings.Repeat("a", 40)
			fmt.Fprint(w, packetLine("# service=git-upload-pack\n")+"0000"+packetLine(hash+" HEAD\x00 agent=x\n"))
			for n := range 1 << 16 {
				if _, err := fmt.Fprint(w, packetLine(fmt.Sprintf("%s refs/heads/%06d\n", hash, n))); err != nil {
					return
				}
			}
		}, " answers with more than is read for one question", false},
		{"never answers", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, " did not answer within 2s", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewTLSServer(tc.handler)
			defer server.Close()
			resolver := source.NewResolver(source.Config{Transport: server.Client().Transport, Timeout: 2 * time.Second, MaxBytes: 1 << 16})
			_, err := resolver.Resolve(t.Context(), source.Source{Kind: source.KindGit, Repo: server.URL + "/r.git", Ref: "main"})
			var refused *source.Error
			if !errors.As(err, &refused) || !strings.Contains(refused.Error(), tc.want) || refused.Transient != tc.transient {
				t.Errorf("Resolve: %v (%+v), want …%s, transient %v", err, refused, tc.want, tc.transient)
			}
		})
	}
	t.Run("a certificate that nobody knows", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewTLSServer(http.NotFoundHandler())
		defer server.Close()
		resolver := source.NewResolver(source.Config{Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}})
		_, err := resolver.Resolve(t.Context(), source.Source{Kind: source.KindGit, Repo: server.URL + "/r.git"})
		if err == nil || !strings.HasSuffix(err.Error(), " cannot be reached: its certificate is not trusted here") {
			t.Errorf("Resolve: %v", err)
		}
	})
}

// TestUnreachable holds that what is known at once is told at once, and that a
// host that says nothing ends after a bounded time.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	hung, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, and nobody answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hung.Close() })
	for _, tc := range []struct {
		name            string
		source          source.Source
		want            string
		transient, slow bool
		within          time.Duration
	}{
		{name: "nobody listens", source: source.Source{Kind: source.KindGit, Repo: "https://" + closed.Addr().String() + "/r.git", Ref: "main"},
			want: "repository https://" + closed.Addr().String() + "/r.git cannot be reached: " + closed.Addr().String() + " refuses the connection", within: time.Second},
		{name: "a name that is none", source: source.Source{Kind: source.KindGit, Repo: "https://git.invalid/r.git", Ref: "main"},
			want: "repository https://git.invalid/r.git cannot be reached: ", within: 10 * time.Second},
		{name: "a host that says nothing", source: source.Source{Kind: source.KindGit, Repo: "https://" + hung.Addr().String() + "/r.git", Ref: "main"},
			want: "did not answer within 2s", transient: true, slow: true, within: 4 * time.Second},
		{name: "a registry where nobody listens", source: source.Source{Kind: source.KindImage, Repo: closed.Addr().String() + "/api", Ref: "1"},
			want: "the registry of image " + closed.Addr().String() + "/api:1 cannot be reached: " + closed.Addr().String() + " refuses the connection", within: time.Second},
		{name: "a registry that says nothing", source: source.Source{Kind: source.KindImage, Repo: hung.Addr().String() + "/api", Ref: "1"},
			want: "the registry of image " + hung.Addr().String() + "/api:1 did not answer within 2s", transient: true, slow: true, within: 4 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			_, err := source.NewResolver(source.Config{Timeout: 2 * time.Second}).Resolve(t.Context(), tc.source)
			took := time.Since(began)
			refused, ok := errors.AsType[*source.Error](err)
			if !ok || !strings.Contains(refused.Error(), tc.want) || refused.Transient != tc.transient || refused.Slow != tc.slow || refused.Key == "" || took > tc.within {
				t.Errorf("Resolve after %s: %v (%+v), want %+v", took, err, refused, tc)
			}
		})
	}
}

// packetLine is a line of git's protocol.
func packetLine(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }
