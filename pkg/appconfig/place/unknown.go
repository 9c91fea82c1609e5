package place

import (
	"strings"
)

// unknownKeys remembers what was reported of unknown keys, so that a key that
// is missing because it is misspelt, or stands in the wrong table, is one
// mistake and not two.
type unknownKeys struct {
	meant map[string]unknownKey      // by the ID of the place that the key most likely means
	named map[[2]string][]unknownKey // by file and the key as it is written
}

type unknownKey struct {
	table Place // that it is written in
	key   string
	diag  int // its diagnostic in Report.Diags
}

// maxSameUnknown bounds how many unknown keys of one name in one file are looked
// through for one that stands in the wrong table.
const maxSameUnknown = 50

// Unknown warns of a key that its table does not know.
func (r *Report) Unknown(table Place, key string, known []string) {
	d := r.At(Warning, CodeUnknownKey, table.Below(key), "unknown key %q", key)
	near := r.Near(key, known)
	if near != "" {
		d = d.WithRemedy("did you mean %q?", near)
	}
	u := unknownKey{table: table, key: key, diag: len(r.Diags)}
	r.Diags = append(r.Diags, d)
	if r.unknown.meant == nil {
		r.unknown = unknownKeys{meant: map[string]unknownKey{}, named: map[[2]string][]unknownKey{}}
	}
	if near != "" {
		r.unknown.meant[table.Below(near).ID()] = u
	}
	same := [2]string{table.File, key}
	if len(r.unknown.named[same]) < maxSameUnknown {
		r.unknown.named[same] = append(r.unknown.named[same], u)
	}
}

// Misspelt tells whether one of some keys, of which a table lacks what it needs,
// is there under a misspelt name, or in a table below, where TOML puts every key
// that follows the table's header, or whether the table itself is part of one
// whose other part has a misspelt name. What was said of it becomes the one error.
func (r *Report) Misspelt(table Place, keys ...string) bool {
	_, ok := r.misspelt(table, keys...)
	return ok
}

// MisspeltAs is Misspelt of one key with its other names; it returns the name it
// has in the same table, and "" when it stands elsewhere or nowhere.
func (r *Report) MisspeltAs(table Place, names ...string) (written string, ok bool) {
	u, ok := r.misspelt(table, names...)
	if ok && u.table == table {
		written = u.key
	}
	return written, ok
}

func (r *Report) misspelt(table Place, keys ...string) (unknownKey, bool) {
	if len(r.unknown.meant) == 0 {
		return unknownKey{}, false
	}
	for _, key := range keys {
		if u, ok := r.unknown.meant[table.Below(key).ID()]; ok {
			r.blame(u, "unknown key %q, and %s is missing", u.key, key)
			return u, true
		}
		for _, u := range r.unknown.named[[2]string{table.File, key}] {
			below := strings.TrimPrefix(u.table.Key, table.Key)
			if table.Key != "" && !strings.HasPrefix(u.table.Key, table.Key+".") || below == "" {
				continue
			}
			r.blame(u, "%s belongs to the table %s, which does not know it, and is missing where it is needed", key, strings.TrimPrefix(below, "."))
			r.Diags[u.diag].Remedy = "move it above the first [table]: TOML gives every key to the table before it"
			return u, true
		}
	}
	for above := table; above.Key != ""; above = above.Parent() {
		if u, ok := r.unknown.meant[above.ID()]; ok {
			r.blame(u, "unknown key %q, so parts of %s are missing", u.key, above.Last())
			return u, true
		}
	}
	return unknownKey{}, false
}

// blame makes the warning of an unknown key the error that it causes.
func (r *Report) blame(u unknownKey, format string, args ...any) {
	d := r.At(Error, CodeUnknownKey, u.table.Below(u.key), format, args...)
	d.Remedy = r.Diags[u.diag].Remedy
	r.Diags[u.diag] = d
}
