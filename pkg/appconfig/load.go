package appconfig

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// LoadOptions adjusts Load; the zero value is right for an app folder on disk.
type LoadOptions struct {
	// SkipSources leaves out what looks into local source directories and at
	// scripts beside the config: a bundle does not carry them.
	SkipSources bool
	// Fetched is what was fetched from elsewhere, by the address as the folder has
	// it. What is missing is listed by Fetches. An opened bundle has its own.
	Fetched map[string]FetchResult
	// Mapped finds where a source of git stands on this machine, false when it
	// does not; nil for no such place. Terraform modules there are looked into.
	Mapped func(Source) (root fs.FS, dir string, ok bool)
}

// Load reads an app folder. It returns all problems of single files and blocks
// at once; the App is as complete as they allow, and only usable when
// HasErrors is false. Rules between blocks are checked by [Validate].
func Load(fsys fs.FS, opts LoadOptions) (*App, []Diagnostic) {
	l := newLoader(fsys, opts.Fetched)
	if problem := l.noAppFolder(); problem != nil {
		return l.app, []Diagnostic{*problem}
	}
	l.loadAll()
	if !opts.SkipSources {
		l.localSources()
		l.terraformVars(opts.Mapped)
		l.scripts()
	}
	l.finish()
	return l.app, SortDiagnostics(l.diags)
}

// Check loads and validates, and tells what this version cannot deploy and what
// is not fetched: everything that keeps a folder from being synced, sorted.
func Check(fsys fs.FS, opts LoadOptions) (*App, []Diagnostic) {
	app, diags := Load(fsys, opts)
	if len(app.Origin.Files) == 0 {
		return app, diags // not an app folder: that says it all
	}
	return app, SortDiagnostics(slices.Concat(diags, Validate(app), Unsupported(app), notFetched(app, Error)))
}

// CheckFormat loads and validates: everything that is wrong with a folder by
// the rules of the language, sorted, whatever this version can deploy of it.
// What stands elsewhere and is not fetched is a note.
func CheckFormat(fsys fs.FS, opts LoadOptions) (*App, []Diagnostic) {
	app, diags := Load(fsys, opts)
	if len(app.Origin.Files) == 0 {
		return app, diags // not an app folder: that says it all
	}
	return app, SortDiagnostics(slices.Concat(diags, Validate(app), notFetched(app, Note)))
}

// maxFolderKeys bounds the keys of all files together; each is kept with its
// place.
const maxFolderKeys = 50_000

// loader holds one Load. The embedded binder collects the diagnostics.
type loader struct {
	binder
	app     *App
	folder  *folder
	fetched map[string]FetchResult // by address
	used    int64                  // bytes of files that keys name, counted at each use
	// appOnly leaves the files below installs/ alone.
	appOnly bool
}

func newLoader(fsys fs.FS, fetched map[string]FetchResult) *loader {
	if bundle, ok := fsys.(memFS); ok {
		fetched = bundle.fetched
	}
	app := &App{Origin: Origin{Positions: map[string]Position{}}, unreadable: map[string]bool{}}
	l := &loader{app: app, folder: newFolder(fsys), fetched: fetched}
	l.binder = binder{checker: checker{origin: &app.Origin}, text: l.getField, include: l.include}
	return l
}

// loadAll reads every file of the folder.
func (l *loader) loadAll() {
	whole := l.wholeFiles()
	for _, k := range kinds {
		if k.name == kindInstalls && l.appOnly {
			continue
		}
		l.loadKind(k, whole)
	}
	for _, doc := range whole {
		l.wholeFile(doc)
	}
	l.rootFiles()
}

// loadKind reads the file form or the folder form of a kind. Both may exist
// when only one of them has definitions.
func (l *loader) loadKind(k kind, whole []*document) {
	var fromFile, fromFolder []*document
	if k.file != "" && l.folder.exists(k.file) {
		fromFile = l.documents(k, []string{k.file})
	}
	if k.folder != "" && l.folder.leaves(k.folder) {
		l.app.unreadable[k.name] = true
		l.add(Error, CodeOutsideOfApp, Place{File: k.folder}, "is a symlink that %v", errOutside)
	} else if k.folder != "" && l.folder.isDir(k.folder) {
		names, err := l.folder.tomlFiles(k.folder)
		if err != nil {
			l.add(Error, fileCode(err), Place{File: k.folder}, "%v", err)
		}
		fromFolder = l.documents(k, names)
	}
	if len(fromFile) > 0 && len(fromFolder) > 0 {
		l.bothDefine(Place{File: k.file}, fromFolder[0].file)
	}
	docs := slices.Concat(fromFile, fromFolder)
	for _, doc := range whole {
		if _, ok := doc.values[wholeKeyOf(k)]; ok || k.name == "metadata" {
			if len(docs) > 0 {
				l.bothDefine(Place{File: docs[0].file}, doc.file)
			}
			return // wholeFile reads it
		}
	}
	if k.required && len(docs) == 0 && !l.app.unreadable[k.name] {
		l.add(Error, CodeMissing, Place{File: k.file}, "is missing or empty, and every app needs it")
	}
	included := l.includedIn(k, docs)
	for _, doc := range docs {
		if included[doc.file] {
			continue // it is part of another definition
		}
		l.base = k.baseOf(doc.file)
		k.load(l, Place{File: doc.file}, doc.values)
	}
}

func (l *loader) bothDefine(at Place, other string) {
	l.diags = append(l.diags, l.at(Error, CodeExclusive, at, "%s and %s both have definitions", at.File, other).
		remedy("move everything to one of them"))
}

// baseOf says what "./x" is relative to in a file of the kind.
func (k kind) baseOf(file string) string {
	if k.besides && file != k.file {
		return path.Dir(file)
	}
	return k.base
}

