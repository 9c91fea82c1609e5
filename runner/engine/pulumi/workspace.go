package pulumi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
)

// inputs are the rendered values that a program is run with. They may hold secrets.
type inputs struct {
	Config map[string]string `json:"config"`
	// Secrets are the keys of Config whose values are secret.
	Secrets []string          `json:"secrets,omitempty"`
	EnvVars map[string]string `json:"env_vars"`
}

// workspace is a copy of the program in which the command is run.
type workspace struct {
	job     *job.Job
	dir     string
	project project
	stack   string
	binary  string
	version string
	env     map[string]string
	doc     document
	// creating is what an apply that was killed may have made.
	creating []string
}

// open copies the artifact to work/program, and finds the command.
func open(j *job.Job) (*workspace, error) {
	w := &workspace{job: j, dir: j.Work("program"), stack: j.Spec.InstallID}
	if err := os.CopyFS(w.dir, os.DirFS(j.In("artifact"))); err != nil {
		return nil, fmt.Errorf("copy the program: %w", err)
	}
	var err error
	if w.project, err = readProject(w.dir); err != nil {
		return nil, job.Wrongf("correct the program and build it again", "the program of %s: %v", j.Subject(), err)
	}
	if want := j.Spec.Pulumi.Runtime; want != "" && want != w.project.runtime() {
		return nil, job.Wrongf("correct runtime, or "+w.project.file, "%s has runtime %q, and its %s says %q", j.Subject(), want, w.project.file, w.project.runtime())
	}
	if w.binary = j.Env["BERTH_PULUMI"]; w.binary == "" {
		return nil, job.Refusef("install pulumi on the runner's PATH, or name it with --pulumi (BERTH_PULUMI, or pulumi in config.json)",
			"pulumi is not on this machine: there is none on the runner's PATH, and --pulumi names none")
	}
	if w.env, err = toolEnv(j, w.binary); err != nil {
		return nil, err
	}
	return w, nil
}

// checkVersion asks for the version of the command. An apply need not: the agent
// holds it to the very file of the plan, by its digest.
func (w *workspace) checkVersion(ctx context.Context) error {
	text, err := w.ask(ctx, "version")
	w.version = strings.TrimSpace(string(text))
	if err != nil || !versionText.MatchString(w.version) {
		return job.Refusef("check that --pulumi of the runner names the pulumi command, of version 3", "%s cannot be run, or is not pulumi: %s", w.binary, firstLine(err, w.version))
	}
	w.job.Logf("pulumi %s, %s", w.version, w.job.Subject())
	return nil
}

var versionText = regexp.MustCompile(`^v3\.[0-9]+\.[0-9]+\S*$`)

