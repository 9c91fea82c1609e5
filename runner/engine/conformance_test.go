package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/berth-dev/berth/pkg/conformance"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// secretOfTest is in every config of the worlds.
const secretOfTest = "canary-conformance"

// builtIn are the engines that are built in, and which rules of the contract have no
// meaning for them. docs/reference/plugin-contract.md shows this table.
var builtIn = []struct {
	kind jobspec.Kind
	// name is that of the row, "" for the kind's own.
	name string
	// prefix is a command that becomes the engine.
	prefix        func(t *testing.T) []string
	notApplicable map[string]string
	newWorld      func(t *testing.T) conformance.World
	secretOutput  string
}{
	{
		kind: jobspec.KindTerraformModule, secretOutput: "secret",
		newWorld: func(t *testing.T) conformance.World {
			return &terraformWorld{t: t, install: newInstall(t, conformingModule)}
		},
	},
	{
		kind: jobspec.KindHelmChart, secretOutput: "manifest",
		notApplicable: map[string]string{"missing-tool": "Helm's library is a part of the engine"},
		newWorld: func(t *testing.T) conformance.World {
			return &helmWorld{t: t, charted: chart(t, map[string]string{"templates/all.yaml": conformingChart})}
		},
	},
	{
		kind: jobspec.KindHelmChart, name: "helm_chart_nuon", secretOutput: "manifest",
		notApplicable: map[string]string{"missing-tool": "Helm's library is a part of the engine"},
		newWorld: func(t *testing.T) conformance.World {
			return &helmWorld{t: t, charted: chart(t, map[string]string{"templates/all.yaml": conformingChart}).withControlPlane(t)}
		},
	},
	{
		kind: jobspec.KindKubernetesManifest,
		notApplicable: map[string]string{
			"missing-tool":   "the engine needs none",
			"secret-outputs": "a manifest's outputs hold no secret: they name objects",
		},
		newWorld: func(t *testing.T) conformance.World { return &manifestWorld{t: t, deployed: deploy(t)} },
	},
	{
		kind: jobspec.KindKubernetesManifest, name: "kustomize",
		notApplicable: map[string]string{
			"missing-tool":   "kustomize's library is a part of the engine",
			"secret-outputs": "a manifest's outputs hold no secret: they name objects",
		},
		newWorld: func(t *testing.T) conformance.World {
			return &manifestWorld{t: t, deployed: deploy(t), kustomized: map[string]string{}}
		},
	},
	{
		kind: jobspec.KindPulumi, secretOutput: "secret",
		newWorld: func(t *testing.T) conformance.World { return newPulumiWorld(t) },
	},
	{
		kind: jobspec.KindPlugin, prefix: withoutNetwork, secretOutput: "receipt",
		notApplicable: map[string]string{"missing-tool": "the engine needs none; `berth plugins test` tries the plugin itself without its tools"},
		newWorld:      func(t *testing.T) conformance.World { return &pluginWorld{t: t, plugged: plug(t), dir: t.TempDir()} },
	},
	{
		kind: jobspec.KindContainerImage, notApplicable: notOfImages,
		newWorld: func(t *testing.T) conformance.World { return &imageWorld{t: t} },
	},
	{
		kind: jobspec.KindDockerBuild, notApplicable: notOfImages,
		newWorld: func(t *testing.T) conformance.World { return &imageWorld{t: t, built: true} },
	},
	{
		kind: jobspec.KindAction,
		notApplicable: with(
			noneOf("a script is run each time: there is no state that it is compared with", "no-op", "update", "replace", "destroy", "drift", "cancel-destroy", "kill-destroy"),
			with(noneOf("a script that was cut short is run again by a decision only, whole", "cancel-apply", "kill-apply"),
				noneOf("outputs of scripts are shown; the agent hides the secrets that it knows", "secret-outputs"))),
		newWorld: func(t *testing.T) conformance.World { return &actionWorld{t: t, dir: t.TempDir()} },
	},
}

// notOfImages are the rules without a meaning for images, copied or built.
var notOfImages = noneOf("the agent copies the image before its plan, which then has nothing to do; there is no apply",
	"apply", "pinned-only", "no-op", "update", "replace", "destroy", "drift", "secret-outputs", "wrong-digest", "missing-credential", "missing-tool",
	"cancel-apply", "cancel-destroy", "kill-apply", "kill-destroy")

