package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/pkg/tfprogram"
	"github.com/berth-dev/berth/pkg/version"
	"github.com/berth-dev/berth/runner/agent"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/power"
	"github.com/berth-dev/berth/runner/agent/users"
	"github.com/berth-dev/berth/runner/agent/versions"
)

// telemetryTimeout is for sending what is still buffered at the end.
const telemetryTimeout = 5 * time.Second

// settings are the flags of all subcommands.
type settings struct {
	cfg       agent.Config
	reason    string
	from      string
	inCluster bool
	// trialTime is how long a version that an update brought may take to take work.
	trialTime time.Duration
}

func (s *settings) flags(f *pflag.FlagSet) {
	f.StringVar(&s.cfg.Data, "data", "", "data directory (BERTH_RUNNER_DATA)")
	f.StringVar(&s.from, "from", "", "directory, such as a mounted Secret, from which trust.json, config.json, ca.crt and enrolment are taken at each start (BERTH_RUNNER_FROM)")
	f.IntVar(&s.cfg.Slots, "slots", 0, "how many jobs may run at once (BERTH_SLOTS; default 4)")
	f.StringVar(&s.cfg.Engine, "engine", "", "the executable that works on jobs (BERTH_ENGINE; default berth-engine next to this one, else in BERTH_LIBEXEC)")
	f.StringVar(&s.cfg.Terraform, "terraform", "", "the Terraform executable for modules that it fits; fetch: Terraform "+tfprogram.Version+", which is got at the start (BERTH_TERRAFORM; default terraform next to this one)")
	f.StringVar(&s.cfg.TerraformMirror, "terraform-mirror", "", "other versions of Terraform: a directory with VERSION/terraform or with the vendor's archives and signed checksums, or the address of a copy of the vendor's site (BERTH_TERRAFORM_MIRROR)")
	f.StringVar(&s.cfg.OpenTofu, "opentofu", "", "the OpenTofu executable, called tofu, for modules of tool opentofu that it fits (BERTH_OPENTOFU; default tofu next to this one)")
	f.StringVar(&s.cfg.OpenTofuMirror, "opentofu-mirror", "", "other versions of OpenTofu, as --terraform-mirror has them (BERTH_OPENTOFU_MIRROR)")
	f.StringVar(&s.cfg.TerraformDownloads, "terraform-downloads", "", "whether versions of Terraform and OpenTofu that are nowhere on this machine are downloaded and checked: allow or forbid (BERTH_TERRAFORM_DOWNLOADS; default allow)")
	f.StringVar(&s.cfg.TerraformMatch, "terraform-match", "", "what an exact terraform_version stands for: exact, or minor for any patch of its minor version where the exact one is not on this machine (BERTH_TERRAFORM_MATCH; default exact)")
	f.StringVar(&s.cfg.ProviderMirror, "provider-mirror", "", "where Terraform gets all providers: a directory, or the https address of a network mirror (BERTH_PROVIDER_MIRROR; default the registries)")
	f.Int64Var(&s.cfg.ProviderCache, "provider-cache", 0, "how much the runner's cache of Terraform providers may take, in bytes; -1 for no cache (BERTH_PROVIDER_CACHE; default 2 GiB)")
	f.StringVar(&s.cfg.VendorSeesState, "vendor-sees-state", "", "how much the vendor learns of Terraform states: counts, addresses, or attributes without sensitive values (BERTH_VENDOR_SEES_STATE; default addresses)")
	f.StringVar(&s.cfg.BuildKit.Address, "buildkit-addr", "", "of a Build Runner: where BuildKit listens, unix:///path or tcp://host:port, with {org} for the org's id (BERTH_BUILDKIT_ADDR; default a rootless buildkitd that the runner starts)")
	f.StringVar(&s.cfg.BuildKit.Org, "buildkit-org", "", "of a Build Runner: the only org that may use a --buildkit-addr without {org} (BERTH_BUILDKIT_ORG)")
	f.StringVar(&s.cfg.BuildKit.TLS, "buildkit-tls", "", "of a Build Runner: directory with ca.pem, cert.pem and key.pem for --buildkit-addr tcp:// (BERTH_BUILDKIT_TLS)")
	f.StringVar(&s.cfg.BuildKit.Secrets, "build-secrets", "", "of a Build Runner: directory with ORG/secrets/NAME, secrets that builds of images may mount, and ORG/config.json, credentials of their base images (BERTH_BUILD_SECRETS)")
	f.Int64Var(&s.cfg.BuildKit.StepMemory, "build-memory", 0, "of a Build Runner: how much memory a RUN step of its own BuildKit may use, in bytes (BERTH_BUILD_MEMORY; default half of the machine's)")
	f.Int64Var(&s.cfg.BuildKit.StepPIDs, "build-pids", 0, "of a Build Runner: how many processes and threads such a step may have (BERTH_BUILD_PIDS; default 4096)")
	f.StringVar(&s.cfg.BuildKit.Network, "build-network", "", "of a Build Runner: the network of RUN steps, allow or none (BERTH_BUILD_NETWORK; default allow)")
	f.StringVar(&s.cfg.EngineUIDs, "engine-uids", "", "range of users, FIRST:SIZE, from which each job gets its own when this runs as root; off for none (BERTH_ENGINE_UIDS; default "+users.DefaultRange+")")
	f.IntVar(&s.cfg.EngineUID, "engine-uid", 0, "user and group of all engines where each cannot have its own: in pods, and where --engine-uids does not work (BERTH_ENGINE_UID)")
	f.DurationVar(&s.cfg.Grace, "grace", 0, "how long an engine may take to stop when asked, before it is killed (BERTH_GRACE; default 30s)")
	f.Int64Var(&s.cfg.EngineMemory, "engine-memory", 0, "how much memory an engine may use, in bytes (BERTH_ENGINE_MEMORY; default 4 GiB)")
	f.Int64Var(&s.cfg.EnginePIDs, "engine-pids", 0, "how many processes an engine may have; not with --engines jobs (BERTH_ENGINE_PIDS; default 4096)")
	f.StringVar(&s.cfg.EngineSees, "engine-sees", "", "files and directories, PATH:PATH, that isolated engines may read although they would be hidden (BERTH_ENGINE_SEES)")
	f.StringVar(&s.cfg.EngineLimits, "engine-limits", "", "what to do when engines cannot be limited: auto (run them anyway and say so), required (do not start), off (set no limits) (BERTH_ENGINE_LIMITS; default auto, required when a limit was set)")
	f.Int64Var(&s.cfg.EngineCPU, "engine-cpu", 0, "how much processor time an engine may use, in thousandths of a core; with --engines jobs (BERTH_ENGINE_CPU; default no limit)")
	f.Int64Var(&s.cfg.MinFree, "min-free", 0, "bytes that must be free in the data directory for the runner to take new work (BERTH_MIN_FREE; default 256 MiB, on a small disk a tenth of it)")
	f.StringVar(&s.cfg.Engines, "engines", "", "where engines run: jobs for Kubernetes Jobs (with --in-cluster), process for child processes, which are less isolated in a cluster because they share the agent's pod (BERTH_ENGINES; default jobs in a cluster, else process)")
	f.StringVar(&s.cfg.Code, "code", "", "the install's code: @FILE, - for standard input, or the code itself, which other users can then see in the process list (BERTH_CODE)")
	f.DurationVar(&s.trialTime, "update-trial", 0, "how long a version that an update brought may take until it can take work, before the one before runs again (BERTH_UPDATE_TRIAL; default 60s)")
	f.BoolVar(&s.inCluster, "in-cluster", false, "run in the pod that berth-runner manifest made, with its credentials, lease and switch (BERTH_IN_CLUSTER)")
	f.StringVar(&s.cfg.CAFile, "ca", "", "PEM file with certificate authorities to trust in addition to the system's (BERTH_CA_FILE)")
	f.StringVar(&s.cfg.Kubeconfig, "kubeconfig", "", "kubeconfig file with which jobs reach the cluster (BERTH_KUBECONFIG)")
	f.StringVar(&s.cfg.Pulumi, "pulumi", "", "pulumi executable for components and sandboxes of that type (BERTH_PULUMI; default pulumi on the PATH of engines)")
	f.StringVar(&s.cfg.PulumiHome, "pulumi-home", "", "directory whose plugins/ has Pulumi's language hosts and providers, in addition to the PATH (BERTH_PULUMI_HOME)")
	f.StringVar(&s.cfg.Contexts, "contexts", "", "directory with a kubeconfig for each named Kubernetes context, under the context's name (BERTH_CONTEXTS; default contexts in the data directory)")
	f.StringVar(&s.cfg.RegistryAddress, "registry-address", "", "address at which kubelets reach the install's own registry, HOST:PORT (BERTH_REGISTRY_ADDRESS)")
}

