package buildkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/durable"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/runner/agent/disk"
)

// The cache of a component's builds is kept in the org's registry, so that a Build
// Runner that never built it, or another one, need not begin from nothing. The
// agent carries it: neither BuildKit nor an engine gets a credential of the
// registry, and a BuildKit elsewhere needs no way to it.
//
//	registry ─▶ agent: in/cache ─▶ buildctl ─▶ BuildKit ─▶ buildctl ─▶ out/cache ─▶ agent ─▶ registry
//
// A cache that cannot be had, or kept, is a line in the log and nothing else.

const (
	// maxCache bounds the cache of one component, in bytes. One that is larger takes
	// longer to bring than it saves.
	maxCache = 4 << 30

	// bringTimeout and keepTimeout bound what a build waits for its cache.
	bringTimeout = 5 * time.Minute
	keepTimeout  = 10 * time.Minute
)

// Remote opens a repository of the org's registry.
type Remote func(ctx context.Context, repository string) (oci.Remote, error)

// Kept is the cache of a build: Source.Cache of a job of the org.
type Kept struct {
	Org, Repository string
	Docker          *jobspec.Docker
	Remote          Remote
}

// Tag tells apart the caches of machines that build the same component: what runs
// on one is of no use to another.
func (k Kept) Tag(arch string) string {
	on := "on-linux-" + arch
	if len(k.Docker.Platforms) == 0 {
		return on
	}
	name := on + "-for-" + strings.ReplaceAll(strings.Join(slices.Sorted(slices.Values(k.Docker.Platforms)), "_"), "/", "-")
	const most = 128 // characters of a tag
	if len(name) > most {
		return on + "-for-" + digest.FromString(name).Encoded()
	}
	return name
}

// check refuses what is not the org's, or no place of caches.
func (k Kept) check() error {
	if !strings.HasPrefix(k.Repository, k.Org+"/") || !oci.IsCacheRepository(k.Repository) {
		return fmt.Errorf("%q is no place for a cache of this org", k.Repository)
	}
	return nil
}

// BringCache puts the cache into dir, unless there is none or BuildKit has what is
// in it, and returns a line for the log, "" for nothing to say.
func (s *Service) BringCache(ctx context.Context, k Kept, dir string) string {
	if s == nil || k.Repository == "" {
		return ""
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, bringTimeout)
	defer cancel()
	size, err := s.bringCache(ctx, k, dir)
	switch {
	case errors.Is(err, oci.ErrNotFound):
		_ = os.RemoveAll(dir)
		return "no cache of earlier builds is kept for this machine"
	case err != nil:
		_ = os.RemoveAll(dir)
		return "building without the cache of earlier builds: " + err.Error()
	case size == 0:
		return ""
	}
	return fmt.Sprintf("cache of earlier builds: %s in %s", disk.Size(size), time.Since(began).Round(time.Millisecond))
}

func (s *Service) bringCache(ctx context.Context, k Kept, dir string) (size int64, err error) {
	if err := k.check(); err != nil {
		return 0, err
	}
	from, err := k.Remote(ctx, k.Repository)
	if err != nil {
		return 0, err
	}
	tag := k.Tag(runtime.GOARCH)
	kept, err := oci.ResolveTag(ctx, from, tag)
	if err != nil {
		return 0, err
	}
	if s.has()[k.Repository+":"+tag] == kept {
		return 0, nil
	}
	layout, err := oci.Open(dir)
	if err != nil {
		return 0, err
	}
	err = from.Pull(ctx, kept, layout, oci.TransferOptions{MaxBytes: maxCache, Progress: func(_, total int64) { size = total }})
	return max(size, 1), err
}

// KeepCache pushes the cache that a build left in src, and returns a line for the
// log.
func (s *Service) KeepCache(ctx context.Context, k Kept, src *os.Root) string {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	size, err := s.keepCache(ctx, k, src)
	if err != nil {
		return "the cache of this build is not kept: " + err.Error()
	}
	return fmt.Sprintf("kept the cache of this build: %s in %s", disk.Size(size), time.Since(began).Round(time.Millisecond))
}

func (s *Service) keepCache(ctx context.Context, k Kept, src *os.Root) (int64, error) {
	if err := k.check(); err != nil {
		return 0, err
	}
	listed, err := oci.Listed(src)
	if err != nil {
		return 0, err
	}
	to, err := k.Remote(ctx, k.Repository)
	if err != nil {
		return 0, err
	}
	// Also when nothing changed: the tag says when it was used last.
	tag := k.Tag(runtime.GOARCH)
	size, err := to.PushFolder(ctx, src, listed[0], oci.TransferOptions{Tag: tag, MaxBytes: maxCache})
	if err == nil {
		s.note(k.Repository+":"+tag, listed[0])
	}
	return size, err
}

func (s *Service) hasFile() string { return filepath.Join(s.cfg.Dir, "caches.json") }

// has are the caches, by tag, that the runner's own BuildKit made: what is in them
// it need not be given. One that runs elsewhere may have forgotten everything.
func (s *Service) has() map[string]digest.Digest {
	has := map[string]digest.Digest{}
	if s.cfg.Address != "" {
		return has
	}
	if _, err := os.Stat(filepath.Join(s.cfg.Dir, "state", "root", "cache.db")); err != nil {
		return has // somebody made room
	}
	raw, _ := os.ReadFile(s.hasFile())
	_ = json.Unmarshal(raw, &has) // what cannot be read is brought again
	if has == nil {
		has = map[string]digest.Digest{}
	}
	return has
}

// note writes down what the own BuildKit has.
func (s *Service) note(name string, kept digest.Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	has := s.has()
	has[name] = kept
	if raw, err := json.Marshal(has); err == nil {
		_ = durable.WriteFile(s.hasFile(), raw, 0o600)
	}
}
