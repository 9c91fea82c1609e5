package registry_test

import (
	"log/slog"
	"testing"

	"github.com/berth-dev/berth/services/builder/internal/registry"
	"github.com/berth-dev/berth/services/internal/s3test"
)

// place is where the contents of a registry are. It travels to the process that
// is killed as JSON.
type place struct {
	Dir string
	S3  *registry.S3
	// LockDir stands for the database of replicas that share a bucket.
	LockDir string

	bucket s3test.Bucket
}

func (p place) config(who registry.Authenticator) registry.Config {
	config := registry.Config{Dir: p.Dir, S3: p.S3, Secret: "secret of the tests", Auth: who, Logger: slog.New(slog.DiscardHandler)}
	if p.S3 != nil {
		config.Locks = registry.NewDirLock(p.LockDir)
	}
	return config
}

func onDisk(t testing.TB) place { return place{Dir: t.TempDir()} }

func inBucket(t testing.TB) place {
	b := s3test.New(t)
	return place{bucket: b, LockDir: t.TempDir(), S3: &registry.S3{
		Bucket: b.Name, Region: b.Region, Endpoint: b.Endpoint, PathStyle: true, Prefix: "berth/registry",
		AccessKey: b.AccessKey, SecretKey: b.SecretKey,
	}}
}

// inEveryStorage runs a test once per kind of storage.
func inEveryStorage(t *testing.T, test func(t *testing.T, in place)) {
	t.Helper()
	t.Parallel()
	for _, storage := range []struct {
		name string
		in   func(testing.TB) place
	}{{"files", onDisk}, {"s3", inBucket}} {
		t.Run(storage.name, func(t *testing.T) {
			t.Parallel()
			test(t, storage.in(t))
		})
	}
}
