package main

import (
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/preview"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/bundle"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/appconfig/schema"
)

const examples = "../../../examples"

// appCopy copies an example, so that it can be spoilt.
func appCopy(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(examples, name))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// replace changes a file of an app.
func replace(t *testing.T, name, from, to string) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), from) {
		t.Fatalf("%s has no %q", name, from)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(data), from, to, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// succeeds runs a command that must not fail.
func succeeds(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := berth(t, nil, args...)
	if code != command.ExitOK {
		t.Fatalf("berth %s: exit code %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout
}

func TestValidate(t *testing.T) {
	t.Parallel()
	dir := appCopy(t, "hello")
	card := filepath.Join(dir, "components", "card.toml")
	replace(t, card, "max_auto_retries", "max_auot_retries")
	warning := card + ":7:1: warning unknown key \"max_auot_retries\" [unknown_key]\n  try: did you mean \"max_auto_retries\"?\n"

	code, stdout, stderr := berth(t, nil, "apps", "validate", dir)
	if want := warning + "\n1 warning in 1 file\n"; code != command.ExitOK || stdout != want || stderr != "" {
		t.Errorf("with a warning: exit code %d\n%s%swant\n%s", code, stdout, stderr, want)
	}
	if code, stdout, _ = berth(t, nil, "apps", "validate", dir, "--strict"); code != command.ExitFailed || !strings.HasSuffix(stdout, "\n1 error in 1 file\n") {
		t.Errorf("--strict: exit code %d\n%s", code, stdout)
	}

	replace(t, card, ".components.key.", ".components.kay.")
	replace(t, filepath.Join(dir, "runner.toml"), "local", "locale")
	code, stdout, _ = berth(t, nil, "apps", "validate", dir)
	want := warning + card + ":17:1: error .nuon.components.kay.outputs.signing_key: component \"kay\" does not exist [reference]\n" +
		"  try: did you mean \"key\"?\n\n" + filepath.Join(dir, "runner.toml") +
		":2:1: error runner_type is \"locale\"; allowed: aws, azure, gcp, local, aws-ecs, aws-eks, azure-aks, azure-acs [value]\n" +
		"  try: did you mean \"local\"?\n\n2 errors, 1 warning in 2 files\n"
	if diff := cmp.Diff(want, stdout); code != command.ExitFailed || diff != "" {
		t.Errorf("with errors: exit code %d (-want +got):\n%s", code, diff)
	}

	code, stdout, _ = berth(t, nil, "apps", "validate", dir, "-o", "json")
	var list []place.Diagnostic
	if err := json.Unmarshal([]byte(stdout), &list); err != nil || code != command.ExitFailed || len(list) != 3 {
		t.Fatalf("exit code %d, %v:\n%s", code, err, stdout)
	}
	first := place.Diagnostic{Severity: place.Error, Code: place.CodeReference, File: card, Line: 17, Column: 1,
		Message: `.nuon.components.kay.outputs.signing_key: component "kay" does not exist`, Remedy: `did you mean "key"?`}
	if diff := cmp.Diff(first, list[1]); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

func TestValidateTellsWhatIsNoApp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code, stdout, _ := berth(t, nil, "apps", "validate", dir)
	if code != command.ExitFailed || !strings.Contains(stdout, dir+": error this is no app folder") {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
	if stdout := succeeds(t, "apps", "validate", filepath.Join(examples, "hello"), "-o", "json"); stdout != "[]\n" {
		t.Errorf("nothing to tell: got %q, want an empty list", stdout)
	}
}

func TestValidateTellsWhatCannotBeDeployed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(examples, "kitchen-sink")
	code, stdout, stderr := berth(t, nil, "apps", "validate", dir)
	if code != command.ExitOK || strings.Contains(stdout, "[unsupported]") || !strings.Contains(stderr, "this version cannot deploy") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if code, stdout, _ = berth(t, nil, "apps", "validate", dir, "--deployable"); code != command.ExitFailed || !strings.Contains(stdout, "[unsupported]") {
		t.Errorf("--deployable: exit code %d\n%s", code, stdout)
	}
	stdout = succeeds(t, "apps", "validate", filepath.Join(examples, "shop"), "--deployable")
	if strings.Count(stdout, "[unsupported]") != 2 {
		t.Errorf("the shop: got\n%s", stdout)
	}
}

func TestGraph(t *testing.T) {
	t.Parallel()
	golden := filepath.Join("..", "..", "..", "pkg", "appconfig", "graph", "testdata")
	for format, file := range map[string]string{"tree": "shop.txt", "dot": "shop.dot", "mermaid": "shop.mmd"} {
		want, err := os.ReadFile(filepath.Join(golden, file))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), succeeds(t, "apps", "graph", filepath.Join(examples, "shop"), "-o", format)); diff != "" {
			t.Errorf("-o %s (-want +got):\n%s", format, diff)
		}
	}
	var got struct {
		Layers            [][]string `json:"layers"`
		Components, Edges []any
	}
	if err := json.Unmarshal([]byte(succeeds(t, "app", "graph", filepath.Join(examples, "shop"), "-o", "json")), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{{"web_image", "catalogue", "notices"}, {"web"}, {"extras"}}, got.Layers); diff != "" || len(got.Edges) != 3 || len(got.Components) != 5 {
		t.Errorf("layers (-want +got):\n%s\n%+v", diff, got)
	}
}

func TestGraphShowsTheWayAroundACycle(t *testing.T) {
	t.Parallel()
	dir := appCopy(t, "hello")
	replace(t, filepath.Join(dir, "components", "key.toml"), "\n\n", "\ndependencies = [\"card\"]\n\n")
	code, stdout, stderr := berth(t, nil, "apps", "graph", dir)
	if code != command.ExitFailed || !strings.Contains(stdout, "wait for each other: card → key → card\n") ||
		!strings.Contains(stdout, "key needs card: dependencies at components/key.toml:") || !strings.Contains(stderr, "card → key → card") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

func TestSchema(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "schemas")
	kinds := strings.Fields(strings.ReplaceAll(succeeds(t, "apps", "schema", "-o", dir), "\n", " "))
	if len(kinds) != len(schema.Kinds()) {
		t.Errorf("%d files were written, want one for each of %d kinds", len(kinds), len(schema.Kinds()))
	}
	written, err := os.ReadFile(filepath.Join(dir, "helm.json"))
	if err != nil {
		t.Fatal(err)
	}
	if printed := succeeds(t, "apps", "schema", "helm"); printed != string(written) || !json.Valid(written) {
		t.Errorf("printed %d bytes, wrote %d", len(printed), len(written))
	}
	if list := succeeds(t, "apps", "schema"); !strings.Contains(list, "helm ") || !strings.Contains(list, "components/**/*.toml of type helm_chart") {
		t.Errorf("the list:\n%s", list)
	}
	for _, args := range [][]string{{"apps", "schema", "hlem"}, {"apps", "schema", "-o", "json"}} {
		if code, _, _ := berth(t, nil, args...); code != command.ExitUsage {
			t.Errorf("berth %v: exit code %d, want %d", args, code, command.ExitUsage)
		}
	}
}

// TestSchemaLineIsNoPartOfAnApp holds that a file may name its schema.
func TestSchemaLineIsNoPartOfAnApp(t *testing.T) {
	t.Parallel()
	dir := appCopy(t, "hello")
	replace(t, filepath.Join(dir, "components", "card.toml"), "# terraform\n", "#:schema ../schemas/terraform.json\n# terraform\n")
	if got := succeeds(t, "apps", "validate", dir); got != "no errors, no warnings\n" {
		t.Errorf("validate says\n%s", got)
	}
	succeeds(t, "apps", "fmt", dir, "--check")
}

func TestRender(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(examples, "shop")
	made := succeeds(t, "apps", "render", dir, "--component", "web")
	if !strings.Contains(made, "\n    sessionKey: \"<components.catalogue.outputs.session_key>\"\n") || strings.Contains(made, "catalogue (") {
		t.Errorf("made up:\n%s", made)
	}
	state := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(state, []byte(`{"version": 3, "tree": {"id": "ins_1", "name": "acme",
		"inputs": {"inputs": {"title": "Acme & sons", "replicas": 1000000, "admin_token": "(sealed)"}},
		"sandbox": {"outputs": {"namespace": "shop-acme"}},
		"components": {"web_image": {"outputs": {"image": {"ref": "r/web@sha256:1"}}}, "catalogue": {"outputs": {"session_key": "(sealed)"}}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := berth(t, nil, "apps", "render", dir, "--state", state, "--component", "web")
	for _, want := range []string{"\n    shop-acme\n", "\n    1000000\n", "\n    r/web@sha256:1\n", "  values_file[0].contents  " + filepath.Join(dir, "components", "web.values.yaml") + ":1"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	wantErr := filepath.Join(dir, "components", "web.values.yaml") + ":4:14 error values_file[0].contents: .nuon.components.catalogue.outputs.products: there is no"
	if code != command.ExitFailed || !strings.HasPrefix(stderr, wantErr) || !strings.Contains(stderr, "1 value cannot be rendered with this state") {
		t.Errorf("exit code %d, stderr\n%s\nwant\n%s", code, stderr, wantErr)
	}
	if code, _, stderr := berth(t, nil, "apps", "render", dir, "--component", "wbe"); code != command.ExitUsage || !strings.Contains(stderr, "there are sandbox, catalogue, extras, notices, web, web_image") {
		t.Errorf("unknown component: exit code %d, %s", code, stderr)
	}
}

func TestRenderForPrograms(t *testing.T) {
	t.Parallel()
	var got []preview.Rendered
	if err := json.Unmarshal([]byte(succeeds(t, "apps", "render", filepath.Join(examples, "hello"), "-o", "json")), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) < 4 || got[0].Name != "sandbox" || got[0].Kind != "sandbox" || got[1].Name != "card" || len(got[1].Values) != 4 || !got[1].Values[0].Template {
		t.Errorf("got %+v", got)
	}
}

// TestRenderOfActionsAndRoles holds that everything of an app is rendered, what
// actions are asked for included.
func TestRenderOfActionsAndRoles(t *testing.T) {
	t.Parallel()
	dir := appCopy(t, "hello")
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("actions/restart.toml", "name = \"restart\"\n[[inputs]]\nname = \"version\"\n[[steps]]\nname = \"s\"\ncommand = \"go {{ .action.inputs.version }} {{ .nuon.id }}\"\n")
	write("permissions/p.toml", "type = \"provision\"\nname = \"p-{{ .nuon.id }}\"\ndescription = \"d\"\n")
	write("runbooks/r.toml", "name = \"r\"\nreadme = \"# {{ upper \\\"page\\\" }}\"\n[[steps]]\nname = \"s\"\ntype = \"action\"\ncommand = \"c\"\n")
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--action", "restart"}, "    go <action.inputs.version> <id>\n"},
		{[]string{"--action", "restart", "--input", "version=1=2"}, "    go 1=2 <id>\n"},
		{[]string{"--only", "role"}, "p-{{ .nuon.id }} (provision role)\n  name  " + filepath.Join(dir, "permissions", "p.toml") + ":2\n    p-<id>\n"},
		{[]string{"--only", "runbook"}, "    # PAGE\n"},
		{[]string{"--only", "stack"}, "stack ("},
		{nil, "    go <action.inputs.version> <id>\n"},
	} {
		got := succeeds(t, append([]string{"apps", "render", dir}, tc.args...)...)
		if !strings.Contains(got, tc.want) || tc.args != nil && strings.Contains(got, "card (") {
			t.Errorf("%v: no %q in\n%s", tc.args, tc.want, got)
		}
	}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--action", "restrat"}, "there is no action \"restrat\"; there are files_intact, restart"},
		{[]string{"--only", "roles"}, "there is no kind \"roles\""},
		{[]string{"--input", "version"}, "is not NAME=VALUE"},
		{[]string{"--install", "a", "--state", "b"}, "cannot be used together"},
	} {
		if code, _, stderr := berth(t, nil, append([]string{"apps", "render", dir}, tc.args...)...); code != command.ExitUsage || !strings.Contains(stderr, tc.want) {
			t.Errorf("%v: exit code %d, %s", tc.args, code, stderr)
		}
	}
}

// TestRenderGoesOn holds that one mistake stops nothing but what it is in: a
// misspelt path below the older alias hides none of the others, a file that is no
// TOML leaves the rest, and each mistake is reported once.
func TestRenderGoesOn(t *testing.T) {
	t.Parallel()
	dir := appCopy(t, "hello")
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("permissions/p.toml", "type = \"provision\"\nname = \"p-{{ .nuon.install.id }}\"\ndescription = \"{{ .nuon.install.bogus.x }}\"\n")
	write("operation_roles.toml", "type = \"matrix\"\n[[rules]]\nprincipal = \"nuon::sandbox\"\noperation = \"provision\"\nrole = \"p-{{ .nuon.install.id }}\"\n")
	write("policies/k.toml", "type = \"helm_chart\"\nengine = \"opa\"\ncontents = \"package nuon # {{ .nuon.install.name }}\"\n")
	write("runner.toml", "runner_type = \"local\"\n[env_vars]\nNAME = \"runner-{{ .nuon.install.name }}\"\n")
	write("actions/broken.toml", "name = broken\n")
	code, stdout, stderr := berth(t, nil, "apps", "render", dir)
	for _, want := range []string{
		"    p-<id>\n", "    package nuon # <name>\n", "    runner-<name>\n",
		"operation_roles (operation_roles)\n", "k (policy of helm_chart)\n", "card (",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if n := strings.Count(stderr, ".nuon.install.bogus"); n != 1 || strings.Count(stderr, "is not valid TOML") != 1 || !strings.HasSuffix(stderr, "has 2 errors\n") || code != command.ExitFailed {
		t.Errorf("exit code %d, the path is reported %d times in\n%s", code, n, stderr)
	}
}

// TestRenderOfAnInstall holds that the state of an install is asked for, and
// that sealed values are no mistake of the folder.
func TestRenderOfAnInstall(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/installs/acme/state" || r.Header.Get("Authorization") != "Bearer brt_x" {
			t.Errorf("it asks for %s", r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"version": 3, "cause": "test", "created_at": "2026-01-01T00:00:00Z", "tree": {"id": "ins_1", "name": "acme",
			"inputs": {"inputs": {"title": "Acme", "replicas": 12345678901234567, "admin_token": "(sealed)"}},
			"sandbox": {"outputs": {"namespace": "shop-acme"}},
			"components": {"web_image": {"outputs": {"image": {"ref": "r/web@sha256:1"}}},
			"catalogue": {"outputs": {"session_key": "(sealed)", "products": "(sealed)", "page": "(sealed)"}}}}}`)
	}))
	defer server.Close()
	env := map[string]string{"BERTH_URL": server.URL, "BERTH_TOKEN": "brt_x"}
	code, stdout, stderr := berth(t, env, "apps", "render", filepath.Join(examples, "shop"), "--install", "acme", "--component", "web")
	if code != command.ExitOK || stderr != "" {
		t.Errorf("exit code %d, stderr\n%s", code, stderr)
	}
	for _, want := range []string{"\n    12345678901234567\n", "\n    shop-acme\n", "web.values.yaml:1  made of sealed values\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}

func TestFmt(t *testing.T) {
	t.Parallel()
	dir := appCopy(t, "hello")
	card := filepath.Join(dir, "components", "card.toml")
	before, err := os.ReadFile(card)
	if err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "src", "tool.toml") // not a file of the app
	if err := os.WriteFile(foreign, []byte("a=1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(card, 0o640); err != nil {
		t.Fatal(err)
	}
	succeeds(t, "apps", "fmt", dir, "--check")
	replace(t, card, "name              =", "name=")
	if code, stdout, _ := berth(t, nil, "apps", "fmt", dir, "--check"); code != command.ExitChanges || stdout != card+"\n" {
		t.Errorf("--check: exit code %d, %q", code, stdout)
	}
	if got := succeeds(t, "apps", "fmt", dir); got != card+"\n" {
		t.Errorf("changed %q", got)
	}
	after, err := os.ReadFile(card)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), string(after)); diff != "" {
		t.Errorf("card.toml (-want +got):\n%s", diff)
	}
	if data, err := os.ReadFile(foreign); err != nil || string(data) != "a=1" {
		t.Errorf("a file of nobody's: %q, %v", data, err)
	}
	if info, err := os.Stat(card); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode of the file: %v, %v", info.Mode(), err)
	}
	replace(t, card, "name ", "= ")
	if code, _, stderr := berth(t, nil, "apps", "fmt", dir); code != command.ExitFailed || !strings.HasPrefix(stderr, card+":4:1 error is not valid TOML") {
		t.Errorf("not TOML: exit code %d\n%s", code, stderr)
	}
}

