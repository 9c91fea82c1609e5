package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/tfprogram"
	"github.com/berth-dev/berth/pkg/tfstate"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/providers"
	"github.com/berth-dev/berth/runner/agent/users"
)

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
	c = c.or(file)
	c.Engines = first(c.Engines, c.enginesDefault())
	useless := c.checkPIDs()
	c = c.withDefaults()
	paths := c.findFiles()
	return c, errors.Join(useless, paths, c.check(), c.checkEngines(), c.BuildKit.Validate())
}

// or is c, with what it does not say taken from the file.
func (c Config) or(file fileConfig) Config {
	c.Slots = first(c.Slots, file.Slots)
	c.Engine = first(c.Engine, file.Engine)
	c.Terraform = first(c.Terraform, file.Terraform)
	c.TerraformMirror = first(c.TerraformMirror, file.TerraformMirror)
	c.OpenTofu, c.OpenTofuMirror = first(c.OpenTofu, file.OpenTofu), first(c.OpenTofuMirror, file.OpenTofuMirror)
	c.TerraformDownloads = first(c.TerraformDownloads, file.TerraformDownloads)
	c.TerraformMatch = first(c.TerraformMatch, file.TerraformMatch)
	c.ProviderMirror = first(c.ProviderMirror, file.ProviderMirror)
	c.VendorSeesState = first(c.VendorSeesState, file.VendorSeesState)
	c.ProviderCache = first(c.ProviderCache, file.ProviderCache)
	c.Pulumi = first(c.Pulumi, file.Pulumi)
	c.PulumiHome = first(c.PulumiHome, file.PulumiHome)
	c.EngineUIDs = first(c.EngineUIDs, file.EngineUIDs)
	c.EngineUID = first(c.EngineUID, file.EngineUID)
	c.Grace = first(c.Grace, time.Duration(file.GraceSeconds)*time.Second)
	c.EngineMemory = first(c.EngineMemory, file.EngineMemory)
	c.EnginePIDs = first(c.EnginePIDs, file.EnginePIDs)
	c.EngineSees = first(c.EngineSees, file.EngineSees)
	c.EngineLimits = first(c.EngineLimits, file.EngineLimits)
	c.EngineCPU = first(c.EngineCPU, file.EngineCPU)
	c.MinFree = first(c.MinFree, file.MinFree)
	c.Engines = first(c.Engines, file.Engines)
	c.BuildKit.Address = first(c.BuildKit.Address, file.BuildKitAddr)
	c.BuildKit.Org = first(c.BuildKit.Org, file.BuildKitOrg)
	c.BuildKit.TLS = first(c.BuildKit.TLS, file.BuildKitTLS)
	c.BuildKit.Secrets = first(c.BuildKit.Secrets, file.BuildSecrets)
	c.BuildKit.Network = first(c.BuildKit.Network, file.BuildNetwork)
	c.BuildKit.StepMemory = first(c.BuildKit.StepMemory, file.BuildMemory)
	c.BuildKit.StepPIDs = first(c.BuildKit.StepPIDs, file.BuildPIDs)
	c.CAFile = first(c.CAFile, file.CAFile)
	c.Kubeconfig = first(c.Kubeconfig, file.Kubeconfig)
	c.Contexts = first(c.Contexts, file.Contexts)
	c.RegistryAddress = first(c.RegistryAddress, file.RegistryAddress)
	return c
}

func (c Config) enginesDefault() string {
	if c.Pod != nil {
		return EnginesJobs
	}
	return EnginesProcess
}

