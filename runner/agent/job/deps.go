package job

import (
	"context"
	"crypto/ed25519"
	"log/slog"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/logship"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/pkg/tfstate"
	"github.com/berth-dev/berth/runner/agent/buildkit"
	"github.com/berth-dev/berth/runner/agent/cluster"
	"github.com/berth-dev/berth/runner/agent/consents"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/disk"
	"github.com/berth-dev/berth/runner/agent/enginepod"
	"github.com/berth-dev/berth/runner/agent/gauges"
	"github.com/berth-dev/berth/runner/agent/guards"
	"github.com/berth-dev/berth/runner/agent/jobdir"
	"github.com/berth-dev/berth/runner/agent/launcher"
	"github.com/berth-dev/berth/runner/agent/offers"
	"github.com/berth-dev/berth/runner/agent/order"
	"github.com/berth-dev/berth/runner/agent/power"
	"github.com/berth-dev/berth/runner/agent/process"
	"github.com/berth-dev/berth/runner/agent/providers"
	"github.com/berth-dev/berth/runner/agent/roles"
	"github.com/berth-dev/berth/runner/agent/scripts"
	"github.com/berth-dev/berth/runner/agent/secretstore"
	"github.com/berth-dev/berth/runner/agent/stateproxy"
	"github.com/berth-dev/berth/runner/agent/toolchain"
	"github.com/berth-dev/berth/runner/agent/trees"
	"github.com/berth-dev/berth/runner/agent/turns"
	"github.com/berth-dev/berth/runner/agent/users"
	"github.com/berth-dev/berth/runner/agent/versions"
)

// Off says which classes of bytes the customer has switched off.
type Off interface{ Off(class string) bool }

// API is what attempts need of the control plane.
type API interface {
	stateproxy.States
	Plan(ctx context.Context, jobID string, plan runnerapi.Plan) error
	Result(ctx context.Context, jobID string, report runnerapi.ResultReport) error
	ReportRun(ctx context.Context, runID string, run runnerapi.Run) (runnerapi.RunRecorded, error)
}

// Registry names the org's registry. Both methods wait while the control plane
// is away.
type Registry interface {
	Remote(ctx context.Context, repository string, action runnerapi.RegistryAction) (oci.Remote, error)
}

// Chain records effects before and after.
type Chain interface {
	Append(ctx context.Context, r chain.Record) (chain.Head, error)
	OpenIntents() []chain.Record
}

// Sinks says where the lines of a stream go. It waits while that is not known.
type Sinks interface {
	Sink(ctx context.Context, streamID string, token func() string) (logship.Sink, error)
}

// Update is what an update of the runner needs.
type Update struct {
	Versions versions.Store
	// Installed is the version of the package, which starts all others.
	Installed string
	// Keys reads the release keys that the customer trusts now.
	Keys func() (map[string]ed25519.PublicKey, error)
	// Elsewhere says how this runner is updated when not by itself, "" when it is.
	Elsewhere string
	// Restart ends this agent so that the launcher decides again what runs.
	Restart func()
	// Decided is closed once this agent is on trial no more.
	Decided <-chan struct{}
}

// Engine is what is started for each job.
type Engine struct {
	Path string
	// Terraform is the executable that the operator named, "" when there is none.
	Terraform string
	// Terraforms finds the one of each job, SameMinor is one of its rules.
	Terraforms *toolchain.Tools
	SameMinor  bool
	// Tells is how much the vendor learns of Terraform states.
	Tells tfstate.Level
	// TerraformConfig is Terraform's configuration for engines, of the agent's making; ""
	// for the one that the agent's environment names.
	TerraformConfig string
	// Providers is the runner's own cache of providers, nil for none.
	Providers *providers.Cache
	// Pulumi is its executable, "" when there is none; PulumiHome holds its plugins, ""
	// for none, and PulumiDownloads says that missing ones may be fetched.
	Pulumi, PulumiHome string
	PulumiDownloads    bool
	// BuildKit is for builds of images, nil for a runner of an install.
	BuildKit *buildkit.Service
	// Registry is the install's own registry as kubelets call it, "" when there
	// is none for them.
	Registry string
	// SearchPath is the PATH of engines.
	SearchPath string
	// Launcher is the executable that becomes an engine, the agent's own.
	Launcher string
	// Own are files and directories of the runner's outside of its data, of which no
	// plugin is shown anything.
	Own []string
	// Isolation is that of all engines. With Hidden, Sight says what is hidden,
	// and its UID is 0 where each job gets a user out of Users.
	Isolation process.Isolation
	Users     *users.Pool
	Sight     launcher.Sight
	// ScratchMaps shows an engine the install's scratch as its own; nil where
	// that belongs to the one user of all engines.
	ScratchMaps *process.UserMaps
	Limits      process.Limits
	// InPods: engines are started by Deps.Pods, not as child processes.
	InPods bool
	// Grace is the time between asking an engine to stop and ending it.
	Grace time.Duration
}

// Deps are what attempts share.
type Deps struct {
	Dir      datadir.Dir
	Keys     datadir.Keys
	Runner   datadir.Runner
	Version  string
	Trusted  order.Keys
	Engine   Engine
	API      API
	Registry Registry
	Layout   *oci.Layout
	// Trees are the artifacts of Layout, verified and unpacked once.
	Trees *trees.Store
	// Cluster is how jobs reach the install's cluster, nil without one.
	Cluster cluster.Source
	// Contexts is how they reach clusters that components make.
	Contexts cluster.Contexts
	// Off says what the customer does not let leave; nil for nothing.
	Off Off
	// Times counts how long jobs and checks take; nil when nobody asks.
	Times *gauges.Times
	// Pods runs engines in pods of their own, nil outside of a cluster.
	Pods   *enginepod.Pods
	Sinks  Sinks
	Switch *power.Switch
	// Disk keeps room for reports, nil where nobody looks after that.
	Disk    *disk.Guard
	Digests *order.Digests
	Orders  *order.Ledger
	Log     *slog.Logger
	Now     func() time.Time

	// Turns keeps scheduled runs that may change something apart from other changes.
	// NewSet makes it.
	Turns *turns.Turns

	// Stopped says why nothing may be changed now and what the customer can do, ""
	// when it may; nil for never.
	Stopped func() (why, remedy string)

	// Update is how the runner comes to another version of itself.
	Update Update

	// The rest is absent for Build Runners, which change nothing.
	Chain  Chain
	Nonces *capsule.NonceFile
	Fences *order.Fences
	// Scripts are the accepted ones, Runs counts what was run of them.
	Scripts *scripts.Set
	Runs    *scripts.Ledger
	// Scheduled lists the digests of the scripts that the settings in force
	// schedule.
	Scheduled func() []string
	// TickEnded is told, maybe more than once, how a run that the runner started by
	// itself ended. What it does is on disk when it returns.
	TickEnded func(tick jobdir.Tick, runID string, r jobspec.Result) error
	// Secrets are the customer's.
	Secrets *secretstore.Store
	// Guards are the customer's guardrails.
	Guards *guards.Guards
	// Consents knows what the customer's side agreed to.
	Consents *consents.Gate
	// Offers knows which releases the vendor signed and the customer accepted.
	Offers *offers.Gate
	// Roles are those that the customer switches.
	Roles *roles.Store
}