func noneOf(reason string, ids ...string) map[string]string {
	all := map[string]string{}
	for _, id := range ids {
		all[id] = reason
	}
	return all
}

func TestConformance(t *testing.T) {
	t.Parallel()
	engine, err := executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range builtIn {
		name := firstOf(b.name, string(b.kind))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := []string{engine}
			if b.prefix != nil {
				command = append(b.prefix(t), engine)
			}
			s := conformance.Subject{
				Name: name, Command: command, NotApplicable: b.notApplicable, Secret: secretOfTest, SecretOutput: b.secretOutput,
				Timeout:  busyMachine,
				NewWorld: func(string) (conformance.World, error) { return b.newWorld(t), nil },
			}
			conform(t, s, conformance.Musts())
		})
	}
}

// conform tries rules and prints the line that the report of all tests repeats.
func conform(t *testing.T, s conformance.Subject, rules []conformance.Must) {
	t.Helper()
	t.Cleanup(func() {
		if t.Skipped() {
			t.Logf("conformance: %s ran 0, skipped", s.Name)
		}
	})
	var all []conformance.Verdict
	for _, m := range rules {
		v := s.Try(t.Context(), m)
		all = append(all, v)
		if v.Status == conformance.Broken {
			t.Errorf("%d %s: %s", m.Number, m.ID, v.Why)
		}
	}
	t.Log(conformance.Summary(s.Name, all))
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func TestNotApplicableNamesRules(t *testing.T) {
	t.Parallel()
	known := []string{}
	for _, m := range slices.Concat(conformance.Musts(), conformance.Builds()) {
		known = append(known, m.ID)
	}
	declared := []map[string]string{}
	for _, b := range builtIn {
		declared = append(declared, b.notApplicable)
	}
	for _, b := range builders {
		declared = append(declared, b.notApplicable)
	}
	for _, of := range declared {
		for id, why := range of {
			if !slices.Contains(known, id) || why == "" {
				t.Errorf("%q (%q) is no rule with a reason", id, why)
			}
		}
	}
}

// The page tells the same as the tables here.
func TestNotApplicableIsDocumented(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/reference/plugin-contract.md")
	if err != nil {
		t.Fatal(err)
	}
	plans := "| engine | does not apply | because |\n|---|---|---|\n"
	for _, b := range builtIn {
		plans += exceptions(firstOf(b.name, string(b.kind)), b.notApplicable, conformance.Musts())
	}
	builds := "| engine | does not apply to its builds | because |\n|---|---|---|\n"
	for _, b := range builders {
		builds += exceptions(b.name, b.notApplicable, conformance.Builds())
	}
	for _, want := range []string{plans, builds} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("docs/reference/plugin-contract.md has to have this table:\n%s", want)
		}
	}
}

// exceptions are the lines about one engine.
func exceptions(name string, notApplicable map[string]string, rules []conformance.Must) (lines string) {
	because := map[string][]string{}
	for _, m := range rules {
		if why := notApplicable[m.ID]; why != "" {
			because[why] = append(because[why], m.ID)
		}
	}
	if len(because) == 0 {
		return fmt.Sprintf("| `%s` | none | |\n", name)
	}
	for _, why := range slices.Sorted(maps.Keys(because)) {
		lines += fmt.Sprintf("| `%s` | %s | %s |\n", name, strings.Join(because[why], ", "), why)
	}
	return lines
}

// given moves a job that the helpers of these tests made to the kit's directory.
func given(j *jobDir, dir string) (jobspec.Spec, []string, error) {
	if err := os.CopyFS(filepath.Join(dir, "in"), os.DirFS(filepath.Join(j.path, "in"))); err != nil {
		return j.spec, nil, err
	}
	var env []string
	for name, value := range j.env {
		env = append(env, name+"="+strings.ReplaceAll(value, j.path, dir))
	}
	return j.spec, env, nil
}

// withoutTools takes the programs of the machine from a job.
func withoutTools(t *testing.T, j *jobDir) {
	t.Helper()
	j.env["PATH"] = t.TempDir()
	delete(j.env, "BERTH_TERRAFORM")
}

// Terraform.

const conformingModule = `
variable "text" { type = string }
variable "place" { type = string }
variable "secret" {
  type      = string
  sensitive = true
}
resource "terraform_data" "greeting" {
  input            = { text = var.text, secret = var.secret }
  triggers_replace = var.place
}
output "text" { value = var.text }
output "secret" {
  value     = var.secret
  sensitive = true
}
`

