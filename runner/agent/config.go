package agent

import (
	"log/slog"
	"time"

	"github.com/berth-dev/berth/runner/agent/buildkit"
	"github.com/berth-dev/berth/runner/agent/cloudcluster"
	"github.com/berth-dev/berth/runner/agent/cluster"
)

// Where engines run.
const (
	EnginesProcess = "process" // as child processes of the agent
	EnginesJobs    = "jobs"    // as Kubernetes Jobs next to the agent's pod
)

// What to do about limits that this machine cannot hold engines to.
const (
	LimitsAuto     = "auto"     // run without them, and say so
	LimitsRequired = "required" // do not start
	LimitsOff      = "off"      // there are to be none
)

// TerraformFetch has the agent get the version of Terraform that it is tested with when
// it starts, unless there is one next to it: the runner's image may not carry one.
const TerraformFetch = "fetch"

// Whether versions of Terraform that are nowhere may be downloaded, and what an exact
// version stands for.
const (
	DownloadsAllow  = "allow"
	DownloadsForbid = "forbid"

	MatchExact = "exact"
	MatchMinor = "minor" // another patch of the same minor version will do
)

// Config is how an agent is set up. Each setting is a flag of `berth-runner`,
// an environment variable, or a key of DIR/config.json, in this order; only
// main reads the environment.
type Config struct {
	// Data is the data directory: --data, BERTH_RUNNER_DATA.
	Data string
	// SampleEvery is how often the vendor gets the runner's own numbers, 5 minutes for 0. It is
	// no setting; tests set it.
	SampleEvery time.Duration
	// Update is what the launcher says of the version that runs. It is no setting.
	Update UpdateConfig
	// Slots is how many jobs are worked on at once: --slots, BERTH_SLOTS,
	// slots; default 4.
	Slots int
	// Engine is the executable that works on jobs: --engine, BERTH_ENGINE,
	// engine; default berth-engine next to the runner, else in BERTH_LIBEXEC.
	Engine string
	// Terraform is the executable for modules that it fits: --terraform,
	// BERTH_TERRAFORM, terraform, or TerraformFetch; default terraform next to
	// the runner, else none.
	Terraform string
	// TerraformMirror is a directory, or the address of a copy of the vendor's site,
	// with other versions: --terraform-mirror, BERTH_TERRAFORM_MIRROR,
	// terraform_mirror; default none.
	TerraformMirror string
	// OpenTofu is the executable of OpenTofu for modules that it fits: --opentofu,
	// BERTH_OPENTOFU, opentofu; default tofu next to the runner, else none.
	// OpenTofuMirror is to it what TerraformMirror is to Terraform: --opentofu-mirror,
	// BERTH_OPENTOFU_MIRROR, opentofu_mirror. The rules for versions hold for both.
	OpenTofu, OpenTofuMirror string
	// TerraformDownloads says whether versions that are nowhere are downloaded,
	// DownloadsAllow or DownloadsForbid: --terraform-downloads,
	// BERTH_TERRAFORM_DOWNLOADS, terraform_downloads; default DownloadsAllow.
	TerraformDownloads string
	// TerraformMatch is what an exact version stands for, MatchExact or
	// MatchMinor: --terraform-match, BERTH_TERRAFORM_MATCH, terraform_match;
	// default MatchExact.
	TerraformMatch string
	// ProviderMirror is where Terraform gets providers, all of them: a directory or the
	// https address of a network mirror: --provider-mirror, BERTH_PROVIDER_MIRROR,
	// provider_mirror; default the registries that modules name.
	ProviderMirror string
	// ProviderCache is the most bytes that the cache of providers takes, below 0 for no
	// cache: --provider-cache, BERTH_PROVIDER_CACHE, provider_cache_bytes; default
	// providers.DefaultBytes.
	ProviderCache int64
	// VendorSeesState is how much the vendor learns of Terraform states, one of
	// tfstate.Levels: --vendor-sees-state, BERTH_VENDOR_SEES_STATE, vendor_sees_state;
	// default tfstate.Addresses.
	VendorSeesState string
	// Pulumi is the executable for Pulumi programs: --pulumi, BERTH_PULUMI, pulumi;
	// default pulumi on the PATH of engines, else none.
	Pulumi string
	// PulumiHome is a directory whose plugins/ has the language hosts and providers
	// that are not on that PATH: --pulumi-home, BERTH_PULUMI_HOME, pulumi_home;
	// default none. Those that are nowhere are downloaded for each job, unless
	// TerraformDownloads is DownloadsForbid.
	PulumiHome string
	// TerraformKey is the armored key that releases must be signed with; "" for the
	// vendor's. Tests set it.
	TerraformKey string
	// EngineUIDs is the range of users, FIRST:SIZE, out of which each job gets
	// one of its own when the agent is root: --engine-uids, BERTH_ENGINE_UIDS,
	// engine_uids; default users.DefaultRange, users.Off for none.
	EngineUIDs string
	// EngineUID is the one user (and group) of engines where they cannot have
	// one each: in pods, and where EngineUIDs does not work: --engine-uid,
	// BERTH_ENGINE_UID, engine_uid; 0 means the agent's own.
	EngineUID int
	// Grace is the time between asking an engine to stop and ending it:
	// --grace, BERTH_GRACE, grace_seconds; default 30 s.
	Grace time.Duration
	// EngineMemory is the most memory of one engine, in bytes: --engine-memory,
	// BERTH_ENGINE_MEMORY, engine_memory_bytes; default 4 GiB.
	EngineMemory int64
	// EnginePIDs is the most processes and threads of one engine, not with
	// Engines "jobs": --engine-pids, BERTH_ENGINE_PIDS, engine_pids; default
	// 4096.
	EnginePIDs int64
	// EngineSees are files and directories, with colons between them, that
	// isolated engines see where these would be hidden, read-only:
	// --engine-sees, BERTH_ENGINE_SEES, engine_sees; default none.
	EngineSees string
	// EngineLimits says what to do where these two cannot be set, LimitsAuto,
	// LimitsRequired or LimitsOff: --engine-limits, BERTH_ENGINE_LIMITS,
	// engine_limits; default LimitsAuto, LimitsRequired when one of them was set.
	EngineLimits string
	// EngineCPU is the most processor time of one engine in thousandths of a
	// core, with Engines "jobs" only: --engine-cpu, BERTH_ENGINE_CPU,
	// engine_cpu_millis; 0 means no limit.
	EngineCPU int64
	// MinFree is the room in the data directory, in bytes, below which no new
	// work is taken: --min-free, BERTH_MIN_FREE, min_free_bytes; default 256 MiB,
	// on a small disk a tenth of it.
	MinFree int64
	// Engines is where engines run, EnginesProcess or EnginesJobs: --engines,
	// BERTH_ENGINES, engines; default EnginesJobs in a cluster, EnginesProcess
	// elsewhere.
	Engines string
	// Kubeconfig is how jobs reach the install's cluster, a file:
	// --kubeconfig, BERTH_KUBECONFIG, kubeconfig; default none.
	Kubeconfig string
	// Contexts is the directory with kubeconfigs for named contexts, one file per
	// context under its name: --contexts, BERTH_CONTEXTS, contexts; default contexts
	// in the data directory.
	Contexts string
	// Clouds make tokens for named contexts that are clusters of EKS, GKE or AKS;
	// by default the public clouds, and AZURE_AUTHORITY_HOST where that is set.
	Clouds cloudcluster.Clouds
	// RegistryAddress is what kubelets call the install's own registry,
	// HOST:PORT (`berth-runner registry` serves it): --registry-address,
	// BERTH_REGISTRY_ADDRESS, registry_address; default none.
	RegistryAddress string

	// BuildKit is for builds of images, of a Build Runner: each of its fields is a
	// setting of its own, with the names that package buildkit gives.
	BuildKit buildkit.Settings

	// Code is the customer's code, as pkg/enrolcode reads it: --code, BERTH_CODE
	// (@FILE for the contents of a file). Empty where the files that it stands
	// for are in the data directory.
	Code string
	// CAFile has authorities in PEM to trust in addition to the system's:
	// --ca, BERTH_CA_FILE, ca_file; default none.
	CAFile string
	// Pod is the pod that the agent runs in: --in-cluster, BERTH_IN_CLUSTER. nil
	// elsewhere.
	Pod *cluster.Pod

	// Executable is the runner itself; Libexec and SearchPath are
	// BERTH_LIBEXEC and PATH.
	Executable, Libexec, SearchPath string
	Version                         string
	Log                             *slog.Logger
	Now                             func() time.Time // nil means time.Now
}

