package appconfig

import (
	"cmp"
	"reflect"
	"slices"
)

// Fetch is something that stands outside of the folder and is fetched when the
// app is synced: the contents of one key, or a file that a block merges in.
type Fetch struct {
	At      Place  `json:"at"`
	Address string `json:"address"`           // as written: http(s):// or git::
	Include bool   `json:"include,omitempty"` // `source`: the block's other keys are in that file
}

// Fetches lists what a config takes from elsewhere, in order of file and key.
// Reading a folder never fetches.
func Fetches(app *App) []Fetch {
	found := slices.Clone(app.Includes)
	collectFetches(Place{}, reflect.ValueOf(app).Elem(), &found)
	slices.SortStableFunc(found, func(a, b Fetch) int {
		return cmp.Or(cmp.Compare(a.At.File, b.At.File), cmp.Compare(a.At.Key, b.At.Key))
	})
	return found
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
			if text.Remote != "" {
				*found = append(*found, Fetch{At: at, Address: text.Remote})
			}
			return
		}
		if own := v.FieldByName("At"); own.IsValid() {
			at = own.Interface().(Place)
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() || f.Name == "At" || f.Name == "Origin" || f.Name == "Includes" {
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
