package deploy

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/enrolcode"
	"github.com/berth-dev/berth/pkg/permissions"
)

// Rights of engines.
const (
	RightsNamespaces = "namespaces"
	RightsCluster    = "cluster"
	RightsApp        = "app" // what Options.Permissions lists
)

// Levels of Pod Security, the strictest last.
const (
	LevelPrivileged = "privileged"
	LevelBaseline   = "baseline"
	LevelRestricted = "restricted"
)

// Where engines run.
const (
	EnginesProcess = "process" // in the agent's container
	EnginesJobs    = "jobs"    // in pods of their own
)

// Options are what a customer may choose. Zero values mean the defaults.
type Options struct {
	// CodeText is the code, Code what it says.
	CodeText string
	Code     enrolcode.Code

	// Upgrade says that the runner has enrolled: its code needs to work no more.
	Upgrade bool

	// Namespace of the runner; default berth-<install>.
	Namespace string
	// Rights of engines: RightsNamespaces (default), RightsApp or RightsCluster.
	Rights string
	// Namespaces that engines may work in; default the install's id. With
	// RightsApp they are those of the list.
	Namespaces []string
	// Permissions are what an app needs, for RightsApp. Allow are the escalating
	// verbs in it that the customer agrees to.
	Permissions *permissions.List
	Allow       []string

	// PodSecurity is the level of the runner's namespace; default the strictest
	// that its other options allow: LevelRestricted, LevelBaseline with
	// EnginesProcess, LevelPrivileged with HostPath.
	PodSecurity string
	// AppPodSecurity is the level of the namespaces that are made for the app;
	// default LevelBaseline.
	AppPodSecurity string

	// Engines is where engines run: EnginesJobs (default), or EnginesProcess,
	// which is weaker: they share the agent's pod.
	Engines string

	// Image of the runner; default that of the code.
	Image string
	// PullPolicy of the image; default IfNotPresent.
	PullPolicy string

	// AgentCPU and AgentMemory are the limits of the agent's container, such as
	// 500m and 1Gi; defaults 1 and 1Gi, with EnginesProcess 2 and 4Gi.
	AgentCPU, AgentMemory string
	// EngineCPU and EngineMemory are the limits of each engine's pod, in thousandths
	// of a core and in bytes; defaults 2000 and 4 GiB.
	EngineCPU, EngineMemory int64

	// StorageClass and Size of the data volume; defaults: the cluster's, 10Gi.
	StorageClass, Size string
	// HostPath is a directory of the node instead, for a trial.
	HostPath string

	// RegistryNodePort is the port on every node's loopback where kubelets pull the
	// install's images; default 30500. Above 1023: its user is not root.
	RegistryNodePort int

	// Contexts is a Secret of the runner's namespace with the customer's kubeconfigs for
	// named contexts, one under the name of each; "" for none. It may come later.
	Contexts string

	// NoRelay leaves the relays out: the app has no images in the install's registry.
	NoRelay bool

	// Proxy is the way out; NoProxy bypasses it, as traffic inside the cluster
	// does.
	Proxy, NoProxy string
	// CA holds authorities in PEM to trust in addition to the system's.
	CA string
}

// namePattern is that of a namespace.
var (
	namePattern   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	secretPattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)
	sizePattern   = regexp.MustCompile(`^[1-9][0-9]*(Mi|Gi|Ti)$`)
	plain         = regexp.MustCompile(`^[!-~]+$`) // printable, without spaces
)

