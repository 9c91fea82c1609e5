package schema

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// kitchenSinks are the folders that use every key of the format.
var kitchenSinks = []string{
	"../../../examples/kitchen-sink",
	"../../../examples/kitchen-sink/variants/files",
	"../../../examples/kitchen-sink/variants/one-file",
}

// examples are all app folders of the repository.
var examples = append([]string{"../../../examples/hello", "../../../examples/shop", "../../../examples/greeting"}, kitchenSinks...)

// sourcesOf are the blocks of those files that others merge in, which stand in
// no folder of their own.
func sourcesOf(file string) ([]reflect.Type, bool) {
	if file == "components/web.component" {
		return types(appconfig.Component{}, appconfig.HelmChart{}), true
	}
	kind := map[string]string{
		"group": "input-group", "tier": "input", "token": "secret", "role": "permission", "module": "terraform", "matrix": "operation-roles",
		"contexts": "kubernetes-contexts", "none": "policies",
	}
	stem := strings.TrimSuffix(path.Base(file), ".toml")
	if name, ok := kind[stem]; ok {
		stem = name
	}
	k, ok := fileKind(stem)
	return k.blocks, ok && strings.HasPrefix(file, "shared")
}

// documentsOf reads the TOML files of an example with the blocks that share
// each.
func documentsOf(t *testing.T, dir string) map[string][]reflect.Type {
	t.Helper()
	docs := map[string][]reflect.Type{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if err == nil && name == "variants" {
				return fs.SkipDir
			}
			return err
		}
		if path.Ext(name) != ".toml" && path.Ext(name) != ".component" || name == appconfig.LintFile {
			return nil
		}
		var values map[string]any
		if err := toml.Unmarshal(readExample(t, dir, name), &values); err != nil {
			return err
		}
		if blocks, ok := sourcesOf(name); ok {
			docs[name] = blocks
			return nil
		}
		typeName, _ := values["type"].(string)
		k, ok := KindOf(name, typeName)
		if !ok {
			return fmt.Errorf("%s is of no kind", name)
		}
		docs[name] = k.blocks
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return docs
}

