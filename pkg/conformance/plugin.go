package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/plugin"
	"github.com/berth-dev/berth/pkg/plugin/container"
	"github.com/berth-dev/berth/pkg/plugin/grant"
)

// Trial is conformance.json: how a plugin is tried. Scripts of it run under sh with
// the environment of the plugin's jobs.
type Trial struct {
	// Config, Update and Replace are three whole configs: what Update changes is
	// changed in place, what Replace changes needs a new object.
	Config  map[string]any `json:"config"`
	Update  map[string]any `json:"update"`
	Replace map[string]any `json:"replace"`
	// WithoutCredential is Config without a credential that the plugin needs.
	WithoutCredential map[string]any `json:"without_credential"`
	// Secret is a value in all of these configs, SecretOutput the output that has it.
	Secret       string `json:"secret"`
	SecretOutput string `json:"secret_output"`
	// Drift changes behind the plugin's back what an apply of Config made.
	Drift string `json:"drift"`
	// Look prints what is there now; by default that is all of the
	// install's directory and of the state.
	Look string `json:"look"`
	// NotApplicable gives for a rule of the contract the reason why it has no meaning
	// for the plugin.
	NotApplicable map[string]string `json:"not_applicable"`
}

// Plugin is the plugin in a directory, to be tried as its conformance.json says. The
// kit starts it without the isolation that a runner gives it.
func Plugin(dir string) (Subject, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Subject{}, err
	}
	m, err := plugin.ReadManifest(os.DirFS(dir))
	if err != nil {
		return Subject{}, err
	}
	trial, err := readTrial(dir, m)
	if err != nil {
		return Subject{}, fmt.Errorf("%s: %w", plugin.ConformanceFile, err)
	}
	s := Subject{
		Name: m.Type, NotApplicable: maps.Clone(trial.NotApplicable),
		Secret: trial.Secret, SecretOutput: trial.SecretOutput,
		NewWorld: func(at string) (World, error) { return pluginWorld{dir: at, manifest: m, trial: trial}, nil },
	}
	const platform = runtime.GOOS + "/" + runtime.GOARCH
	if m.Image != "" {
		return s, s.enterImage(dir, m, platform)
	}
	file, err := m.Executable(platform)
	if err != nil {
		return Subject{}, err
	}
	s.Command = []string{filepath.Join(dir, filepath.FromSlash(file))}
	return s, nil
}

// enterImage has the jobs of a plugin that is an image started in its files, as a
// runner on Linux does it. They see the world's directory in addition to the image.
func (s *Subject) enterImage(dir string, m plugin.Manifest, platform string) error {
	image, err := container.Open(context.Background(), dir, m, platform)
	if err != nil {
		return err
	}
	defer func() { _ = image.Close() }() // it is unpacked, and its config read
	at, err := os.MkdirTemp("", "berth-image-")
	if err != nil {
		return err
	}
	s.Close = func() error { return os.RemoveAll(at) }
	root := filepath.Join(at, "root")
	if err := image.Unpack(context.Background(), root); err != nil {
		return errors.Join(err, s.Close())
	}
	s.Start = func(dir string, env []string) (*exec.Cmd, error) {
		room := container.Room{Root: root, Open: []string{dir}, Hosts: m.Permissions.Network || len(m.Permissions.Hosts) > 0}
		if room.Paths, err = grant.ParsePaths(m.Permissions.Paths); err != nil {
			return nil, err
		}
		noPath := ""
		for _, assignment := range env {
			name, value, _ := strings.Cut(assignment, "=")
			switch {
			case name == "BERTH_INSTALL_DIR" || name == "BERTH_STATE_DIR":
				room.Open = append(room.Open, value)
			case name == "PATH" && filepath.Base(value) == noTools:
				noPath = assignment
			}
		}
		cmd, err := image.Command(room, dir, env)
		if err == nil && noPath != "" {
			cmd.Env = append(cmd.Env, noPath)
		}
		return cmd, err
	}
	return nil
}

// noTools is a directory without any.
const noTools = "no-tools"

