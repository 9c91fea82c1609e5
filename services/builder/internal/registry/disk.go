package registry

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/distribution/distribution/v3/registry/storage/driver"
)

// disk is distribution's storage in a directory, which waits for the disk with
// each file. Those that say how far an upload is need not survive a power cut: it
// begins again then. They are half of all files of a push.
type disk struct {
	driver.StorageDriver
	dir string
}

// PutContent implements [driver.StorageDriver].
func (d disk) PutContent(ctx context.Context, name string, raw []byte) error {
	if !strings.Contains(name, "/_uploads/") || !driver.PathRegexp.MatchString(name) {
		return d.StorageDriver.PutContent(ctx, name, raw)
	}
	file := filepath.Join(d.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil { // as the driver's own
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = tmp.Write(raw)
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
	return err
}

// GetContent implements [driver.StorageDriver]. When an upload began is read from
// its file's own time, where a power cut has taken what was in it.
func (d disk) GetContent(ctx context.Context, name string) ([]byte, error) {
	raw, err := d.StorageDriver.GetContent(ctx, name)
	if err != nil || !strings.HasSuffix(name, "/startedat") || len(bytes.Trim(raw, "\x00")) > 0 {
		return raw, err
	}
	info, err := d.Stat(ctx, name)
	if err != nil {
		return nil, err
	}
	return []byte(info.ModTime().UTC().Format(time.RFC3339)), nil
}