// WithDefaults fills in what was not chosen.
func (o Options) WithDefaults() Options {
	o.Namespace = or(o.Namespace, "berth-"+o.Code.Install)
	o.Rights = or(o.Rights, RightsNamespaces)
	if o.Rights == RightsApp && o.Permissions != nil && len(o.Namespaces) == 0 {
		o.Namespaces = o.Permissions.Namespaces
	}
	if len(o.Namespaces) == 0 {
		o.Namespaces = []string{dashed(o.Code.InstallID)}
	}
	o.Engines = or(o.Engines, EnginesJobs)
	o.Image = or(o.Image, o.Code.RunnerImage)
	o.PullPolicy = or(o.PullPolicy, "IfNotPresent")
	o.Size = or(o.Size, "10Gi")
	o.AppPodSecurity = or(o.AppPodSecurity, LevelBaseline)
	o.PodSecurity = or(o.PodSecurity, o.strictest())
	if o.Engines == EnginesProcess {
		o.AgentCPU, o.AgentMemory = or(o.AgentCPU, "2"), or(o.AgentMemory, "4Gi")
	}
	o.AgentCPU, o.AgentMemory = or(o.AgentCPU, "1"), or(o.AgentMemory, "1Gi")
	if o.EngineCPU == 0 {
		o.EngineCPU = 2000
	}
	if o.EngineMemory == 0 {
		o.EngineMemory = 4 << 30
	}
	if o.RegistryNodePort == 0 {
		o.RegistryNodePort = 30500
	}
	return o
}

// strictest is the highest level of Pod Security that takes the runner's pods.
func (o Options) strictest() string {
	switch {
	case o.HostPath != "":
		return LevelPrivileged
	case o.Engines == EnginesProcess:
		return LevelBaseline
	}
	return LevelRestricted
}

// Root says that the agent is root in its container.
func (o Options) Root() bool { return o.PodSecurity != LevelRestricted }

// Relay says that there are relays, and RelayNamespace where.
func (o Options) Relay() bool { return !o.NoRelay }

// RelayNamespace is that of the relays alone.
func (o Options) RelayNamespace() string { return o.Namespace + "-relay" }

// AppRoles are the roles of the permissions.
func (o Options) AppRoles() string {
	return o.Permissions.Roles(permissions.Account{Namespace: o.Namespace, Name: "berth-engine"})
}

// AgentCPURequest is what the agent's container asks for: little, since it mostly
// waits.
func (o Options) AgentCPURequest() string { return "100m" }

// AgentMemoryRequest is the same for memory.
func (o Options) AgentMemoryRequest() string {
	if o.Engines == EnginesProcess {
		return "256Mi"
	}
	return "64Mi"
}

// validate reports everything that is wrong.
func (o Options) validate() error {
	var errs []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	wrong(!namePattern.MatchString(o.Namespace), "--namespace %q is not the name of a namespace", o.Namespace)
	rights := []string{RightsNamespaces, RightsApp, RightsCluster}
	wrong(!slices.Contains(rights, o.Rights), "--rights is %q, not %s", o.Rights, strings.Join(rights, ", "))
	wrong(o.Relay() && !namePattern.MatchString(o.RelayNamespace()), "--namespace %q is too long: the namespace of the relays is called %s", o.Namespace, o.RelayNamespace())
	errs = append(errs, o.checkPermissions(), o.checkLevels(), o.checkLimits())
	wrong(o.Engines != EnginesProcess && o.Engines != EnginesJobs, "--engines is %q, not %s or %s", o.Engines, EnginesProcess, EnginesJobs)
	for _, name := range o.Namespaces {
		wrong(!namePattern.MatchString(name), "--namespaces: %q is not the name of a namespace", name)
		wrong(name == o.Namespace, "--namespaces: %s is the runner's own: what engines may do there would give them its secrets", name)
	}
	wrong(o.Image == "", "no image: the code names none, so use --image with the image of berth-runner in your registry")
	if o.Image != "" {
		if err := enrolcode.CheckImage(o.Image); err != nil || !plain.MatchString(o.Image) {
			errs = append(errs, fmt.Errorf("--image: %w", cmp.Or(err, errors.New("it has signs that no image has in its name"))))
		}
	}
	wrong(!slices.Contains([]string{"Always", "IfNotPresent", "Never"}, o.PullPolicy), "--image-pull-policy is %q, not Always, IfNotPresent or Never", o.PullPolicy)
	wrong(!sizePattern.MatchString(o.Size), "--size is %q, not like 10Gi", o.Size)
	wrong(o.HostPath != "" && (!path.IsAbs(o.HostPath) || path.Clean(o.HostPath) != o.HostPath || o.HostPath == "/"), "--volume %q is not the full path of a directory of the node", o.HostPath)
	wrong(o.HostPath != "" && o.StorageClass != "", "--volume and --storage-class exclude each other")
	wrong(o.RegistryNodePort < 1024 || o.RegistryNodePort > 65535, "--registry-node-port is %d, not a port from 1024 to 65535", o.RegistryNodePort)
	wrong(o.Contexts != "" && !secretPattern.MatchString(o.Contexts), "--contexts-secret %q is not the name of a Secret", o.Contexts)
	wrong(slices.Contains([]string{"berth-runner-code", "berth-registry"}, o.Contexts), "--contexts-secret: %s is a Secret of the runner's own", o.Contexts)
	errs = append(errs, checkProxy(o.Proxy), checkCA(o.CA))
	wrong(o.NoProxy != "" && !plain.MatchString(o.NoProxy), "--no-proxy must not have spaces: separate by commas")
	return errors.Join(errs...)
}

