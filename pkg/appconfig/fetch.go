package appconfig

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits on what is fetched from elsewhere for one app.
const (
	MaxFetchedBytes = 1 << 20 // one file
	MaxFetched      = 100     // addresses
)

// FetchResult is what came of fetching one address.
type FetchResult struct {
	Contents []byte
	// Problem says why there are no contents, and Remedy what to do. Neither may
	// have credentials in it.
	Problem, Remedy string
}

// Fetch is something that stands outside of the folder and is not there yet: the
// contents of one key, or a file that a block merges in.
type Fetch struct {
	At      Place  `json:"at"`
	Address string `json:"address"`           // as written: http(s):// or git::
	Include bool   `json:"include,omitempty"` // `source`: the block's other keys are in that file
}

// Fetched is something that stands outside of the folder and was fetched when
// the app was synced.
type Fetched struct {
	At      Place  `json:"at"`
	Address string `json:"address"` // as written
	Digest  string `json:"digest"`  // of its contents
	Size    int64  `json:"size"`    // in bytes
}

// Fetches lists what a config takes from elsewhere and does not have yet, in
// order of file and key. Reading a folder never fetches: who fetches hands the
// results to Load, and asks again, since a file that is merged in may name more.
func Fetches(app *App) []Fetch {
	found := slices.Clone(app.Includes)
	collectFetches(Place{}, reflect.ValueOf(app).Elem(), &found)
	slices.SortStableFunc(found, func(a, b Fetch) int { return cmp.Or(comparePlaces(a.At, b.At), cmp.Compare(a.Address, b.Address)) })
	return found
}

func comparePlaces(a, b Place) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Key, b.Key))
}

func collectFetches(at Place, v reflect.Value, found *[]Fetch) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			collectFetches(at, v.Elem(), found)
		}
	case reflect.Slice:
		for i := range v.Len() {
			collectFetches(at.item(i), v.Index(i), found)
		}
	case reflect.Struct:
		if text, ok := v.Interface().(Text); ok {
			if text.Remote != "" && text.Digest == "" {
				*found = append(*found, Fetch{At: at, Address: text.Remote})
			}
			return
		}
		if own := v.FieldByName("At"); own.IsValid() {
			at = own.Interface().(Place)
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() || f.Name == "At" || f.Name == "Origin" || f.Name == "Includes" || f.Name == "Fetched" {
				continue
			}
			below := at
			if key := tomlKey(f); key != "" {
				below = at.key(key)
			}
			collectFetches(below, v.Field(i), found)
		}
	}
}

// notFetched tells of everything that stands elsewhere and is not there: an
// error in a sync, and else what was not looked at.
func notFetched(app *App, severity Severity) []Diagnostic {
	var diags []Diagnostic
	for _, f := range Fetches(app) {
		var d Diagnostic
		if severity == Error {
			d = app.Origin.diagnose(Error, CodeFetch, f.At, "%s: %q is not fetched", lastKey(f.At), f.Address).
				remedy("sync the folder with `berth sync`, which fetches it")
		} else {
			d = app.Origin.diagnose(Note, CodeUnchecked, f.At, "%s: %q is fetched when the app is synced, and not looked at here", lastKey(f.At), f.Address)
		}
		diags = append(diags, d)
	}
	return diags
}

// standing says how far something that stands elsewhere is.
type standing int

const (
	isWanted standing = iota // not fetched yet
	isHere
	isLost // there is something wrong with it, which is told
)

// elsewhere looks up what was fetched from an address.
func (l *loader) elsewhere(at Place, address string) ([]byte, standing) {
	parsed, err := ParseAddress(address)
	if err != nil {
		d := l.at(Error, CodeValue, at, "%s: %q %v", lastKey(at), withoutCredentials(address), err)
		d.Remedy = remedyOf(err)
		l.diags = append(l.diags, d)
		return nil, isLost
	}
	if by, _ := l.origin.find(at); ofThisMachine(parsed) && IsAddress(by) && !strings.HasPrefix(by, "git::file:") {
		l.diags = append(l.diags, l.at(Error, CodeOutsideOfApp, at, "%s: %q is of this machine, and what is fetched from elsewhere may not name that", lastKey(at), address).
			remedy("name it in a file of the folder"))
		return nil, isLost
	}
	result, ok := l.fetched[address]
	if !ok {
		return nil, isWanted
	}
	if problem, remedy := l.unusable(result); problem != "" {
		l.diags = append(l.diags, l.at(Error, CodeFetch, at, "%s: %q %s", lastKey(at), address, problem).remedy("%s", remedy))
		return nil, isLost
	}
	if l.used += int64(len(result.Contents)); l.used > MaxFolderBytes {
		l.add(Error, CodeLimit, at, "%s: %q: %v", lastKey(at), address, errUsed)
		return nil, isLost
	}
	item := Fetched{At: at, Address: address, Digest: sha256Of(result.Contents), Size: int64(len(result.Contents))}
	if !slices.Contains(l.app.Fetched, item) {
		l.app.Fetched = append(l.app.Fetched, item)
	}
	return result.Contents, isHere
}

// unusable says why a result cannot be taken.
func (l *loader) unusable(r FetchResult) (problem, remedy string) {
	switch {
	case r.Problem != "":
		return r.Problem, r.Remedy
	case len(r.Contents) > MaxFetchedBytes:
		return fmt.Sprintf("is larger than %d MiB", MaxFetchedBytes>>20), "put the file into the folder"
	case !utf8.Valid(r.Contents) || bytes.IndexByte(r.Contents, 0) >= 0:
		return "is not text in UTF-8", ""
	}
	return "", ""
}

func ofThisMachine(a Address) bool { return a.Git && strings.HasPrefix(a.URL, "file:") }

// remoteText is a key whose contents stand elsewhere.
func (l *loader) remoteText(at Place, address string) (Text, bool) {
	data, standing := l.elsewhere(at, address)
	switch standing {
	case isLost:
		return Text{}, false
	case isWanted:
		return Text{Remote: address}, true
	}
	return Text{Contents: string(data), Remote: address, Digest: sha256Of(data)}, true
}
