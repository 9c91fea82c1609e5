package plugin_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/plugin"
)

const manifest = `{"contract": 1, "type": "greeting", "version": "1.0.0", "executables": {"any": "run.sh", "linux/arm64": "arm"},
	"config": {"type": "object", "properties": {"text": {"type": "string"}}}}`

func folder(edit ...func(fstest.MapFS)) fstest.MapFS {
	files := fstest.MapFS{
		"plugin.json": {Data: []byte(manifest)}, "run.sh": {Data: []byte("#!/bin/sh\n"), Mode: 0o755}, "arm": {Data: []byte("x"), Mode: 0o755},
	}
	for _, e := range edit {
		e(files)
	}
	return files
}

func TestReadManifest(t *testing.T) {
	t.Parallel()
	m, err := plugin.ReadManifest(folder())
	if err != nil {
		t.Fatal(err)
	}
	for platform, want := range map[string]string{"linux/amd64": "run.sh", "linux/arm64": "arm"} {
		if got, err := m.Executable(platform); got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", platform, got, err, want)
		}
	}
	for _, tc := range []struct{ name, from, to, want string }{
		{"a permission of the future", `"version"`, `"roles": ["admin"], "version"`, "unknown field"},
		{"a permission of the future in its place", `"version"`, `"permissions": {"clipboard": true}, "version"`, "unknown field"},
		{"a host that is none", `"version"`, `"permissions": {"hosts": ["https://example.com"]}, "version"`, "no port"},
		{"hosts and the network", `"version"`, `"permissions": {"hosts": ["example.com"], "network": true}, "version"`, "leave one of network and hosts out"},
		{"a contract of the future", `"contract": 1`, `"contract": 2`, "contract is 2, this version knows 1 to 1"},
		{"no contract", `"contract": 1`, `"contract": 0`, "contract is 0"},
		{"a type that is a path", `"greeting"`, `"../greeting"`, "no name of a component type"},
		{"no version", `"1.0.0"`, `""`, "version is missing"},
		{"an executable elsewhere", `"run.sh"`, `"../run.sh"`, "is not inside"},
		{"an executable that is not there", `"run.sh"`, `"none"`, "is not there"},
		{"a rule that nobody enforces", `"type": "string"`, `"type": "string", "format": "email"`, "unknown field"},
		{"a type of value that there is not", `"type": "string"`, `"type": "date"`, `type "date" is not supported`},
		{"a key that is a path", `"text": {`, `"a/b": {`, "no file can have"},
		{"a config that is no table", `{"type": "object", "properties": {"text": {"type": "string"}}}`, `{"type": "string"}`, "type is not object"},
	} {
		_, err := plugin.ReadManifest(folder(func(f fstest.MapFS) {
			f["plugin.json"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(manifest, tc.from, tc.to))}
		}))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	pub, key, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	signer := capsule.EncodePublicKey(pub)
	envelope, err := plugin.Sign(key, folder())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(envelope)
	if err != nil {
		t.Fatal(err)
	}
	signed := func(f fstest.MapFS) { f[plugin.SignatureFile] = &fstest.MapFile{Data: raw} }
	if s, err := plugin.Verify(signer, folder(signed)); err != nil || len(s.Files) != 3 {
		t.Errorf("as it was signed: %+v, %v", s, err)
	}
	for _, tc := range []struct {
		name string
		edit func(fstest.MapFS)
		want string
	}{
		{"not signed", func(f fstest.MapFS) { delete(f, plugin.SignatureFile) }, "it is not signed"},
		{"one byte more", func(f fstest.MapFS) { f["run.sh"] = &fstest.MapFile{Data: []byte("#!/bin/sh\n\n")} }, "run.sh is sha256:"},
		{"a file more", func(f fstest.MapFS) { f["more"] = &fstest.MapFile{} }, "more was not signed"},
		{"a file less", func(f fstest.MapFS) {
			delete(f, "arm")
			f["plugin.json"] = &fstest.MapFile{Data: []byte(strings.Replace(manifest, `, "linux/arm64": "arm"`, "", 1))}
		}, "plugin.json is sha256:"},
		{"a signature that is none", func(f fstest.MapFS) { f[plugin.SignatureFile] = &fstest.MapFile{Data: []byte("{")} }, "plugin.sig.json"},
		{"a signature of something else", func(f fstest.MapFS) {
			other, err := capsule.Sign(key, capsule.KeyID(pub), "application/x", map[string]string{})
			if err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(other)
			if err != nil {
				t.Fatal(err)
			}
			f[plugin.SignatureFile] = &fstest.MapFile{Data: raw}
		}, "payload is"},
	} {
		_, err := plugin.Verify(signer, folder(signed, tc.edit))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
	other, _, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plugin.Verify(capsule.EncodePublicKey(other), folder(signed)); err == nil {
		t.Error("another key verifies it")
	}
}

