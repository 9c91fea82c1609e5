package appfolder

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/appconfig/syntax"
	"github.com/berth-dev/berth/pkg/durable"
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

// replaceFile changes a file's contents and keeps its mode. A link stays a
// link.
func replaceFile(name string, data []byte) error {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	return durable.WriteFile(name, data, info.Mode().Perm())
}
