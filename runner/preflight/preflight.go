// Package preflight looks whether a runner could work: whether it reaches the
// control plane, whether the caller may apply its manifest, whether there is
// storage and whether versions fit. It changes nothing. Each finding says what
// is wrong and what to do about it.
package preflight

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/berth-dev/berth/pkg/enrolcode"
	"github.com/berth-dev/berth/pkg/permissions"
	"github.com/berth-dev/berth/runner/agent/cluster"
)

// Status of a finding.
type Status string

// The kinds of findings.
const (
	OK   Status = "ok"
	Warn Status = "warn" // it works, but not well
	Fail Status = "fail"
	Skip Status = "skip" // could not be checked; the finding says why
)

// Finding is the result of one check.
type Finding struct {
	Check  string `json:"check"`
	Status Status `json:"status"`
	Detail string `json:"detail,omitempty"`
	Fix    string `json:"fix,omitempty"`
}

// Config says what to look at.
type Config struct {
	Code    enrolcode.Code
	Version string // of this runner
	// Proxy is the way out; empty: what the environment says. CAFile has
	// authorities in addition to the system's.
	Proxy, CAFile string

	// Cluster is where the manifest is to be applied; nil: not looked at.
	Cluster *cluster.Client
	// Rights, Namespaces, Namespace, Engines, PodSecurity, StorageClass, HostPath,
	// Relay and Permissions are those of the manifest.
	Rights, Namespace, Engines, PodSecurity, StorageClass, HostPath string

	Namespaces  []string
	Relay       bool
	Upgrade     bool // the runner has enrolled, and its code needs to work no more
	Permissions *permissions.List

	Now func() time.Time // nil means time.Now
}

// Run looks at everything.
func Run(ctx context.Context, cfg Config) []Finding {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	findings := checkCode(cfg)
	findings = append(findings, checkReach(ctx, cfg)...)
	if cfg.Cluster == nil {
		return append(findings, Finding{Check: "cluster", Status: Skip, Detail: "no --kubeconfig was given"})
	}
	return append(findings, checkCluster(ctx, cfg)...)
}

// Failed counts the findings that keep a runner from working.
func Failed(findings []Finding) int {
	n := 0
	for _, f := range findings {
		if f.Status == Fail {
			n++
		}
	}
	return n
}

func checkCode(cfg Config) []Finding {
	code := Finding{Check: "code", Status: OK, Detail: fmt.Sprintf("install %s, good until %s", cfg.Code.Install, cfg.Code.ExpiresAt.Format(time.RFC3339))}
	if cfg.Code.Expired(cfg.Now()) && !cfg.Upgrade {
		code.Status, code.Fix = Fail, "ask the vendor for a new code, or say --upgrade for a runner that is there already"
	}
	return []Finding{code, checkVersion(cfg.Version, cfg.Code.MinRunnerVersion)}
}

func checkVersion(have, floor string) Finding {
	f := Finding{Check: "runner version", Status: OK, Detail: have}
	if floor == "" {
		return f
	}
	f.Detail = fmt.Sprintf("%s, the control plane wants %s or newer", have, floor)
	mine, err := semver.NewVersion(strings.TrimPrefix(have, "v"))
	least, err2 := semver.NewVersion(strings.TrimPrefix(floor, "v"))
	switch {
	case err != nil || err2 != nil:
		f.Status = Warn
		f.Fix = "use a released runner: this one's version cannot be compared"
	case mine.LessThan(least):
		f.Status = Fail
		f.Fix = "use a newer image of the runner"
	}
	return f
}