func readTrial(dir string, m plugin.Manifest) (Trial, error) {
	var t Trial
	raw, err := os.ReadFile(filepath.Join(dir, plugin.ConformanceFile))
	if errors.Is(err, os.ErrNotExist) {
		return t, errors.New("it is not there; it says with which configs the plugin is tried (docs/reference/plugin-contract.md)")
	}
	if err != nil {
		return t, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return t, err
	}
	known := map[string]bool{}
	for _, must := range Musts() {
		known[must.ID] = true
	}
	for _, id := range slices.Sorted(maps.Keys(t.NotApplicable)) {
		if !known[id] || strings.TrimSpace(t.NotApplicable[id]) == "" {
			return t, fmt.Errorf("not_applicable: %q needs to be a rule of the contract, with a reason", id)
		}
	}
	for id, has := range map[string]bool{
		"update": t.Update != nil, "replace": t.Replace != nil, "missing-credential": t.WithoutCredential != nil,
		"secret-outputs": t.Secret != "" && t.SecretOutput != "", "drift": t.Drift != "",
	} {
		if !has && t.NotApplicable[id] == "" {
			return t, fmt.Errorf("what rule %q is tried with is missing: give it, or the reason in not_applicable", id)
		}
	}
	for _, config := range []*map[string]any{&t.Config, &t.Update, &t.Replace} {
		if *config == nil {
			continue
		}
		whole, problems := m.Config.Complete(*config, nil)
		if len(problems) > 0 {
			return t, fmt.Errorf("a config does not fit the plugin's schema: %v", problems)
		}
		*config = whole
	}
	return t, nil
}

// pluginWorld is an install's directory.
type pluginWorld struct {
	dir      string
	manifest plugin.Manifest
	trial    Trial
}

// install is what stands for the install's durable directory.
func (w pluginWorld) install() string { return filepath.Join(w.dir, "install") }

// state is what stands for the state that a runner keeps.
func (w pluginWorld) state() string { return filepath.Join(w.dir, "state") }

// make makes the directories that a plugin may write to.
func (w pluginWorld) make() error {
	if !w.manifest.Permissions.State {
		return os.MkdirAll(w.install(), 0o700)
	}
	return errors.Join(os.MkdirAll(w.install(), 0o700), os.MkdirAll(w.state(), 0o700))
}

// Job implements World.
func (w pluginWorld) Job(dir string, o Order) (jobspec.Spec, []string, error) {
	config := w.config(o.Config)
	if config == nil {
		config = w.trial.Config
	}
	if o.Lacks == LacksCredential {
		config = w.trial.WithoutCredential
	}
	p := w.manifest.Permissions
	spec := jobspec.Spec{
		Version: jobspec.Version, OrgID: "org_1", InstallID: "ins_1", ChangeID: "chg_1", Kind: jobspec.KindPlugin, Operation: o.Operation, Destroy: o.Destroy,
		Fence: o.Fence, Resource: &jobspec.Resource{ID: "res_1", Kind: "component", Name: "demo"},
		Artifact: &jobspec.Artifact{Repository: "org_1/app/demo", Digest: "sha256:" + strings.Repeat("0", 64)},
		Work:     jobspec.Work{Plugin: &jobspec.Plugin{Type: w.manifest.Type, Network: p.Network, Hosts: p.Hosts, InstallDir: p.InstallDir, Paths: p.Paths, Roles: p.Roles, State: p.State, Config: config}},
	}
	if err := errors.Join(w.make(), plugin.WriteJob(dir, spec)); err != nil {
		return spec, nil, err
	}
	env := w.env(dir, spec)
	if o.Lacks == LacksTool {
		none := filepath.Join(w.dir, noTools)
		if err := os.MkdirAll(none, 0o700); err != nil {
			return spec, nil, err
		}
		env[0] = "PATH=" + none
	}
	return spec, env, nil
}

func (w pluginWorld) env(dir string, spec jobspec.Spec) []string {
	dirs := plugin.Dirs{Job: dir}
	if w.manifest.Permissions.InstallDir {
		dirs.Install = w.install()
	}
	if w.manifest.Permissions.State {
		dirs.State = w.state()
	}
	return plugin.Environ(dirs, spec)
}

// Look implements World.
func (w pluginWorld) Look(ctx context.Context) (string, error) {
	if w.trial.Look != "" {
		return w.shell(ctx, w.trial.Look)
	}
	var all string
	for _, dir := range []string{w.install(), w.state()} {
		text, err := tree(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		all += strings.ReplaceAll(text, w.dir, "WORLD")
	}
	return all, nil
}

// Drift implements World.
func (w pluginWorld) Drift(ctx context.Context) error {
	_, err := w.shell(ctx, w.trial.Drift)
	return err
}

// Killed implements World: there is nothing that a plugin locks.
func (pluginWorld) Killed() error { return nil }

func (w pluginWorld) shell(ctx context.Context, script string) (string, error) {
	if err := w.make(); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-euc", script)
	cmd.Dir = w.install()
	cmd.Env = w.env(w.dir, jobspec.Spec{Version: jobspec.Version, InstallID: "ins_1", Resource: &jobspec.Resource{Name: "demo"}})
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%q: %w: %s", script, err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

var _ World = pluginWorld{}