func TestComplete(t *testing.T) {
	t.Parallel()
	var s plugin.Schema
	if err := json.Unmarshal([]byte(`{"properties": {
		"text": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"},
		"count": {"type": "integer", "minimum": 1, "maximum": 3, "default": 2},
		"ratio": {"type": "number"}, "on": {"type": "boolean"},
		"size": {"type": "string", "enum": ["s", "m"]},
		"list": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
		"free": {"type": "object", "additionalProperties": true},
		"token": {"type": "string", "writeOnly": true}}, "required": ["text"]}`), &s); err != nil {
		t.Fatal(err)
	}
	template := func(text string) bool { return strings.Contains(text, "{{") }
	for _, tc := range []struct {
		name   string
		config map[string]any
		want   string
	}{
		{"right", map[string]any{"text": "ab", "count": int64(3), "ratio": json.Number("1.5"), "on": true, "size": "m", "free": map[string]any{"x": "y"}}, ""},
		{"a template fits everything", map[string]any{"text": "{{ .nuon.name }} of any length", "count": "{{ .x }}"}, ""},
		{"nothing", map[string]any{}, "text: is missing"},
		{"not ours", map[string]any{"text": "ab", "txt": "x"}, "txt: is no key of this plugin"},
		{"too short", map[string]any{"text": "a"}, "text: is shorter than 2 characters"},
		{"too long", map[string]any{"text": "abcde"}, "text: is longer than 4 characters"},
		{"not the pattern", map[string]any{"text": "AB"}, "text: does not match ^[a-z]+$"},
		{"no text", map[string]any{"text": int64(1)}, "text: is not text"},
		{"no number", map[string]any{"text": "ab", "count": "3"}, "count: is not a number"},
		{"no whole number", map[string]any{"text": "ab", "count": 1.5}, "count: is not a whole number"},
		{"too little", map[string]any{"text": "ab", "count": int64(0)}, "count: is less than 1"},
		{"too much", map[string]any{"text": "ab", "count": int64(4)}, "count: is more than 3"},
		{"no boolean", map[string]any{"text": "ab", "on": "true"}, "on: is not true or false"},
		{"not of the list", map[string]any{"text": "ab", "size": "xl"}, `size: is none of the values that are possible: "s", "m"`},
		{"inside of a list", map[string]any{"text": "ab", "list": []any{map[string]any{}}}, "list[0].name: is missing"},
		{"no list", map[string]any{"text": "ab", "list": "x"}, "list: is not a list"},
	} {
		whole, problems := s.Complete(tc.config, template)
		var got []string
		for _, p := range problems {
			got = append(got, p.String())
		}
		if strings.Join(got, "; ") != tc.want {
			t.Errorf("%s: %v, want %q", tc.name, got, tc.want)
		}
		if _, given := tc.config["count"]; !given && whole["count"] != float64(2) {
			t.Errorf("%s: count is %v without being given", tc.name, whole["count"])
		}
	}
	if diff := cmp.Diff([]string{"token"}, s.Secrets()); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
}

