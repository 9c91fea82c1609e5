// Package appfolder is the folder of an app that a command was given.
package appfolder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/cli/internal/findings"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/fetch"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// Folder is an app folder as it was named.
type Folder struct {
	Written string // as it was typed
	Root    fs.FS
	Fetched map[string]fetch.Result // nil when nothing is fetched
	// AllowPolicies takes policies that their engine refuses as warnings.
	AllowPolicies bool
}

// Open takes the folder that the arguments of a command name, which is here when
// they name none.
func Open(args []string) (Folder, error) {
	dir := "."
	if len(args) > 0 {
		dir = args[0]
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Folder{}, usage.Errorf("there is no folder %s", dir)
	case err != nil || !info.IsDir():
		return Folder{}, usage.Errorf("%s is not a folder: name the folder with the app's files", dir)
	}
	return Folder{Written: dir, Root: os.DirFS(dir)}, nil
}

// Path is a file of the folder as seen from here, so that editors and terminals
// can open it.
func (f Folder) Path(file string) string {
	switch {
	case file == "":
		return f.Written
	case fetch.IsAddress(file):
		return file
	}
	return filepath.Join(f.Written, filepath.FromSlash(file))
}

// Located are diagnostics with the paths of their files as seen from here.
func (f Folder) Located(diagnostics []place.Diagnostic) []place.Diagnostic {
	out := make([]place.Diagnostic, len(diagnostics))
	for i, d := range diagnostics {
		d.File = f.Path(d.File)
		out[i] = d
	}
	return out
}

// Read loads and checks the folder. The errors in it are shown and returned, with
// paths as seen from here; the app is as complete as they allow. It fails when
// there is no app at all.
func (f Folder) Read(say io.Writer) (app *appconfig.App, wrong []place.Diagnostic, err error) {
	app, diagnostics := check.Format(f.Root, appconfig.LoadOptions{Fetched: f.Fetched, AllowInvalidPolicies: f.AllowPolicies})
	for _, d := range f.Located(diagnostics) {
		if d.Severity == place.Error {
			output.Println(say, d)
			wrong = append(wrong, d)
		}
	}
	if len(app.Origin.Files) == 0 && len(wrong) > 0 {
		return nil, nil, fmt.Errorf("%s has %s", f.Written, findings.Errors(wrong))
	}
	return app, wrong, nil
}
