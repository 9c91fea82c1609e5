package order

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// Platform is that of this runner, as the archives of releases name it.
const Platform = runtime.GOOS + "_" + runtime.GOARCH

// Place is where effects of this runner happen and with what.
type Place struct {
	// Target names the machine or the cluster, and the install.
	Target       string
	EngineDigest string
	// TerraformDigest is that of the Terraform executable, "" when there is none.
	TerraformDigest string
	// PulumiDigest is the same for Pulumi.
	PulumiDigest string
	// Lineage and Serial are those of the present state; zero without one.
	Lineage string
	Serial  int64
}

// Base is the part of an effect that is known without the plan: it is found out
// again before an apply.
func Base(spec jobspec.Spec, p Place, tool capsule.Tool) capsule.Effect {
	e := capsule.Effect{
		OrgID:        spec.OrgID,
		InstallID:    spec.InstallID,
		Target:       p.Target,
		ChangeKind:   changeKind(spec),
		Tool:         tool,
		EngineDigest: p.EngineDigest,
		Lineage:      p.Lineage,
		Serial:       p.Serial,
		Verdict:      capsule.Unevaluated, // until rules are held against the plan
	}
	if spec.Resource != nil {
		e.ResourceID, e.Component = spec.Resource.ID, spec.Resource.Name
	}
	if spec.Action != nil {
		e.Component = spec.Action.Name
	}
	if spec.Release != nil {
		e.Component = spec.Release.ID
		e.ArtifactDigest = manifestDigest(*spec.Release)
	}
	if u := spec.RunnerUpdate; u != nil {
		e.Component = "runner"
		pack, _ := u.For(Platform)
		e.ArtifactDigest = pack.Digest
	}
	if spec.Artifact != nil {
		e.ArtifactDigest = spec.Artifact.Digest
		if spec.Kind == jobspec.KindPlugin {
			e.PluginDigest = spec.Artifact.Digest
		}
	}
	switch tool.Name { // the runner's own measurement, not what the engine says
	case jobspec.ToolTerraform, jobspec.ToolOpenTofu:
		e.Tool.Digest = p.TerraformDigest
	case jobspec.ToolPulumi:
		e.Tool.Digest = p.PulumiDigest
	}
	return e
}

// Planned completes an effect with what a plan job produced. plan is the
// canonical plan, inputs are the rendered inputs as JSON.
func Planned(base capsule.Effect, salt, plan, inputs []byte) (capsule.Effect, error) {
	base.PlanDigest = capsule.SaltedDigest(salt, plan)
	canonical, err := canonicalInputs(inputs)
	if err != nil {
		return base, fmt.Errorf("inputs of the plan: %w", err)
	}
	base.InputsDigest = capsule.SaltedDigest(salt, canonical)
	return base, nil
}

// Again is the planned effect with everything that base has measured again.
func Again(planned, base capsule.Effect) capsule.Effect {
	base.PlanDigest, base.InputsDigest, base.FootprintDigest = planned.PlanDigest, planned.InputsDigest, planned.FootprintDigest
	return base
}

func canonicalInputs(inputs []byte) ([]byte, error) {
	if len(inputs) == 0 {
		inputs = []byte("{}")
	}
	d := json.NewDecoder(bytes.NewReader(inputs))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return nil, fmt.Errorf("not JSON") //nolint:perfsprint // the cause could quote a secret
	}
	exact, err := capsule.Exact(tree)
	if err != nil {
		return nil, err
	}
	return capsule.Canonical(exact)
}

func changeKind(spec jobspec.Spec) string {
	switch {
	case spec.Action != nil && spec.Action.AdHoc:
		return "ad_hoc"
	case spec.Kind == jobspec.KindAction:
		return "script"
	case spec.Kind == jobspec.KindRelease && spec.Destroy:
		return "forget"
	case spec.Kind == jobspec.KindRelease:
		return "accept"
	case spec.Destroy:
		return "teardown"
	case spec.Kind == jobspec.KindSecretSync:
		return "secret_sync"
	case spec.Kind == jobspec.KindRunnerUpdate:
		return jobspec.ChangeOfRunner
	default:
		return "deploy"
	}
}

// manifestDigest names what a release brings; a release without a manifest has
// no digest that could be approved.
func manifestDigest(r jobspec.Release) string {
	manifest, err := r.Manifest()
	if err != nil {
		return "no manifest: " + err.Error()
	}
	digest, err := manifest.Digest()
	if err != nil {
		return "no manifest: " + err.Error()
	}
	return digest
}

// Target names the place of an install on this machine. It changes when the
// data directory is carried to another machine.
func Target(installID string) string {
	id, err := os.ReadFile("/etc/machine-id")
	if err != nil || len(bytes.TrimSpace(id)) == 0 {
		host, _ := os.Hostname()
		id = []byte("hostname " + host)
	}
	return "machine:" + strings.TrimPrefix(capsule.DigestBytes([]byte(strings.TrimSpace(string(id))+"\n"+installID)), "sha256:")
}

// ClusterTarget names the place of an install on a cluster, which its server and
// its authority identify.
func ClusterTarget(server string, authority []byte, installID string) string {
	name := server + "\n" + capsule.DigestBytes(authority) + "\n" + installID
	return "cluster:" + strings.TrimPrefix(capsule.DigestBytes([]byte(name)), "sha256:")
}

// NamedClusterTarget is ClusterTarget for a cluster that a component makes: uid is
// what the cluster says it is, "" where that may not be read. Another cluster at
// the same address, and the same one behind another authority, are other places.
func NamedClusterTarget(server string, authority []byte, uid, installID string) string {
	return ClusterTarget(server, authority, uid+"\n"+installID)
}

// Digests hashes executables, and remembers the digest of one that did not
// change since: same file, size and times. The kernel sets the change time; who
// can forge it owns the machine. Safe for concurrent use.
type Digests struct {
	mu    sync.Mutex
	known map[stamp]string
}

type stamp struct {
	dev, ino    uint64
	size        int64
	mtim, ctime syscall.Timespec
}

// Of returns the digest of the file at path.
func (d *Digests) Of(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", fmt.Errorf("digest of %s: no file", path)
	}
	key := stamp{dev: sys.Dev, ino: sys.Ino, size: sys.Size, mtim: sys.Mtim, ctime: sys.Ctim}
	d.mu.Lock()
	defer d.mu.Unlock()
	if digest, ok := d.known[key]; ok {
		return digest, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("digest of %s: %w", path, err)
	}
	digest := "sha256:" + hex.EncodeToString(h.Sum(nil))
	if d.known == nil {
		d.known = map[stamp]string{}
	}
	d.known[key] = digest
	return digest, nil
}
