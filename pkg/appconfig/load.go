package appconfig

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig/bind"
	"github.com/berth-dev/berth/pkg/appconfig/digest"
	"github.com/berth-dev/berth/pkg/appconfig/fetch"
	"github.com/berth-dev/berth/pkg/appconfig/folder"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/appconfig/syntax"
)

// LoadOptions adjusts Load; the zero value is right for an app folder on disk.
type LoadOptions struct {
	// SkipSources skips the checks of local source directories and of scripts
	// next to the config: a bundle does not carry them.
	SkipSources bool
	// Fetched is what was fetched from elsewhere, by the address as the folder has
	// it. What is missing is listed by Fetches. An opened bundle has its own.
	Fetched map[string]fetch.Result
	// Mapped finds where a source of git stands on this machine, false when it
	// does not; nil for no such place. Terraform modules there are looked into.
	Mapped func(Source) (root fs.FS, dir string, ok bool)
	// AllowInvalidPolicies takes policies that their engine refuses as warnings.
	AllowInvalidPolicies bool
}

// Load reads an app folder. It returns all problems of single files and blocks
// at once; the App is as complete as they allow, and only usable when
// [place.HasErrors] is false. Rules between blocks are the package check's.
func Load(fsys fs.FS, opts LoadOptions) (*App, []place.Diagnostic) {
	l := newLoader(fsys, opts.Fetched)
	if problem := l.noAppFolder(); problem != nil {
		return l.app, []place.Diagnostic{*problem}
	}
	l.loadAll()
	if !opts.SkipSources {
		l.localSources()
		l.terraformVars(opts.Mapped)
		l.scripts(opts.Mapped)
	}
	l.finish()
	return l.app, place.Sort(l.Diags)
}

// Carried reads what travels with an app: the App without its installs, and the
// files that it was read from, by name. It fails when the folder has errors or
// needs more than was fetched; the package check says which.
func Carried(fsys fs.FS, fetched map[string]fetch.Result) (*App, map[string][]byte, error) {
	l := newLoader(fsys, fetched)
	l.appOnly = true
	if problem := l.noAppFolder(); problem != nil {
		return nil, nil, errors.New(problem.String())
	}
	l.loadAll()
	if place.HasErrors(l.Diags) {
		return nil, nil, errors.New("the app folder has errors")
	}
	l.finish()
	if wanted := Fetches(l.app); len(wanted) > 0 {
		return nil, nil, fmt.Errorf("%q is not fetched", wanted[0].Address)
	}
	return l.app, maps.Clone(l.folder.Files), nil
}

// maxFolderKeys bounds the keys of all files together; each is kept with its
// place.
const maxFolderKeys = 50_000

// loader holds one Load. The embedded binder collects the diagnostics.
type loader struct {
	bind.Binder
	rules   checker // of single blocks
	app     *App
	folder  *folder.Reader
	fetched map[string]fetch.Result // by address
	used    int64                   // bytes of files that keys name, counted at each use
	// appOnly leaves the files below installs/ alone.
	appOnly bool
}

// hasFetched is an opened bundle: it carries what was fetched, by address.
type hasFetched interface {
	Fetched() map[string]fetch.Result
}

func newLoader(fsys fs.FS, fetched map[string]fetch.Result) *loader {
	if bundle, ok := fsys.(hasFetched); ok {
		fetched = bundle.Fetched()
	}
	app := &App{Origin: place.Origin{Positions: map[string]place.Position{}}, unreadable: map[string]bool{}}
	l := &loader{app: app, folder: folder.New(fsys), fetched: fetched}
	report := &place.Report{Origin: &app.Origin}
	l.Binder = bind.Binder{Report: report, Text: l.getField, Include: l.include}
	l.rules = checker{report}
	return l
}

// loadAll reads every file of the folder.
func (l *loader) loadAll() {
	whole := l.wholeFiles()
	for _, doc := range whole {
		l.wholeFile(doc)
	}
	for _, k := range kinds {
		if k.name == kindInstalls && l.appOnly {
			continue
		}
		l.loadKind(k, whole)
	}
	l.rootFiles()
}

