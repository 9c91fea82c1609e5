package bundle_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/bundle"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/fetch"
	"github.com/berth-dev/berth/pkg/appconfig/graph"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

type results = map[string]fetch.Result

// texts are results of addresses that were fetched.
func texts(pairs ...string) results {
	out := results{}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[pairs[i]] = fetch.Result{Contents: []byte(pairs[i+1])}
	}
	return out
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

const (
	valuesAddress = "https://example.invalid/values.yaml"
	blockAddress  = "git::https://example.invalid/shared.git//b.toml?ref=v1"
	chartFile     = "name = \"web\"\ntype = \"helm_chart\"\nchart_name = \"web\"\n[berth]\nlocal_source = \"src/base\"\n[[values_file]]\ncontents = \"" + valuesAddress + "\"\n"
)

func checked(t *testing.T, files map[string]string, fetched results) *appconfig.App {
	t.Helper()
	app, diags := check.Folder(appconfigtest.Folder(files), appconfig.LoadOptions{Fetched: fetched})
	appconfigtest.Right(t, diags)
	return app
}

// What was fetched is as if it stood in a file of the folder: it is checked, its
// templates make dependencies, and its contents alone make another config.
func TestFetchedContents(t *testing.T) {
	t.Parallel()
	files := map[string]string{"components/web.toml": chartFile, "components/db.toml": appconfigtest.Module("db")}
	const values = "a: 1\nhost: \"{{ .nuon.components.db.outputs.host }}\"\n"
	app := checked(t, files, texts(valuesAddress, values))
	text := app.Component("web").HelmChart.ValuesFiles[0].Contents
	if diff := cmp.Diff(place.Text{Contents: values, Remote: valuesAddress, Digest: digestOf(values)}, text); diff != "" {
		t.Errorf("contents (-want +got):\n%s", diff)
	}
	want := []fetch.Fetched{{
		At:      place.Place{File: "components/web.toml", Key: "values_file[0].contents"},
		Address: valuesAddress, Digest: digestOf(values), Size: int64(len(values)),
	}}
	if diff := cmp.Diff(want, app.Fetched); diff != "" || len(appconfig.Fetches(app)) != 0 {
		t.Errorf("fetched, with %v to come (-want +got):\n%s", appconfig.Fetches(app), diff)
	}
	g, _ := graph.New(app)
	if diff := cmp.Diff([]string{"db"}, g.Needs("web")); diff != "" {
		t.Errorf("needs of web (-want +got):\n%s", diff)
	}

	again := checked(t, files, texts(valuesAddress, values))
	other := checked(t, files, texts(valuesAddress, strings.Replace(values, "1", "2", 1)))
	moved := map[string]string{"components/web.toml": strings.Replace(chartFile, "https://", "git::https://host/", 1), "components/db.toml": appconfigtest.Module("db")}
	moved["components/web.toml"] = strings.Replace(moved["components/web.toml"], "host/example.invalid/", "host/repo.git//", 1)
	elsewhere := checked(t, moved, texts("git::https://host/repo.git//values.yaml", values))
	inside := checked(t, map[string]string{"components/web.toml": strings.Replace(chartFile, valuesAddress, "./v.yaml", 1), "components/db.toml": appconfigtest.Module("db"), "components/v.yaml": values}, nil)
	for name, same := range map[string]*appconfig.App{"the same contents": again, "the same contents from another address": elsewhere, "the same contents in the folder": inside} {
		if same.Digest() != app.Digest() || same.Component("web").DeployDigest() != app.Component("web").DeployDigest() {
			t.Errorf("%s made another config", name)
		}
	}
	if other.Digest() == app.Digest() || other.Component("web").DeployDigest() == app.Component("web").DeployDigest() {
		t.Error("other contents made the same config")
	}
}

