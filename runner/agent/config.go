package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/berth-dev/berth/runner/agent/cluster"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/users"
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

// Config is how an agent is set up. Each setting is a flag of `berth-runner`,
// an environment variable, or a key of DIR/config.json, in this order; only
// main reads the environment.
type Config struct {
	// Data is the data directory: --data, BERTH_RUNNER_DATA.
	Data string
	// Slots is how many jobs are worked on at once: --slots, BERTH_SLOTS,
	// slots; default 4.
	Slots int
	// Engine is the executable that works on jobs: --engine, BERTH_ENGINE,
	// engine; default berth-engine next to the runner, else in BERTH_LIBEXEC.
	Engine string
	// Terraform is the executable that engines use: --terraform,
	// BERTH_TERRAFORM, terraform; default terraform next to the runner, else
	// none.
	Terraform string
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
	// RegistryAddress is what kubelets call the install's own registry,
	// HOST:PORT (`berth-runner registry` serves it): --registry-address,
	// BERTH_REGISTRY_ADDRESS, registry_address; default none.
	RegistryAddress string

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
	Slots        int    `json:"slots"`
	Engine       string `json:"engine"`
	Terraform    string `json:"terraform"`
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

	CAFile          string `json:"ca_file"`
	Kubeconfig      string `json:"kubeconfig"`
	RegistryAddress string `json:"registry_address"`
}

// Complete fills what is not set from DIR/config.json and the defaults, and
// reports everything that is wrong.
func (c Config) Complete() (Config, error) {
	if c.Data == "" {
		return c, errors.New("no data directory: use --data or BERTH_RUNNER_DATA")
	}
	dir, err := datadir.At(c.Data)
	if err != nil {
		return c, err
	}
	var file fileConfig
	if _, err := datadir.ReadJSON(dir.Config(), &file); err != nil {
		return c, err
	}
	c.Slots = first(c.Slots, file.Slots, 4)
	c.Engine = first(c.Engine, file.Engine)
	c.Terraform = first(c.Terraform, file.Terraform)
	c.EngineUIDs = first(c.EngineUIDs, file.EngineUIDs, users.DefaultRange)
	c.EngineUID = first(c.EngineUID, file.EngineUID)
	c.Grace = first(c.Grace, time.Duration(file.GraceSeconds)*time.Second, 30*time.Second)
	c.EngineMemory, c.EnginePIDs = first(c.EngineMemory, file.EngineMemory), first(c.EnginePIDs, file.EnginePIDs)
	c.EngineLimits = first(c.EngineLimits, file.EngineLimits)
	c.EngineSees = first(c.EngineSees, file.EngineSees)
	if c.EngineLimits == "" && (c.EngineMemory != 0 || c.EnginePIDs != 0) {
		c.EngineLimits = LimitsRequired
	}
	c.EngineLimits = first(c.EngineLimits, LimitsAuto)
	c.EngineCPU = first(c.EngineCPU, file.EngineCPU)
	c.MinFree = first(c.MinFree, file.MinFree)
	where := EnginesProcess
	if c.Pod != nil {
		where = EnginesJobs
	}
	c.Engines = first(c.Engines, file.Engines, where)
	var errs []error
	if c.Engines == EnginesJobs && c.EnginePIDs != 0 {
		errs = append(errs, errors.New("engine_pids has no effect on engines as Jobs: leave it out, and limit processes per pod with the kubelet's podPidsLimit"))
	}
	c.EngineMemory, c.EnginePIDs = first(c.EngineMemory, 4<<30), first(c.EnginePIDs, 4096)
	c.CAFile = first(c.CAFile, file.CAFile)
	c.Kubeconfig = first(c.Kubeconfig, file.Kubeconfig)
	c.RegistryAddress = first(c.RegistryAddress, file.RegistryAddress)
	c.SearchPath = first(c.SearchPath, "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Engine == "" {
		c.Engine = find("berth-engine", filepath.Dir(c.Executable), c.Libexec)
	}
	if c.Terraform == "" {
		c.Terraform = find("terraform", filepath.Dir(c.Executable))
	}
	for name, path := range map[string]*string{"engine": &c.Engine, "terraform": &c.Terraform} {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			errs = append(errs, err)
		} else if info, err := os.Stat(*path); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			errs = append(errs, fmt.Errorf("%s: %s is not an executable", name, *path))
		}
	}
	if c.Engine == "" {
		errs = append(errs, errors.New("no engine: berth-engine is neither beside the runner nor in BERTH_LIBEXEC; use --engine"))
	}
	if c.Kubeconfig != "" { // it may come later: only jobs that need it wait for it
		if c.Kubeconfig, err = filepath.Abs(c.Kubeconfig); err != nil {
			errs = append(errs, err)
		}
	}
	if host, port, err := net.SplitHostPort(c.RegistryAddress); c.RegistryAddress != "" && (err != nil || host == "" || port == "") {
		errs = append(errs, fmt.Errorf("registry_address is %q, not HOST:PORT", c.RegistryAddress))
	}
	if c.Slots < 1 || c.Slots > 256 {
		errs = append(errs, fmt.Errorf("slots is %d, not within 1 and 256", c.Slots))
	}
	if c.MinFree < 0 {
		errs = append(errs, fmt.Errorf("min_free_bytes is %d", c.MinFree))
	}
	if c.EngineUID < 0 {
		errs = append(errs, fmt.Errorf("engine_uid is %d", c.EngineUID))
	}
	if _, err := users.ParseRange(c.EngineUIDs); err != nil {
		errs = append(errs, fmt.Errorf("engine_uids: %w", err))
	}
	if l := c.EngineLimits; l != LimitsAuto && l != LimitsRequired && l != LimitsOff {
		errs = append(errs, fmt.Errorf("engine_limits is %q, not %s, %s or %s", l, LimitsAuto, LimitsRequired, LimitsOff))
	}
	return c, errors.Join(append(errs, c.checkEngines())...)
}

// checkEngines says what is missing where engines are to run.
func (c Config) checkEngines() error {
	switch {
	case c.Engines == EnginesProcess:
		return nil
	case c.Engines != EnginesJobs:
		return fmt.Errorf("engines is %q, not %s or %s", c.Engines, EnginesProcess, EnginesJobs)
	case c.Pod == nil:
		return fmt.Errorf("engines is %s, which needs a runner in the cluster: use `berth-runner manifest --engines %s`, or leave it out elsewhere", EnginesJobs, EnginesJobs)
	case c.EngineUID == 0:
		return fmt.Errorf("engines is %s, which needs a user for them that is not root: use --engine-uid", EnginesJobs)
	}
	return nil
}

// find returns the file of this name in the first of the folders that has it.
func find(name string, dirs ...string) string {
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); dir != "" && err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// first returns the first value that is not zero.
func first[T comparable](values ...T) T {
	var zero T
	for _, v := range values {
		if v != zero {
			return v
		}
	}
	return zero
}
