package appconfig

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/berth-dev/berth/pkg/appconfig/bind"
	"github.com/berth-dev/berth/pkg/appconfig/digest"
	"github.com/berth-dev/berth/pkg/appconfig/fetch"
	"github.com/berth-dev/berth/pkg/appconfig/folder"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// Fetches lists what a config takes from elsewhere and does not have yet, in
// order of file and key. Reading a folder never fetches: who fetches hands the
// results to Load, and asks again, since a file that is merged in may name more.
func Fetches(app *App) []fetch.Wanted {
	found := slices.Clone(app.Includes)
	collectFetches(place.Place{}, reflect.ValueOf(app).Elem(), &found)
	slices.SortStableFunc(found, func(a, b fetch.Wanted) int {
		return cmp.Or(place.Compare(a.At, b.At), cmp.Compare(a.Address, b.Address))
	})
	return found
}

func collectFetches(at place.Place, v reflect.Value, found *[]fetch.Wanted) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			collectFetches(at, v.Elem(), found)
		}
	case reflect.Slice:
		for i := range v.Len() {
			collectFetches(at.Item(i), v.Index(i), found)
		}
	case reflect.Struct:
		if text, ok := v.Interface().(place.Text); ok {
			if text.Remote != "" && text.Digest == "" {
				*found = append(*found, fetch.Wanted{At: at, Address: text.Remote})
			}
			return
		}
		if own := v.FieldByName("At"); own.IsValid() {
			at = own.Interface().(place.Place)
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() || f.Name == "At" || f.Name == "Origin" || f.Name == "Includes" || f.Name == "Fetched" {
				continue
			}
			below := at
			if key := bind.Key(f); key != "" {
				below = at.Below(key)
			}
			collectFetches(below, v.Field(i), found)
		}
	}
}

// standing says how far something that stands elsewhere is.
type standing int

const (
	isWanted standing = iota // not fetched yet
	isHere
	isLost // there is something wrong with it, which is reported
)

// elsewhere looks up what was fetched from an address.
func (l *loader) elsewhere(at place.Place, address string) ([]byte, standing) {
	parsed, err := fetch.ParseAddress(address)
	if err != nil {
		d := l.At(place.Error, place.CodeValue, at, "%s: %q %v", at.Last(), fetch.WithoutCredentials(address), err)
		d.Remedy = fetch.RemedyOf(err)
		l.Diags = append(l.Diags, d)
		return nil, isLost
	}
	if by, _ := l.Origin.Find(at); ofThisMachine(parsed) && fetch.IsAddress(by) && !strings.HasPrefix(by, "git::file:") {
		l.Diags = append(l.Diags, l.At(place.Error, place.CodeOutsideOfApp, at, "%s: %q is of this machine, and what is fetched from elsewhere may not name that", at.Last(), address).
			WithRemedy("name it in a file of the folder"))
		return nil, isLost
	}
	result, ok := l.fetched[address]
	if !ok {
		return nil, isWanted
	}
	if problem, remedy := l.unusable(result); problem != "" {
		l.Diags = append(l.Diags, l.At(place.Error, place.CodeFetch, at, "%s: %q %s", at.Last(), address, problem).WithRemedy("%s", remedy))
		return nil, isLost
	}
	if l.used += int64(len(result.Contents)); l.used > folder.MaxBytes {
		l.Add(place.Error, place.CodeLimit, at, "%s: %q: %v", at.Last(), address, folder.ErrUsed)
		return nil, isLost
	}
	item := fetch.Fetched{At: at, Address: address, Digest: digest.SHA256(result.Contents), Size: int64(len(result.Contents))}
	if !slices.Contains(l.app.Fetched, item) {
		l.app.Fetched = append(l.app.Fetched, item)
	}
	return result.Contents, isHere
}

// unusable says why a result cannot be taken.
func (l *loader) unusable(r fetch.Result) (problem, remedy string) {
	switch {
	case r.Problem != "":
		return r.Problem, r.Remedy
	case len(r.Contents) > fetch.MaxBytes:
		return fmt.Sprintf("is larger than %d MiB", fetch.MaxBytes>>20), "put the file into the folder"
	case !utf8.Valid(r.Contents) || bytes.IndexByte(r.Contents, 0) >= 0:
		return "is not text in UTF-8", ""
	}
	return "", ""
}

func ofThisMachine(a fetch.Address) bool { return a.Git && strings.HasPrefix(a.URL, "file:") }

// remoteText is a key whose contents stand elsewhere.
func (l *loader) remoteText(at place.Place, address string) (place.Text, bool) {
	data, standing := l.elsewhere(at, address)
	switch standing {
	case isLost:
		return place.Text{}, false
	case isWanted:
		return place.Text{Remote: address}, true
	}
	return place.Text{Contents: string(data), Remote: address, Digest: digest.SHA256(data)}, true
}