// TestInit holds that what is made validates clean, has its form, renders, and
// can be packed for a sync.
func TestInit(t *testing.T) {
	t.Parallel()
	module := filepath.Join(t.TempDir(), "Bucket.v2")
	if err := os.MkdirAll(module, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(module, "main.tf"), []byte("variable \"name\" {\n  type = string\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name      string
		args      []string
		component string
	}{
		{"of its own", nil, "note"},
		{"from a chart", []string{"--from-chart", filepath.Join(examples, "shop", "src", "chart")}, "web"},
		{"from a module", []string{"--from-terraform", module}, "bucket-v2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "my-app")
			succeeds(t, append([]string{"apps", "init", dir}, tc.args...)...)
			if got := succeeds(t, "apps", "validate", dir, "--strict"); got != "no errors, no warnings\n" {
				t.Errorf("validate says\n%s", got)
			}
			succeeds(t, "apps", "fmt", dir, "--check")
			if got := succeeds(t, "apps", "render", dir, "--component", tc.component); !strings.Contains(got, "<") {
				t.Errorf("render shows\n%s", got)
			}
			canBeSynced(t, dir)
			before := filesIn(t, dir)
			code, _, stderr := berth(t, nil, "apps", "init", dir)
			if code != command.ExitFailed || !strings.Contains(stderr, "nothing written to") || !strings.Contains(stderr, "metadata.toml") {
				t.Errorf("once more: exit code %d, %s", code, stderr)
			}
			if diff := cmp.Diff(before, filesIn(t, dir)); diff != "" {
				t.Errorf("files after that (-before +after):\n%s", diff)
			}
		})
	}
}