// documents reads and parses files; empty ones mean "none".
func (l *loader) documents(k kind, names []string) []*document {
	var docs []*document
	for _, name := range names {
		data, err := l.folder.read(name)
		if err != nil {
			l.app.unreadable[k.name] = true
			l.add(Error, fileCode(err), Place{File: name}, "%v", err)
			continue
		}
		doc, problem := parseDocument(name, data)
		if problem != nil {
			l.app.unreadable[k.name] = true
			l.diags = append(l.diags, *problem)
			continue
		}
		if len(l.app.Origin.Positions)+len(doc.positions) > maxFolderKeys {
			l.app.unreadable[k.name] = true
			l.add(Error, CodeLimit, Place{File: name}, "the app folder has more than %d keys", maxFolderKeys)
			continue
		}
		for key, pos := range doc.positions {
			l.app.Origin.Positions[Place{File: name, Key: key}.id()] = pos
		}
		if len(doc.values) > 0 {
			docs = append(docs, doc)
		}
	}
	return docs
}

// noAppFolder tells when there is no app folder at all, once instead of file by
// file.
func (l *loader) noAppFolder() *Diagnostic {
	if _, err := fs.ReadDir(l.folder.fsys, "."); err != nil {
		return &Diagnostic{Severity: Error, Code: CodeFile, Message: "the app folder cannot be read: " + shortPathError(err).Error()}
	}
	var missing []string
	for _, k := range kinds {
		if !k.required {
			continue
		}
		if l.folder.exists(k.file) || len(l.wholeNames()) > 0 {
			return nil
		}
		missing = append(missing, k.file)
	}
	return &Diagnostic{Severity: Error, Code: CodeMissing, Message: "this is no app folder: none of " + strings.Join(missing, ", ") + " is here",
		Remedy: "name the folder that has them"}
}

// rootFiles reports TOML files in the app root that belong to nothing.
func (l *loader) rootFiles() {
	entries, err := fs.ReadDir(l.folder.fsys, ".")
	if err != nil {
		return // noAppFolder has read it before
	}
	known := knownRootFiles()
	if len(entries) > MaxFolderFiles {
		l.add(Error, CodeLimit, Place{}, "%v", errTooMany)
		return
	}
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || path.Ext(name) != ".toml" || slices.Contains(known, name) || wholeFileName(name) {
			continue
		}
		d := l.at(Warning, CodeUnknownFile, Place{File: name}, "is not part of the app folder format and has no effect")
		l.diags = append(l.diags, l.suggest(d, name, known))
	}
}

func (l *loader) localSources() {
	for _, src := range Sources(l.app) {
		if src.Kind != SourceLocal || !fs.ValidPath(src.Directory) || l.folder.isDir(src.Directory) {
			continue
		}
		at := l.app.blockPlace(src).key("berth.local_source")
		l.add(Error, CodeReference, at, "local_source %q is not a directory of the app folder", src.Directory)
	}
}

func (a *App) blockPlace(src Source) Place {
	if src.Block == BlockSandbox {
		return a.Sandbox.At
	}
	return a.Component(src.Name).At
}

// finish sorts what has no order of its own and records what was read.
func (l *loader) finish() {
	a := l.app
	a.Includes = l.includes
	lost := l.lost
	for _, f := range a.Includes {
		lost = append(lost, f.At)
	}
	for _, at := range lost {
		for _, k := range kinds {
			if at.File == k.file || k.folder != "" && strings.HasPrefix(at.File, k.folder+"/") || wholeFileName(at.File) {
				a.unreadable[k.name] = true // what it defines is not known
			}
		}
	}
	slices.SortStableFunc(a.Fetched, func(x, y Fetched) int { return cmp.Or(comparePlaces(x.At, y.At), cmp.Compare(x.Address, y.Address)) })
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
	for _, name := range slices.Sorted(maps.Keys(l.folder.files)) {
		data := l.folder.files[name]
		a.Origin.Files = append(a.Origin.Files, OriginFile{Path: name, Digest: sha256Of(data), Size: int64(len(data))})
	}
}

// getField resolves a key that holds contents or names a file. What stands
// elsewhere was fetched before, or is only noted: nothing is fetched here.
func (l *loader) getField(at Place, value string) (Text, bool) {
	switch {
	case strings.Contains(value, "\n"):
		return Text{Contents: value}, true // a script that begins with ./run.sh
	case IsAddress(value):
		return l.remoteText(at, value)
	case hasAnyPrefix(value, "file://"):
		value = "./" + strings.TrimPrefix(value, "file://")
	case !hasAnyPrefix(value, "./", "../"):
		return Text{Contents: value}, true
	}
	name := path.Join(l.base, value)
	data, ok := l.read(at, value, name)
	return Text{Contents: string(data), File: name}, ok
}

// read reads a file that a key names.
func (l *loader) read(at Place, written, name string) ([]byte, bool) {
	data, err := l.folder.read(name)
	if l.used += int64(len(data)); err == nil && l.used > MaxFolderBytes {
		err = errUsed
	}
	if err == nil {
		return data, true
	}
	d := l.at(Error, fileCode(err), at, "%s: file %q: %v", lastKey(at), written, err)
	if errors.Is(err, fs.ErrNotExist) {
		d = d.remedy("looked for %s", name)
	}
	l.diags = append(l.diags, d)
	return nil, false
}

func fileCode(err error) Code {
	switch {
	case errors.Is(err, errOutside):
		return CodeOutsideOfApp
	case errors.Is(err, errTooMany), errors.Is(err, errTooLarge), errors.Is(err, errUsed):
		return CodeLimit
	}
	return CodeFile
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}
