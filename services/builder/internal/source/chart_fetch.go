package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/services/builder/internal/keyring"
)

// indexRepo is a repository with an index.yaml.
type indexRepo struct {
	base  *url.URL
	name  string
	get   getter
	limit int64 // of the index, in bytes

	read []chartVersion
}

// getter opens what stands at an address.
type getter interface {
	open(ctx context.Context, address *url.URL) (io.ReadCloser, error)
}

func (r *indexRepo) entries(ctx context.Context) ([]chartVersion, error) {
	if r.read != nil {
		return r.read, nil
	}
	body, err := r.get.open(ctx, r.base.JoinPath("index.yaml"))
	if err != nil {
		return nil, err
	}
	defer body.Close()
	if r.read, err = readIndex(body, r.name); errors.Is(err, errIndex) {
		return nil, &Error{text: fmt.Sprintf("%s has no index.yaml that Berth can read", r.base), cause: err, Key: KeyRepoURL, CopyWillDo: true}
	}
	if err == nil && len(r.read) == 0 {
		return nil, about(KeyChart, "chart repository %s has no chart %s", r.base, r.name)
	}
	return r.read, err
}

func (r *indexRepo) versions(ctx context.Context) ([]string, error) {
	entries, err := r.entries(ctx)
	var versions []string
	for _, e := range entries {
		versions = append(versions, e.Version)
	}
	return versions, err
}

func (r *indexRepo) find(ctx context.Context, version string) (address, dgst string, err error) {
	entries, err := r.entries(ctx)
	if err != nil {
		return "", "", err
	}
	i := slices.IndexFunc(entries, func(e chartVersion) bool { return e.Version == version })
	if i < 0 {
		return "", "", about(KeyVersion, "chart %s %s is no longer in %s", r.name, version, r.base)
	}
	if len(entries[i].URLs) == 0 {
		return "", "", refuse("the index of %s does not say where chart %s %s is", r.base, r.name, version)
	}
	at, err := r.base.JoinPath("/").Parse(entries[i].URLs[0])
	if err != nil || at.User != nil || !r.mayLeadTo(at) {
		return "", "", refuse("the index of %s sends chart %s %s to an address that is not https", r.base, r.name, version)
	}
	dgst = strings.ToLower(entries[i].Digest)
	if !strings.HasPrefix(dgst, "sha256:") {
		dgst = "sha256:" + dgst
	}
	if digestForm.MatchString(dgst) {
		return at.String(), dgst, nil
	}
	// Some repositories list no digests: the chart itself says what it is.
	dgst, err = copyChart(ctx, r, packedChart{address: at.String()}, io.Discard)
	return at.String(), dgst, err
}

// mayLeadTo tells where an index may send us: to https, and to where the index
// itself is.
func (r *indexRepo) mayLeadTo(at *url.URL) bool {
	switch at.Scheme {
	case "https":
		return at.Host != ""
	case "http":
		return r.base.Scheme == "http" && at.Host == r.base.Host
	case "file":
		return r.base.Scheme == "file" && at.Host == "" && strings.HasPrefix(path.Clean(at.Path), path.Clean(r.base.Path)+"/")
	}
	return false
}

func (r *indexRepo) open(ctx context.Context, at packedChart) (io.ReadCloser, error) {
	address, err := url.Parse(at.address)
	if err != nil {
		return nil, err
	}
	return r.get.open(ctx, address)
}

// webGetter asks a web server.
type webGetter struct{ client *http.Client }

func (g webGetter) open(ctx context.Context, address *url.URL) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	res, err := g.client.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		res.Body.Close()
		return nil, answerError(res.StatusCode)
	}
	return res.Body, nil
}

// fileGetter reads a repository in a directory of this machine, and nothing
// outside of it.
type fileGetter struct{ dir string }

func (g fileGetter) open(_ context.Context, address *url.URL) (io.ReadCloser, error) {
	name, err := filepath.Rel(g.dir, filepath.FromSlash(address.Path))
	if err != nil || address.Scheme != "file" {
		return nil, refuse("a chart repository on disk leads to %s, which is not in it", address.Redacted())
	}
	file, err := os.OpenInRoot(g.dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, answerError(http.StatusNotFound)
	}
	return file, err
}

// onlyTo keeps to https, or to this machine when the repository is on it, and
// shows credentials to the repository's own host alone, not to where it redirects.
type onlyTo struct {
	next   http.RoundTripper
	plain  bool
	host   string
	access *keyring.Key
}

func (o *onlyTo) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" && (!o.plain || !isLoopback(req.URL)) {
		if req.Body != nil {
			req.Body.Close() // a RoundTripper always closes it
		}
		return nil, errRedirect
	}
	if o.access != nil && req.URL.Host == o.host {
		if username, password, ok := o.access.Basic(); ok {
			req = req.Clone(req.Context())
			req.SetBasicAuth(username, password)
		}
	}
	return o.next.RoundTrip(req)
}

// isLoopback tells an address of this machine.
func isLoopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// registryRepo is a chart in an OCI registry.
type registryRepo struct {
	remote oci.Remote
	name   string
}

const (
	// maxTags is far more than a repository of charts or images has.
	maxTags = 100_000

	chartConfig    = "application/vnd.cncf.helm.config.v1+json"
	chartLayer     = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	chartLayerOnce = "application/tar+gzip" // of Helm before 3.7
)

// versions are the tags. Registries allow no "+" there, for which Helm writes "_".
func (r *registryRepo) versions(ctx context.Context) ([]string, error) {
	tags, err := oci.Tags(ctx, r.remote, maxTags)
	for i, tag := range tags {
		tags[i] = strings.ReplaceAll(tag, "_", "+")
	}
	return tags, err
}

func (r *registryRepo) find(ctx context.Context, version string) (address, dgst string, err error) {
	manifest, err := oci.ReadManifest(ctx, r.remote, strings.ReplaceAll(version, "+", "_"))
	if err != nil {
		return "", "", err
	}
	for _, layer := range manifest.Layers {
		if layer.MediaType == chartLayer || layer.MediaType == chartLayerOnce && manifest.Config.MediaType == chartConfig {
			return "oci://" + r.remote.String(), layer.Digest.String(), nil
		}
	}
	return "", "", about(KeyChart, "%s in version %s is in the registry, but it is not a chart", r.remote, version)
}

func (r *registryRepo) open(ctx context.Context, at packedChart) (io.ReadCloser, error) {
	parsed, err := digest.Parse(at.digest)
	if err != nil {
		return nil, err
	}
	return oci.OpenBlob(ctx, r.remote, parsed)
}
