package job

import (
	"context"
	"strconv"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/runner/agent/launcher"
	"github.com/berth-dev/berth/runner/agent/mirrors"
	"github.com/berth-dev/berth/runner/agent/plugins"
)

// environment is all that an engine sees of the outside.
func (j *job) environment(ctx context.Context) []string {
	e := j.deps.Engine
	env := []string{
		"PATH=" + e.SearchPath,
		"HOME=" + j.dir.Engine() + "/work/home",
		"TMPDIR=" + j.dir.Engine() + "/work/tmp",
		// While its packages initialise, an engine allocates a few MiB and frees
		// nothing: no collection then. Its main turns the collector on.
		"GOGC=off",
	}
	if plugins.SeesInstall(j.spec) {
		env = append(env, "BERTH_INSTALL_DIR="+j.deps.Dir.Install())
	}
	if path := j.terraform(); path != "" {
		env = append(env, "BERTH_TERRAFORM="+path)
		if version := e.Terraforms.VersionOf(ctx, path); version != "" {
			env = append(env, "BERTH_TERRAFORM_VERSION="+version)
		}
	}
	if e.SameMinor {
		env = append(env, "BERTH_TERRAFORM_MATCH=minor")
	}
	if j.spec.Kind == jobspec.KindPulumi {
		env = append(env, "BERTH_PULUMI="+e.Pulumi, "BERTH_PULUMI_HOME="+e.PulumiHome, "BERTH_PULUMI_DOWNLOADS="+strconv.FormatBool(e.PulumiDownloads))
	}
	if j.kubeconfig != "" {
		env = append(env, "KUBECONFIG="+j.kubeconfig)
	}
	if e.Registry != "" {
		env = append(env, "BERTH_REGISTRY="+e.Registry)
	}
	env = append(env, j.buildKit...)
	env = append(env, j.providers.Env()...)
	env = append(env, telemetry.Environ(ctx)...)
	env = append(env, launcher.RaceDetector()...)
	env = append(env, launcher.FromOutside()...)
	switch {
	case !j.kind().HasState:
	case e.TerraformConfig != "":
		env = append(env, mirrors.Config+"="+e.TerraformConfig)
	case !e.InPods: // the files are of the agent's machine
		env = append(env, mirrors.Settings()...)
	}
	if j.attempt.Proxy != nil {
		env = append(env, j.attempt.Proxy.Env()...)
	}
	return env
}
