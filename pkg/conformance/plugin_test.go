package conformance_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/pelletier/go-toml/v2"

	"github.com/berth-dev/berth/pkg/conformance"
	"github.com/berth-dev/berth/pkg/plugin"
	"github.com/berth-dev/berth/pkg/plugin/container/imagetest"
)

const example = "../../examples/plugin-shell"

func TestShellPlugin(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join(example, "greeting.sh"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(raw), "\n"); n >= 60 {
		t.Errorf("the plugin has %d lines, want less than 60", n)
	}
	conforms(t, example)
}

func TestGoPlugin(t *testing.T) {
	t.Parallel()
	const from = "../../examples/plugin-go"
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"amd64", "arm64"} { // the manifest names both
		if err := os.WriteFile(filepath.Join(bin, "linux-"+arch), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, "linux-"+runtime.GOARCH), ".")
	cmd.Dir, cmd.Env = from, append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the plugin: %v\n%s", err, out)
	}
	conforms(t, dir)
}

// The image of the example, as its Dockerfile makes it. It is tried in a room of its own,
// as a runner starts it.
func TestImagePlugin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../examples/plugin-image")); err != nil {
		t.Fatal(err)
	}
	built := filepath.Join(t.TempDir(), "plugin")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", built, ".")
	cmd.Dir, cmd.Env = "../../examples/plugin-go", append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the plugin: %v\n%s", err, out)
	}
	raw, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(dir, "image")
	imagetest.Index(t, image, imagetest.Layout(t, image, ocispec.ImageConfig{Entrypoint: []string{"/plugin"}}, []imagetest.Entry{imagetest.File("plugin", string(raw))}))
	if out, err := exec.CommandContext(t.Context(), "unshare", "--user", "true").CombinedOutput(); err != nil {
		t.Skipf("no namespaces: the kernel gives none to this user: %s", out)
	}
	conforms(t, dir)
}

func conforms(t *testing.T, dir string) {
	t.Helper()
	s, err := conformance.Plugin(dir)
	if err != nil {
		t.Fatal(err)
	}
	if s.Close != nil {
		t.Cleanup(func() { _ = s.Close() })
	}
	var all []conformance.Verdict
	for _, m := range conformance.Musts() {
		v := s.Try(t.Context(), m)
		all = append(all, v)
		if v.Status == conformance.Broken {
			t.Errorf("%d %s: %s", m.Number, m.ID, v.Why)
		}
	}
	t.Log(conformance.Summary("plugin "+s.Name, all))
}

// The app that is shipped as an example has the shell plugin as it is, signed.
func TestExampleAppIsSigned(t *testing.T) {
	t.Parallel()
	const app = "../../examples/greeting"
	raw, err := os.ReadFile(filepath.Join(app, "components", "greeting.toml"))
	if err != nil {
		t.Fatal(err)
	}
	var component struct {
		Berth struct{ Plugin struct{ Signer string } }
	}
	if err := toml.Unmarshal(raw, &component); err != nil {
		t.Fatal(err)
	}
	signed, err := plugin.Verify(component.Berth.Plugin.Signer, os.DirFS(filepath.Join(app, "plugins", "greeting")))
	if err != nil {
		t.Fatalf("sign it again with `berth plugins sign`: %v", err)
	}
	for name := range signed.Files {
		want, errWant := os.ReadFile(filepath.Join(example, name))
		got, errGot := os.ReadFile(filepath.Join(app, "plugins", "greeting", name))
		if errWant != nil || errGot != nil || string(want) != string(got) {
			t.Errorf("%s is not the one of examples/plugin-shell", name)
		}
	}
}