// wishes are the texts and places of the three configs.
var wishes = map[conformance.Config][2]string{
	conformance.First: {"ahoy", "hall"}, conformance.Updated: {"aloha", "hall"}, conformance.Replaced: {"ahoy", "cellar"},
}

type terraformWorld struct {
	t       *testing.T
	install *install
}

// Job implements World.
func (w *terraformWorld) Job(dir string, o conformance.Order) (jobspec.Spec, []string, error) {
	wish := wishes[o.Config]
	j := w.install.job(w.t, o.Operation, jobspec.TerraformModule{Vars: map[string]any{"text": wish[0], "place": wish[1], "secret": secretOfTest}})
	switch o.Lacks {
	case conformance.LacksCredential:
		j.env["TF_HTTP_PASSWORD"] = "not the password"
	case conformance.LacksTool:
		withoutTools(w.t, j)
	}
	return given(j, dir)
}

// Look implements World.
func (w *terraformWorld) Look(context.Context) (string, error) {
	w.install.backend.mu.Lock()
	defer w.install.backend.mu.Unlock()
	var state struct {
		Resources []struct {
			Name      string
			Instances []struct {
				Attributes struct {
					Input    json.RawMessage
					Triggers json.RawMessage `json:"triggers_replace"`
				}
			}
		}
	}
	if w.install.backend.state == nil {
		return "", nil
	}
	if err := json.Unmarshal(w.install.backend.state, &state); err != nil {
		return "", err
	}
	text := ""
	for _, r := range state.Resources {
		for _, in := range r.Instances {
			text += fmt.Sprintf("%s %s %s\n", r.Name, in.Attributes.Input, in.Attributes.Triggers)
		}
	}
	return text, nil
}

// Drift implements World: what Terraform made is gone.
func (w *terraformWorld) Drift(context.Context) error {
	w.install.backend.mu.Lock()
	defer w.install.backend.mu.Unlock()
	var state map[string]any
	if err := json.Unmarshal(w.install.backend.state, &state); err != nil {
		return err
	}
	serial, _ := state["serial"].(float64)
	state["resources"], state["serial"] = []any{}, serial+1
	var err error
	w.install.backend.state, err = json.Marshal(state)
	return err
}

// Killed implements World: the control plane frees the lock with the next fence.
func (w *terraformWorld) Killed() error {
	w.install.backend.set(func(b *backend) { b.lock = nil })
	return nil
}

// Clusters.

const conformingChart = `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Values.place }}
data:
  key: {{ .Values.text | quote }}
---
apiVersion: v1
kind: Secret
metadata:
  name: token
stringData:
  token: {{ .Values.secret | quote }}
`

// lookAt says what is in the two ConfigMaps of the wishes.
func lookAt(t *testing.T, d *deployed) string {
	t.Helper()
	text := ""
	for _, place := range []string{"hall", "cellar"} {
		if data := d.data(t, place); data != "absent" {
			text += place + " " + data + "\n"
		}
	}
	return text
}

// kubeconfigFor takes the credentials from a job that is to have none.
func kubeconfigFor(dir string, o conformance.Order) error {
	if o.Lacks != conformance.LacksCredential {
		return nil
	}
	path := filepath.Join(dir, "in/kubeconfig")
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return err
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &api.AuthInfo{Token: "not a token"}
	}
	return clientcmd.WriteToFile(*config, path)
}

type manifestWorld struct {
	t        *testing.T
	deployed *deployed
	// kustomized are the manifests that were built of kustomizations, by their text;
	// nil where there is no kustomization.
	kustomized map[string]string
}

// Job implements World.
func (w *manifestWorld) Job(dir string, o conformance.Order) (jobspec.Spec, []string, error) {
	j := w.deployed.job(w.t, o.Operation)
	if o.Operation == jobspec.OperationPlan && !o.Destroy {
		wish := wishes[o.Config]
		objects := configMap(wish[1], wish[0]) + "apiVersion: v1\nkind: Secret\nmetadata:\n  name: token\nstringData:\n  token: " + secretOfTest + "\n"
		if w.kustomized != nil {
			objects = w.kustomize(objects)
		}
		j.write(w.t, "in/artifact/manifest.yaml", objects)
	}
	spec, env, err := given(j, dir)
	return spec, env, errors.Join(err, kubeconfigFor(dir, o))
}

