// Package check answers questions about a whole app that was read: what is wrong
// between its blocks ([Validate]), what this version cannot deploy
// ([Unsupported]), which warnings its authors want to see ([ReadLint]), what its
// templates come to ([Previews]) and who reads which variable ([VariableReads]).
// It changes no App, and but for lint.toml and the sources it reads no file.
package check

import (
	"io/fs"
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// Folder loads and validates, and tells what this version cannot deploy and what
// is not fetched: everything that keeps a folder from being synced, sorted.
func Folder(fsys fs.FS, opts appconfig.LoadOptions) (*appconfig.App, []place.Diagnostic) {
	app, diags := appconfig.Load(fsys, opts)
	if len(app.Origin.Files) == 0 {
		return app, diags // not an app folder: that says it all
	}
	return app, place.Sort(slices.Concat(diags, validated(app, opts), Plugins(fsys, opts, app), Deployable(app), notFetched(app, place.Error)))
}

// Format loads and validates: everything that is wrong with a folder by
// the rules of the language, sorted, whatever this version can deploy of it.
// What stands elsewhere and is not fetched is a note.
func Format(fsys fs.FS, opts appconfig.LoadOptions) (*appconfig.App, []place.Diagnostic) {
	app, diags := appconfig.Load(fsys, opts)
	if len(app.Origin.Files) == 0 {
		return app, diags // not an app folder: that says it all
	}
	return app, place.Sort(slices.Concat(diags, validated(app, opts), Plugins(fsys, opts, app), notFetched(app, place.Note)))
}

func validated(app *appconfig.App, opts appconfig.LoadOptions) []place.Diagnostic {
	return weighPolicies(Validate(app), opts.AllowInvalidPolicies)
}

// notFetched tells of everything that stands elsewhere and is not there: an
// error in a sync, and else what was not looked at.
func notFetched(app *appconfig.App, severity place.Severity) []place.Diagnostic {
	var diags []place.Diagnostic
	for _, f := range appconfig.Fetches(app) {
		var d place.Diagnostic
		if severity == place.Error {
			d = app.Origin.Diagnose(place.Error, place.CodeFetch, f.At, "%s: %q is not fetched", f.At.Last(), f.Address).
				WithRemedy("sync the folder with `berth sync`, which fetches it")
		} else {
			d = app.Origin.Diagnose(place.Note, place.CodeUnchecked, f.At, "%s: %q is fetched when the app is synced, and not looked at here", f.At.Last(), f.Address)
		}
		diags = append(diags, d)
	}
	return diags
}
