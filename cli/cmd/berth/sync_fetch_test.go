package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/sync"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/bundle"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/fetch"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// elsewhere serves files by their path; "" is not there.
func elsewhere(t *testing.T, files map[string]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text, ok := files[r.URL.Path]; ok {
			fmt.Fprint(w, text)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// gitRepository makes a repository of one commit.
func gitRepository(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := folderOf(t, files)
	for _, args := range [][]string{{"init", "--quiet", "-b", "main"}, {"add", "-A"}, {"-c", "user.name=T", "-c", "user.email=t@example.invalid", "commit", "--quiet", "-m", "One"}} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

// appWith is a small app with more files.
func appWith(t *testing.T, files map[string]string) string {
	t.Helper()
	all := map[string]string{
		"metadata.toml":    "version = \"v2\"\n",
		"runner.toml":      "runner_type = \"local\"\n",
		"stack.toml":       "type = \"local\"\n",
		"sandbox.toml":     "terraform_version = \"1.11.4\"\n[berth]\nlocal_source = \"src/base\"\n",
		"src/base/main.tf": "variable \"x\" {\n  default = null\n}\n",
	}
	for name, text := range files {
		all[name] = text
	}
	return folderOf(t, all)
}

// packed reads a folder as sync does and opens what it would upload.
func packed(t *testing.T, app string, o sync.Options) (config *appconfig.App, stderr string, err error) {
	t.Helper()
	var errs bytes.Buffer
	o.Say = &errs
	read, err := sync.Read(t.Context(), app, o)
	if err != nil {
		return nil, errs.String(), err
	}
	uploaded := func(digest string) []byte {
		i := slices.IndexFunc(read.Archives, func(u sync.Archive) bool { return u.Digest == digest })
		if i < 0 {
			t.Fatalf("%s is not uploaded", digest)
		}
		return read.Archives[i].Bytes
	}
	digests, err := bundle.PacksOf(uploaded(read.Request.BundleDigest))
	if err != nil {
		t.Fatal(err)
	}
	var packs [][]byte
	for _, digest := range digests {
		packs = append(packs, uploaded(digest))
	}
	packed, err := bundle.Open(packs...)
	if err != nil {
		t.Fatal(err)
	}
	config, found := check.Folder(packed, appconfig.LoadOptions{SkipSources: true})
	if place.HasErrors(found) {
		t.Fatalf("the bundle has errors: %v", found)
	}
	return config, errs.String(), nil
}

// A sync fetches, goes on with what it has fetched, and uploads it.
func TestSyncFetches(t *testing.T) {
	t.Parallel()
	repo := gitRepository(t, map[string]string{"vars/x.tfvars": "x = 1\n"})
	files := map[string]string{"/README.md": "# Read\n"}
	url := elsewhere(t, files)
	files["/api.toml"] = "type = \"terraform_module\"\nterraform_version = \"1.11.4\"\n[berth]\nlocal_source = \"src/base\"\n[[var_file]]\ncontents = \"" + url + "/more.tfvars\"\n"
	files["/more.tfvars"] = "x = 2\n"
	app := appWith(t, map[string]string{
		"metadata.toml":       "version = \"v2\"\nreadme = \"" + url + "/README.md\"\n",
		"components/api.toml": "name = \"api\"\nsource = \"" + url + "/api.toml\"\n",
		"sandbox.toml":        "terraform_version = \"1.11.4\"\n[berth]\nlocal_source = \"src/base\"\n[[var_file]]\ncontents = \"git::file://" + repo + "//vars/x.tfvars?ref=main\"\n",
	})
	config, told, err := packed(t, app, sync.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, told)
	}
	got := []string{config.Metadata.Readme.Contents, config.Sandbox.VarFiles[0].Contents.Contents, config.Component("api").TerraformModule.VarFiles[0].Contents.Contents}
	if diff := cmp.Diff([]string{"# Read\n", "x = 1\n", "x = 2\n"}, got); diff != "" || len(config.Fetched) != 4 {
		t.Errorf("%d files are fetched (-want +got):\n%s", len(config.Fetched), diff)
	}
	want := "fetched git::file://" + repo + "//vars/x.tfvars?ref=main, 6 bytes\nfetched " + url + "/README.md, 7 bytes\nfetched " + url + "/api.toml, " +
		fmt.Sprint(len(files["/api.toml"])) + " bytes\nfetched " + url + "/more.tfvars, 6 bytes\n"
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	files["/README.md"] = "# Read this\n"
	if other, _, _ := packed(t, app, sync.Options{}); other.Digest() == config.Digest() {
		t.Error("other contents made the same config")
	}
}

// All that cannot be fetched is told at once, at its place, and nothing is
// uploaded. Credentials are not repeated.
func TestSyncTellsWhatCannotBeFetched(t *testing.T) {
	t.Parallel()
	repo := gitRepository(t, map[string]string{"README.md": "x"})
	url := elsewhere(t, map[string]string{})
	app := appWith(t, map[string]string{
		"metadata.toml":       "version = \"v2\"\nreadme = \"" + url + "/README.md\"\n",
		"components/api.toml": "name = \"api\"\nsource = \"git::file://" + repo + "//gone.toml\"\n",
		"components/web.toml": "name = \"web\"\nsource = \"https://canary@example.invalid/web.toml\"\n",
		"sandbox.toml":        "terraform_version = \"1.11.4\"\n[berth]\nlocal_source = \"src/base\"\n[[var_file]]\ncontents = \"" + url + "/x.tfvars\"\nmistake = 1\n",
	})
	code, _, stderr := berth(t, nil, "sync", app)
	want := "components/api.toml:2:1 error source: \"git::file://" + repo + `//gone.toml" is not a file of the repository: check the path and the ref
components/web.toml:2:1 error source: "https://…@example.invalid/web.toml" has credentials in it, which would be stored with the app: take it from a git repository (git::), which is read with the credentials of your git, or put the file into the folder
metadata.toml:2:1 error readme: "` + url + `/README.md" answered 404 Not Found: check the address; some hosts also say this about files you may not read
sandbox.toml:5:1 error contents: "` + url + `/x.tfvars" answered 404 Not Found: check the address; some hosts also say this about files you may not read
sandbox.toml:6:1 warning unknown key "mistake"
berth: cannot sync the app folder ` + app + ": 4 errors\n"
	if diff := cmp.Diff(want, stderr); diff != "" || code != command.ExitFailed {
		t.Errorf("exit code %d (-want +got):\n%s", code, diff)
	}
}

// Files that name each other, and an app that names too many, come to an end.
func TestFetchingEnds(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	url := elsewhere(t, files)
	files["/a.toml"], files["/b.toml"] = "source = \""+url+"/b.toml\"\n", "source = \""+url+"/a.toml\"\n"
	code, _, stderr := berth(t, nil, "sync", appWith(t, map[string]string{"components/api.toml": "name = \"api\"\nsource = \"" + url + "/a.toml\"\n"}))
	if want := "files merge each other in: components/api.toml → " + url + "/a.toml → " + url + "/b.toml → " + url + "/a.toml"; code != command.ExitFailed || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d, told\n%s", code, stderr)
	}
	var many strings.Builder
	many.WriteString("terraform_version = \"1.11.4\"\n[berth]\nlocal_source = \"src/base\"\n")
	for i := range fetch.MaxAddresses + 2 {
		name := fmt.Sprintf("/%03d.tfvars", i)
		files[name] = "x = 1\n"
		fmt.Fprintf(&many, "[[var_file]]\ncontents = \"%s%s\"\n", url, name)
	}
	code, _, stderr = berth(t, nil, "sync", appWith(t, map[string]string{"sandbox.toml": many.String()}))
	if n := strings.Count(stderr, "is not fetched: the app uses files from more than 100 addresses"); n != 2 || code != command.ExitFailed {
		t.Errorf("exit code %d, %d are too many:\n%s", code, n, stderr)
	}
}

// The source map holds for files of git repositories, too.
func TestSourceMapOfFiles(t *testing.T) {
	t.Parallel()
	mirror := folderOf(t, map[string]string{"vars/x.tfvars": "x = 1\n", "secret": "canary\n", "other.tfvars": "x = 2\n"})
	if err := os.Symlink("../secret", filepath.Join(mirror, "vars", "out.tfvars")); err != nil {
		t.Fatal(err)
	}
	sandbox := func(address string) map[string]string {
		return map[string]string{"sandbox.toml": "terraform_version = \"1.11.4\"\n[berth]\nlocal_source = \"src/base\"\n[[var_file]]\ncontents = \"" + address + "\"\n"}
	}
	app := appWith(t, sandbox("git::https://git.example.invalid/acme/shared.git//infra/x.tfvars?ref=v1"))
	for name, tc := range map[string]struct{ entry, want string }{
		"the repository":        {"git@git.example.invalid:acme/shared=" + mirror, ""},
		"a directory":           {"https://git.example.invalid/acme/shared//infra=" + filepath.Join(mirror, "vars"), "x = 1\n"},
		"the file":              {"https://git.example.invalid/acme/shared//infra/x.tfvars=" + filepath.Join(mirror, "other.tfvars"), "x = 2\n"},
		"a directory of others": {"https://git.example.invalid/acme/shared//infra=" + filepath.Join(mirror, "gone"), ""},
	} {
		config, told, err := packed(t, app, sync.Options{SourceMap: []string{tc.entry}})
		if tc.want == "" {
			if err == nil || !strings.Contains(told, "sandbox.toml:5:1 error contents: ") || !strings.Contains(told, "by the source map, where no such file is") {
				t.Errorf("%s: %v\n%s", name, err, told)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, told)
			continue
		}
		if got := config.Sandbox.VarFiles[0].Contents.Contents; got != tc.want || !strings.Contains(told, "comes from "+mirror) || strings.Contains(told, "has no source that matches") {
			t.Errorf("%s: got %q, told %s", name, got, told)
		}
	}
	_, told, err := packed(t, appWith(t, sandbox("git::https://git.example.invalid/acme/shared//out.tfvars")), sync.Options{SourceMap: []string{"https://git.example.invalid/acme/shared=" + filepath.Join(mirror, "vars")}})
	if err == nil || !strings.Contains(told, "cannot read that") || strings.Contains(told, "canary") {
		t.Errorf("a symlink out: %v\n%s", err, told)
	}
}

// Only with --fetch is the network used.
func TestValidateAndRenderWithFetch(t *testing.T) {
	t.Parallel()
	url := elsewhere(t, map[string]string{"/values.yaml": "a: [1\n", "/x.tfvars": "x = \"{{ .nuon.install.id }}\"\n"})
	broken := appWith(t, map[string]string{
		"components/web.toml": "name = \"web\"\ntype = \"helm_chart\"\nchart_name = \"web\"\n[berth]\nlocal_source = \"src/base\"\n[[values_file]]\ncontents = \"" + url + "/values.yaml\"\n",
	})
	code, stdout, _ := berth(t, nil, "apps", "validate", broken)
	if want := filepath.Join(broken, "components/web.toml") + ":7:1: note contents: \"" + url + "/values.yaml\" is fetched when the app is synced, and not looked at here [unchecked]\n"; code != command.ExitOK || !strings.Contains(stdout, want) {
		t.Errorf("without: exit code %d, printed\n%s", code, stdout)
	}
	code, stdout, _ = berth(t, nil, "apps", "validate", broken, "--fetch")
	if want := url + "/values.yaml:1:1: error contents is not valid YAML"; code != command.ExitFailed || !strings.HasPrefix(stdout, want) {
		t.Errorf("with --fetch: exit code %d, printed\n%s", code, stdout)
	}
	right := appWith(t, map[string]string{"sandbox.toml": "terraform_version = \"1.11.4\"\n[berth]\nlocal_source = \"src/base\"\n[[var_file]]\ncontents = \"" + url + "/x.tfvars\"\n"})
	if code, stdout, _ = berth(t, nil, "apps", "render", right, "--fetch"); code != command.ExitOK || !strings.Contains(stdout, "x = \"<id>\"") || !strings.Contains(stdout, "  "+url+"/x.tfvars:1\n") {
		t.Errorf("render: exit code %d, printed\n%s", code, stdout)
	}
}
