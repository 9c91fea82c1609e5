package terraform

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/tfprogram"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/module"
)

const (
	lockFile = ".terraform.lock.hcl"
	dataDir  = ".terraform"
)

// interruptGrace is how long Terraform may take to end after an interrupt while
// there is nothing to lose. An apply is never killed by the engine.
const interruptGrace = 5 * time.Second

// workspace is a copy of the module in which Terraform is run.
type workspace struct {
	dir     string
	module  *module.Module
	tf      *program
	version string
	standIn *standIn // nil: the module as it is
	// spared says that an earlier init did for this one.
	spared bool
	// quiet keeps what Terraform says out of the log of the job.
	quiet bool
	// setAside is the required_version that a rehearsal does not hold the module to.
	setAside string
}

// open copies the artifact to work/module, or writes what stands in for it, points
// that to the agent's backend and finds a Terraform that fits.
func open(ctx context.Context, j *job.Job, envVars map[string]string, s *standIn) (*workspace, error) {
	w := &workspace{dir: j.Work("module"), standIn: s}
	var err error
	if s != nil {
		err = s.write(w.dir, j.Spec.Rehearsal)
	} else {
		err = os.CopyFS(w.dir, os.DirFS(j.In("artifact")))
	}
	if err != nil {
		return nil, fmt.Errorf("copy the module: %w", err)
	}
	if w.module, err = module.Read(w.dir, isOpenTofu(j)); err != nil {
		return nil, job.Wrongf("correct the module and build it again", "the module of %s cannot be read: %v", j.Subject(), err)
	}
	if at := w.module.EncryptionAt; at != "" {
		return nil, job.Wrongf(encryptionRemedy, "the module of %s encrypts its state (%s)", j.Subject(), at)
	}
	if err := w.keepStateIn(j, "http"); err != nil {
		return nil, err
	}
	if err = w.findTerraform(ctx, j, envVars); err == nil && j.Spec.Rehearsal != nil {
		w.setAside, err = anyVersion(w.tree(), w.version)
	}
	return w, err
}

// isOpenTofu tells whether the job's executable is OpenTofu.
func isOpenTofu(j *job.Job) bool {
	return tfprogram.Of(j.Env["BERTH_TERRAFORM"]).Tool == jobspec.ToolOpenTofu
}

// tree is the workspace's module, as its tool reads it.
func (w *workspace) tree() tree { return tree{w.dir, w.tf.name() == jobspec.ToolOpenTofu} }

func (w *workspace) findTerraform(ctx context.Context, j *job.Job, envVars map[string]string) error {
	binary := j.Env["BERTH_TERRAFORM"]
	if binary == "" {
		return job.Refusef("set BERTH_TERRAFORM of the runner to a terraform executable", "the runner has no terraform")
	}
	env, err := toolEnv(j, envVars)
	if err != nil {
		return err
	}
	w.tf = &program{path: binary, dir: w.dir, env: environment(env), grace: interruptGrace}
	// The agent has asked that executable; who starts an engine by hand need not.
	if w.version = j.Env[versionVariable]; w.version == "" {
		if w.version, err = w.tf.version(ctx); err != nil {
			return job.Refusef("check that BERTH_TERRAFORM of the runner is a terraform executable", "%s cannot be run: %s", binary, firstError(err))
		}
	}
	j.Logf("%s %s, %s", w.tf.name(), w.version, j.Subject())
	want, tool := j.Spec.TerraformModule.TerraformVersion, j.Spec.TerraformModule.Tool
	switch {
	case w.standIn == nil && tool != "" && tool != w.tf.name():
		return job.Refusef("let the runner find that tool, or change tool below [berth]",
			"%s is for %s, the runner gave %s", j.Subject(), tool, w.tf.name()).Differing("tool", tool, w.tf.name())
	case w.standIn != nil:
		return nil // any will do
	case j.Spec.Rehearsal != nil && j.Spec.Operation == jobspec.OperationPlan && checkVersion(want, w.version, "") != nil:
		j.Logf(w.tf.name()+" %s stands in for %s, because this is a rehearsal", w.version, want)
		return nil //nolint:nilerr // that is what stands in
	case j.Spec.Rehearsal != nil && j.Spec.Operation == jobspec.OperationApply:
		return nil // that of the plan
	case standsIn(want, w.version, j.Env[matchVariable]):
		j.Logf(w.tf.name()+" %s stands in for %s: the runner takes any patch (--terraform-match %s)", w.version, want, matchMinor)
		return nil
	}
	return checkVersion(want, w.version, j.Subject()+" needs "+w.tf.name())
}

