package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/distribution/distribution/v3"
	"github.com/distribution/distribution/v3/registry/storage"
	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// The caches of builds have a storage of their own, apart from that of artifacts: no
// blob is in both, so what is swept here can be of no artifact. A cache that loses
// a blob to a sweep while it is pushed is one that the next build does without.

// cacheFolder is where it begins in the registry's directory or bucket.
const cacheFolder = "cache"

// ofCaches is the configuration of the caches' storage.
func (c Config) ofCaches() Config {
	if c.S3 != nil {
		bucket := *c.S3
		bucket.Prefix = path.Join(bucket.Prefix, cacheFolder)
		c.S3 = &bucket
		return c
	}
	c.Dir = filepath.Join(c.Dir, cacheFolder)
	return c
}

// Cache is the cache of one component's builds.
type Cache struct {
	Repository string
	// Used is when a build last pushed it, changed or not.
	Used time.Time
	// Bytes of all its manifests; one blob in two of them counts twice.
	Bytes int64
	// Broken: what a tag names cannot be read.
	Broken bool
}

// CacheLimits bound the caches of each org.
type CacheLimits struct {
	// MaxBytes of all caches of an org, at least 0.
	MaxBytes int64
	// MaxAge of a cache that no build has used.
	MaxAge time.Duration
}

// Superfluous decides which caches go: those that were not used for long, and of
// each org those that were used least recently, until the rest fits.
func Superfluous(caches []Cache, limits CacheLimits, now time.Time) (gone []string) {
	newest := slices.SortedFunc(slices.Values(caches), func(a, b Cache) int {
		return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.Repository, b.Repository))
	})
	used := map[string]int64{}
	for _, c := range newest {
		org, _, _ := strings.Cut(c.Repository, "/")
		if c.Broken || now.Sub(c.Used) > limits.MaxAge || used[org]+c.Bytes > limits.MaxBytes {
			gone = append(gone, c.Repository)
			continue
		}
		used[org] += c.Bytes
	}
	return gone
}

// PruneCaches removes the caches that the limits leave no room for, and every blob
// that no manifest under a tag names. It returns how many caches it removed. Call
// it now and then; one replica at a time should.
func (r *Registry) PruneCaches(ctx context.Context, limits CacheLimits, now time.Time) (int, error) {
	s := &r.caches
	if empty, err := s.files.empty(ctx); empty || err != nil {
		return 0, err
	}
	names, err := s.registry(ctx)
	if err != nil {
		return 0, fmt.Errorf("prune caches: %w", err)
	}
	caches, err := s.list(ctx, names)
	if err != nil {
		return 0, fmt.Errorf("prune caches: %w", err)
	}
	gone := Superfluous(caches, limits, now)
	for _, repository := range gone {
		if err := s.files.Delete(ctx, path.Join(repositoriesPath, repository)); err != nil && !errors.As(err, new(driver.PathNotFoundError)) {
			return 0, fmt.Errorf("prune cache %s: %w", repository, err)
		}
	}
	if err := storage.MarkAndSweep(ctx, s.files, names, storage.GCOpts{RemoveUntagged: true, Quiet: true}); err != nil {
		return len(gone), fmt.Errorf("prune caches: %w", err)
	}
	return len(gone), nil
}

// registry is distribution's own view of the storage.
func (s *shelf) registry(ctx context.Context) (distribution.Namespace, error) {
	return storage.NewRegistry(ctx, s.files, storage.EnableDelete)
}

// list reads what caches there are.
func (s *shelf) list(ctx context.Context, names distribution.Namespace) (caches []Cache, err error) {
	repositories, ok := names.(distribution.RepositoryEnumerator)
	if !ok {
		return nil, errors.New("the storage cannot list its repositories")
	}
	err = repositories.Enumerate(ctx, func(repository string) error {
		c, err := s.measure(ctx, repository)
		caches = append(caches, c)
		return err
	})
	return caches, err
}

// measure reads the tags of a cache: there is one for each kind of machine that
// builds it.
func (s *shelf) measure(ctx context.Context, repository string) (Cache, error) {
	c := Cache{Repository: repository}
	tags := path.Join(repositoriesPath, repository, "_manifests", "tags")
	list, err := s.files.List(ctx, tags)
	if err != nil && !errors.As(err, new(driver.PathNotFoundError)) {
		return c, err
	}
	for _, tag := range list {
		link := path.Join(tag, "current", "link")
		info, err := s.files.Stat(ctx, link)
		if errors.As(err, new(driver.PathNotFoundError)) {
			continue
		}
		if err != nil {
			return c, err
		}
		if info.ModTime().After(c.Used) {
			c.Used = info.ModTime()
		}
		raw, err := s.files.GetContent(ctx, link)
		if err != nil {
			return c, err
		}
		size, ok := s.size(ctx, repository, digest.Digest(raw))
		c.Bytes += size
		c.Broken = c.Broken || !ok
	}
	return c, nil
}

// size of a manifest and all that it names; not ok when it cannot be read.
func (s *shelf) size(ctx context.Context, repository string, manifest digest.Digest) (total int64, ok bool) {
	answer := s.refers.call(ctx, http.MethodGet, manifestPath(repository, manifest.String()), nil)
	var m ocispec.Manifest
	if answer.status != http.StatusOK || json.Unmarshal(answer.body.Bytes(), &m) != nil {
		return 0, false
	}
	total = int64(answer.body.Len()) + m.Config.Size
	for _, layer := range m.Layers {
		total += layer.Size
	}
	return total, true
}
