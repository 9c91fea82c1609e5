package deploy

import (
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
)

// Rights of engines.
const (
	RightsNamespaces = "namespaces"
	RightsCluster    = "cluster"
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

	// Namespace of the runner; default berth-<install>.
	Namespace string
	// Rights of engines: RightsNamespaces (default) or RightsCluster.
	Rights string
	// Namespaces that engines may work in; default the install's id.
	Namespaces []string

	// Engines is where engines run: EnginesJobs (default), or EnginesProcess,
	// which is weaker: they share the agent's pod.
	Engines string

	// Image of the runner; default that of the code.
	Image string
	// PullPolicy of the image; default IfNotPresent.
	PullPolicy string

	// StorageClass and Size of the data volume; defaults: the cluster's, 10Gi.
	StorageClass, Size string
	// HostPath is a directory of the node instead, for a trial.
	HostPath string

	// RegistryNodePort is the port on every node's loopback where kubelets pull the
	// install's images; default 30500. Above 1023: its user is not root.
	RegistryNodePort int

	// Proxy is the way out; NoProxy bypasses it, as traffic inside the cluster
	// does.
	Proxy, NoProxy string
	// CA holds authorities in PEM to trust in addition to the system's.
	CA string
}

// namePattern is that of a namespace.
var (
	namePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	sizePattern = regexp.MustCompile(`^[1-9][0-9]*(Mi|Gi|Ti)$`)
	plain       = regexp.MustCompile(`^[!-~]+$`) // printable, without spaces
)

// WithDefaults fills in what was not chosen.
func (o Options) WithDefaults() Options {
	o.Namespace = or(o.Namespace, "berth-"+o.Code.Install)
	o.Rights = or(o.Rights, RightsNamespaces)
	if len(o.Namespaces) == 0 {
		o.Namespaces = []string{dashed(o.Code.InstallID)}
	}
	o.Engines = or(o.Engines, EnginesJobs)
	o.Image = or(o.Image, o.Code.RunnerImage)
	o.PullPolicy = or(o.PullPolicy, "IfNotPresent")
	o.Size = or(o.Size, "10Gi")
	if o.RegistryNodePort == 0 {
		o.RegistryNodePort = 30500
	}
	return o
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
	wrong(o.Rights != RightsNamespaces && o.Rights != RightsCluster, "--rights is %q, not %s or %s", o.Rights, RightsNamespaces, RightsCluster)
	wrong(o.Engines != EnginesProcess && o.Engines != EnginesJobs, "--engines is %q, not %s or %s", o.Engines, EnginesProcess, EnginesJobs)
	for _, name := range o.Namespaces {
		wrong(!namePattern.MatchString(name), "--namespaces: %q is not the name of a namespace", name)
		wrong(name == o.Namespace, "--namespaces: %s is the runner's own: what engines may do there would give them its secrets", name)
	}
	wrong(o.Image == "", "no image: the code names none, so use --image with the image of berth-runner in your registry")
	wrong(o.Image != "" && !plain.MatchString(o.Image), "--image %q is not the name of an image", o.Image)
	wrong(!slices.Contains([]string{"Always", "IfNotPresent", "Never"}, o.PullPolicy), "--image-pull-policy is %q, not Always, IfNotPresent or Never", o.PullPolicy)
	wrong(!sizePattern.MatchString(o.Size), "--size is %q, not like 10Gi", o.Size)
	wrong(o.HostPath != "" && (!path.IsAbs(o.HostPath) || path.Clean(o.HostPath) != o.HostPath || o.HostPath == "/"), "--volume %q is not the full path of a directory of the node", o.HostPath)
	wrong(o.HostPath != "" && o.StorageClass != "", "--volume and --storage-class exclude each other")
	wrong(o.RegistryNodePort < 1024 || o.RegistryNodePort > 65535, "--registry-node-port is %d, not a port from 1024 to 65535", o.RegistryNodePort)
	errs = append(errs, checkProxy(o.Proxy), checkCA(o.CA))
	wrong(o.NoProxy != "" && !plain.MatchString(o.NoProxy), "--no-proxy must not have spaces: separate by commas")
	return errors.Join(errs...)
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
