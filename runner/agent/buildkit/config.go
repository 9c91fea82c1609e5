package buildkit

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Settings are the operator's.
type Settings struct {
	// Address is where BuildKit listens, "unix:///path" or "tcp://host:port" with TLS;
	// "" has the runner start its own. "{org}" in it is replaced by the org's id, with
	// hyphens in the place of underscores.
	Address string
	// Org is the only org that may use an address without {org}: a daemon shows its
	// cache to everybody who builds with it.
	Org string
	// TLS is a directory with ca.pem, cert.pem and key.pem, for tcp://.
	TLS string
	// Secrets is a directory with ORG/secrets/NAME and ORG/config.json, "" for none.
	Secrets string
	// Network of RUN steps: NetworkAllow or NetworkNone, which no app overrides.
	Network string
	// StepMemory and StepPIDs bound each RUN step of the runner's own BuildKit, in bytes
	// and in processes; 0 is half of the machine's memory, and defaultPIDs.
	StepMemory, StepPIDs int64
}

const (
	// leastMemory and leastPIDs are what runc itself needs.
	leastMemory = 64 << 20
	leastPIDs   = 32

	defaultPIDs = 4096
)

// The networks of RUN steps.
const (
	NetworkAllow = "allow"
	NetworkNone  = "none"
)

// Validate reports every setting that does not work, at once.
func (s Settings) Validate() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch s.Network {
	case "", NetworkAllow, NetworkNone:
	default:
		fail("build_network is %q, want %s or %s", s.Network, NetworkAllow, NetworkNone)
	}
	errs = append(errs, s.validateSteps())
	if s.Address == "" {
		return errors.Join(errs...)
	}
	u, err := url.Parse(strings.ReplaceAll(s.Address, "{org}", "org"))
	switch {
	case err != nil || u.User != nil || u.Scheme == "unix" && u.Path == "" || u.Scheme == "tcp" && u.Port() == "":
		fail("buildkit_addr is %q, want unix:///path or tcp://host:port", s.Address)
	case u.Scheme == "tcp" && s.TLS == "" && !loopback(u.Hostname()):
		fail("buildkit_addr is %q: over a network BuildKit needs TLS, set buildkit_tls to a directory with ca.pem, cert.pem and key.pem", s.Address)
	case u.Scheme != "unix" && u.Scheme != "tcp":
		fail("buildkit_addr is %q, want unix:///path or tcp://host:port", s.Address)
	}
	if !strings.Contains(s.Address, "{org}") && s.Org == "" {
		fail("buildkit_addr is %q: write {org} into it, or name the one org that may use it with buildkit_org; two orgs on one daemon would share its cache", s.Address)
	}
	return errors.Join(errs...)
}

// validateSteps reports limits of RUN steps under which none would start.
func (s Settings) validateSteps() error {
	var errs []error
	if s.StepMemory != 0 && s.StepMemory < leastMemory {
		errs = append(errs, fmt.Errorf("build_memory_bytes is %d, want at least %d", s.StepMemory, leastMemory))
	}
	if s.StepPIDs != 0 && s.StepPIDs < leastPIDs {
		errs = append(errs, fmt.Errorf("build_pids is %d, want at least %d", s.StepPIDs, leastPIDs))
	}
	return errors.Join(errs...)
}

func loopback(host string) bool { return host == "localhost" || host == "127.0.0.1" || host == "::1" }

// addressFor is the address for an org, "" when it may not use it.
func (s Settings) addressFor(org string) string {
	if strings.Contains(s.Address, "{org}") {
		return strings.ReplaceAll(s.Address, "{org}", strings.ReplaceAll(org, "_", "-"))
	}
	if s.Org != org {
		return ""
	}
	return s.Address
}

// keepBytes bounds the cache of an own daemon: BuildKit removes what was not used
// for longest.
const keepBytes = 20_000_000_000

// daemonConfig is that of an own daemon, whose folder is root as it sees it. The
// frontend that runs images as frontends is off, as are the entitlements that give
// a RUN step rights of the machine.
func daemonConfig(root, otel, runc string) string {
	return fmt.Sprintf(`root = %q
insecure-entitlements = []

[grpc]
  address = ["unix://run/s"]

[otel]
  socketPath = %q

[worker.containerd]
  enabled = false

[worker.oci]
  enabled = true
  rootless = true
  binary = %q
  networkMode = "host"
  gc = true
  max-parallelism = 4

  [[worker.oci.gcpolicy]]
    all = true
    maxUsedSpace = %d

[history]
  maxAge = 3600
  maxEntries = 20

[frontend."gateway.v0"]
  enabled = false
`, root, otel, runc, int64(keepBytes))
}

// secretName is what the format accepts as the name of a build secret.
var secretName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)
