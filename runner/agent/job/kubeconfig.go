package job

import (
	"context"
	"errors"
	"slices"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/runner/agent/cluster"
	"github.com/berth-dev/berth/runner/agent/leaves"
	"github.com/berth-dev/berth/runner/agent/order"
)

// maxKubeconfig is the largest in/kubeconfig that is read again, in bytes.
const maxKubeconfig = 4 << 20

// noClusterRemedy is what to do when a job needs a cluster and there is none.
const noClusterRemedy = "give the runner a kubeconfig with --kubeconfig (BERTH_KUBECONFIG, or kubeconfig in config.json), then try again"

// reachCluster gives the engine its way to the cluster, for jobs that may need
// one.
func (j *job) reachCluster(ctx context.Context) error {
	must := j.kind().OnCluster && j.spec.Operation != jobspec.OperationBuild
	if !must && !scriptsReach(j.spec.Action) {
		return nil
	}
	if named := j.spec.Cluster(); named != nil {
		return j.reachNamed(ctx, *named)
	}
	if j.deps.Cluster == nil {
		if must {
			return refuse(jobspec.OutcomeFailed, noClusterRemedy, "this runner has no cluster to work on")
		}
		return nil
	}
	access, err := j.deps.Cluster(ctx, j.spec.Timeout())
	if err != nil {
		if must {
			return refuse(jobspec.OutcomeFailed, "make sure that the runner can read its kubeconfig, then try again", "%v", err)
		}
		j.remark("the scripts get no kubeconfig: " + err.Error()) // most need none
		return nil
	}
	target := ""
	if must {
		target = order.ClusterTarget(access.Server, access.Authority, j.spec.InstallID)
	}
	return j.give(access, target)
}

// give writes the engine's kubeconfig. target names the place of the effect, ""
// for the machine.
func (j *job) give(access cluster.Access, target string) error {
	j.hideAccess(access)
	path := j.dir.In("kubeconfig")
	if err := cluster.Write(path, access); err != nil {
		return err
	}
	j.kubeconfig = path
	j.mu.Lock()
	j.attempt.Target, j.attempt.Cloud = target, access.Cloud // on disk with the next phase
	j.until = access.Until
	j.mu.Unlock()
	return nil
}

// reachNamed gives the engine its way to a cluster that a component makes. There
// is no other: the sandbox's cluster never stands in for it.
func (j *job) reachNamed(ctx context.Context, named jobspec.Cluster) error {
	access, err := j.deps.Contexts.Of(ctx, named, func() (cluster.Access, error) { return j.clusterMade(ctx, named) })
	var missing *cluster.MissingError
	if errors.As(err, &missing) {
		r := refuse(jobspec.OutcomeFailed, missing.Remedy, "%s", missing.Why)
		if !missing.Transient {
			r.result.Reason = jobspec.ReasonNeedsChange
		}
		return r
	}
	if err != nil {
		return err
	}
	j.hideAccess(access)
	uid, err := cluster.Identity(ctx, access)
	if err != nil {
		return refuse(jobspec.OutcomeFailed, "make sure that the runner reaches the cluster and that its credentials are still valid, then retry the step",
			"Kubernetes context %q: %v", named.Context, err)
	}
	return j.give(access, order.NamedClusterTarget(access.Server, access.Authority, uid, j.spec.InstallID))
}

// clusterMade is the access that a component's outputs give: those of the job's
// state, or, for an apply, of its plan.
func (j *job) clusterMade(ctx context.Context, named jobspec.Cluster) (cluster.Access, error) {
	if rule, _ := order.RuleOf(j.spec.Kind, j.spec.Operation); rule.Pinned {
		record, _, err := j.planRecord()
		if err != nil {
			return cluster.Access{}, err
		}
		raw, err := j.deps.Keys.Open(j.kubeconfigPurpose(), record.Kubeconfig)
		if err != nil {
			return cluster.Access{}, errors.New("were not used by its plan, or were sealed for another machine: plan the change again")
		}
		return j.deps.Contexts.Again(ctx, raw)
	}
	outputs, err := leaves.Outputs(j.deps.Keys.Open, j.spec, named.Component)
	if err != nil {
		return cluster.Access{}, err
	}
	access, keep, err := j.deps.Contexts.Made(ctx, outputs)
	j.made = keep
	return access, err
}

// keepToken renews the engine's token of a cloud until the function it returns is
// called, which may be twice.
func (j *job) keepToken(life context.Context) (end func()) {
	if j.attempt.Cloud == nil {
		return func() {}
	}
	kept := cluster.Kept{
		Kubeconfig: j.dir.In("kubeconfig"), UID: j.attempt.Isolation.UID, GID: j.attempt.Isolation.GID,
		Cluster: *j.attempt.Cloud, Until: j.until, Learn: func(token string) { j.secrets.add(token, "kubeconfig") }, Log: j.log,
	}
	ctx, cancel := context.WithCancel(life)
	over := make(chan struct{})
	go func() {
		defer close(over)
		j.deps.Contexts.Keep(ctx, kept)
	}()
	return func() { cancel(); <-over }
}

func (j *job) kubeconfigPurpose() seal.Purpose {
	purpose := j.pinnedPurpose(j.spec.ChangeID)
	purpose.Path = "kubeconfig"
	return purpose
}

// sealMade seals the access that was made of outputs, for the apply.
func (j *job) sealMade() ([]byte, error) {
	if len(j.made) == 0 {
		return nil, nil
	}
	return seal.Seal(j.deps.Keys.Recipients(), j.kubeconfigPurpose(), j.made)
}

// scriptsReach tells whether any script of an action gets the kubeconfig.
func scriptsReach(a *jobspec.Action) bool {
	return a != nil && slices.ContainsFunc(a.Steps, func(s jobspec.ActionStep) bool { return !s.NoKubeConfig })
}

func (j *job) hideAccess(access cluster.Access) {
	for _, secret := range access.Secrets {
		j.secrets.add(secret, "kubeconfig")
	}
}

// hideAccessAgain registers what an earlier agent gave to the engine.
func (j *job) hideAccessAgain() error {
	raw, found, err := j.dir.ReadOut("in/kubeconfig", maxKubeconfig)
	if err != nil || !found {
		return err
	}
	access, err := cluster.Parse(raw, j.dir.Engine())
	if err != nil {
		return err
	}
	j.hideAccess(access)
	return nil
}