// loadKind reads the file form or the folder form of a kind. Both may exist
// when only one of them has definitions.
func (l *loader) loadKind(k kind, whole []*syntax.Document) {
	var fromFile, fromFolder []*syntax.Document
	if k.file != "" && l.folder.Exists(k.file) {
		fromFile = l.documents(k, []string{k.file})
	}
	if k.folder != "" && l.folder.Leaves(k.folder) {
		l.app.unreadable[k.name] = true
		l.Add(place.Error, place.CodeOutsideOfApp, place.Place{File: k.folder}, "is a symlink that %v", folder.ErrOutside)
	} else if k.folder != "" && l.folder.IsDir(k.folder) {
		names, err := l.folder.TOMLFiles(k.folder)
		if err != nil {
			l.Add(place.Error, folder.Code(err), place.Place{File: k.folder}, "%v", err)
		}
		fromFolder = l.documents(k, names)
	}
	if len(fromFile) > 0 && len(fromFolder) > 0 {
		l.bothDefine(place.Place{File: k.file}, fromFolder[0].File)
	}
	docs := slices.Concat(fromFile, fromFolder)
	for _, doc := range whole {
		if _, ok := doc.Values[wholeKeyOf(k)]; ok || k.name == "metadata" {
			if len(docs) > 0 {
				l.bothDefine(place.Place{File: docs[0].File}, doc.File)
			}
			return // wholeFile reads it
		}
	}
	if k.required && len(docs) == 0 {
		l.missingFile(k, whole)
	}
	included := l.includedIn(k, docs)
	for _, doc := range docs {
		if included[doc.File] {
			continue // it is part of another definition
		}
		l.Base = k.baseOf(doc.File)
		k.load(l, place.Place{File: doc.File}, doc.Values)
	}
}

// missingFile reports a kind that every app needs and that has no definition,
// unless that is reported already or there is only one it can have.
func (l *loader) missingFile(k kind, whole []*syntax.Document) {
	misspelt := len(whole) > 0 && l.Misspelt(place.Place{File: whole[0].File}, k.name)
	if !misspelt && !l.app.unreadable[k.name] && !l.stackOfAzure(k) {
		l.Add(place.Error, place.CodeMissing, place.Place{File: k.file}, "is missing or empty, and every app needs it")
	}
}

// stackOfAzure takes the one stack that there is for a runner in Azure when the
// folder has none; false for any other kind of file and any other runner.
func (l *loader) stackOfAzure(k kind) bool {
	runner := l.app.Runner
	if k.name != kindStack || runner == nil || runner.Platform() != "azure" {
		return false
	}
	l.app.Stack = &Stack{At: runner.At, Type: StackAzureBicep}
	return true
}

func (l *loader) bothDefine(at place.Place, other string) {
	l.Diags = append(l.Diags, l.At(place.Error, place.CodeExclusive, at, "%s and %s both have definitions", at.File, other).
		WithRemedy("move everything to one of them"))
}

// baseOf says what "./x" is relative to in a file of the kind.
func (k kind) baseOf(file string) string {
	if k.besides && file != k.file {
		return path.Dir(file)
	}
	return k.base
}

// documents reads and parses files; empty ones mean "none".
func (l *loader) documents(k kind, names []string) []*syntax.Document {
	var docs []*syntax.Document
	for _, name := range names {
		data, err := l.folder.Read(name)
		if err != nil {
			l.app.unreadable[k.name] = true
			l.Add(place.Error, folder.Code(err), place.Place{File: name}, "%v", err)
			continue
		}
		doc, problem := syntax.Parse(name, data)
		if problem != nil {
			l.app.unreadable[k.name] = true
			l.Diags = append(l.Diags, *problem)
			continue
		}
		if len(l.app.Origin.Positions)+len(doc.Positions) > maxFolderKeys {
			l.app.unreadable[k.name] = true
			l.Add(place.Error, place.CodeLimit, place.Place{File: name}, "the app folder has more than %d keys", maxFolderKeys)
			continue
		}
		for key, pos := range doc.Positions {
			l.app.Origin.Positions[place.Place{File: name, Key: key}.ID()] = pos
		}
		if len(doc.Values) > 0 {
			docs = append(docs, doc)
		}
	}
	return docs
}

// noAppFolder tells when there is no app folder at all, once instead of file by
// file.
func (l *loader) noAppFolder() *place.Diagnostic {
	if _, err := fs.ReadDir(l.folder.FS, "."); err != nil {
		return &place.Diagnostic{Severity: place.Error, Code: place.CodeFile, Message: "the app folder cannot be read: " + folder.ShortError(err).Error()}
	}
	var missing []string
	for _, k := range kinds {
		if !k.required {
			continue
		}
		if l.folder.Exists(k.file) || len(l.wholeNames()) > 0 {
			return nil
		}
		missing = append(missing, k.file)
	}
	return &place.Diagnostic{Severity: place.Error, Code: place.CodeMissing, Message: "this is no app folder: none of " + strings.Join(missing, ", ") + " is here",
		Remedy: "name the folder that has them"}
}

// rootFiles reports TOML files in the app root that belong to nothing.
func (l *loader) rootFiles() {
	entries, err := fs.ReadDir(l.folder.FS, ".")
	if err != nil {
		return // noAppFolder has read it before
	}
	known := knownRootFiles()
	if len(entries) > folder.MaxFiles {
		l.Add(place.Error, place.CodeLimit, place.Place{}, "%v", folder.ErrTooMany)
		return
	}
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || path.Ext(name) != ".toml" || slices.Contains(known, name) || IsWholeFile(name) {
			continue
		}
		d := l.At(place.Warning, place.CodeUnknownFile, place.Place{File: name}, "is not part of the app folder format and has no effect")
		l.Diags = append(l.Diags, l.Suggest(d, name, known))
	}
}

