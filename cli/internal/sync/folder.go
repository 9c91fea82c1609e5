package sync

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/findings"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/bundle"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/fetch"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/version"
)

// Options say how a folder is read for a sync.
type Options struct {
	App           string // the app's name; "" is that of the folder
	NoCreate      bool   // fails when there is no such app
	Prune         bool   // takes components that the folder no longer has out of the app
	Strict        bool   // takes warnings as errors
	AllowPolicies bool   // takes policies that their engine refuses as warnings
	SkipSources   bool   // does not compare templates with what modules in the folder declare
	SourceMap     []string
	SourceMapFile string
	// Known is what addresses outside of the folder hold, where that need not be fetched.
	Known map[string]fetch.Result
	Say   io.Writer // gets warnings, errors and progress
}

// Folder is an app folder as a sync uploads it.
type Folder struct {
	App      string // the app's name
	Archives []Archive
	Request  ctlapi.SyncRequest
	Shown    []place.Diagnostic // what was found wrong, and shown
}

// Archive is a blob that the control plane must have.
type Archive struct {
	Digest string
	Bytes  []byte
}

// Read checks the folder and packs it. Everything that is wrong is shown
// at once. What it takes from elsewhere is fetched; nothing else is asked of the
// network.
func Read(ctx context.Context, folder string, o Options) (Folder, error) {
	abs, err := filepath.Abs(folder)
	if err != nil {
		return Folder{}, err
	}
	if info, statErr := os.Stat(abs); errors.Is(statErr, fs.ErrNotExist) {
		return Folder{}, usage.Errorf("there is no folder %s", folder)
	} else if statErr != nil || !info.IsDir() {
		return Folder{}, usage.Errorf("%s is not a folder: name the folder with the app's files", folder)
	}
	mapped, err := ReadSourceMap(o.SourceMap, o.SourceMapFile)
	if err != nil {
		return Folder{}, err
	}
	root := os.DirFS(abs)
	fetched, err := ElsewhereWith(ctx, root, mapped, FetchOptions{Say: o.Say, Known: o.Known})
	if err != nil {
		return Folder{}, err
	}
	config, diagnostics := check.Folder(root, appconfig.LoadOptions{SkipSources: o.SkipSources, Fetched: fetched, Mapped: mapped.directory, AllowInvalidPolicies: o.AllowPolicies})
	out := Folder{App: o.App, Shown: diagnostics} // what lint.toml leaves out is not told after all
	lint, about := check.ReadLint(root)
	diagnostics = place.Sort(append(lint.Apply(diagnostics), about...))
	if o.Strict {
		diagnostics = place.Strict(diagnostics)
	}
	for _, d := range diagnostics {
		output.Println(o.Say, d)
	}
	if place.HasErrors(diagnostics) {
		return Folder{}, fmt.Errorf("cannot sync the app folder %s: %s", folder, findings.Errors(diagnostics))
	}
	packed, err := bundle.Make(root, fetched)
	if err != nil {
		return Folder{}, err
	}
	out.Request = ctlapi.SyncRequest{BundleDigest: packed.Index.Digest, CliVersion: version.Get().Version, CreateApp: !o.NoCreate, Prune: o.Prune, AllowInvalidPolicies: o.AllowPolicies}
	out.Archives, out.Request.Sources, err = packSources(root, appconfig.Sources(config), mapped, o.Say)
	if err != nil {
		return Folder{}, err
	}
	if out.App == "" {
		out.App = filepath.Base(abs)
	}
	for _, pack := range packed.All() {
		out.Archives = append(out.Archives, Archive{pack.Digest, pack.Bytes})
	}
	return out, nil
}

// packSources packs the sources that travel with the sync: those in the folder,
// and those of git repositories that the map sends to directories here.
func packSources(root fs.FS, sources []appconfig.Source, mapped SourceMap, say io.Writer) (uploads []Archive, named []ctlapi.SyncSource, err error) {
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
			output.Printf(say, "%s: %s comes from %s\n", name, SourceName(source), from)
			uploads = append(uploads, Archive{digest, data})
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
			uploads = append(uploads, Archive{digest, data})
		}
		named = append(named, ctlapi.SyncSource{Component: name, Digest: digest})
	}
	for _, entry := range mapped.unused() {
		output.Printf(say, "warning: the app has no source that matches %s\n", entry)
	}
	return uploads, named, nil
}

// TellWarnings shows what the control plane warns of and was not shown here: of
// the app, or by rules that this command line does not know yet.
func TellWarnings(say io.Writer, warnings []ctlapi.Warning, shown []place.Diagnostic) {
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
		if known[warned{api.Value(w.File), api.Value(w.Line), w.Message}] {
			continue
		}
		if api.Value(w.File) == "" {
			output.Println(say, "warning", w.Message)
			continue
		}
		output.Println(say, place.Diagnostic{
			Severity: place.Warning, Code: place.Code(w.Code), File: *w.File, Line: api.Value(w.Line), Column: api.Value(w.Column),
			Message: w.Message, Remedy: api.Value(w.Remedy),
		})
	}
}