func readExample(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := fs.ReadFile(os.DirFS(dir), name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestExamplesAreClean(t *testing.T) {
	t.Parallel()
	for _, dir := range examples {
		_, diags := check.Format(os.DirFS(dir), appconfig.LoadOptions{})
		for _, d := range diags {
			if d.Severity != place.Note {
				t.Errorf("%s: %s", dir, d)
			}
		}
	}
}

// TestKitchenSinkUsesEveryKey fails when a key of a struct, or another name of
// one, stands in no file of the examples.
func TestKitchenSinkUsesEveryKey(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, dir := range examples {
		for name, blocks := range documentsOf(t, dir) {
			for _, k := range keysIn(readExample(t, dir, name), blocks) {
				if k.key.owner != nil {
					used[k.key.owner.Name()+"."+k.written] = true
				}
			}
		}
	}
	known := map[string]bool{}
	for _, kind := range fileKinds {
		for _, key := range kind.Keys() {
			for _, name := range append([]string{place.Place{Key: key.Path}.Last()}, key.Aliases...) {
				known[key.owner.Name()+"."+name] = true
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(known)) {
		if !used[key] {
			t.Errorf("no example has the key %s", key)
		}
	}
	if len(known) < 300 {
		t.Errorf("only %d keys are known: the test looks at the wrong thing", len(known))
	}
}

// TestRenamedKey misspells every key of every example, one at a time and each in
// one of several ways: each gives one diagnostic about an unknown key, at the right place
// and with the right suggestion, and none that says the key is missing.
func TestRenamedKey(t *testing.T) {
	t.Parallel()
	count := 0
	for _, dir := range examples {
		files := fstest.MapFS{}
		if err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				files[name] = &fstest.MapFile{Data: readExample(t, dir, name), Mode: 0o644}
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		for name, blocks := range documentsOf(t, dir) {
			original := files[name].Data
			if bytes.Contains(original, []byte("[berth.plugin]")) {
				continue // what is no key of ours may be one of the plugin's
			}
			for i, k := range keysIn(original, blocks) {
				if k.key.owner == nil {
					continue // the key of a free map may be anything
				}
				wrongs := slices.DeleteFunc(misspellings(k.written), func(wrong string) bool { return slices.Contains(k.siblings, wrong) })
				if len(wrongs) > 0 {
					wrong := wrongs[i%len(wrongs)]
					files[name] = &fstest.MapFile{Data: slices.Concat(original[:k.offset], []byte(wrong), original[k.offset+len(k.written):]), Mode: 0o644}
					if toml.Unmarshal(files[name].Data, &map[string]any{}) != nil {
						continue // [steps.env_vars] with nothing but [[setps]] before it is no TOML
					}
					count++
					oneUnknownKey(t, files, name, wrong, k.written)
				}
			}
			files[name] = &fstest.MapFile{Data: original, Mode: 0o644}
		}
	}
	if count < 500 {
		t.Errorf("only %d misspellings were tried", count)
	}
}

func oneUnknownKey(t *testing.T, files fstest.MapFS, file, wrong, right string) {
	t.Helper()
	_, diags := appconfig.Load(files, appconfig.LoadOptions{})
	var unknown []place.Diagnostic
	for _, d := range diags {
		if d.Code == place.CodeUnknownKey {
			unknown = append(unknown, d)
		}
		if d.Code == place.CodeMissing && d.Severity == place.Error {
			t.Errorf("%s: %q for %q also gives %s", file, wrong, right, d)
		}
	}
	if len(unknown) != 1 || unknown[0].File != file || unknown[0].Line == 0 || !strings.Contains(unknown[0].Message, `"`+wrong+`"`) ||
		unknown[0].Remedy != fmt.Sprintf("did you mean %q?", right) {
		t.Errorf("%s: %q for %q: got %v", file, wrong, right, unknown)
	}
}

// misspellings of a word: two letters swapped, one twice, one missing, and a
// dash or capital where an underscore belongs.
func misspellings(word string) []string {
	var out []string
	middle := len(word) / 2
	if word[middle-1] != word[middle] {
		out = append(out, word[:middle-1]+word[middle:middle+1]+word[middle-1:middle]+word[middle+1:])
	}
	out = append(out, word[:middle]+word[middle:middle+1]+word[middle:])
	if len(word) > 3 {
		out = append(out, word[:middle]+word[middle+1:])
	}
	if strings.Contains(word, "_") {
		out = append(out, strings.ReplaceAll(word, "_", "-"))
	}
	return out
}

// writtenKey is one key as it stands in a document.
type writtenKey struct {
	written  string
	offset   int
	key      Key      // without an owner for keys of free maps
	siblings []string // every key that may stand there
}

// keysIn finds every key of a document, part by part.
func keysIn(data []byte, blocks []reflect.Type) []writtenKey {
	var found []writtenKey
	var p unstable.Parser
	p.Reset(data)
	at := level{blocks: blocks}
	for p.NextExpression() {
		expr := p.Expression()
		switch expr.Kind {
		case unstable.Table, unstable.ArrayTable:
			at = level{blocks: blocks}.walk(expr.Key(), &found)
		case unstable.KeyValue:
			at.keyValue(expr, &found)
		}
	}
	return slices.DeleteFunc(found, func(k writtenKey) bool { return !bytes.HasPrefix(data[k.offset:], []byte(k.written)) })
}

// level is what may stand at one place of a document: the keys of blocks, or
// those of a map.
type level struct {
	blocks []reflect.Type
	inMap  bool // the next key is any name; below it are the blocks
}

// walk goes down the parts of a dotted key.
func (at level) walk(it unstable.Iterator, found *[]writtenKey) level {
	for it.Next() {
		node := it.Node()
		var k writtenKey
		k, at = at.step(string(node.Data))
		k.offset = int(node.Raw.Offset)
		*found = append(*found, k)
	}
	return at
}

func (at level) step(name string) (writtenKey, level) {
	k := writtenKey{written: name}
	if at.inMap || len(at.blocks) == 0 {
		return k, level{blocks: at.blocks}
	}
	for _, block := range at.blocks {
		for _, key := range keysOf(block) {
			names := append([]string{key.Path}, key.Aliases...)
			k.siblings = append(k.siblings, names...)
			if slices.Contains(names, name) {
				k.key = key
			}
		}
	}
	if k.key.owner == nil {
		return k, level{}
	}
	inner, suffix := tableIn(k.key.field.Type)
	if inner == nil {
		return k, level{}
	}
	return k, level{blocks: []reflect.Type{inner}, inMap: strings.Contains(suffix, ".*")}
}

func (at level) keyValue(expr *unstable.Node, found *[]writtenKey) {
	at.walk(expr.Key(), found).value(expr.Value(), found)
}

func (at level) value(node *unstable.Node, found *[]writtenKey) {
	for it := node.Children(); it.Next(); {
		switch child := it.Node(); {
		case node.Kind == unstable.InlineTable && child.Kind == unstable.KeyValue:
			at.keyValue(child, found)
		case node.Kind == unstable.Array:
			at.value(child, found)
		}
	}
}