// config is what the flags say, and the environment where they say nothing.
func (s *settings) config() (agent.Config, error) {
	c := s.cfg
	var errs []error
	text := func(name string, to *string) {
		if *to == "" {
			*to = os.Getenv(name)
		}
	}
	number := func(name string, isSet bool, set func(int64)) {
		value := os.Getenv(name)
		if isSet || value == "" {
			return
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %q is not a number", name, value))
			return
		}
		set(n)
	}
	text("BERTH_RUNNER_DATA", &c.Data)
	text("BERTH_ENGINE", &c.Engine)
	text("BERTH_TERRAFORM", &c.Terraform)
	text("BERTH_TERRAFORM_MIRROR", &c.TerraformMirror)
	text("BERTH_OPENTOFU", &c.OpenTofu)
	text("BERTH_OPENTOFU_MIRROR", &c.OpenTofuMirror)
	text("BERTH_TERRAFORM_DOWNLOADS", &c.TerraformDownloads)
	text("BERTH_TERRAFORM_MATCH", &c.TerraformMatch)
	text("BERTH_PROVIDER_MIRROR", &c.ProviderMirror)
	text("BERTH_VENDOR_SEES_STATE", &c.VendorSeesState)
	text("BERTH_BUILDKIT_ADDR", &c.BuildKit.Address)
	text("BERTH_BUILDKIT_ORG", &c.BuildKit.Org)
	text("BERTH_BUILDKIT_TLS", &c.BuildKit.TLS)
	text("BERTH_BUILD_SECRETS", &c.BuildKit.Secrets)
	text("BERTH_BUILD_NETWORK", &c.BuildKit.Network)
	text("BERTH_ENGINES", &c.Engines)
	text("BERTH_ENGINE_UIDS", &c.EngineUIDs)
	text("BERTH_ENGINE_LIMITS", &c.EngineLimits)
	text("BERTH_ENGINE_SEES", &c.EngineSees)
	text("BERTH_CODE", &c.Code)
	text("BERTH_CA_FILE", &c.CAFile)
	text("BERTH_KUBECONFIG", &c.Kubeconfig)
	text("BERTH_PULUMI", &c.Pulumi)
	text("BERTH_PULUMI_HOME", &c.PulumiHome)
	text("BERTH_CONTEXTS", &c.Contexts)
	text("AZURE_AUTHORITY_HOST", &c.Clouds.Azure.Authority)
	text("BERTH_REGISTRY_ADDRESS", &c.RegistryAddress)
	text("BERTH_LIBEXEC", &c.Libexec)
	text("PATH", &c.SearchPath)
	number("BERTH_SLOTS", c.Slots != 0, func(n int64) { c.Slots = int(n) })
	number("BERTH_PROVIDER_CACHE", c.ProviderCache != 0, func(n int64) { c.ProviderCache = n })
	number("BERTH_ENGINE_UID", c.EngineUID != 0, func(n int64) { c.EngineUID = int(n) })
	number("BERTH_BUILD_MEMORY", c.BuildKit.StepMemory != 0, func(n int64) { c.BuildKit.StepMemory = n })
	number("BERTH_BUILD_PIDS", c.BuildKit.StepPIDs != 0, func(n int64) { c.BuildKit.StepPIDs = n })
	number("BERTH_ENGINE_MEMORY", c.EngineMemory != 0, func(n int64) { c.EngineMemory = n })
	number("BERTH_ENGINE_PIDS", c.EnginePIDs != 0, func(n int64) { c.EnginePIDs = n })
	number("BERTH_ENGINE_CPU", c.EngineCPU != 0, func(n int64) { c.EngineCPU = n })
	number("BERTH_MIN_FREE", c.MinFree != 0, func(n int64) { c.MinFree = n })
	if value := os.Getenv("BERTH_GRACE"); c.Grace == 0 && value != "" {
		var err error
		if c.Grace, err = time.ParseDuration(value); err != nil {
			errs = append(errs, fmt.Errorf("BERTH_GRACE: %q is not a duration such as 30s", value))
		}
	}
	if value := os.Getenv("BERTH_UPDATE_TRIAL"); s.trialTime == 0 && value != "" {
		var err error
		if s.trialTime, err = time.ParseDuration(value); err != nil || s.trialTime <= 0 {
			errs = append(errs, fmt.Errorf("BERTH_UPDATE_TRIAL: %q is not a duration such as 60s", value))
		}
	}
	if text, err := readCode(c.Code, os.Stdin); err != nil {
		errs = append(errs, err)
	} else {
		c.Code = text
	}
	c.Version = version.Get().Version
	executable, err := os.Executable()
	if err != nil {
		errs = append(errs, err)
	}
	c.Executable = executable
	if c.Data == "" {
		errs = append(errs, errors.New("no data directory: use --data or BERTH_RUNNER_DATA"))
	}
	if err := errors.Join(errs...); err != nil {
		return c, usageError{err}
	}
	return c, nil
}

