package appfolder

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/appconfig/syntax"
)

// Format tells whether a file has another form than it should, and gives it
// that when asked to.
func (f Folder) Format(name string, write bool) (differs bool, problem *place.Diagnostic, err error) {
	data, err := fs.ReadFile(f.Root, name)
	if err != nil {
		return false, nil, err
	}
	formatted, problem := syntax.Format(f.Path(name), data)
	if problem != nil || bytes.Equal(data, formatted) {
		return false, problem, nil
	}
	if write {
		err = replaceFile(f.Path(name), formatted)
	}
	return true, nil, err
}

// replaceFile changes a file's contents all at once: an interruption leaves the
// old ones. A link stays a link.
func replaceFile(name string, data []byte) error {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // gone when all went well
	_, err = file.Write(data)
	if err == nil {
		err = file.Chmod(info.Mode().Perm())
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}