// A suite that passes everything proves nothing: each change of the shell plugin
// here breaks one rule, and the kit has to say so.
func TestKitFindsWhatIsBroken(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		must     string
		from, to string
		want     string
	}{
		{"plan", "plan() {\n", "plan() {\n  touch \"$BERTH_INSTALL_DIR/planned\"\n", "it changed something"},
		{"plan", "plan() {\n", "plan() {\n  touch here\n", "it left here"},
		{"plan", "mkdir -p out/pinned &&", "false &&", "pinned nothing"},
		{"plan", "plan() {\n", "plan() {\n  chmod u+w in/config/text; echo x > in/config/text\n", "changed files below in/"},
		{"plan", "> out/plan.canonical.json", "> out/plan.other.json", "plan.canonical.json"},
		{"same-plan", `{"action":"%s",`, `{"at":"'"$(date +%N)"'","action":"%s",`, "the first plan is"},
		{"apply", "mv \"$to/$place/$BERTH_COMPONENT_NAME.new\"", "exit 3; mv", "left no out/result.json"},
		{"apply", "mv \"$BERTH_STATE_DIR/.place\" \"$BERTH_STATE_DIR/place\" ||", "rm -f \"$BERTH_STATE_DIR/.place\"; rm -rf \"$to/$place\"; false &&", "changed nothing"},
		{"no-op", `end succeeded 0 "" true`, `true`, "still has something to do"},
		{"update", "then action=update", "then action=create", "want an update"},
		{"update", "then action=update", "then action=none", "no change where there is one"},
		{"replace", "then action=replace", "then action=update", "want a replace"},
		{"destroy", "\"$BERTH_STATE_DIR/place\"; end", "; end", "it changed something"},
		{"destroy", `action=delete`, `action=update`, "and no delete"},
		{"drift", `[ "$now" != "$text" ]`, `false`, "no change where there is one"},
		{"secret-outputs", `,"sensitive":true`, ``, "not marked sensitive"},
		{"secret-outputs", "apply() {\n", "apply() {\n  cat in/pinned/token\n", "the log of the apply has the secret"},
		{"secret-outputs", `"path":"text","after":"%s"`, `"path":"token","after":"'$(cat in/config/token)'%s"`, "the summary of the plan has the secret"},
		{"wrong-digest", `end refused 10 "what the plan pinned is damaged"`, `true`, "applied what was damaged"},
		{"missing-credential", `[ -s in/config/token ] ||`, `[ -s in/config/token ] || touch "$BERTH_INSTALL_DIR/x"; [ -s in/config/token ] ||`, "changed something"},
		{"unknown-version", `[ "$BERTH_CONTRACT" = 1 ] && grep -q '"version":1,' job.json`, `true`, "want refused"},
		{"unknown-version", "end refused 10", "end refused 0", "ended with exit code 0, want 10"},
		{"cancel-plan", "plan() {\n", "plan() {\n  trap '' TERM; sleep 1\n", "did not end within"},
		{"kill-apply", `mv "$BERTH_STATE_DIR/.place" "$BERTH_STATE_DIR/place"`, `{ sleep 0.2; mv "$BERTH_STATE_DIR/.place" "$BERTH_STATE_DIR/place"; }; touch "$to/once.$$"`, "it changed something"},
	} {
		t.Run(tc.must+"/"+tc.want, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(example)); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "greeting.sh")
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.ReplaceAll(string(raw), tc.from, tc.to)
			if text == string(raw) {
				t.Fatalf("the plugin has no %q", tc.from)
			}
			if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
			s, err := conformance.Plugin(dir)
			if err != nil {
				t.Fatal(err)
			}
			s.Timeout, s.Grace = 20*time.Second, 100*time.Millisecond
			for _, m := range conformance.Musts() {
				if m.ID != tc.must {
					continue
				}
				v := s.Try(t.Context(), m)
				if v.Status != conformance.Broken || !strings.Contains(v.Why, tc.want) {
					t.Errorf("%s: %s, want it broken because of %q", v.Status, v.Why, tc.want)
				}
			}
		})
	}
}

var update = flag.Bool("update", false, "write the rules into the documentation")

// The page lists the rules as the kit has them, by number.
func TestDocumentedMusts(t *testing.T) {
	documented(t, "musts", conformance.Musts())
}

func TestDocumentedBuilds(t *testing.T) { // not parallel: with -update both write the page
	documented(t, "builds", conformance.Builds())
}

// documented compares a list of the page with rules, or writes it.
func documented(t *testing.T, name string, rules []conformance.Must) {
	t.Helper()
	const page = "../../docs/reference/plugin-contract.md"
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(raw), begin)
	was, after, foundEnd := strings.Cut(rest, end)
	if !found || !foundEnd {
		t.Fatalf("%s has no place for the rules", page)
	}
	want := ""
	for _, m := range rules {
		want += fmt.Sprintf("%d. **%s**: %s\n", m.Number, m.ID, m.Says)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if was != want {
		t.Errorf("run go test ./conformance -run TestDocumented -update:\n%s", cmp.Diff(was, want))
	}
}