// runCommand is both: the agent, and with --reason the switch set to run.
func (s *settings) runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the agent; with --reason: set the switch to run",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("reason") {
				return s.setSwitch(cmd, power.Run)
			}
			return s.runAgent(cmd, args)
		},
	}
	cmd.Flags().StringVar(&s.reason, "reason", "", "why the switch is set to run; sets the switch and does not run the agent")
	return cmd
}

// take copies what is given elsewhere into the data directory.
func (s *settings) take(data string) error {
	from := s.from
	if from == "" {
		from = os.Getenv("BERTH_RUNNER_FROM")
	}
	if from == "" {
		return nil
	}
	dir, err := datadir.At(data)
	if err != nil {
		return err
	}
	return dir.Take(from)
}

func (s *settings) runAgent(cmd *cobra.Command, _ []string) error {
	cfg, err := s.config()
	if err != nil {
		return err
	}
	update, watched := started()
	if done, err := s.launch(cmd.Context(), cfg, update); done {
		return err
	}
	cfg.Update = update
	if update.Folder != "" { // the executables of a version fit each other
		cfg.Engine = filepath.Join(update.Folder, versions.EngineName)
	}
	err = s.work(cmd, cfg)
	if errors.Is(err, agent.ErrUpdated) {
		return again(update, watched, cfg.Executable)
	}
	return err
}