// toolEnv is the environment of the command without that of the component.
func toolEnv(j *job.Job, binary string) (map[string]string, error) {
	env, err := j.BaseEnv()
	if err != nil {
		return nil, err
	}
	// Language hosts come with the command and stand next to it.
	env["PATH"] = filepath.Dir(binary) + string(filepath.ListSeparator) + env["PATH"]
	home, backend := j.Work("pulumi-home"), j.Work("pulumi-state")
	for _, dir := range []string{home, backend} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	if shared := j.Env["BERTH_PULUMI_HOME"]; shared != "" {
		if err := os.Symlink(filepath.Join(shared, "plugins"), filepath.Join(home, "plugins")); err != nil {
			return nil, err
		}
	}
	maps.Copy(env, map[string]string{
		"PULUMI_HOME": home, "PULUMI_BACKEND_URL": "file://" + backend, "PULUMI_EXPERIMENTAL": "true", // for --plan
		// It names who holds its lock, and fails where neither /etc/passwd nor this says it.
		"USER":                     "berth",
		"PULUMI_SKIP_UPDATE_CHECK": "true", "PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS": "true", "NO_COLOR": "1",
	})
	if j.Env["BERTH_PULUMI_DOWNLOADS"] != "true" {
		env["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] = "true"
	}
	return env, nil
}

// render renders what the program is run with.
func render(j *job.Job, p project) (inputs, error) {
	in := inputs{Config: map[string]string{}}
	for key, src := range j.Spec.Pulumi.Config {
		value, err := j.Render("config."+key, src)
		if err != nil {
			return in, err
		}
		in.Config[p.configKey(key)] = value
		if slices.Contains(j.Spec.Pulumi.Secrets, key) {
			in.Secrets = append(in.Secrets, p.configKey(key))
		}
	}
	slices.Sort(in.Secrets)
	var err error
	if in.EnvVars, err = j.RenderEnv("env_vars", j.Spec.Pulumi.EnvVars); err != nil {
		return in, err
	}
	for name := range in.EnvVars {
		if strings.HasPrefix(name, "PULUMI_") || name == "PATH" || name == "HOME" {
			return in, job.Wrongf("remove it from env_vars", "env_vars.%s: this variable is set by Berth", name)
		}
	}
	return in, nil
}

// load makes the stack in the job's own backend, as the document has it.
func (w *workspace) load(ctx context.Context, in inputs) error {
	maps.Copy(w.env, in.EnvVars)
	w.env["PULUMI_CONFIG_PASSPHRASE"] = w.doc.Pulumi.Passphrase
	if err := w.writeConfig(in, w.doc.Pulumi.Salt); err != nil {
		return err
	}
	if w.doc.Pulumi.Salt == "" {
		return w.begin(ctx, in)
	}
	clean, creating, err := settle(w.doc.Pulumi.Deployment)
	if err != nil {
		return err
	}
	w.creating = creating
	// What `stack init` and `stack import` would write, without starting them.
	if err := job.WriteFile(w.job.Work("pulumi-state", ".pulumi", "meta.yaml"), []byte("version: 1\n")); err != nil {
		return err
	}
	return job.WriteJSON(w.checkpointPath(), map[string]any{"version": checkpointVersion, "checkpoint": map[string]any{
		"stack": "organization/" + w.project.Name + "/" + w.stack, "latest": clean,
	}})
}

// begin makes the stack of a resource that has none: only pulumi makes the salt.
func (w *workspace) begin(ctx context.Context, in inputs) error {
	if _, err := w.ask(ctx, "stack", "init", w.stack, "--secrets-provider", "passphrase"); err != nil {
		return w.failed("stack init", err)
	}
	var made struct {
		Salt string `json:"encryptionsalt"`
	}
	if err := readYAML(w.configPath(), &made); err != nil {
		return err
	}
	w.doc.Pulumi.Salt = made.Salt
	return w.writeConfig(in, made.Salt)
}

func (w *workspace) configPath() string {
	return filepath.Join(w.dir, "Pulumi."+w.stack+strings.TrimPrefix(w.project.file, "Pulumi"))
}

// writeConfig writes the file of the stack. JSON is YAML too.
func (w *workspace) writeConfig(in inputs, salt string) error {
	config := map[string]any{}
	for key, value := range in.Config {
		config[key] = value
	}
	file := map[string]any{"config": config}
	if salt == "" { // nothing reads the values yet
		for _, key := range in.Secrets {
			delete(config, key)
		}
		return job.WriteJSON(w.configPath(), file)
	}
	file["encryptionsalt"] = salt
	if len(in.Secrets) > 0 {
		lock, err := newPadlock(w.doc.Pulumi.Passphrase, salt)
		if err != nil {
			return err
		}
		for _, key := range in.Secrets {
			config[key] = map[string]string{"secure": lock.encrypt(in.Config[key])}
		}
	}
	return job.WriteJSON(w.configPath(), file)
}

func (w *workspace) tool() *jobspec.Tool {
	return &jobspec.Tool{Name: jobspec.ToolPulumi, Version: w.version}
}

// command is a run of pulumi, which asks nobody anything.
func (w *workspace) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, w.binary, append(args, "--non-interactive", "--color", "never")...)
	cmd.Dir, cmd.Env = w.dir, job.Environ(w.env)
	// A process group of its own: an interrupt is for pulumi alone, which tells its
	// program and providers itself.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	return cmd
}

// ask runs a command whose output is for the engine: it may hold values in clear,
// so nothing of it goes to the log.
func (w *workspace) ask(ctx context.Context, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := w.command(ctx, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if text := errorText(stderr.String()); text != "" {
			err = errors.New(text)
		}
		return stdout.Bytes(), err
	}
	return stdout.Bytes(), nil
}

// errorText is the first error in what pulumi wrote.
func errorText(out string) string {
	for line := range strings.Lines(out) {
		if _, text, ok := strings.Cut(line, "error: "); ok {
			return strings.TrimSpace(text)
		}
	}
	return ""
}

func firstLine(err error, text string) string {
	if err != nil {
		return err.Error()
	}
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func (w *workspace) failed(what string, err error) error {
	f := job.Failf("", "pulumi %s of %s: %v", what, w.job.Subject(), err)
	text := err.Error()
	switch {
	case strings.Contains(text, "could not load plugin for"), strings.Contains(text, "failed to load language plugin"),
		strings.Contains(text, "no language plugin"), strings.Contains(text, "no resource plugin"):
		f.Remedy = "put the plugin next to pulumi, on the runner's PATH, or below plugins/ of --pulumi-home; --terraform-downloads allow lets the runner fetch it"
		f.Reason = jobspec.ReasonNeedsChange
	case strings.Contains(text, "incorrect passphrase"):
		f.Remedy = "the state is of another stack; report this as a runner bug"
	}
	return f
}

// tee writes to the log and keeps what it wrote.
func tee(log io.Writer) (io.Writer, *bytes.Buffer) {
	var kept bytes.Buffer
	return io.MultiWriter(log, &kept), &kept
}

func readCheckpoint(path string) (checkpoint, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return checkpoint{}, err
	}
	return parseCheckpoint(raw)
}

func (w *workspace) checkpointPath() string {
	return w.job.Work("pulumi-state", ".pulumi", "stacks", w.project.Name, w.stack+".json")
}

// clearOutputs are the outputs of the stack with their secrets, for the document;
// nil when none is a secret.
func (w *workspace) clearOutputs(ctx context.Context, c checkpoint) (map[string]json.RawMessage, error) {
	if !bytes.Contains(c.Checkpoint.Latest, []byte(secretMark)) {
		return nil, nil
	}
	raw, err := w.ask(ctx, "stack", "output", "--stack", w.stack, "--json", "--show-secrets")
	if err != nil {
		return nil, err
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(raw, &values); err != nil {
		return nil, errors.New("pulumi stack output did not answer JSON")
	}
	return values, nil
}
