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
	// SkipSources leaves out the check that local source directories exist: a
	// bundle does not carry them.
	SkipSources bool
}

// Load reads an app folder. It returns all problems of single files and blocks
// at once; the App is as complete as they allow, and only usable when
// HasErrors is false. Rules between blocks are checked by [Validate].
func Load(fsys fs.FS, opts LoadOptions) (*App, []Diagnostic) {
	l := newLoader(fsys)
	if problem := l.noAppFolder(); problem != nil {
		return l.app, []Diagnostic{*problem}
	}
	for _, k := range kinds {
		l.loadKind(k)
	}
	l.rootFiles()
	if !opts.SkipSources {
		l.localSources()
	}
	l.finish()
	return l.app, SortDiagnostics(l.diags)
}

// Check loads and validates: everything that is wrong with a folder, sorted.
func Check(fsys fs.FS, opts LoadOptions) (*App, []Diagnostic) {
	app, diags := Load(fsys, opts)
	if len(app.Origin.Files) == 0 {
		return app, diags // not an app folder: that says it all
	}
	return app, SortDiagnostics(append(diags, Validate(app)...))
}

// maxFolderKeys bounds the keys of all files together; each is kept with its
// place.
const maxFolderKeys = 200_000

// loader holds one Load. The embedded binder collects the diagnostics.
type loader struct {
	binder
	app    *App
	folder *folder
	base   string // what "./x" is relative to in the kind being loaded
}

func newLoader(fsys fs.FS) *loader {
	app := &App{Origin: Origin{Positions: map[string]Position{}}, unreadable: map[string]bool{}}
	l := &loader{app: app, folder: newFolder(fsys)}
	l.binder = binder{checker: checker{origin: &app.Origin}, text: l.getField}
	return l
}

// loadKind reads the file form or the folder form of a kind. Both may exist
// when only one of them has definitions.
func (l *loader) loadKind(k kind) {
	l.base = k.base
	var fromFile, fromFolder []*document
	if k.file != "" && l.folder.exists(k.file) {
		fromFile = l.documents(k, []string{k.file})
	}
	if k.folder != "" && l.folder.isDir(k.folder) {
		names, err := l.folder.tomlFiles(k.folder)
		if err != nil {
			l.add(Error, fileCode(err), Place{File: k.folder}, "%v", err)
		}
		fromFolder = l.documents(k, names)
	}
	if len(fromFile) > 0 && len(fromFolder) > 0 {
		l.diags = append(l.diags, l.at(Error, CodeExclusive, Place{File: k.file}, "%s and %s both have definitions", k.file, fromFolder[0].file).
			remedy("move everything to one of them"))
	}
	docs := slices.Concat(fromFile, fromFolder)
	if k.required && len(docs) == 0 && !l.app.unreadable[k.name] {
		l.add(Error, CodeMissing, Place{File: k.file}, "is missing or empty, and every app needs it")
	}
	for _, doc := range docs {
		if k.load == nil {
			l.add(Warning, CodeUnsupported, Place{File: doc.file}, "%q is not supported yet by this version and has no effect", k.name)
			continue
		}
		k.load(l, doc)
	}
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
		if l.folder.exists(k.file) {
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
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || path.Ext(name) != ".toml" || slices.Contains(known, name) {
			continue
		}
		at := Place{File: name}
		if legacyWholeFile(name) {
			l.add(Error, CodeUnsupported, at, "the whole config in a single file is not supported yet by this version")
			continue
		}
		d := l.at(Warning, CodeUnknownFile, at, "is not part of the app folder format and has no effect")
		if near := nearest(name, known); near != "" {
			d = d.remedy("did you mean %q?", near)
		}
		l.diags = append(l.diags, d)
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
	slices.SortStableFunc(a.InputGroups, func(x, y InputGroup) int { return cmp.Compare(x.Name, y.Name) })
	slices.SortStableFunc(a.Inputs, func(x, y Input) int { return cmp.Compare(x.Name, y.Name) })
	slices.SortStableFunc(a.Secrets, func(x, y Secret) int { return cmp.Compare(x.Name, y.Name) })
	slices.SortStableFunc(a.Components, func(x, y Component) int { return cmp.Compare(x.Name, y.Name) })
	slices.SortStableFunc(a.Actions, func(x, y Action) int { return cmp.Compare(x.Name, y.Name) })
	for _, name := range slices.Sorted(maps.Keys(l.folder.files)) {
		data := l.folder.files[name]
		a.Origin.Files = append(a.Origin.Files, OriginFile{Path: name, Digest: sha256Of(data), Size: int64(len(data))})
	}
}

// getField resolves a key that holds contents or names a file.
func (l *loader) getField(at Place, value string) (Text, bool) {
	switch {
	case hasAnyPrefix(value, "http://", "https://", "git::"):
		l.add(Error, CodeUnsupported, at, "%s: contents from %q are not supported yet by this version", lastKey(at), value)
		return Text{}, false
	case hasAnyPrefix(value, "file://"):
		value = "./" + strings.TrimPrefix(value, "file://")
	case !hasAnyPrefix(value, "./", "../"):
		return Text{Contents: value}, true
	}
	if strings.Contains(value, "\n") {
		return Text{Contents: value}, true // a script that begins with ./run.sh
	}
	name := path.Join(l.base, value)
	data, err := l.folder.read(name)
	if err != nil {
		d := l.at(Error, fileCode(err), at, "%s: file %q: %v", lastKey(at), value, err)
		if errors.Is(err, fs.ErrNotExist) {
			d = d.remedy("looked for %s", name)
		}
		l.diags = append(l.diags, d)
		return Text{}, false
	}
	return Text{Contents: string(data), File: name}, true
}

func fileCode(err error) Code {
	switch {
	case errors.Is(err, errOutside):
		return CodeOutsideOfApp
	case errors.Is(err, errTooMany), errors.Is(err, errTooLarge):
		return CodeLimit
	}
	return CodeFile
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}