// canBeSynced packs an app folder as sync does.
func canBeSynced(t *testing.T, dir string) {
	t.Helper()
	root := os.DirFS(dir)
	app, found := check.Folder(root, appconfig.LoadOptions{})
	found = slices.DeleteFunc(found, func(d place.Diagnostic) bool { return d.Severity == place.Note }) // what is not shown yet
	if len(found) > 0 {
		t.Errorf("sync would tell of %v", found)
	}
	if _, err := bundle.Make(root, nil); err != nil {
		t.Error(err)
	}
	sources := appconfig.Sources(app)
	for _, source := range sources {
		if data, _, err := bundle.ArchiveSource(root, source); err != nil || len(data) == 0 {
			t.Errorf("source of %s: %d bytes, %v", source.Name, len(data), err)
		}
	}
	if len(sources) != 2 {
		t.Errorf("%d sources, want those of the sandbox and of the component", len(sources))
	}
}

func TestInitInAFolderWithFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "stack.toml"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := berth(t, nil, "apps", "init", dir)
	if diff := cmp.Diff(map[string]string{"stack.toml": "mine"}, filesIn(t, dir)); code != command.ExitFailed || diff != "" {
		t.Errorf("exit code %d, %s (-want +got):\n%s", code, stderr, diff)
	}
	whole := t.TempDir()
	if err := os.WriteFile(filepath.Join(whole, "nuon.mine.toml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := berth(t, nil, "apps", "init", whole); code != command.ExitFailed || !strings.Contains(stderr, "is already an app folder") {
		t.Errorf("config in one file: exit code %d, %s", code, stderr)
	}
}

func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, name)
		files[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// A policy that Kyverno refuses is an error with its file, line and key, and a
// warning for who takes it as it is.
func TestValidateAllowsInvalidPolicies(t *testing.T) {
	t.Parallel()
	dir := appCopy(t, "hello")
	for name, text := range map[string]string{
		"p.toml": "type = \"helm_chart\"\ncontents = \"./p.yaml\"\n",
		"p.yaml": "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nspec:\n  rules:\n  - name: r\n    messages: x\n",
	} {
		if err := os.MkdirAll(filepath.Join(dir, "policies"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "policies", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, stdout, _ := berth(t, nil, "apps", "validate", dir)
	if code != command.ExitFailed || !strings.Contains(stdout, `p.yaml:6:1: error contents has the key "messages" in rule "r"`) || !strings.Contains(stdout, "--allow-invalid-policies") {
		t.Errorf("exit %d\n%s", code, stdout)
	}
	if stdout := succeeds(t, "apps", "validate", dir, "--allow-invalid-policies"); !strings.Contains(stdout, "p.yaml:6:1: warning contents has the key") {
		t.Errorf("with the switch:\n%s", stdout)
	}
}
