package helm

import (
	"encoding/json"
	"testing"
)

// FuzzSet holds that no path and value make the setting panic, and that what is
// set is a tree that a chart can get.
func FuzzSet(f *testing.F) {
	for _, seed := range [][2]string{
		{"a", "1"}, {"a.b", "true"}, {"a[0].b", "x,y"}, {"a[1][2]", "{a,b}"}, {"a[-1]", "x"}, {"a[65536]", "x"}, {"a[99999999]", "x"},
		{"a[", "x"}, {"a]", "x"}, {"a\\.b", "x"}, {"[0]", "x"}, {"a.[0]", "x"}, {"map.a", "x"}, {"list.a", "x"}, {"list[0].a", "x"}, {"a", "{{a}"}, {"a", "\\"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, path, value string) {
		values := map[string]any{"map": map[string]any{"b": "c"}, "list": []any{"d"}, "text": "e"}
		if set(values, path, value) != nil {
			return
		}
		if _, err := json.Marshal(values); err != nil {
			t.Fatalf("%q = %q: %v", path, value, err)
		}
	})
}
