package appconfig

import (
	"path"

	"github.com/berth-dev/berth/pkg/appconfig/bind"
	"github.com/berth-dev/berth/pkg/appconfig/fetch"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/appconfig/syntax"
)

// include reads a file that a block merges in; no document when it stands
// elsewhere and is not fetched.
func (l *loader) include(at place.Place, source string) (*syntax.Document, bool) {
	name := path.Join(l.Base, source)
	var data []byte
	if fetch.IsAddress(source) {
		var standing standing
		name = source
		if data, standing = l.elsewhere(at, source); standing != isHere {
			return nil, standing == isWanted
		}
	} else {
		var ok bool
		if data, ok = l.read(at, source, name); !ok {
			return nil, false
		}
	}
	doc, problem := syntax.Parse(name, data)
	if problem != nil {
		l.Diags = append(l.Diags, *problem)
		return nil, false
	}
	if len(l.app.Origin.Positions)+len(doc.Positions) > maxFolderKeys {
		l.Add(place.Error, place.CodeLimit, at, "the app folder has more than %d keys", maxFolderKeys)
		return nil, false
	}
	return doc, true
}

// includedIn tells which files of a kind are merged in by others, so that they
// are no definitions of their own. Files that name each other in a circle are
// none of them: reading one tells of the circle.
func (l *loader) includedIn(k kind, docs []*syntax.Document) map[string]bool {
	next := map[string]string{}
	for _, doc := range docs {
		if source, ok := doc.Values["source"].(string); ok && source != "" && !fetch.IsAddress(source) {
			next[doc.File] = path.Join(k.baseOf(doc.File), source)
		}
	}
	included := map[string]bool{}
	for _, file := range next {
		included[file] = true
	}
	for file := range included {
		at := next[file]
		for range bind.MaxIncludes {
			if at == file {
				delete(included, file)
				break
			}
			at = next[at]
		}
	}
	return included
}
