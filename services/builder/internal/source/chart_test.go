package source_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/builder/internal/keyring"
	"github.com/berth-dev/berth/services/builder/internal/source"
)

// The packed charts of these tests: nobody here opens them.
const (
	oldChart = "the packed chart web 1.1.0"
	newChart = "the packed chart web 1.2.0"
)

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// index lists both charts.
func index(url, newDigest string) string {
	return "apiVersion: v1\nentries:\n  other:\n  - version: 9.0.0\n  web:\n" +
		"  - version: 1.2.0\n    digest: " + newDigest + "\n    urls: [" + url + "]\n" +
		"  - version: 1.1.0\n    digest: sha256:" + sha(oldChart) + "\n    urls: [charts/web-1.1.0.tgz]\n"
}

func chartServer(index string) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/repo/index.yaml", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, index) })
	mux.HandleFunc("/repo/charts/web-1.1.0.tgz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, oldChart) })
	mux.HandleFunc("/repo/charts/web-1.2.0.tgz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, newChart) })
	return mux
}

// download resolves a chart and downloads it.
func download(t *testing.T, r *source.Resolver, s source.Source) (hash, contents string, err error) {
	t.Helper()
	c, err := r.Resolve(t.Context(), s)
	if err != nil {
		return "", "", err
	}
	dir := t.TempDir()
	if err := r.Download(t.Context(), s, c, dir); err != nil {
		return c.Hash, "", err
	}
	data, err := os.ReadFile(filepath.Join(dir, jobspec.ChartFile))
	return c.Hash, string(data), err
}

func TestChartOfARepository(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, index, version string
		handle               map[string]http.HandlerFunc
		hash, contents       string
		want                 string // in the error; "" when it is downloaded
	}{
		{name: "the newest", index: index("charts/web-1.2.0.tgz", sha(newChart)), hash: "1.2.0@sha256:" + sha(newChart), contents: newChart},
		{name: "a range", version: "<1.2", index: index("charts/web-1.2.0.tgz", sha(newChart)), hash: "1.1.0@sha256:" + sha(oldChart), contents: oldChart},
		{name: "exactly what was pinned", version: "1.1.0@sha256:" + sha(oldChart), index: index("x", "x"), hash: "1.1.0@sha256:" + sha(oldChart), contents: oldChart},
		{name: "an index without digests", index: index("/repo/charts/web-1.2.0.tgz", "''"), hash: "1.2.0@sha256:" + sha(newChart), contents: newChart},
		{name: "one that changed since it was pinned", version: "1.1.0@sha256:" + sha("x"), index: index("x", "x"), want: "became another one while it was built"},
		{name: "a version that is not there", version: "^2", index: index("x", "x"), want: `has no version "^2"; its newest one is 1.2.0`},
		{name: "a chart that is not there", index: "apiVersion: v1\nentries: {}\n", want: "has no chart web"},
		{name: "a page in place of an index", index: "<html>", want: "has no index.yaml that Berth can read"},
		{name: "a digest that does not match", index: index("charts/web-1.2.0.tgz", sha("another")), want: "is not what its repository says"},
		{name: "an endless index", index: "", handle: map[string]http.HandlerFunc{"/repo/index.yaml": forever("entries:\n", "  other: x\n")}, want: "answers with more than is read"},
		{name: "an endless chart", index: index("huge", sha(newChart)), handle: map[string]http.HandlerFunc{"/repo/huge": forever("", strings.Repeat("x", 1<<16))}, want: "answers with more than is read"},
		{name: "a redirect to a metadata address", index: "", handle: map[string]http.HandlerFunc{
			"/repo/index.yaml": http.RedirectHandler("http://169.254.169.254/latest/meta-data", http.StatusFound).ServeHTTP}, want: "leads to an address that is not https"},
		{name: "a chart at a metadata address", index: index("http://169.254.169.254/latest/meta-data", sha(newChart)), want: "to an address that is not https"},
		{name: "a chart on builder's disk", index: index("file:///etc/passwd", sha(newChart)), want: "to an address that is not https"},
		{name: "one that wants a password", index: "", handle: map[string]http.HandlerFunc{"/repo/index.yaml": refuseWith(http.StatusUnauthorized, `Basic realm="x"`)}, want: "without other credentials"},
		{name: "one that is not there", index: "", handle: map[string]http.HandlerFunc{"/repo/index.yaml": http.NotFound}, want: "has no chart web, or is none"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inner := chartServer(tc.index)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if handle := tc.handle[r.URL.Path]; handle != nil {
					handle(w, r)
					return
				}
				inner.ServeHTTP(w, r)
			}))
			defer server.Close()
			r := source.NewResolver(source.Config{MaxBytes: 1 << 20})
			hash, contents, err := download(t, r, source.Source{Kind: source.KindChart, Repo: server.URL + "/repo/", Directory: "web", Ref: tc.version})
			if tc.want == "" {
				if err != nil || hash != tc.hash || contents != tc.contents {
					t.Errorf("%q, %q, %v, want %q, %q", hash, contents, err, tc.hash, tc.contents)
				}
				return
			}
			var refused *source.Error
			if !errors.As(err, &refused) || !strings.Contains(refused.Error(), tc.want) || refused.Transient {
				t.Errorf("%v (%+v), want …%s…, lasting", err, refused, tc.want)
			}
		})
	}
}

