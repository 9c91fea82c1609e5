package bundle_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/bundle"
)

// TestOneChangeMovesOnePack changes, adds and removes a file of a large app:
// what is uploaded again is one pack and the index.
func TestOneChangeMovesOnePack(t *testing.T) {
	t.Parallel()
	before := bundled(t, appconfigtest.Large())
	all := 0
	for _, pack := range before.All() {
		all += len(pack.Bytes)
	}
	for name, change := range map[string]func(fstest.MapFS){
		"a line": func(f fstest.MapFS) {
			file := f["components/c7.toml"]
			f["components/c7.toml"] = &fstest.MapFile{Data: append([]byte("max_auto_retries = 1\n"), file.Data...), Mode: 0o644}
		},
		"one file more": func(f fstest.MapFS) { f["actions/more.toml"] = f["actions/a1.toml"]; rename(f, "actions/more.toml") },
		"one file less": func(f fstest.MapFS) { delete(f, "actions/a1.toml"); delete(f, "actions/a1.sh") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := appconfigtest.Large()
			change(folder)
			moved, bytes := 0, 0
			for _, pack := range bundled(t, folder).All() {
				if !slices.ContainsFunc(before.All(), func(p bundle.Pack) bool { return p.Digest == pack.Digest }) {
					moved++
					bytes += len(pack.Bytes)
				}
			}
			most := 2 // the pack and the index
			if name == "one file less" {
				most = 3 // it names a script, which goes too
			}
			if moved == 0 || moved > most || bytes > all/10 {
				t.Errorf("%d of %d packs are uploaded again, %d of %d bytes", moved, len(before.Packs), bytes, all)
			}
		})
	}
}

// rename gives an action the name of its file.
func rename(f fstest.MapFS, file string) {
	f[file] = &fstest.MapFile{Data: []byte(strings.Replace(string(f[file].Data), "name = \"a1\"", "name = \"more\"", 1)), Mode: 0o644}
}

func bundled(t *testing.T, folder fstest.MapFS) bundle.Bundle {
	t.Helper()
	made, err := bundle.Make(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestPacksOfRefuses(t *testing.T) {
	t.Parallel()
	index := func(packs ...string) string {
		raw, err := json.Marshal(map[string]any{"format": "berth.bundle/v1", "packs": packs})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	var many []string
	for i := range 257 {
		many = append(many, fmt.Sprint("sha256:", i))
	}
	for name, tt := range map[string]struct{ index, want string }{
		"nothing":          {"", "not one of berth.bundle/v1"},
		"a tar.gz":         {"\x1f\x8b\x08", "not one of berth.bundle/v1"},
		"another format":   {`{"format":"berth.bundle/v9","packs":[]}`, "not one of berth.bundle/v1"},
		"too many":         {index(many...), "names 257 packs"},
		"one pack twice":   {index("sha256:a", "sha256:b", "sha256:a"), "names a pack twice"},
		"not even digests": {`{"format":"berth.bundle/v1","packs":[1]}`, "not one of berth.bundle/v1"},
	} {
		if _, err := bundle.PacksOf([]byte(tt.index)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
	// Names that are in two packs are refused as in one.
	folder := bundled(t, appconfigtest.Folder(nil))
	if _, err := bundle.Open(append(appconfigtest.Archives(folder), appconfigtest.Archives(folder)...)...); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("a file in two packs: got %v", err)
	}
}