// tool says in results what did the work. Its digest is measured by the agent:
// the word of an engine, which runs the vendor's code, would prove nothing.
func (w *workspace) tool() *jobspec.Tool {
	return &jobspec.Tool{Name: w.tf.name(), Version: w.version}
}

// loudly lets Terraform write to the log of the job; what it says to the engine
// (JSON with values in clear) never goes there.
func (w *workspace) loudly(j *job.Job, do func() error) error {
	if w.quiet {
		return do()
	}
	w.tf.stdout, w.tf.stderr = j.Stdout, j.Stderr
	defer func() { w.tf.stdout, w.tf.stderr = nil, nil }()
	return do()
}

// init makes the directory ready, by what an earlier init of the same module found out
// where it can.
func (w *workspace) init(ctx context.Context, j *job.Job) error {
	if w.spared = w.standIn == nil && w.readyWithoutInit(j); w.spared {
		return nil
	}
	return w.reallyInit(ctx, j)
}

func (w *workspace) reallyInit(ctx context.Context, j *job.Job) error {
	w.spared = false
	before, err := readOptional(filepath.Join(w.dir, lockFile))
	if err != nil {
		return err
	}
	err = w.loudly(j, func() error { return w.tf.run(ctx, nil, "init", "-no-color", "-input=false") })
	if err != nil {
		f := job.Failf(initRemedy(err), "terraform init of %s: %s", j.Subject(), firstError(err))
		if w.wrong(ctx, err, false) {
			f.Reason = jobspec.ReasonNeedsChange
		}
		return f
	}
	if w.standIn != nil {
		return nil
	}
	return w.leaveInit(j, before)
}

func initRemedy(err error) string {
	text := err.Error()
	switch {
	case strings.Contains(text, "Failed to query available provider packages"), strings.Contains(text, "Failed to install provider"):
		return "let the runner reach the provider registry, or give it a mirror (--provider-mirror, TF_CLI_CONFIG_FILE)"
	case strings.Contains(text, "Failed to download module"), strings.Contains(text, "Error accessing remote module registry"):
		return "let the runner reach the module's source, or keep the module inside the component's directory"
	}
	return ""
}

// passedToTerraform are variables of the engine's environment in addition to
// those of every tool: the agent's state backend, and the operator's mirrors
// and caches.
var passedToTerraform = []string{"TF_CLI_CONFIG_FILE", pluginCache, "TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE"}

// toolEnv is the whole environment of Terraform and its providers.
func toolEnv(j *job.Job, envVars map[string]string) (map[string]string, error) {
	env, err := j.BaseEnv()
	if err != nil {
		return nil, err
	}
	for _, name := range passedToTerraform {
		if v := j.Env[name]; v != "" {
			env[name] = v
		}
	}
	for name, v := range j.Env {
		if strings.HasPrefix(name, "TF_HTTP_") {
			env[name] = v
		}
	}
	if env["TF_HTTP_ADDRESS"] == "" {
		return nil, errors.New("the runner gave no address for the state (TF_HTTP_ADDRESS)")
	}
	if shared := env[pluginCache]; shared != "" {
		own := j.Work("plugins")
		if err := overlayCache(own, shared); err != nil {
			return nil, fmt.Errorf("plugin cache %s: %w", shared, err)
		}
		env[pluginCache] = own
	}
	maps.Copy(env, envVars)
	return env, nil
}

// checkEnvVars refuses variables of a component that would change how Terraform
// is run, or where its state is.
func checkEnvVars(envVars map[string]string) error {
	for name := range envVars {
		if steersTerraform(name) {
			return job.Wrongf("remove it from env_vars", "env_vars.%s: this variable is set by Berth", name)
		}
	}
	return nil
}