// checkPermissions says what is wrong with the list of an app.
func (o Options) checkPermissions() error {
	switch {
	case (o.Rights == RightsApp) != (o.Permissions != nil):
		return errors.New("--rights app and --permissions FILE belong together: the vendor makes the file with `berth apps permissions -o json`")
	case o.Permissions == nil:
		return nil
	}
	if err := o.Permissions.Check(o.Allow); err != nil {
		return fmt.Errorf("--permissions: %w (--allow VERB agrees to bind, escalate or impersonate)", err)
	}
	for _, r := range o.Permissions.Rules {
		if r.Namespace == o.Namespace || o.Relay() && r.Namespace == o.RelayNamespace() {
			return fmt.Errorf("--permissions: it has a rule for %s, the runner's own namespace: what engines may do there would give them its secrets", r.Namespace)
		}
	}
	return nil
}

// checkLevels says what the levels of Pod Security do not allow.
func (o Options) checkLevels() error {
	levels := []string{LevelPrivileged, LevelBaseline, LevelRestricted}
	for flag, level := range map[string]string{"--pod-security": o.PodSecurity, "--app-pod-security": o.AppPodSecurity} {
		if !slices.Contains(levels, level) {
			return fmt.Errorf("%s is %q, not %s", flag, level, strings.Join(levels, ", "))
		}
	}
	if slices.Index(levels, o.PodSecurity) > slices.Index(levels, o.strictest()) {
		return fmt.Errorf("--pod-security %s refuses what else was asked for: a directory of the node (--volume) takes privileged, engines in the agent's container (--engines process) baseline", o.PodSecurity)
	}
	return nil
}

var (
	cpuPattern    = regexp.MustCompile(`^([1-9][0-9]*m|[1-9][0-9]*|[0-9]+\.[0-9]{1,3})$`)
	memoryPattern = regexp.MustCompile(`^[1-9][0-9]*(Mi|Gi)$`)
)

func (o Options) checkLimits() error {
	const leastEngine = 128 << 20 // below that no engine comes to its first object
	switch {
	case !cpuPattern.MatchString(o.AgentCPU):
		return fmt.Errorf("--agent-cpu is %q, not like 500m or 2", o.AgentCPU)
	case !memoryPattern.MatchString(o.AgentMemory):
		return fmt.Errorf("--agent-memory is %q, not like 512Mi or 1Gi", o.AgentMemory)
	case o.EngineCPU < 50: // what an engine's pod asks for
		return fmt.Errorf("--engine-cpu is %d, in thousandths of a core at least 50", o.EngineCPU)
	case o.EngineMemory < leastEngine:
		return fmt.Errorf("--engine-memory is %d, in bytes at least %d", o.EngineMemory, leastEngine)
	}
	return nil
}

func checkProxy(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("--proxy is not like http://proxy.example.com:3128") // not the text: it may hold a password
	}
	return nil
}

func checkCA(text string) error {
	if text == "" {
		return nil
	}
	found := 0
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("--ca has a %s as well as certificates: leave it out, it would be readable in the cluster", strings.ToLower(block.Type))
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("--ca: %w", err)
		}
		found++
	}
	if found == 0 {
		return errors.New("--ca has no certificate in PEM")
	}
	return nil
}

// dashed makes a namespace's name of an id.
func dashed(id string) string { return strings.ReplaceAll(id, "_", "-") }

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