// withDefaults is c, with the defaults of what neither it nor the file says.
func (c Config) withDefaults() Config {
	if c.EngineLimits == "" && (c.EngineMemory != 0 || c.EnginePIDs != 0) {
		c.EngineLimits = LimitsRequired
	}
	c.EngineLimits = first(c.EngineLimits, LimitsAuto)
	c.Slots = first(c.Slots, 4)
	c.TerraformDownloads, c.TerraformMatch = first(c.TerraformDownloads, DownloadsAllow), first(c.TerraformMatch, MatchExact)
	c.VendorSeesState, c.ProviderCache = first(c.VendorSeesState, string(tfstate.Addresses)), first(c.ProviderCache, providers.DefaultBytes)
	c.EngineUIDs = first(c.EngineUIDs, users.DefaultRange)
	c.Grace = first(c.Grace, 30*time.Second)
	c.EngineMemory, c.EnginePIDs = first(c.EngineMemory, 4<<30), first(c.EnginePIDs, 4096)
	c.SearchPath = first(c.SearchPath, "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// findFiles finds the executables that are not named, and makes the paths of all
// files absolute.
func (c *Config) findFiles() error {
	beside := filepath.Dir(first(c.Update.InstalledPath, c.Executable))
	if c.Engine == "" {
		c.Engine = find("berth-engine", beside, c.Libexec)
	}
	if own := find("terraform", beside); c.Terraform == "" || (c.Terraform == TerraformFetch && own != "") {
		c.Terraform = own
	}
	c.OpenTofu = first(c.OpenTofu, find(tfprogram.OpenTofu.Program, beside))
	if c.Pulumi == "" {
		c.Pulumi = find("pulumi", filepath.SplitList(c.SearchPath)...)
	}
	errs := []error{c.findOpenTofu(), executable("engine", &c.Engine), executable("pulumi", &c.Pulumi), findMirror("pulumi_home", &c.PulumiHome)}
	if c.Terraform != TerraformFetch { // Run gets it
		errs = append(errs, executable("terraform", &c.Terraform))
	}
	errs = append(errs, findMirror("terraform_mirror", &c.TerraformMirror), findMirror("provider_mirror", &c.ProviderMirror))
	if c.Engine == "" {
		errs = append(errs, errors.New("no engine: berth-engine is neither next to the runner nor in BERTH_LIBEXEC; use --engine"))
	}
	if c.Kubeconfig != "" { // it may come later: only jobs that need it wait for it
		var err error
		c.Kubeconfig, err = filepath.Abs(c.Kubeconfig)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// findOpenTofu checks the executable of OpenTofu, which its name tells from Terraform's.
func (c *Config) findOpenTofu() error {
	if c.OpenTofu != "" && tfprogram.Of(c.OpenTofu).Tool != tfprogram.OpenTofu.Tool {
		return fmt.Errorf("opentofu: %s is not called tofu, so it would be taken for Terraform", c.OpenTofu)
	}
	return errors.Join(executable("opentofu", &c.OpenTofu), findMirror("opentofu_mirror", &c.OpenTofuMirror))
}

// findMirror makes the path of a mirror that is a directory absolute.
func findMirror(name string, mirror *string) error {
	if *mirror == "" || strings.Contains(*mirror, "://") {
		return nil
	}
	var err error
	if *mirror, err = filepath.Abs(*mirror); err != nil {
		return err
	}
	if info, err := os.Stat(*mirror); err != nil || !info.IsDir() {
		return fmt.Errorf("%s: %s is neither a directory nor an address such as https://mirror.example.com/", name, *mirror)
	}
	return nil
}

// executable makes the path of an executable absolute; "" stays.
func executable(name string, path *string) error {
	if *path == "" {
		return nil
	}
	var err error
	if *path, err = filepath.Abs(*path); err != nil {
		return err
	}
	if info, err := os.Stat(*path); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return fmt.Errorf("%s: %s is not an executable", name, *path)
	}
	return nil
}

// check says which values are impossible.
func (c Config) check() error {
	var errs []error
	if c.TerraformDownloads != DownloadsAllow && c.TerraformDownloads != DownloadsForbid {
		errs = append(errs, fmt.Errorf("terraform_downloads is %q, not %s or %s", c.TerraformDownloads, DownloadsAllow, DownloadsForbid))
	}
	if _, err := tfstate.ParseLevel(c.VendorSeesState); err != nil {
		errs = append(errs, fmt.Errorf("vendor_sees_state: %w", err))
	}
	if c.TerraformMatch != MatchExact && c.TerraformMatch != MatchMinor {
		errs = append(errs, fmt.Errorf("terraform_match is %q, not %s or %s", c.TerraformMatch, MatchExact, MatchMinor))
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
	return errors.Join(errs...)
}

// checkPIDs refuses a limit that has no effect. It is asked before the default is
// filled in.
func (c Config) checkPIDs() error {
	if c.Engines == EnginesJobs && c.EnginePIDs != 0 {
		return errors.New("engine_pids has no effect on engines as Jobs: leave it out, and limit processes per pod with the kubelet's podPidsLimit")
	}
	return nil
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
