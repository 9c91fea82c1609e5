package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/services/builder/internal/database"
	"github.com/berth-dev/berth/services/builder/internal/fleet/pods"
	"github.com/berth-dev/berth/services/builder/internal/fleet/roster"
	"github.com/berth-dev/berth/services/builder/internal/orders"
	"github.com/berth-dev/berth/services/internal/setting"
)

// Pods are the settings of Build Runners as pods.
type Pods struct {
	// Kubeconfig is a file that says where the cluster is; empty: this one.
	Kubeconfig string `env:"BERTH_BUILD_RUNNER_KUBECONFIG" shown:"the cluster of builder's pod"`
	// Namespace of the pods, for this control plane alone.
	Namespace string `env:"BERTH_BUILD_RUNNER_NAMESPACE" default:"berth-builds"`
	// Image of the pods, by digest.
	Image string `env:"BERTH_BUILD_RUNNER_IMAGE"`
	// PullSecret of Image, a Secret in Namespace.
	PullSecret string `env:"BERTH_BUILD_RUNNER_PULL_SECRET"`
	// URL is where pods poll, push and send logs: the front.
	URL string `env:"BERTH_BUILD_RUNNER_URL"`
	// Via is the name of a Service behind which the host of URL is.
	Via string `env:"BERTH_BUILD_RUNNER_VIA"`
	// CAFile has authorities that pods trust besides the system's.
	CAFile string `env:"BERTH_BUILD_RUNNER_CA_FILE"`
	// BuildKitSecret, BuildSecrets and BuildRegistries are names of Secrets in
	// Namespace: keys of a BuildKit elsewhere, build secrets, and credentials of base
	// images. {org} stands for the org's id, with hyphens for underscores.
	BuildKitSecret  string `env:"BERTH_BUILD_RUNNER_BUILDKIT_TLS"`
	BuildSecrets    string `env:"BERTH_BUILD_RUNNER_BUILD_SECRETS"`
	BuildRegistries string `env:"BERTH_BUILD_RUNNER_BUILD_REGISTRIES"`
	// MaxAge is when a pod is replaced, between two builds.
	MaxAge time.Duration `env:"BERTH_BUILD_RUNNER_MAX_AGE" default:"24h"`
	// MaxIdle is how long a pod stays without a build.
	MaxIdle time.Duration `env:"BERTH_BUILD_RUNNER_MAX_IDLE" default:"15m"`
	// RequestCPU and RequestMemory are requested for a pod.
	RequestCPU    string `env:"BERTH_BUILD_RUNNER_CPU" default:"100m"`
	RequestMemory string `env:"BERTH_BUILD_RUNNER_MEMORY" default:"256Mi"`
	// MemoryLimit and Disk are the most that a pod may use.
	MemoryLimit string `env:"BERTH_BUILD_RUNNER_MEMORY_LIMIT" default:"2Gi"`
	Disk        string `env:"BERTH_BUILD_RUNNER_DISK" default:"10Gi"`
}

// The limits of MaxAge and MaxIdle: a pod needs some seconds to start.
const (
	leastLimit = 10 * time.Second
	mostLimit  = 30 * 24 * time.Hour
)