// forever answers without an end.
func forever(begin, again string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_, err := fmt.Fprint(w, begin)
		for err == nil {
			_, err = fmt.Fprint(w, again)
		}
	}
}

// The password goes to the repository alone, and to no org that may not use it.
func TestPrivateChartRepository(t *testing.T) {
	t.Parallel()
	const password = "hunter2hunter2"
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, _, shown := r.BasicAuth(); shown {
			t.Error("another host than the repository's got the password")
		}
		fmt.Fprint(w, newChart)
	}))
	defer elsewhere.Close()
	inner := chartServer(index(elsewhere.URL+"/web.tgz", sha(newChart)))
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, got, _ := r.BasicAuth(); user != "acme" || got != password {
			refuseWith(http.StatusUnauthorized, `Basic realm="x"`)(w, r)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	defer server.Close()
	credentials := credentialsFile(t, server.URL+"/repo", "acme", password)
	r := source.NewResolver(source.Config{Keys: credentials, Transport: server.Client().Transport})
	private := source.Source{Kind: source.KindChart, Repo: server.URL + "/repo", Directory: "web", Org: "org_1"}
	if _, contents, err := download(t, r, private); err != nil || contents != newChart {
		t.Errorf("%q, %v", contents, err)
	}
	private.Ref = "1.1.0"
	if _, contents, err := download(t, r, private); err != nil || contents != oldChart {
		t.Errorf("%q, %v", contents, err)
	}
	private.Org = "org_2"
	if _, _, err := download(t, r, private); err == nil || !strings.Contains(err.Error(), "without other credentials") || strings.Contains(err.Error(), password) {
		t.Errorf("another org: %v", err)
	}
}

