package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/plugin"
	"github.com/berth-dev/berth/pkg/plugin/container/imagetest"
)

// misdeeds is what the plugin does by the text of its component.
const misdeeds = `
case $(cat in/config/text in/pinned/text 2> /dev/null) in
hang*) sleep 98765 ;;
flood*) yes "$(head -c 8000 /dev/zero | tr '\0' x)" ;;
fork*) i=0; while [ $i -lt 40 ]; do setsid sleep 98765 & i=$((i + 1)); done ;;
lie*) plan | :
  mkdir -p out/pinned && cp in/config/text out/pinned/ && echo '{}' > out/plan.canonical.json
  echo '{"objects":"none that you need to see"}' > out/plan.summary.json
  printf '{"outcome":"succeeded"}' > out/result.json; exit 0 ;;
steal*)
  if [ "$BERTH_OPERATION" = apply ]; then
    for out in ../../*/engine/out ../*/out "$BERTH_INSTALL_DIR"/../jobs/*/engine/out; do
      [ "$out" -ef out ] || echo '{"stolen":{"value":1}}' > "$out/outputs.json"
    done 2> /dev/null
    echo '{"stolen":{"value":"by greeting"}}' > out/outputs.json
    printf '{"outcome":"succeeded","resource":{"id":"%s","name":"steady"},"outputs":{"receipt":{"value":1}}}' "$(cat "$BERTH_INSTALL_DIR/steady.id")" > out/result.json
    exit 0
  fi ;;
esac
"$BERTH_OPERATION"`