// Validate reports every setting that does not work, at once.
func (p Pods) Validate() error {
	errs := []error{setting.URL("BERTH_BUILD_RUNNER_URL", p.URL)}
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	// Runners take plain HTTP from loopback only, which is in no other pod.
	if u, err := url.Parse(p.URL); err == nil && u.Scheme == "http" {
		fail("BERTH_BUILD_RUNNER_URL is plain http, want https")
	}
	if p.Namespace == "" {
		fail("BERTH_BUILD_RUNNER_NAMESPACE is not set")
	}
	if p.Image == "" {
		fail("BERTH_BUILD_RUNNER_IMAGE is not set: name an image with berth-runner and berth-engine, such as builder's own")
	}
	for name, limit := range map[string]time.Duration{"BERTH_BUILD_RUNNER_MAX_AGE": p.MaxAge, "BERTH_BUILD_RUNNER_MAX_IDLE": p.MaxIdle} {
		if limit < leastLimit || limit > mostLimit {
			fail("%s is %s, want %s to %s", name, limit, leastLimit, mostLimit)
		}
	}
	for _, size := range []struct{ name, text string }{
		{"BERTH_BUILD_RUNNER_CPU", p.RequestCPU}, {"BERTH_BUILD_RUNNER_MEMORY", p.RequestMemory},
		{"BERTH_BUILD_RUNNER_MEMORY_LIMIT", p.MemoryLimit}, {"BERTH_BUILD_RUNNER_DISK", p.Disk},
	} {
		if !pods.Amount(size.text) {
			fail("%s is %q, want an amount such as 500m or 2Gi", size.name, size.text)
		}
	}
	for _, of := range []struct{ name, secret string }{
		{"BERTH_BUILD_RUNNER_BUILD_SECRETS", p.BuildSecrets}, {"BERTH_BUILD_RUNNER_BUILD_REGISTRIES", p.BuildRegistries},
	} {
		if of.secret != "" && !strings.Contains(of.secret, pods.OrgPlace) {
			fail("%s is %q: write %s into it, for a Secret of each org's own", of.name, of.secret, pods.OrgPlace)
		}
	}
	return errors.Join(errs...)
}

// fleet are the Build Runners as pods.
func (p Pods) fleet(store *database.Store, keys *orders.Keys, environ []string) (*pods.Fleet, error) {
	env, err := podEnv(environ)
	if err != nil {
		return nil, err
	}
	buildKit, err := p.buildKit(environ)
	if err != nil {
		return nil, err
	}
	return pods.New(pods.Config{
		Roster:     &roster.Roster{Store: store, Keys: keys, RunnerAPIURL: p.URL},
		Kubeconfig: p.Kubeconfig, Namespace: p.Namespace, Image: p.Image, PullSecret: p.PullSecret, Via: p.Via, CAFile: p.CAFile,
		MaxAge: p.MaxAge, MaxIdle: p.MaxIdle, Env: env, Log: slog.Default(),
		BuildKit: buildKit, BuildSecrets: p.BuildSecrets, BuildRegistries: p.BuildRegistries,
		CPU: p.RequestCPU, Memory: p.RequestMemory, MemoryLimit: p.MemoryLimit, Disk: p.Disk,
	})
}

// podsGet are the variables that pods get from builder's environment. Telemetry is
// not among them: nothing in a pod may connect to a collector.
var podsGet = []string{
	"LANG", "TZ", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "BERTH_LOG_FORMAT", "BERTH_LOG_LEVEL",
	"BERTH_BUILD_NETWORK",
}

// buildKit is the one that pods build images with, as builder's environment names it.
func (p Pods) buildKit(environ []string) (b pods.BuildKit, err error) {
	given := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		given[name] = value
	}
	switch address := given["BERTH_BUILDKIT_ADDR"]; {
	case address == "" && p.BuildKitSecret == "":
		return b, nil
	case !strings.HasPrefix(address, "tcp://"):
		return b, fmt.Errorf("BERTH_BUILDKIT_ADDR is %q, and Build Runners that are pods want tcp://HOST:PORT", address)
	case p.BuildKitSecret == "":
		return b, errors.New("BERTH_BUILD_RUNNER_BUILDKIT_TLS is not set: pods need ca.pem, cert.pem and key.pem for BERTH_BUILDKIT_ADDR")
	case !strings.Contains(address, pods.OrgPlace) && given["BERTH_BUILDKIT_ORG"] == "":
		return b, errors.New("BERTH_BUILDKIT_ADDR names one BuildKit for all orgs: write {org} into it, or name the one org that may use it with BERTH_BUILDKIT_ORG")
	default:
		return pods.BuildKit{Address: address, Org: given["BERTH_BUILDKIT_ORG"], Secret: p.BuildKitSecret}, nil
	}
}

// podEnv is the environment of Build Runners that are pods. Who may read pods may
// read it, so a proxy with a password is refused.
func podEnv(environ []string) ([]string, error) {
	var env []string
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if !slices.Contains(podsGet, name) {
			continue
		}
		if u, err := url.Parse(value); err == nil && u.User != nil {
			return nil, fmt.Errorf("%s has credentials in it, which anybody who may look at Build Runner pods would see: use a proxy without", name)
		}
		env = append(env, pair)
	}
	slices.Sort(env)
	return env, nil
}
