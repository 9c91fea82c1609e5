package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/diffview"
	"github.com/berth-dev/berth/cli/internal/names"
	"github.com/berth-dev/berth/cli/internal/sync"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// aDiff has one changed component.
func aDiff() *ctlapi.Diff {
	return &ctlapi.Diff{
		App:  ctlapi.Ref{ID: "app_1", Name: "hello"},
		From: ctlapi.NumberRef{ID: "cfg_3", Number: 3}, To: ctlapi.NumberRef{ID: "cfg_5", Number: 5},
		Changes: []ctlapi.DiffObject{{Kind: "component", Name: "api", Change: "changed", Build: true, Deploy: true, Fields: []ctlapi.FieldChange{
			{Path: "dependencies", Before: `["db"]`}, {Path: "max_auto_retries", Before: "2", After: "3"},
		}}},
	}
}

func TestBothOfADiff(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ app, from, to, wantFrom, wantTo string }{
		{"", "hello@3", "5", "hello@3", "hello@5"},
		{"", "3", "hello@5", "hello@3", "hello@5"},
		{"", "cfg_1", "5", "cfg_1", "5"},
		{"", "cfg_1", "cfg_2", "cfg_1", "cfg_2"},
		{"hello", "3", "5", "hello@3", "hello@5"},
		{"hello", "3", "cfg_2", "hello@3", "cfg_2"},
	} {
		from, to, err := names.Both(tc.app, tc.from, tc.to)
		if err != nil || from != tc.wantFrom || to != tc.wantTo {
			t.Errorf("diff %s %s --app %q asks for %s and %s (%v), want %s and %s", tc.from, tc.to, tc.app, from, to, err, tc.wantFrom, tc.wantTo)
		}
	}
	if _, _, err := names.Both("", "3", "5"); command.ExitCode(err) != command.ExitUsage {
		t.Errorf("numbers of no app: %v, want a mistake of the command line", err)
	}
}

// What the command asks, prints and ends with.
func TestDiffCommand(t *testing.T) {
	t.Parallel()
	answer := aDiff()
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer server.Close()
	env := map[string]string{"BERTH_URL": server.URL, "BERTH_TOKEN": "brt_x"}
	code, stdout, _ := berth(t, env, "configs", "diff", "hello@3", "5")
	if code != command.ExitChanges || asked != "/configs/hello@3/diff?to=hello%405" || stdout != diffview.Text("config", answer, false) {
		t.Errorf("exit code %d, asked %s, printed\n%s", code, asked, stdout)
	}
	code, stdout, _ = berth(t, env, "releases", "diff", "3", "5", "--app", "hello", "-o", "json")
	var got ctlapi.Diff
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*answer, got); diff != "" || code != command.ExitChanges || asked != "/releases/hello@3/diff?to=hello%405" {
		t.Errorf("exit code %d, asked %s (-want +got):\n%s", code, asked, diff)
	}
	answer.Changes = []ctlapi.DiffObject{}
	if code, stdout, _ = berth(t, env, "releases", "diff", "hello@3", "5"); code != command.ExitOK || !strings.Contains(stdout, "no differences") {
		t.Errorf("without differences: exit code %d, printed\n%s", code, stdout)
	}
}

// write makes files below a new directory.
func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "hello")
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// An app with a remote sandbox is packed without asking anybody: what stands in
// for the repository is uploaded, and the archive follows its content.
func TestSyncFolderWithSourceMap(t *testing.T) {
	t.Parallel()
	app := folderOf(t, map[string]string{
		"metadata.toml": "version = \"v2\"\n",
		"runner.toml":   "runner_type = \"local\"\n",
		"stack.toml":    "type = \"local\"\nname = \"x\"\ndescription = \"x\"\n",
		"sandbox.toml":  "terraform_version = \"1.11.4\"\n[public_repo]\nrepo = \"acme/sandboxes\"\ndirectory = \"local/small\"\nbranch = \"main\"\n",
		"components/api.toml": "name = \"api\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.4\"\n" +
			"[connected_repo]\nrepo = \"https://git.example.com/acme/app.git\"\ndirectory = \".\"\nbranch = \"main\"\n",
		"components/web.toml": "name = \"web\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.4\"\n[berth]\nlocal_source = \"src/web\"\n",
		"src/web/main.tf":     "# web\n",
	})
	mirror := folderOf(t, map[string]string{
		"sandboxes/local/small/main.tf": "# sandbox\n",
		"sandboxes/local/other/main.tf": "# not this\n",
		"own/main.tf":                   "# own sandbox\n",
		"map.txt":                       "# shared by all\nacme/sandboxes = sandboxes\nacme/nothing = nowhere\n",
	})
	pack := func(o sync.Options) (named []string, files map[string][]string, stderr string) {
		t.Helper()
		var errs bytes.Buffer
		o.Say = &errs
		read, err := sync.Read(t.Context(), app, o)
		if err != nil {
			t.Fatalf("%v\n%s", err, errs.String())
		}
		files = map[string][]string{}
		for _, src := range read.Request.Sources {
			line := src.Component
			if src.Mapped {
				line += " mapped"
			}
			named = append(named, line)
			for _, u := range read.Archives {
				if u.Digest == src.Digest {
					files[src.Component] = filesOf(t, u.Bytes)
				}
			}
		}
		return named, files, errs.String()
	}

	named, _, _ := pack(sync.Options{})
	if diff := cmp.Diff([]string{"web"}, named); diff != "" {
		t.Errorf("without a map only what is in the folder is uploaded (-want +got):\n%s", diff)
	}
	file := filepath.Join(mirror, "map.txt")
	named, files, stderr := pack(sync.Options{SourceMapFile: file})
	if diff := cmp.Diff([]string{"sandbox mapped", "web"}, named); diff != "" {
		t.Errorf("with a file (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]string{"sandbox": {"main.tf=# sandbox\n"}, "web": {"main.tf=# web\n"}}, files); diff != "" {
		t.Errorf("archives (-want +got):\n%s", diff)
	}
	if !strings.Contains(stderr, "sandbox: acme/sandboxes//local/small comes from") || strings.Contains(stderr, "acme/nothing") {
		t.Errorf("told: %s", stderr)
	}
	// The command line wins over the file, and a longer directory over a shorter.
	named, files, stderr = pack(sync.Options{SourceMapFile: file, SourceMap: []string{
		"acme/sandboxes//local/small=" + filepath.Join(mirror, "own"), "acme/unused=" + mirror, "git@git.example.com:acme/app.git=" + filepath.Join(mirror, "own"),
	}})
	if diff := cmp.Diff([]string{"sandbox mapped", "api mapped", "web"}, named); diff != "" {
		t.Errorf("with both (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"main.tf=# own sandbox\n"}, files["sandbox"]); diff != "" {
		t.Errorf("archive of the sandbox (-want +got):\n%s", diff)
	}
	if !strings.Contains(stderr, "the app has no source that matches acme/unused=") {
		t.Errorf("an entry that nothing needs is not told: %s", stderr)
	}
	code, _, errText := berth(t, nil, "sync", app, "--source-map", "acme/sandboxes="+filepath.Join(mirror, "gone"))
	if code != command.ExitFailed || !strings.Contains(errText, "which is not a directory") {
		t.Errorf("a directory that is not there: exit code %d, %s", code, errText)
	}
}

// filesOf lists an archive as "name=text".
func filesOf(t *testing.T, archive []byte) []string {
	t.Helper()
	zipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, h.Name+"="+string(text))
	}
}
