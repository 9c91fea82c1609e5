package appconfig

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// maxIncludes is how many files one block may merge in, one through the other.
const maxIncludes = 8

// included merges the file that `source` names into a table: what the table
// says itself wins, tables are merged key by key, lists are not. A source that
// stands elsewhere and is not fetched is left in place; partial is true then,
// since the block's other keys are not known.
func (b *binder) included(at Place, values map[string]any) (merged map[string]any, partial bool) {
	var chain []string // the files so far
	if at.Key == "" {
		chain = append(chain, at.File)
	}
	for range maxIncludes {
		source, ok := values["source"].(string)
		if !ok || source == "" {
			return values, false
		}
		rest := maps.Clone(values)
		delete(rest, "source")
		other, ok := b.include(at.key("source"), source)
		switch {
		case !ok && IsAddress(source):
			b.lost = append(b.lost, at.key("source"))
			return values, true
		case !ok:
			return rest, true
		case other == nil:
			if f := (Fetch{At: at.key("source"), Address: source, Include: true}); !slices.Contains(b.includes, f) {
				b.includes = append(b.includes, f)
			}
			return values, true
		}
		twice := slices.Contains(chain, other.file)
		if chain = append(chain, other.file); twice {
			b.add(Error, CodeCycle, at.key("source"), "files merge each other in: %s", strings.Join(chain, " → "))
			return rest, true
		}
		for _, key := range slices.Sorted(maps.Keys(other.positions)) {
			to := at
			if key != "" {
				to = at.key(key)
			}
			// The next file is named by this one, and no longer by the one before.
			if _, taken := b.origin.Positions[to.id()]; !taken || key == "source" {
				pos := other.positions[key]
				pos.File = other.file
				b.origin.Positions[to.id()] = pos
			}
		}
		values = mergeTables(rest, other.values)
	}
	b.add(Error, CodeLimit, at.key("source"), "more than %d files are merged in one through the other", maxIncludes)
	values = maps.Clone(values)
	delete(values, "source")
	return values, true
}

// mergeTables adds what is missing in a table from another one.
func mergeTables(own, other map[string]any) map[string]any {
	out := maps.Clone(own)
	for key, value := range other {
		mine, taken := out[key]
		if !taken {
			out[key] = value
			continue
		}
		a, ok := mine.(map[string]any)
		if b, both := value.(map[string]any); ok && both {
			out[key] = mergeTables(a, b)
		}
	}
	return out
}

// include reads a file that a block merges in; no document when it stands
// elsewhere and is not fetched.
func (l *loader) include(at Place, source string) (*document, bool) {
	name := path.Join(l.base, source)
	var data []byte
	if IsAddress(source) {
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
	doc, problem := parseDocument(name, data)
	if problem != nil {
		l.diags = append(l.diags, *problem)
		return nil, false
	}
	if len(l.app.Origin.Positions)+len(doc.positions) > maxFolderKeys {
		l.add(Error, CodeLimit, at, "the app folder has more than %d keys", maxFolderKeys)
		return nil, false
	}
	return doc, true
}

// includedIn tells which files of a kind are merged in by others, so that they
// are no definitions of their own. Files that name each other in a circle are
// none of them: reading one tells of the circle.
func (l *loader) includedIn(k kind, docs []*document) map[string]bool {
	next := map[string]string{}
	for _, doc := range docs {
		if source, ok := doc.values["source"].(string); ok && source != "" && !IsAddress(source) {
			next[doc.file] = path.Join(k.baseOf(doc.file), source)
		}
	}
	included := map[string]bool{}
	for _, file := range next {
		included[file] = true
	}
	for file := range included {
		at := next[file]
		for range maxIncludes {
			if at == file {
				delete(included, file)
				break
			}
			at = next[at]
		}
	}
	return included
}