func credentialsFile(t *testing.T, address, username, password string) *keyring.Ring {
	t.Helper()
	file := filepath.Join(t.TempDir(), "credentials.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{%q: {"username": %q, "password": %q, "orgs": ["org_1"]}}`, address, username, password), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := keyring.Read(file, keyring.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// chartRegistry speaks the protocol of OCI registries for one chart with two
// versions, and an image.
func chartRegistry(t *testing.T) http.HandlerFunc {
	t.Helper()
	const layer = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	manifest := func(mediaType, content string) []byte {
		raw, err := json.Marshal(ocispec.Manifest{
			Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
			Config: ocispec.Descriptor{MediaType: "application/vnd.cncf.helm.config.v1+json", Digest: digest.FromString("{}"), Size: 2},
			Layers: []ocispec.Descriptor{{MediaType: mediaType, Digest: digest.FromString(content), Size: int64(len(content))}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	manifests := map[string][]byte{"1.1.0": manifest(layer, oldChart), "1.2.0_build.1": manifest(layer, newChart), "0.1.0": manifest("application/x", "x")}
	return func(w http.ResponseWriter, r *http.Request) {
		const base = "/v2/team/charts/web/"
		tag, isManifest := strings.CutPrefix(r.URL.Path, base+"manifests/")
		switch {
		case r.URL.Path == base+"tags/list":
			fmt.Fprint(w, `{"name":"team/charts/web","tags":["0.1.0","1.1.0","1.2.0_build.1","latest"]}`)
		case isManifest && manifests[tag] != nil:
			w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
			w.Header().Set("Docker-Content-Digest", digest.FromBytes(manifests[tag]).String())
			_, _ = w.Write(manifests[tag])
		case r.URL.Path == base+"blobs/sha256:"+sha(oldChart):
			fmt.Fprint(w, oldChart)
		case r.URL.Path == base+"blobs/sha256:"+sha(newChart):
			fmt.Fprint(w, "not "+newChart)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}
}

func TestChartOfARegistry(t *testing.T) {
	t.Parallel()
	const password = "hunter2hunter2"
	registry := chartRegistry(t)
	private := func(w http.ResponseWriter, r *http.Request) {
		if user, got, _ := r.BasicAuth(); user != "acme" || got != password {
			refuseWith(http.StatusUnauthorized, `Basic realm="x"`)(w, r)
			return
		}
		registry(w, r)
	}
	for _, tc := range []struct {
		name, version string
		handler       http.HandlerFunc
		chart         string // web when empty
		org           string
		hash          string
		want          string // in the error; "" when it is downloaded
	}{
		{name: "a range", version: "1.1.x", handler: registry, hash: "1.1.0@sha256:" + sha(oldChart)},
		{name: "a registry that gives tokens to anybody", version: "1.1.0", handler: withTokens(registry), hash: "1.1.0@sha256:" + sha(oldChart)},
		{name: "a private one", version: "1.1.0", handler: private, org: "org_1", hash: "1.1.0@sha256:" + sha(oldChart)},
		{name: "a private one of another org", version: "1.1.0", handler: private, org: "org_2", want: "without other credentials"},
		{name: "a blob that is another one", handler: registry, hash: "1.2.0+build.1@sha256:" + sha(newChart), want: "is not what its repository says"},
		{name: "an artifact that is no chart", version: "0.1.0", handler: registry, want: "is not a chart"},
		{name: "a version that is not there", version: "3.x", handler: registry, want: `has no version "3.x"; its newest one is 1.2.0+build.1`},
		{name: "a chart that is not there", chart: "api", handler: registry, want: "has no chart api"},
		{name: "a token service elsewhere, in clear", handler: refuseWith(http.StatusUnauthorized, `Bearer realm="http://203.0.113.1/token"`), want: "leads to an address that is not https"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tc.handler)
			defer server.Close()
			address := "oci://" + server.Listener.Addr().String() + "/team/charts"
			r := source.NewResolver(source.Config{Keys: credentialsFile(t, address, "acme", password)})
			src := source.Source{Kind: source.KindChart, Repo: address, Directory: "web", Ref: tc.version, Org: tc.org}
			if tc.chart != "" {
				src.Directory = tc.chart
			}
			hash, contents, err := download(t, r, src)
			if hash != tc.hash {
				t.Errorf("resolved to %q, want %q", hash, tc.hash)
			}
			switch {
			case tc.want == "" && (err != nil || contents != oldChart):
				t.Errorf("%q, %v", contents, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%v, want …%s…", err, tc.want)
			}
		})
	}
}

// A source map sends a repository to a directory of this machine, and nothing
// outside of it is read.
func TestChartRepositoryOnDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("index.yaml", "entries:\n  web:\n  - {version: 1.1.0, digest: "+sha(oldChart)+", urls: [web-1.1.0.tgz]}\n  - {version: 1.2.0, urls: [link.tgz]}\n  - {version: 1.3.0, urls: [../web.tgz]}\n")
	write("web-1.1.0.tgz", oldChart)
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "link.tgz")); err != nil {
		t.Fatal(err)
	}
	const repo = "https://charts.example.com/stable"
	r := source.NewResolver(source.Config{Map: source.Map{repo: "file://" + dir}})
	at := func(version string) source.Source {
		return source.Source{Kind: source.KindChart, Repo: repo, Directory: "web", Ref: version}
	}
	if _, contents, err := download(t, r, at("1.1.0")); err != nil || contents != oldChart {
		t.Errorf("%q, %v", contents, err)
	}
	for _, version := range []string{"1.2.0", "1.3.0"} {
		if _, contents, err := download(t, r, at(version)); err == nil {
			t.Errorf("%s: %q was read", version, contents)
		}
	}
	if _, err := source.NewResolver(source.Config{}).Resolve(t.Context(), source.Source{Kind: source.KindChart, Repo: "file://" + dir, Directory: "web"}); err == nil {
		t.Error("an app folder names a directory of this machine")
	}
}

func TestParseChart(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ chart, version, want string }{
		{"web", "", ""},
		{"web", ">= 1.4, < 2", ""},
		{"../web", "1", "cannot be the name of a chart"},
		{"", "1", "cannot be the name of a chart"},
		{"web", "newest", "neither a version nor a range"},
	} {
		_, err := source.Parse(fmt.Appendf(nil, `{"kind":"chart","repo":"https://charts.example.com","directory":%q,"ref":%q}`, tc.chart, tc.version))
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("Parse(%s, %s) = %v, want %q", tc.chart, tc.version, err, tc.want)
		}
	}
}