// kustomize is what the engine builds of objects and a kustomization over them.
func (w *manifestWorld) kustomize(objects string) string {
	if made := w.kustomized[objects]; made != "" {
		return made
	}
	j := kustomizeJob(w.t, jobspec.Kustomize{Path: "overlay"}, map[string]string{
		"base/kustomization.yaml": "resources: [objects.yaml]\n", "base/objects.yaml": objects,
		"overlay/kustomization.yaml": "resources: [../base]\ncommonAnnotations: {made-by: kustomize}\n",
	})
	j.must(w.t)
	w.kustomized[objects] = j.artifact(w.t)["manifest.yaml"]
	return w.kustomized[objects]
}

// Look implements World.
func (w *manifestWorld) Look(context.Context) (string, error) { return lookAt(w.t, w.deployed), nil }

// Drift implements World.
func (w *manifestWorld) Drift(context.Context) error {
	w.deployed.edit(w.t, "ConfigMap/hall", `{"data":{"key":"graffiti"}}`)
	return nil
}

// Killed implements World.
func (*manifestWorld) Killed() error { return nil }

type helmWorld struct {
	t       *testing.T
	charted *charted
}

// Job implements World.
func (w *helmWorld) Job(dir string, o conformance.Order) (jobspec.Spec, []string, error) {
	wish := wishes[o.Config]
	w.charted.values = map[string]string{"text": wish[0], "place": wish[1], "secret": secretOfTest}
	j := w.charted.job(w.t, o.Operation)
	if o.Operation == jobspec.OperationPlan && !o.Destroy {
		j = w.charted.planJob(w.t)
	}
	spec, env, err := given(j, dir)
	return spec, env, errors.Join(err, kubeconfigFor(dir, o))
}

// Look implements World.
func (w *helmWorld) Look(context.Context) (string, error) {
	return lookAt(w.t, w.charted.deployed), nil
}

// Drift implements World.
func (w *helmWorld) Drift(context.Context) error {
	w.charted.edit(w.t, "ConfigMap/hall", `{"data":{"key":"graffiti"}}`)
	return nil
}

// Killed implements World: the next grant frees the lock.
func (w *helmWorld) Killed() error {
	if b := w.charted.backend; b != nil {
		b.set(func(b *backend) { b.lock = nil })
	}
	return nil
}

// Images and scripts.

type imageWorld struct {
	t *testing.T
	// built says that the image was built, not copied.
	built bool
}

// Job implements World.
func (w *imageWorld) Job(dir string, o conformance.Order) (jobspec.Spec, []string, error) {
	j := imagePlan(w.t)
	if w.built {
		j.spec.Kind, j.spec.Work = jobspec.KindDockerBuild, jobspec.Work{DockerBuild: &jobspec.DockerBuild{}}
	}
	return given(j, dir)
}

// Look implements World.
func (*imageWorld) Look(context.Context) (string, error) { return "", nil }

// Drift implements World.
func (*imageWorld) Drift(context.Context) error { return errors.New("an image does not drift") }

// Killed implements World.
func (*imageWorld) Killed() error { return nil }

type actionWorld struct {
	t   *testing.T
	dir string
}

// Job implements World.
func (w *actionWorld) Job(dir string, o conformance.Order) (jobspec.Spec, []string, error) {
	step := jobspec.ActionStep{
		Name: "say", InlineContents: `echo "$TEXT" >> "$BERTH_INSTALL_DIR/said"`,
		EnvVars: map[string]string{"TEXT": wishes[o.Config][0], "HOST": "{{ .nuon.components.db.outputs.host }}"},
	}
	j := actionJob(w.t, o.Operation, step)
	j.env["BERTH_INSTALL_DIR"] = w.dir
	switch o.Lacks {
	case conformance.LacksCredential: // what makes it is not deployed
		j.spec.State = state(w.t, map[string]any{"id": "ins_1"})
	case conformance.LacksTool:
		withoutTools(w.t, j)
	}
	return given(j, dir)
}

// Look implements World.
func (w *actionWorld) Look(context.Context) (string, error) {
	raw, err := os.ReadFile(filepath.Join(w.dir, "said"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(raw), err
}

// Drift implements World.
func (*actionWorld) Drift(context.Context) error { return errors.New("a script does not drift") }

// Killed implements World.
func (*actionWorld) Killed() error { return nil }