// fileConfig is DIR/config.json. Absent keys leave the default.
type fileConfig struct {
	Slots     int    `json:"slots"`
	Engine    string `json:"engine"`
	Terraform string `json:"terraform"`

	TerraformMirror    string `json:"terraform_mirror"`
	OpenTofu           string `json:"opentofu"`
	OpenTofuMirror     string `json:"opentofu_mirror"`
	TerraformDownloads string `json:"terraform_downloads"`
	TerraformMatch     string `json:"terraform_match"`
	ProviderMirror     string `json:"provider_mirror"`
	VendorSeesState    string `json:"vendor_sees_state"`
	ProviderCache      int64  `json:"provider_cache_bytes"`

	Pulumi     string `json:"pulumi"`
	PulumiHome string `json:"pulumi_home"`

	EngineUIDs   string `json:"engine_uids"`
	EngineUID    int    `json:"engine_uid"`
	GraceSeconds int    `json:"grace_seconds"`
	EngineMemory int64  `json:"engine_memory_bytes"`
	EnginePIDs   int64  `json:"engine_pids"`
	EngineSees   string `json:"engine_sees"`
	EngineLimits string `json:"engine_limits"`
	EngineCPU    int64  `json:"engine_cpu_millis"`
	MinFree      int64  `json:"min_free_bytes"`
	Engines      string `json:"engines"`

	BuildKitAddr string `json:"buildkit_addr"`
	BuildKitOrg  string `json:"buildkit_org"`
	BuildKitTLS  string `json:"buildkit_tls"`
	BuildSecrets string `json:"build_secrets"`
	BuildNetwork string `json:"build_network"`
	BuildMemory  int64  `json:"build_memory_bytes"`
	BuildPIDs    int64  `json:"build_pids"`

	CAFile          string `json:"ca_file"`
	Kubeconfig      string `json:"kubeconfig"`
	Contexts        string `json:"contexts"`
	RegistryAddress string `json:"registry_address"`
}