// TestAttackPlugin has a plugin hang, flood its log, leave processes, lie about the
// form of its plan, and hand in outputs for another component. Each costs its own job
// only: the component next to it, of the same plugin, is deployed all the same, by the
// same agent. A third component does the same misdeeds out of a container image.
func TestAttackPlugin(t *testing.T) {
	t.Parallel()
	s := start(t)
	app := folder(t, filepath.Join("..", "..", "examples", "greeting"))
	script := filepath.Join(app, "plugins", "greeting", "greeting.sh")
	edit(t, script, "\n\"$BERTH_OPERATION\"", misdeeds)
	component := filepath.Join(app, "components", "greeting.toml")
	edit(t, component, "VdRIj9GdgUSDOigCGwdzn6osrrnmadROj89Lurap2aY=", resign(t, filepath.Dir(script)))
	edit(t, component, "{{ .nuon.inputs.inputs.text }} from {{ .nuon.install.name }}", "{{ .nuon.inputs.inputs.text }}")
	edit(t, component, "type = \"greeting\"\n", "type = \"greeting\"\ndeploy_timeout = \"4s\"\n")
	steady, err := os.ReadFile(component)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(`name = "greeting"`, `name = "steady"`, `"{{ .nuon.inputs.inputs.text }}"`, `"steady, not {{ .nuon.inputs.inputs.text }}"`, "4s", "1m").Replace(string(steady))
	if err := os.WriteFile(filepath.Join(app, "components", "steady.toml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	imaged(t, app, string(steady))
	s.must("sync", app, "--wait")
	s.must("installs", "create", "acme", "--app", "greeting", "--customer", "acme", "--stack", "local", "--watch", "--auto-approve")
	in := &install{system: s, name: "acme", app: app}
	var stack ctlapi.Stack
	s.get("/installs/acme/stack", &stack)
	in.runner = stack.Runner.ID
	in.files = filepath.Join(s.dir, "runners", in.runner, "install", "hall")
	agent := s.pid("runner acme")

	for _, tt := range []struct {
		deed string
		want string // in the error of its own job; "" when it succeeds
	}{
		{deed: "lie", want: "plan.summary.json"},
		{deed: "fork"},
		{deed: "steal"},
		{deed: "flood", want: "bytes to its log"},
		{deed: "hang", want: "took longer than the 4s"},
	} {
		t.Run(tt.deed, func(t *testing.T) {
			in := &install{system: s.with(t), name: in.name, app: in.app, runner: in.runner, files: in.files}
			if err := in.call(http.MethodPut, "/installs/acme/inputs", map[string]any{"values": map[string]string{"text": tt.deed}}, nil); err != nil {
				t.Fatal(err)
			}
			w := in.finished(in.deploy(true).ID, time.Minute)
			explained := in.explain(w)
			for _, name := range []string{"greeting", "imaged"} {
				own := step(w, "component/"+name)
				if failed := own.State == "failed"; failed != (tt.want != "") || own.Error == nil && failed || failed && !strings.Contains(*own.Error, tt.want) {
					t.Errorf("step of %s: %s, want %q", name, explained, tt.want)
				}
			}
			if step(w, "component/steady").State != "succeeded" || in.says("steady.txt") != "steady, not "+tt.deed {
				t.Errorf("the component next to it says %q: %s", in.says("steady.txt"), explained)
			}
			in.eventually(goOnTimeout, "nothing of it goes on", func() error {
				if left := sleepers(in.runnerDir()); left > 0 {
					return fmt.Errorf("%d processes", left)
				}
				return nil
			})
			if tt.deed == "steal" { // the state follows the workflow
				for _, name := range []string{"greeting", "imaged"} {
					in.eventually(goOnTimeout, name+" has the outputs that it stole for", func() error {
						if own := in.output(name); own["stolen"] != "by greeting" || own["receipt"] != nil {
							return fmt.Errorf("outputs: %v; it did not do what this test is about", own)
						}
						return nil
					})
				}
			}
			if _, stolen := in.output("steady")["stolen"]; stolen || in.output("steady")["receipt"] != "(sealed)" {
				t.Errorf("outputs of the component next to it: %v", in.output("steady"))
			}
		})
	}
	if now := s.pid("runner acme"); now != agent || syscall.Kill(agent, 0) != nil {
		t.Errorf("the agent is pid %d, it was %d", now, agent)
	}
}

// imaged adds a component whose plugin is the greeting's script in an image with a shell.
func imaged(t *testing.T, app, component string, programs ...string) {
	t.Helper()
	from, dir := filepath.Join(app, "plugins", "greeting"), filepath.Join(app, "plugins", "imaged")
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile(filepath.Join(from, "greeting.sh"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "greeting.sh")); err != nil {
		t.Fatal(err)
	}
	edit(t, filepath.Join(dir, plugin.ManifestFile), `"executables": { "any": "greeting.sh" }`, `"image": "image"`)
	edit(t, filepath.Join(dir, plugin.ManifestFile), `"type": "greeting"`, `"type": "greeting-image"`)
	shell := imagetest.Programs(t, append(programs, "sh", "cat", "cp", "grep", "head", "mkdir", "mv", "rm", "sed", "setsid", "sleep", "tr", "yes")...)
	imagetest.Layout(t, filepath.Join(dir, "image"), ocispec.ImageConfig{Entrypoint: []string{"/greeting.sh"}}, shell, []imagetest.Entry{imagetest.File("greeting.sh", string(script))})
	path := filepath.Join(app, "components", "imaged.toml")
	if err := os.WriteFile(path, []byte(component), 0o600); err != nil {
		t.Fatal(err)
	}
	edit(t, path, `name = "greeting"`, `name = "imaged"`)
	edit(t, path, `type = "greeting"`, `type = "greeting-image"`)
	edit(t, path, `"plugins/greeting"`, `"plugins/imaged"`)
	signedBy(t, path, resign(t, dir))
}

// sleepers counts the processes that the plugin leaves, by their working directory:
// their environment is the plugin's, and names no path of ours once it has gone.
func sleepers(below string) (n int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is right
	for _, file := range files {
		raw, _ := os.ReadFile(file) // it may have ended
		environ, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "environ"))
		if strings.HasSuffix(string(raw), "sleep\x0098765\x00") && strings.Contains(string(environ), below) {
			n++
		}
	}
	return n
}
