package registry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/distribution/distribution/v3/registry/storage"
	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/distribution/distribution/v3/registry/storage/driver/factory"
	"github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
)

// repositoriesPath is where distribution keeps them in its storage.
const repositoriesPath = "/docker/registry/v2/repositories"

// uploadsPath is where it keeps the uploads of a repository that are not
// finished.
func uploadsPath(repository string) string {
	return path.Join(repositoriesPath, repository, "_uploads")
}

// contents are the files of a registry, on a disk or in a bucket.
type contents struct {
	driver.StorageDriver

	// parts: unfinished files are parts of an upload to a bucket, which no list
	// of files shows.
	parts bool
}

// openContents opens the storage that the configuration names, and sees that it
// is there.
func openContents(ctx context.Context, config Config) (contents, error) {
	if config.S3 != nil {
		files, err := config.S3.open(ctx)
		return contents{StorageDriver: files, parts: true}, err
	}
	dir, err := filepath.Abs(config.Dir)
	if err != nil {
		return contents{}, fmt.Errorf("registry: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return contents{}, fmt.Errorf("registry: %w", err)
	}
	const threads = 100 // distribution's own default
	return contents{StorageDriver: disk{filesystem.New(filesystem.DriverParameters{RootDirectory: dir, MaxThreads: threads}), dir}}, nil
}

// hasTags tells whether a repository has, or had, a tag. When nobody knows it
// says yes.
func (c contents) hasTags(ctx context.Context, repository string) bool {
	_, err := c.Stat(ctx, path.Join(repositoriesPath, repository, "_manifests", "tags"))
	return !errors.As(err, new(driver.PathNotFoundError))
}

// discard removes an upload, wherever its bytes are. One that is gone is fine.
func (c contents) discard(ctx context.Context, upload string) error {
	if c.parts {
		if err := c.abort(ctx, path.Join(upload, "data")); err != nil {
			return err
		}
	}
	if err := c.Delete(ctx, upload); err != nil && !errors.As(err, new(driver.PathNotFoundError)) {
		return fmt.Errorf("remove upload: %w", err)
	}
	return nil
}

// abort has the bucket forget the parts of a file that was never finished.
func (c contents) abort(ctx context.Context, file string) error {
	writer, err := c.Writer(ctx, file, true)
	switch {
	case err == nil:
		return errors.Join(writer.Cancel(ctx), writer.Close())
	case errors.As(err, new(driver.PathNotFoundError)):
		return nil
	}
	if _, statErr := c.Stat(ctx, file); statErr == nil {
		return nil // it was finished, and is not linked: there are no parts
	}
	return fmt.Errorf("abort upload: %w", err)
}

// PurgeUploads removes uploads that were begun before the given time and never
// finished, and returns how many. Call it now and then; several replicas may.
func (r *Registry) PurgeUploads(ctx context.Context, before time.Time) (int, error) {
	ofArtifacts, err := r.artifacts.files.purgeUploads(ctx, before)
	ofCaches, cacheErr := r.caches.files.purgeUploads(ctx, before)
	return ofArtifacts + ofCaches, errors.Join(err, cacheErr)
}

func (c contents) purgeUploads(ctx context.Context, before time.Time) (int, error) {
	if empty, err := c.empty(ctx); empty || err != nil {
		return 0, err
	}
	uploads, errs := storage.PurgeUploads(ctx, c, before, false)
	removed := 0
	for _, upload := range uploads {
		if err := c.discard(ctx, upload); err != nil {
			errs = append(errs, err)
			continue
		}
		removed++
	}
	if err := errors.Join(errs...); err != nil {
		return removed, fmt.Errorf("purge uploads: %w", err)
	}
	return removed, nil
}

// empty: nothing was pushed yet, which distribution takes for an error.
func (c contents) empty(ctx context.Context) (bool, error) {
	_, err := c.Stat(ctx, repositoriesPath)
	if errors.As(err, new(driver.PathNotFoundError)) {
		return true, nil
	}
	return false, err
}

// Distribution makes its storage itself, from a name and parameters. Ours hands
// it the one that is open already.
const openStorage = "berth"

func init() { factory.Register(openStorage, opened{}) }

type opened struct{}

func (opened) Create(_ context.Context, parameters map[string]any) (driver.StorageDriver, error) {
	files, ok := parameters[openStorage].(driver.StorageDriver)
	if !ok {
		return nil, errors.New("registry: no storage was given")
	}
	return files, nil
}