func (l *loader) localSources() {
	for _, src := range Sources(l.app) {
		if src.Kind != SourceLocal || !fs.ValidPath(src.Directory) || l.folder.IsDir(src.Directory) {
			continue
		}
		at := l.app.blockPlace(src).Below("berth.local_source")
		l.Add(place.Error, place.CodeReference, at, "local_source %q is not a directory of the app folder", src.Directory)
	}
}

func (a *App) blockPlace(src Source) place.Place {
	if src.Block == BlockSandbox {
		return a.Sandbox.At
	}
	return a.Component(src.Name).At
}

// finish sorts what has no order of its own and records what was read.
func (l *loader) finish() {
	a := l.app
	a.Includes = l.Wanted
	lost := l.Lost
	for _, f := range a.Includes {
		lost = append(lost, f.At)
	}
	for _, at := range lost {
		for _, k := range kinds {
			if at.File == k.file || k.folder != "" && strings.HasPrefix(at.File, k.folder+"/") || IsWholeFile(at.File) {
				a.unreadable[k.name] = true // what it defines is not known
			}
		}
	}
	slices.SortStableFunc(a.Fetched, func(x, y fetch.Fetched) int {
		return cmp.Or(place.Compare(x.At, y.At), cmp.Compare(x.Address, y.Address))
	})
	slices.SortStableFunc(a.InputGroups, func(x, y InputGroup) int { return cmp.Compare(x.Name, y.Name) })
	slices.SortStableFunc(a.Inputs, func(x, y Input) int { return cmp.Compare(x.Name, y.Name) })
	slices.SortStableFunc(a.Secrets, func(x, y Secret) int { return cmp.Compare(x.Name, y.Name) })
	slices.SortStableFunc(a.Components, func(x, y Component) int { return cmp.Compare(x.Name, y.Name) })
	slices.SortStableFunc(a.Permissions, func(x, y Role) int { return cmp.Or(cmp.Compare(x.Type, y.Type), cmp.Compare(x.Name, y.Name)) })
	slices.SortStableFunc(a.BreakGlass, func(x, y Role) int { return cmp.Compare(x.Name, y.Name) })
	slices.SortStableFunc(a.Policies, func(x, y Policy) int { return cmp.Compare(x.Name, y.Name) })
	slices.SortStableFunc(a.Runbooks, func(x, y Runbook) int { return cmp.Compare(x.Name, y.Name) })
	slices.SortStableFunc(a.Installs, func(x, y InstallConfig) int { return cmp.Compare(x.Name, y.Name) })
	slices.SortStableFunc(a.Branches, func(x, y Branch) int { return cmp.Compare(x.Name, y.Name) })
	slices.SortStableFunc(a.KubernetesContexts, func(x, y KubernetesContext) int { return cmp.Compare(x.Name, y.Name) })
	slices.SortStableFunc(a.EventTriggers, func(x, y EventTrigger) int { return cmp.Compare(x.Name, y.Name) })
	slices.SortStableFunc(a.Actions, func(x, y Action) int { return cmp.Compare(x.Name, y.Name) })
	for _, name := range slices.Sorted(maps.Keys(l.folder.Files)) {
		data := l.folder.Files[name]
		a.Origin.Files = append(a.Origin.Files, place.File{Path: name, Digest: digest.SHA256(data), Size: int64(len(data))})
	}
}

// getField resolves a key that holds contents or names a file. What stands
// elsewhere was fetched before, or is only noted: nothing is fetched here.
func (l *loader) getField(at place.Place, value string) (place.Text, bool) {
	switch {
	case strings.Contains(value, "\n"):
		return place.Text{Contents: value}, true // a script that begins with ./run.sh
	case fetch.IsAddress(value):
		return l.remoteText(at, value)
	case hasAnyPrefix(value, "file://"):
		value = "./" + strings.TrimPrefix(value, "file://")
	case !hasAnyPrefix(value, "./", "../"):
		return place.Text{Contents: value}, true
	}
	name := path.Join(l.Base, value)
	data, ok := l.read(at, value, name)
	return place.Text{Contents: string(data), File: name}, ok
}

// read reads a file that a key names.
func (l *loader) read(at place.Place, written, name string) ([]byte, bool) {
	data, err := l.folder.Read(name)
	if l.used += int64(len(data)); err == nil && l.used > folder.MaxBytes {
		err = folder.ErrUsed
	}
	if err == nil {
		return data, true
	}
	d := l.At(place.Error, folder.Code(err), at, "%s: file %q: %v", at.Last(), written, err)
	if errors.Is(err, fs.ErrNotExist) {
		d = d.WithRemedy("looked for %s", name)
	}
	l.Diags = append(l.Diags, d)
	return nil, false
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}
