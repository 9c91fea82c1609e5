package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

// dockerHub is the registry of names without a host, as people write them.
const dockerHub = "docker.io"

// ImageRemote reads the name of an image, "host/path", without tag or digest: a
// name without a host is of Docker Hub. The registry is asked anonymously, over
// HTTPS unless it is on this machine.
func ImageRemote(name string) (Remote, error) {
	host, repository, found := strings.Cut(name, "/")
	switch {
	case !found || !strings.ContainsAny(host, ".:") && host != "localhost":
		host, repository = dockerHub, name
		if !found {
			repository = "library/" + name
		}
	case host == dockerHub && !strings.Contains(repository, "/"):
		repository = "library/" + repository
	}
	r := Remote{Registry: host, Repository: repository, PlainHTTP: isLoopback(host)}
	if err := r.Validate(); err != nil {
		return r, fmt.Errorf("%q is not the name of an image: write host and path, without a tag", name)
	}
	return r, nil
}

// ResolveTag asks a registry for the digest behind a tag.
func ResolveTag(ctx context.Context, src Remote, tag string) (digest.Digest, error) {
	repo, err := src.open()
	if err != nil {
		return "", err
	}
	desc, err := repo.Resolve(ctx, tag)
	return desc.Digest, err
}

// Denied tells whether a registry wants credentials, or others than it got. Many
// answer so for what they do not have.
func Denied(err error) bool {
	if errors.Is(err, auth.ErrBasicCredentialNotFound) {
		return true
	}
	var answer *errcode.ErrorResponse
	return errors.As(err, &answer) && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden)
}

// PushFolder pushes an artifact of an image layout that somebody else wrote to
// the registry, and returns its size. Nothing outside of the folder
// is read, and what is not what its digest says is refused by the registry.
func (r Remote) PushFolder(ctx context.Context, src *os.Root, dgst digest.Digest, opt TransferOptions) (int64, error) {
	folder := folder{src}
	root, err := folder.resolve(dgst)
	if err != nil {
		return 0, err
	}
	repo, err := r.open()
	if err != nil {
		return 0, err
	}
	t := transfer{src: folder, dst: repo, repo: repo, opt: opt}
	if err := t.run(ctx, manifest{desc: root}); err != nil {
		return 0, fmt.Errorf("push %s to %s: %w", dgst, r, err)
	}
	return t.meter.total, nil
}

// maxListed is more than an image has platforms, twice: each may have something
// that refers to it.
const maxListed = 64

// Listed are the artifacts that the index of an image layout lists, in its order,
// at least one. The layout is somebody else's: nothing outside of it is read.
func Listed(src *os.Root) ([]digest.Digest, error) {
	entries, err := folder{src}.entries()
	if err != nil {
		return nil, err
	}
	if n := len(entries); n == 0 || n > maxListed {
		return nil, fmt.Errorf("%s lists %d artifacts", ocispec.ImageIndexFile, n)
	}
	list := make([]digest.Digest, len(entries))
	for i, desc := range entries {
		list[i] = desc.Digest
		if err := desc.Digest.Validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", ocispec.ImageIndexFile, err)
		}
	}
	return list, nil
}

// folder reads an image layout that is not trusted.
type folder struct{ root *os.Root }

// entries are what the layout's index lists.
func (f folder) entries() ([]ocispec.Descriptor, error) {
	file, err := f.open(ocispec.ImageIndexFile)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var index ocispec.Index
	if err := json.NewDecoder(io.LimitReader(file, maxManifestBytes)).Decode(&index); err != nil {
		return nil, fmt.Errorf("%s: %w", ocispec.ImageIndexFile, err)
	}
	return index.Manifests, nil
}

// resolve finds an artifact that the layout's index lists.
func (f folder) resolve(dgst digest.Digest) (ocispec.Descriptor, error) {
	entries, err := f.entries()
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	for _, desc := range entries {
		if desc.Digest == dgst {
			return plain(desc), nil
		}
	}
	return ocispec.Descriptor{}, fmt.Errorf("artifact %s: %w", dgst, ErrNotFound)
}

// Fetch opens a blob.
func (f folder) Fetch(_ context.Context, desc ocispec.Descriptor) (io.ReadCloser, error) {
	if err := desc.Digest.Validate(); err != nil {
		return nil, err
	}
	return f.open(path.Join("blobs", desc.Digest.Algorithm().String(), desc.Digest.Encoded()))
}

// Exists tells whether a blob is there.
func (f folder) Exists(ctx context.Context, desc ocispec.Descriptor) (bool, error) {
	file, err := f.Fetch(ctx, desc)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, file.Close()
}

// open opens a regular file, and waits for nobody: not for the other end of a
// pipe either.
func (f folder) open(name string) (*os.File, error) {
	file, err := f.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", name, ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

var pathElement = regexp.MustCompile(`^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*$`)

// IsPathElement tells whether registries accept s between two slashes of a
// repository's name.
func IsPathElement(s string) bool { return pathElement.MatchString(s) }

// PathElement is the part of a repository's name that stands for something with a
// name and an id: the name where registries accept it.
func PathElement(name, id string) string {
	if IsPathElement(name) && name != cacheElement && name != versionsElement {
		return name
	}
	return id
}

// cacheElement stands for no app: below it are the caches of an org's builds.
const cacheElement = "build.cache"

// versionsElement stands for no app either.
const versionsElement = "runner.versions"

// RunnerVersions is the repository with the versions of the runner that an org offers.
func RunnerVersions(orgID string) string { return orgID + "/" + versionsElement }

// CacheRepository is where the cache of a component's builds is kept, in the org's
// registry.
func CacheRepository(orgID, appID, componentID string) string {
	return orgID + "/" + cacheElement + "/" + appID + "/" + componentID
}

// IsCacheRepository tells whether a repository has the caches of an org's builds,
// and no artifacts.
func IsCacheRepository(repository string) bool {
	_, rest, _ := strings.Cut(repository, "/")
	first, _, _ := strings.Cut(rest, "/")
	return first == cacheElement
}

// maxPathElement leaves room for a host in the 255 bytes of a whole name.
const maxPathElement = 128

// RepositoryOf is the repository of the install's own registry that has the
// images of a component. A name that registries do not accept is replaced by the
// id of the resource.
func RepositoryOf(component, resourceID string) string {
	if len(component) <= maxPathElement && IsPathElement(component) {
		return component
	}
	return strings.ToLower(resourceID)
}
