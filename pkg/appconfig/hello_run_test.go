package appconfig_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/appconfigtest"
	"github.com/berth-dev/berth/pkg/appconfig/graph"
	"github.com/berth-dev/berth/pkg/interpolate"
)

// TestHelloRuns walks examples/hello the way an install does, with the real
// Terraform: sandbox, components in order with rendered variables, the health
// check, and back down to nothing.
func TestHelloRuns(t *testing.T) {
	t.Parallel()
	terraform := os.Getenv("BERTH_TERRAFORM") // `make test` sets it
	if terraform == "" {
		var err error
		if terraform, err = exec.LookPath("terraform"); err != nil {
			t.Skip("terraform is not on PATH")
		}
	}
	app := appconfigtest.Load(t, os.DirFS("../../examples/hello"))
	g, _ := graph.New(app)
	h := &handRun{t: t, terraform: terraform, work: t.TempDir(), parts: interpolate.Parts{
		Install:    interpolate.Install{ID: "ins_1", Name: "ada"},
		Inputs:     map[string]any{},
		Stack:      interpolate.Stack{Populated: true, Outputs: map[string]any{"install_dir": t.TempDir()}},
		Components: map[string]interpolate.Component{},
	}}
	for _, in := range app.Inputs {
		h.parts.Inputs[in.Name] = *in.Default
	}
	src, _ := app.Sandbox.Source()
	h.terraformRun("sandbox", src, app.Sandbox.Vars, "apply")
	h.parts.Sandbox = interpolate.Sandbox{Populated: true, Outputs: h.outputs("sandbox")}
	for _, name := range g.Order() {
		c := app.Component(name)
		src, _ := c.Source()
		h.terraformRun(name, src, c.TerraformModule.Vars, "apply")
		h.parts.Components[name] = interpolate.Component{Populated: true, Outputs: h.outputs(name)}
	}

	card, err := os.ReadFile(filepath.Join(h.dataDir(), "card.txt"))
	if err != nil || !strings.HasPrefix(string(card), "Ahoy, sailor! Welcome aboard ada.\nsigned: ") {
		t.Errorf("card: %q, %v", card, err)
	}
	key := h.parts.Components["key"].Outputs["signing_key"].(string)
	if strings.Contains(h.log.String(), key) || strings.Contains(string(card), key) {
		t.Error("the signing key is in Terraform's log or in the card")
	}
	step := app.Action("files_intact").Steps[0]
	if out, err := h.script(step); err != nil {
		t.Errorf("health check of an intact install: %v\n%s", err, out)
	}
	if page, err := interpolate.RenderAlways(app.Metadata.Readme.Contents, h.state(), interpolate.Options{}); err != nil || !strings.Contains(page, "# Hello, ada") {
		t.Errorf("install page: %q, %v", page, err)
	}
	greeting := filepath.Join(h.dataDir(), "greeting.txt")
	appconfigtest.WriteFile(t, greeting, "Boo!\n")
	if out, err := h.script(step); err == nil || !strings.Contains(out, "changed: "+greeting) {
		t.Errorf("health check of a changed file: %v\n%s", err, out)
	}

	order := g.Order()
	for i := len(order) - 1; i >= 0; i-- {
		c := app.Component(order[i])
		src, _ := c.Source()
		h.terraformRun(c.Name, src, c.TerraformModule.Vars, "destroy")
	}
	h.terraformRun("sandbox", src, app.Sandbox.Vars, "destroy")
	left, err := os.ReadDir(h.parts.Stack.Outputs["install_dir"].(string))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

type handRun struct {
	t         *testing.T
	terraform string
	work      string
	parts     interpolate.Parts
	log       bytes.Buffer
}

func (h *handRun) state() interpolate.State {
	return interpolate.NewState(interpolate.NewTree(h.parts))
}

func (h *handRun) dataDir() string { return h.parts.Sandbox.Outputs["data_dir"].(string) }

// terraformRun applies or destroys a module in a directory of its own.
func (h *handRun) terraformRun(name string, src appconfig.Source, vars map[string]string, command string) {
	h.t.Helper()
	dir := filepath.Join(h.work, name)
	values := map[string]string{}
	for k, v := range vars {
		rendered, err := interpolate.Render(v, h.state(), interpolate.Options{})
		if err != nil {
			h.t.Fatalf("%s: var %s: %v", name, k, err)
		}
		values[k] = rendered
	}
	encoded, _ := json.Marshal(values)
	if command == "apply" {
		if err := os.CopyFS(dir, os.DirFS(filepath.Join("../../examples/hello", src.Directory))); err != nil {
			h.t.Fatal(err)
		}
		appconfigtest.WriteFile(h.t, filepath.Join(dir, "terraform.tfvars.json"), string(encoded))
		h.run(dir, "init", "-input=false")
	}
	h.run(dir, command, "-input=false", "-auto-approve")
}

func (h *handRun) run(dir string, args ...string) []byte {
	h.t.Helper()
	cmd := exec.CommandContext(h.t.Context(), h.terraform, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1", "TF_CLI_CONFIG_FILE="+os.DevNull)
	var out bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = &out
	if err := cmd.Run(); err != nil {
		h.t.Fatalf("terraform %s: %v\n%s", args[0], err, out.Bytes())
	}
	if args[0] != "output" {
		h.log.Write(out.Bytes())
	}
	return out.Bytes()
}

func (h *handRun) outputs(name string) map[string]any {
	h.t.Helper()
	var decoded map[string]struct{ Value any }
	if err := json.Unmarshal(h.run(filepath.Join(h.work, name), "output", "-json"), &decoded); err != nil {
		h.t.Fatal(err)
	}
	values := map[string]any{}
	for k, v := range decoded {
		values[k] = v.Value
	}
	return values
}

// script runs a step with its rendered environment.
func (h *handRun) script(step appconfig.Step) (string, error) {
	cmd := exec.CommandContext(h.t.Context(), "sh", "-c", step.InlineContents.Contents)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	for k, v := range step.EnvVars {
		rendered, err := interpolate.Render(v, h.state(), interpolate.Options{})
		if err != nil {
			return "", err
		}
		cmd.Env = append(cmd.Env, k+"="+rendered)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}
