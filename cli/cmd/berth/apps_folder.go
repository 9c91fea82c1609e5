package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/cli/internal/sync"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/fetch"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// appFolder is the folder that a command of app files was given.
type appFolder struct {
	written string // as it was typed
	root    fs.FS
	fetched map[string]fetch.Result // nil when nothing is fetched
}

// folderArg reads the folder of a command, which is here when none is named.
func folderArg(args []string) (appFolder, error) {
	dir := "."
	if len(args) > 0 {
		dir = args[0]
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return appFolder{}, usagef("there is no folder %s", dir)
	case err != nil || !info.IsDir():
		return appFolder{}, usagef("%s is not a folder: name the one that the app's files are in", dir)
	}
	return appFolder{written: dir, root: os.DirFS(dir)}, nil
}

// path is a file of the folder as seen from here, so that editors and terminals
// can open it.
func (f appFolder) path(file string) string {
	switch {
	case file == "":
		return f.written
	case fetch.IsAddress(file):
		return file
	}
	return filepath.Join(f.written, filepath.FromSlash(file))
}

// located are diagnostics with the paths of their files as seen from here.
func (f appFolder) located(diagnostics []place.Diagnostic) []place.Diagnostic {
	out := make([]place.Diagnostic, len(diagnostics))
	for i, d := range diagnostics {
		d.File = f.path(d.File)
		out[i] = d
	}
	return out
}

// usable loads and checks the folder. What is wrong with it is shown, and is
// the end of the command.
func (c *cli) usable(f appFolder) (*appconfig.App, error) {
	app, diagnostics := check.Format(f.root, appconfig.LoadOptions{Fetched: f.fetched})
	if !place.HasErrors(diagnostics) {
		return app, nil
	}
	for _, d := range f.located(diagnostics) {
		if d.Severity == place.Error {
			output.Println(c.err, d)
		}
	}
	return nil, fmt.Errorf("%s has %s", f.written, sync.ErrorsIn(diagnostics))
}
