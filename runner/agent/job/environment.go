package job

import (
	"context"
	"os"
	"slices"

	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/runner/agent/launcher"
	"github.com/berth-dev/berth/runner/agent/mirrors"
	"github.com/berth-dev/berth/runner/agent/plugins"
)

// wayOut are the variables by which engines find the way out of the customer's
// network, as the agent does.
var wayOut = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR",
}

// traces are the variables that say where spans go. Those with headers or keys
// are not among them: vendor code runs in engines.
var traces = []string{
	"OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG",
	"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
}

// fromOutside names the variables of the agent that its engines get too. Only
// OTLP traces go on in engines: a console exporter would write into the log.
func fromOutside() []string {
	if os.Getenv("OTEL_TRACES_EXPORTER") == "otlp" {
		return slices.Concat(wayOut, traces)
	}
	return wayOut
}

// environment is all that an engine sees of the outside.
func (j *job) environment(ctx context.Context) []string {
	e := j.deps.Engine
	env := []string{
		"PATH=" + e.SearchPath,
		"HOME=" + j.dir.engine() + "/work/home",
		"TMPDIR=" + j.dir.engine() + "/work/tmp",
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
	if j.kubeconfig != "" {
		env = append(env, "KUBECONFIG="+j.kubeconfig)
	}
	if e.Registry != "" {
		env = append(env, "BERTH_REGISTRY="+e.Registry)
	}
	env = append(env, j.buildKit...)
	env = append(env, telemetry.Environ(ctx)...)
	env = append(env, launcher.RaceDetector()...)
	for _, name := range fromOutside() {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
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
