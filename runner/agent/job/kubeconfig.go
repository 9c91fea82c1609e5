package job

import (
	"context"
	"os"
	"slices"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/cluster"
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
	j.hideAccess(access)
	path := j.dir.in("kubeconfig")
	if err := os.WriteFile(path, access.Kubeconfig, 0o600); err != nil {
		return err
	}
	j.kubeconfig = path
	if must {
		j.mu.Lock()
		j.attempt.Target = order.ClusterTarget(access.Server, access.Authority, j.spec.InstallID) // on disk with the next phase
		j.mu.Unlock()
	}
	return nil
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
	raw, found, err := j.dir.readOut("in/kubeconfig", maxKubeconfig)
	if err != nil || !found {
		return err
	}
	access, err := cluster.Parse(raw, j.dir.engine())
	if err != nil {
		return err
	}
	j.hideAccess(access)
	return nil
}