// launch runs the version that is to run; done says that it is over. A version does not
// look again, and neither does a container: its image is what is updated.
func (s *settings) launch(ctx context.Context, cfg agent.Config, update agent.UpdateConfig) (done bool, err error) {
	if update.Folder != "" || s.inCluster || os.Getenv("BERTH_IN_CLUSTER") != "" {
		return false, nil
	}
	data, err := filepath.Abs(cfg.Data)
	if err != nil {
		return true, err
	}
	l := launcher{store: versions.In(data), installed: cfg.Executable, trialTime: trialTime, log: slog.Default()}
	if s.trialTime > 0 {
		l.trialTime = s.trialTime
	}
	own, code := l.boot(ctx)
	if own || code == 0 {
		return !own, nil
	}
	return true, watchedError{code}
}

// watchedError is how a version ended that this process watched.
type watchedError struct{ code int }

func (e watchedError) Error() string { return fmt.Sprintf("ended with exit code %d", e.code) }

// work runs the agent.
func (s *settings) work(cmd *cobra.Command, cfg agent.Config) error {
	if err := s.take(cfg.Data); err != nil {
		return err
	}
	// Small rather than fast: the agent waits most of its life.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
	ctx := cmd.Context()
	shutdown, err := telemetry.Setup(ctx, "berth-runner")
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), telemetryTimeout)
		defer cancel()
		if err := shutdown(ctx); err != nil {
			slog.WarnContext(ctx, "telemetry was not sent", "err", err)
		}
	}()
	cfg.Log = slog.Default()
	if s.inCluster || os.Getenv("BERTH_IN_CLUSTER") != "" {
		return runInCluster(ctx, cfg)
	}
	return agent.Run(ctx, cfg)
}