// A schema that is made to be a burden, or to mean something else than it seems to, is
// refused where the manifest is read. None of it is ever fetched or followed.
func TestAttackSchema(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"properties": {"a": `, 2000) + `{}` + strings.Repeat(`}}`, 2000)
	lists := strings.Repeat(`{"items": `, 2000) + `{}` + strings.Repeat(`}`, 2000)
	var wide strings.Builder
	for i := range 501 {
		fmt.Fprintf(&wide, `"k%d": {"pattern": "x{1000}"},`, i)
	}
	for name, tc := range map[string]struct{ schema, want string }{
		"a remote reference":            {`{"properties": {"a": {"$ref": "https://192.0.2.1/x.json"}}}`, `unknown field "$ref"`},
		"a schema of itself":            {`{"$defs": {"a": {"$ref": "#"}}}`, `unknown field "$defs"`},
		"a dynamic reference":           {`{"properties": {"a": {"$dynamicRef": "#x"}}}`, `unknown field "$dynamicRef"`},
		"one that is bottomless":        {deep, "500 keys"},
		"lists in lists":                {lists, "500 keys"},
		"too many keys":                 {`{"properties": {` + wide.String() + `"z": {}}}`, "500 keys"},
		"a pattern without end":         {`{"properties": {"a": {"pattern": "` + strings.Repeat("(x|y)", 100) + `"}}}`, "longer than 300"},
		"a pattern that explodes":       {`{"properties": {"a": {"pattern": "((x{100}){100}){100}"}}}`, "pattern: "},
		"a default that does not fit":   {`{"properties": {"a": {"type": "integer", "default": "x"}}}`, "default: is not a number"},
		"a default that is a bomb":      {`{"properties": {"a": {"default": "` + strings.Repeat("x", 70_000) + `"}}}`, "default is larger"},
		"a key that leaves the job":     {`{"properties": {"../../x": {}}}`, "has a name that no file can have"},
		"a rule that nothing enforces":  {`{"properties": {"a": {"not": {"const": "x"}}}}`, `unknown field "not"`},
		"a condition that hides a key":  {`{"if": {"properties": {"a": {}}}, "then": {"required": ["b"]}}`, `unknown field "if"`},
		"patterns as names of keys":     {`{"patternProperties": {".*": {}}}`, `unknown field "patternProperties"`},
		"a required key that is nobody": {`{"required": ["a"]}`, "which is no property"},
	} {
		began := time.Now()
		_, err := plugin.ReadManifest(folder(func(f fstest.MapFS) {
			f["plugin.json"] = &fstest.MapFile{Data: []byte(`{"contract": 1, "type": "x", "version": "1", "executables": {"any": "run.sh"}, "config": ` + tc.schema + `}`)}
		}))
		if err == nil || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 2000 {
			t.Errorf("%s: %.300v, want %q", name, err, tc.want)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: took %s", name, took)
		}
	}
}

// A plugin's job has its config, and nothing of the install's state.
func TestWriteJob(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	spec := jobspec.Spec{
		Version: 1, Operation: jobspec.OperationPlan, State: json.RawMessage(`{"secret":"of another component"}`),
		Work: jobspec.Work{Plugin: &jobspec.Plugin{Type: "x", Config: map[string]any{"text": "ahoy\n", "n": 3, "list": []any{"a"}}}},
	}
	if err := plugin.WriteJob(dir, spec); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "job.json"))
	if err != nil || strings.Contains(string(raw), "another component") {
		t.Errorf("job.json: %s, %v", raw, err)
	}
	for name, want := range map[string]string{"text": "ahoy\n", "n": "3", "list": `["a"]`} {
		if got, err := os.ReadFile(filepath.Join(dir, "in/config", name)); string(got) != want || err != nil {
			t.Errorf("in/config/%s is %q, %v; want %q", name, got, err, want)
		}
	}
	dir = t.TempDir()
	spec.Operation = jobspec.OperationApply
	if err := plugin.WriteJob(dir, spec); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "in/config")); err == nil {
		t.Error("an apply gets a config")
	}
}
