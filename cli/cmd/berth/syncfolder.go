package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/bundle"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/version"
)

// archive is a blob that the control plane must have.
type archive struct {
	digest string
	bytes  []byte
}

// asked is what a sync asks for, and what was found wrong and shown before.
type asked struct {
	request ctlapi.SyncRequest
	shown   []place.Diagnostic
}

// readFolder checks the folder and packs it. Everything that is wrong is shown
// at once. What it takes from elsewhere is fetched; nothing else is asked of the
// network.
func (c *cli) readFolder(ctx context.Context, folder string, s syncing) (app string, uploads []archive, ask asked, err error) {
	abs, err := filepath.Abs(folder)
	if err != nil {
		return "", nil, ask, err
	}
	if info, statErr := os.Stat(abs); errors.Is(statErr, fs.ErrNotExist) {
		return "", nil, ask, usagef("there is no folder %s", folder)
	} else if statErr != nil || !info.IsDir() {
		return "", nil, ask, usagef("%s is not a folder: name the one that the app's files are in", folder)
	}
	mapped, err := readSourceMap(s.sourceMap, s.sourceMapFile)
	if err != nil {
		return "", nil, ask, err
	}
	root := os.DirFS(abs)
	fetched, err := c.fetchElsewhere(ctx, root, mapped)
	if err != nil {
		return "", nil, ask, err
	}
	config, diagnostics := check.Folder(root, appconfig.LoadOptions{Fetched: fetched, Mapped: mapped.directory})
	ask.shown = diagnostics // what lint.toml leaves out is not told after all
	lint, about := check.ReadLint(root)
	diagnostics = place.Sort(append(lint.Apply(diagnostics), about...))
	if s.strict {
		diagnostics = place.Strict(diagnostics)
	}
	for _, d := range diagnostics {
		output.Println(c.err, d)
	}
	if place.HasErrors(diagnostics) {
		return "", nil, ask, fmt.Errorf("%s is not an app folder that can be synced: %s", folder, errorsIn(diagnostics))
	}
	packed, err := bundle.MakeFetched(root, fetched)
	if err != nil {
		return "", nil, ask, err
	}
	ask.request = ctlapi.SyncRequest{BundleDigest: packed.Index.Digest, CliVersion: version.Get().Version, CreateApp: !s.noCreate, Prune: s.prune}
	uploads, ask.request.Sources, err = c.packSources(root, appconfig.Sources(config), mapped)
	if err != nil {
		return "", nil, ask, err
	}
	if app = s.app; app == "" {
		app = filepath.Base(abs)
	}
	for _, pack := range packed.All() {
		uploads = append(uploads, archive{pack.Digest, pack.Bytes})
	}
	return app, uploads, ask, nil
}

// packSources packs the sources that travel with the sync: those in the folder,
// and those of git repositories that the map sends to directories here.
func (c *cli) packSources(root fs.FS, sources []appconfig.Source, mapped sourceMap) (uploads []archive, named []ctlapi.SyncSource, err error) {
	packed := map[appconfig.Source]string{} // by what is in it: components may share a directory
	for _, source := range sources {
		name := source.Name
		if source.Block == appconfig.BlockSandbox {
			name = appconfig.BlockSandbox
		}
		data, digest, from, ok, err := mapped.archive(source)
		if err != nil {
			return nil, nil, err
		}
		if ok {
			output.Printf(c.err, "%s: %s is taken from %s\n", name, sourceName(source), from)
			uploads = append(uploads, archive{digest, data})
			named = append(named, ctlapi.SyncSource{Component: name, Digest: digest, Mapped: true})
			continue
		}
		if !source.Uploaded() {
			continue
		}
		contents := source
		contents.Block, contents.Name = "", ""
		digest, ok = packed[contents]
		if !ok {
			if data, digest, err = bundle.ArchiveSource(root, source); err != nil {
				return nil, nil, err
			}
			packed[contents] = digest
			uploads = append(uploads, archive{digest, data})
		}
		named = append(named, ctlapi.SyncSource{Component: name, Digest: digest})
	}
	for _, entry := range mapped.unused() {
		output.Printf(c.err, "warning: no source of the app is %s\n", entry)
	}
	return uploads, named, nil
}

// tellWarnings shows what the control plane warns of and was not shown here: of
// the app, or by rules that this command line does not know yet.
func (c *cli) tellWarnings(warnings []ctlapi.Warning, shown []place.Diagnostic) {
	type warned struct {
		file    string
		line    int
		message string
	}
	known := map[warned]bool{}
	for _, d := range shown {
		known[warned{d.File, d.Line, d.Message}] = true
	}
	for _, w := range warnings {
		if known[warned{value(w.File), value(w.Line), w.Message}] {
			continue
		}
		if value(w.File) == "" {
			output.Println(c.err, "warning", w.Message)
			continue
		}
		output.Println(c.err, place.Diagnostic{
			Severity: place.Warning, Code: place.Code(w.Code), File: *w.File, Line: value(w.Line), Column: value(w.Column),
			Message: w.Message, Remedy: value(w.Remedy),
		})
	}
}