// A mistake in what was fetched is told at its place there.
func TestMistakesInFetchedContents(t *testing.T) {
	t.Parallel()
	_, diags := check.Folder(appconfigtest.Folder(map[string]string{
		"components/web.toml": chartFile, "components/b.toml": "name = \"b\"\nsource = \"" + blockAddress + "\"\n",
	}), appconfig.LoadOptions{Fetched: texts(
		valuesAddress, "a: 1\nb: {{ .nuon.components.gone.outputs.x }}\n",
		blockAddress, "type = \"terraform_module\"\nterraform_version = \"1.11.4\"\ntypo = 1\n[berth]\nlocal_source = \"src/gone\"\n",
	)})
	want := blockAddress + `:3:1 warning unknown key "typo": did you mean "type"?
` + blockAddress + `:5:1 error local_source "src/gone" is not a directory of the app folder
` + valuesAddress + `:2:7 error .nuon.components.gone.outputs.x: component "gone" does not exist
`
	if diff := cmp.Diff(want, appconfigtest.Render(diags)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Files from elsewhere are merged in as those of the folder, one through the
// other, and each is asked for when it is known.
func TestFetchedIncludes(t *testing.T) {
	t.Parallel()
	const second, third = "https://example.invalid/common.toml", "https://example.invalid/x.tfvars"
	files := map[string]string{"components/b.toml": "name = \"b\"\nsource = \"" + blockAddress + "\"\n[vars]\nx = \"mine\"\n"}
	whole := checked(t, map[string]string{"components/b.toml": appconfigtest.Module("b", "[[var_file]]\ncontents = \"z = 1\"\n[vars]\nx = \"mine\"\ny = \"theirs\"")}, nil)
	known := texts(
		blockAddress, "type = \"terraform_module\"\nsource = \""+second+"\"\n[vars]\nx = \"theirs\"\ny = \"theirs\"\n",
		second, "terraform_version = \"1.11.4\"\n[berth]\nlocal_source = \"src/base\"\n[[var_file]]\ncontents = \""+third+"\"\n",
		third, "z = 1",
	)
	fetched, rounds := results{}, [][]string{}
	for {
		app, _ := appconfig.Load(appconfigtest.Folder(files), appconfig.LoadOptions{Fetched: fetched})
		var round []string
		for _, f := range appconfig.Fetches(app) {
			round = append(round, f.Address)
			fetched[f.Address] = known[f.Address]
		}
		if len(round) == 0 {
			break
		}
		rounds = append(rounds, round)
	}
	if diff := cmp.Diff([][]string{{blockAddress}, {second}, {third}}, rounds); diff != "" {
		t.Errorf("rounds (-want +got):\n%s", diff)
	}
	app := checked(t, files, fetched)
	if app.Digest() != whole.Digest() {
		t.Errorf("merged in it means something else:\n%+v\n%+v", whole.Components[0], app.Components[0])
	}
	var from []string
	for _, f := range app.Fetched {
		from = append(from, f.At.Key+" "+f.Address)
	}
	if diff := cmp.Diff([]string{"source " + blockAddress, "source " + second, "var_file[0].contents " + third}, from); diff != "" {
		t.Errorf("fetched (-want +got):\n%s", diff)
	}
}

func TestFetchProblems(t *testing.T) {
	t.Parallel()
	const a, b = "https://example.invalid/a.toml", "https://example.invalid/b.toml"
	tests := []struct {
		name    string
		files   map[string]string
		fetched results
		want    string
	}{
		{
			name:  "every failure at its place, with what to do",
			files: map[string]string{"components/web.toml": chartFile, "components/b.toml": "name = \"b\"\nsource = \"" + a + "\"\n"},
			fetched: results{
				valuesAddress: {Problem: "is answered with 404 Not Found", Remedy: "check the address"}, a: {Problem: "is not there after 5s"},
			},
			want: "components/b.toml:2:1 error source: \"" + a + "\" is not there after 5s\n" +
				"components/web.toml:7:1 error contents: \"" + valuesAddress + "\" is answered with 404 Not Found: check the address\n",
		},
		{
			name:    "a file that a fetched file names",
			files:   map[string]string{"components/b.toml": "name = \"b\"\nsource = \"" + a + "\"\n"},
			fetched: results{a: {Contents: []byte("# c\nsource = \"" + b + "\"\n")}, b: {Problem: "is a web page"}},
			want:    a + ":2:1 error source: \"" + b + "\" is a web page\n",
		},
		{
			name:    "files that merge each other in",
			files:   map[string]string{"components/b.toml": appconfigtest.Module("b", "source = \""+a+"\"")},
			fetched: texts(a, "source = \""+b+"\"\n", b, "source = \""+a+"\"\n"),
			want:    b + ":1:1 error files merge each other in: components/b.toml → " + a + " → " + b + " → " + a + "\n",
		},
		{
			name:    "what is not text",
			files:   map[string]string{"components/web.toml": chartFile},
			fetched: texts(valuesAddress, "\xff\xfe"),
			want:    "components/web.toml:7:1 error contents: \"" + valuesAddress + "\" is not text in UTF-8\n",
		},
		{
			name:    "what is too large",
			files:   map[string]string{"components/web.toml": chartFile},
			fetched: texts(valuesAddress, strings.Repeat("#", fetch.MaxBytes+1)),
			want:    "components/web.toml:7:1 error contents: \"" + valuesAddress + "\" is larger than 1 MiB: put the file into the folder\n",
		},
		{
			name:    "a fetched file that names this machine",
			files:   map[string]string{"components/b.toml": appconfigtest.Module("b", "source = \""+a+"\"")},
			fetched: texts(a, "[[var_file]]\ncontents = \"git::file:///home/me/private//secret\"\n"),
			want:    a + ":2:1 error contents: \"git::file:///home/me/private//secret\" is of this machine, and what is fetched from elsewhere may not name that: name it in a file of the folder\n",
		},
		{
			name:    "an include that is lost makes nothing else unknown",
			files:   map[string]string{"inputs.toml": "source = \"" + a + "\"\n", "components/b.toml": appconfigtest.Module("b", "[vars]\nx = \"{{ .nuon.inputs.inputs.there }}\"")},
			fetched: results{a: {Problem: "is a web page"}},
			want:    "inputs.toml:1:1 error source: \"" + a + "\" is a web page\n",
		},
		{
			name:  "a name that bundles keep for themselves",
			files: map[string]string{"components/b.toml": appconfigtest.Module("b", "[[var_file]]\ncontents = \"../.fetched/index.json\""), ".fetched/index.json": "[]"},
			want:  "components/b.toml:5:1 error contents: file \"../.fetched/index.json\": is in .fetched/, where a bundle keeps what was fetched\n",
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, diags := check.Folder(appconfigtest.Folder(tc.files), appconfig.LoadOptions{Fetched: tc.fetched})
			if diff := cmp.Diff(tc.want, appconfigtest.Render(diags)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Without a network what stands elsewhere is a note, and the rest is checked.
func TestWithoutFetching(t *testing.T) {
	t.Parallel()
	fsys := appconfigtest.Folder(map[string]string{"components/web.toml": chartFile})
	_, diags := check.Format(fsys, appconfig.LoadOptions{})
	want := "components/web.toml:7:1 note contents: \"" + valuesAddress + "\" is fetched when the app is synced, and not looked at here\n"
	if diff := cmp.Diff(want, appconfigtest.Render(diags)); diff != "" {
		t.Errorf("format (-want +got):\n%s", diff)
	}
	if _, err := bundle.Make(fsys, nil); err == nil || !strings.Contains(err.Error(), "is not fetched") {
		t.Errorf("bundle: got %v", err)
	}
}

// withFetched is a folder of a text and a merged file that stand elsewhere, and
// an install that names a file of its own.
func withFetched() (map[string]string, results) {
	return map[string]string{
			"components/web.toml": chartFile, "components/b.toml": "name = \"b\"\nsource = \"" + blockAddress + "\"\n",
			"metadata.toml":      "version = \"v2\"\nreadme = \"" + valuesAddress + "\"\n",
			"installs/acme.toml": "name = \"acme\"\nsource = \"https://example.invalid/acme.toml\"\n",
		}, texts(valuesAddress, "a: 1\n", blockAddress, "type = \"terraform_module\"\nterraform_version = \"1.11.4\"\n[berth]\nlocal_source = \"src/base\"\n",
			"https://example.invalid/acme.toml", "[labels]\nx = \"y\"\n", "https://example.invalid/unused", "unused")
}

// The control plane finds in the bundle what was fetched, and nothing more.
func TestBundleOfFetched(t *testing.T) {
	t.Parallel()
	files, fetched := withFetched()
	made, err := bundle.Make(appconfigtest.Folder(files), fetched)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := bundle.Make(appconfigtest.Folder(files), maps.Clone(fetched)); again.Index.Digest != made.Index.Digest {
		t.Error("the same folder gave another bundle")
	}
	want := []string{
		".fetched/" + strings.TrimPrefix(digestOf("a: 1\n"), "sha256:"), ".fetched/" + strings.TrimPrefix(digestOf(string(fetched[blockAddress].Contents)), "sha256:"), ".fetched/index.json",
		"components/b.toml", "components/web.toml", "metadata.toml", "runner.toml", "sandbox.toml", "stack.toml",
	}
	slices.Sort(want)
	var names []string
	unpacked := unpack(t, appconfigtest.Archives(made)[0])
	for _, f := range unpacked {
		names = append(names, f.name)
	}
	slices.Sort(names)
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	opened, err := bundle.Open(appconfigtest.Archives(made)...)
	if err != nil {
		t.Fatal(err)
	}
	there, diags := check.Folder(opened, appconfig.LoadOptions{SkipSources: true})
	delete(files, "installs/acme.toml")
	here := checked(t, files, fetched)
	a, _ := json.Marshal(here)
	b, _ := json.Marshal(there)
	if diff := cmp.Diff(string(a), string(b)); diff != "" || place.HasErrors(diags) {
		t.Errorf("app from the bundle, %s (-folder +bundle):\n%s", appconfigtest.Render(diags), diff)
	}
}

// A bundle whose index lies is refused, whatever the lie.
func TestBundleIndexIsChecked(t *testing.T) {
	t.Parallel()
	files, fetched := withFetched()
	made, err := bundle.Make(appconfigtest.Folder(files), fetched)
	if err != nil {
		t.Fatal(err)
	}
	sum := strings.TrimPrefix(digestOf("a: 1\n"), "sha256:")
	other := strings.TrimPrefix(digestOf("b: 1\n"), "sha256:")
	index := func(from, to string) func([]packed) []packed {
		return func(files []packed) []packed {
			for i := range files {
				if files[i].name == ".fetched/index.json" {
					if !strings.Contains(files[i].text, from) {
						t.Errorf("the index has no %q:\n%s", from, files[i].text)
					}
					files[i].text = strings.Replace(files[i].text, from, to, 1)
				}
			}
			return files
		}
	}
	drop := func(name string) func([]packed) []packed {
		return func(files []packed) []packed {
			return slices.DeleteFunc(files, func(f packed) bool { return f.name == name })
		}
	}
	for _, tc := range []struct {
		name   string
		change func([]packed) []packed
		want   string
	}{
		{"other contents", func(files []packed) []packed {
			for i := range files {
				if files[i].name == ".fetched/"+sum {
					files[i].text = "b: 1\n"
				}
			}
			return files
		}, "other contents in .fetched/" + sum},
		{"another digest", index(sum, other), "says that \"https://example.invalid/values.yaml\" has the digest sha256:" + other + ", and the bundle has no such contents"},
		{"another size", index(`"size": 5`, `"size": 6`), "has 6 bytes, and it has 5"},
		{"another address", index(valuesAddress, "ftp://example.invalid"), "which nothing is fetched from"},
		{"an address with credentials", index(valuesAddress, "https://canary@example.invalid/"), "which nothing is fetched from"},
		{"an address twice", index(valuesAddress, blockAddress), "twice"},
		{"no contents", drop(".fetched/" + sum), "no such contents"},
		{"no index", drop(".fetched/index.json"), "that its index does not name"},
		{"no list", index("[", "{"), "is no list"},
		{"contents that nothing names", func(files []packed) []packed { return append(files, packed{".fetched/" + other, "b: 1\n"}) }, "that its index does not name"},
		{"contents further down", func(files []packed) []packed {
			return append(files, packed{".fetched/x/" + other, "b: 1\n"})
		}, "other contents in .fetched/x/"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := bundle.Open(repack(t, tc.change(unpack(t, appconfigtest.Archives(made)[0]))))
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "canary") {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if _, err := bundle.Open(repack(t, unpack(t, appconfigtest.Archives(made)[0]))); err != nil {
		t.Errorf("the bundle itself: %v", err)
	}
	// An index that leaves something out: it is missed by its place.
	short := unpack(t, appconfigtest.Archives(made)[0])
	for i := range short {
		if short[i].name == ".fetched/index.json" {
			short[i].text = "[]"
		}
	}
	short = slices.DeleteFunc(short, func(f packed) bool {
		return strings.HasPrefix(f.name, ".fetched/") && f.name != ".fetched/index.json"
	})
	opened, err := bundle.Open(repack(t, short))
	if err != nil {
		t.Fatal(err)
	}
	if _, diags := check.Folder(opened, appconfig.LoadOptions{SkipSources: true}); !strings.Contains(appconfigtest.Render(diags), "components/web.toml:7:1 error contents: \""+valuesAddress+"\" is not fetched") {
		t.Errorf("got\n%s", appconfigtest.Render(diags))
	}
}

// packed is a file of a bundle.
type packed struct{ name, text string }

func unpack(t *testing.T, archive []byte) []packed {
	t.Helper()
	zipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	var files []packed
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, packed{h.Name, string(text)})
	}
}

func repack(t *testing.T, files []packed) []byte {
	t.Helper()
	return archive(t, func(w *tar.Writer) error {
		for _, f := range files {
			if err := w.WriteHeader(&tar.Header{Name: f.name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(f.text))}); err != nil {
				return err
			}
			if _, err := w.Write([]byte(f.text)); err != nil {
				return err
			}
		}
		return nil
	})
}
