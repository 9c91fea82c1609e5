package helm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

const (
	// maxHistory is how many revisions of a release are kept, as by Helm, when the
	// component does not say it.
	maxHistory = 10
	// labelChange is on the record of a revision: the change that made it.
	labelChange = "berth.dev/change"
)

// Apply does what in/pinned holds. It renders nothing: the release is made of
// the objects that were shown.
func Apply(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	result := jobspec.Result{Tool: tool()}
	p, err := readPinned(j, "pinned")
	if err != nil {
		return result, job.Refusef("plan again", "what the plan pinned cannot be read: %v", err)
	}
	if p.Format != pinnedFormat {
		return result, job.Refusef("plan again", "what the plan pinned has format %d, this engine knows %d", p.Format, pinnedFormat)
	}
	if j.Spec.Destroy != (p.Mode == modeUninstall) {
		return result, job.Refusef("plan again", "the plan of %s is for an %s", j.Subject(), p.Mode)
	}
	cluster, err := kube.Connect(ctx, j)
	if unbegun := job.Unbegun(ctx, j); unbegun != nil {
		return result, unbegun
	}
	if err != nil {
		return result, err
	}
	held, err := openHeld(ctx, j)
	if err != nil {
		return result, err
	}
	defer func() { _ = held.Close() }() // the agent frees a lock that stays
	a := &applying{job: j, cluster: cluster, pinned: p, planned: kube.Unpin(p.Changes), keeping: keeping{cluster, p.inputs, held, cluster.InventoryOf(j, p.Namespace)}}
	result.Outputs, err = a.change(ctx)
	if held != nil {
		result.Lineage, result.Serial = held.Position()
	}
	return result, err
}

// change does what the plan says, and returns the outputs.
func (a *applying) change(ctx context.Context) (jobspec.Outputs, error) {
	if a.Mode == modeUninstall {
		return nil, a.saved(a.uninstall(ctx))
	}
	deployed, err := a.release(ctx)
	if err = a.saved(err); err != nil {
		return nil, err
	}
	return writeOutputs(ctx, a.job, a.cluster, deployed)
}

// saved makes a failure of an apply whose records were not all kept: Helm continues when
// it cannot write how an action ended.
func (a *applying) saved(err error) error {
	if unsaved := a.keeping.held.Unsaved(); err == nil && unsaved != nil {
		return job.Failf("plan again: the next plan starts from what is there", "%s of release %s is done, but %v", a.Mode, a.ReleaseName, unsaved)
	}
	return err
}

// applying is an apply under way.
type applying struct {
	job     *job.Job
	cluster *kube.Cluster
	pinned
	planned []kube.Change
	keeping keeping
	at      located

	inventory *kube.Inventory
	standing  standing
	crds      []crdStep
	writer    *writer
	config    *action.Configuration
}

// release installs or upgrades.
func (a *applying) release(ctx context.Context) (*release.Release, error) {
	if err := a.keeping.forgetGone(ctx, a.job.Logf); err != nil {
		return nil, err
	}
	if err := a.cluster.EnsureNamespace(ctx, a.Namespace, a.job.Spec.InstallID, a.CreateNamespace); err != nil {
		return nil, err
	}
	if err := a.claim(ctx); err != nil {
		return nil, err
	}
	targets, err := a.compare(ctx)
	if err != nil {
		return nil, err
	}
	refs := make([]kube.Ref, len(targets))
	for i, obj := range targets {
		refs[i] = kube.RefOf(obj)
	}
	if err := a.inventory.Save(ctx, refs); err != nil {
		return nil, err
	}
	if err := a.keeping.move(a.at, a.job.Logf, a.guard(ctx)); err != nil {
		return nil, err
	}
	if err := a.unstick(); err != nil {
		return nil, err
	}
	if err := a.upgradeCRDs(ctx); err != nil {
		return nil, err
	}
	deployed, err := a.run(ctx)
	if err != nil {
		return nil, a.afterFailure(ctx, a.explain(deployed, err))
	}
	a.job.Logf("release %s is deployed as revision %d", deployed.Name, deployed.Version)
	return deployed, nil
}

// claim takes the component for this order and reads where its release stands.
func (a *applying) claim(ctx context.Context) error {
	a.inventory = a.cluster.InventoryOf(a.job, a.Namespace)
	if _, err := a.inventory.Claim(ctx, a.job.Spec.Fence); err != nil {
		return err
	}
	at, err := a.keeping.find(ctx)
	if err != nil {
		return err
	}
	a.at, a.standing = at, stand(at.history)
	return a.sameStanding()
}

// sameStanding is the first part of the comparison: the release's own history.
func (a *applying) sameStanding() error {
	var differs []jobspec.Difference
	field := func(name, want, got string) {
		if want != got {
			differs = append(differs, jobspec.Difference{Field: "Release/" + a.ReleaseName + ": " + name, Want: want, Got: got})
		}
	}
	if a.Mode != modeUninstall {
		field("deployed revision", strconv.Itoa(a.Live), strconv.Itoa(a.standing.live()))
	}
	if from := a.at.moves(a.StorageDriver); a.Mode != modeUninstall && from != "" { // a move that is done is no difference
		field("storage driver", cmp.Or(a.MovesFrom, a.StorageDriver), from)
	}
	field("last revision", strconv.Itoa(a.LastRevision), strconv.Itoa(a.standing.last()))
	field("status", a.LastStatus, string(a.standing.lastStatus()))
	if len(differs) > 0 {
		return kube.Stale(a.job.Subject(), differs)
	}
	return nil
}

// compare repeats the dry run. What it finds must be what was approved, or done
// already; it is also what is written then, for exactly those versions.
func (a *applying) compare(ctx context.Context) ([]*unstructured.Unstructured, error) {
	crds, own, err := parseCRDs(a.CRDs)
	if err != nil {
		return nil, err
	}
	d, scope, order, err := newDiffer(a.cluster, a.inputs, a.standing, own)
	if err != nil {
		return nil, err
	}
	targets, err := scope.objects(a.Manifest, a.Namespace)
	if err != nil {
		return nil, err
	}
	for _, obj := range targets {
		d.owner.mark(obj)
	}
	namespace, err := a.cluster.NamespaceChange(ctx, a.Namespace, a.job.Spec.InstallID, a.CreateNamespace)
	if err != nil {
		return nil, err
	}
	d.absent = absentNamespaces(namespace, targets)
	now := []kube.Change{namespace}
	look := crdLook{cluster: a.cluster, in: a.inputs, mode: a.Mode}
	if a.crds, err = look.steps(ctx, crds); err != nil {
		return nil, err
	}
	now = append(now, look.changes(a.crds)...)
	steps, err := d.wanted(ctx, targets)
	if err != nil {
		return nil, err
	}
	gone, err := d.unwanted(ctx, order, targets)
	if err != nil {
		return nil, err
	}
	now = append(now, changesOf(append(steps, gone...))...)
	if differs := kube.Compare(a.planned, now); len(differs) > 0 {
		return nil, kube.Stale(a.job.Subject(), differs)
	}
	return targets, a.prepare(ctx, d, steps, gone)
}

// prepare makes what Helm's actions work with.
func (a *applying) prepare(ctx context.Context, d *differ, steps, gone []step) error {
	g := getter{cluster: a.cluster, namespace: a.Namespace}
	a.writer = &writer{
		Client: newKubeClient(g), ctx: ctx, job: a.job, cluster: a.cluster, inventory: a.inventory, differ: d, gone: gone,
		namespace: kube.Ref{Kind: "Namespace", Name: a.Namespace},
	}
	a.writer.plan(a.planned)
	a.writer.steps = map[kube.Ref]step{}
	for _, s := range steps {
		a.writer.steps[keyOf(s.Object)] = s
	}
	caps, err := capabilities(a.cluster, nil)
	if err != nil {
		return err
	}
	inner, err := a.keeping.driver(a.storage())
	if err != nil {
		return err
	}
	a.config = &action.Configuration{
		RESTClientGetter: g, KubeClient: a.writer, Capabilities: caps,
		Releases:       storage.Init(a.guard(ctx)(inner)),
		Log:            func(string, ...any) {}, // what counts is logged where it is done
		HookOutputFunc: func(_, _, _ string) io.Writer { return a.job.Stdout },
	}
	return nil
}

// storage is the place that Helm's action works with. A removal takes the release from
// where it is.
func (a *applying) storage() string {
	if a.Mode == modeUninstall {
		return a.at.from
	}
	return a.StorageDriver
}

// guard makes a storage one that is written only while the claim is ours.
func (a *applying) guard(ctx context.Context) func(driver.Driver) driver.Driver {
	return func(d driver.Driver) driver.Driver { return fence(ctx, d, a.inventory) }
}

// unstick ends what a killed apply left, so that Helm goes on from there: the
// unfinished revision has failed, and the one below it is what is deployed.
func (a *applying) unstick() error {
	last := a.standing.Last
	blocks := last != nil && (unfinished(last) ||
		a.Mode == modeInstall && last.Info.Status != release.StatusFailed && last.Info.Status != release.StatusUninstalled)
	if blocks {
		a.job.Logf("revision %d of release %s was left %s; marking it failed", last.Version, last.Name, last.Info.Status)
		description := fmt.Sprintf("interrupted while %s", last.Info.Status)
		last.SetStatus(release.StatusFailed, description)
		if err := a.config.Releases.Update(last); err != nil {
			return kube.Explain(err, "mark the interrupted revision as failed")
		}
	}
	base := a.standing.Base
	if a.Mode != modeUpgrade || base.Info.Status == release.StatusDeployed {
		return nil
	}
	a.job.Logf("revision %d of release %s is the one that is deployed", base.Version, base.Name)
	base.Info.Status = release.StatusDeployed
	return kube.Explain(a.config.Releases.Update(base), "mark the last revision as deployed")
}

// run lets Helm install or upgrade the literal chart.
func (a *applying) run(ctx context.Context) (*release.Release, error) {
	chart := literal(a.Chart, a.Sources, a.CRDs, a.AllValues)
	if err := a.verify(ctx); err != nil {
		return nil, err
	}
	labels := map[string]string{labelChange: a.job.Spec.ChangeID}
	// Helm is not given ctx: it would go on in the background after it ended. Our
	// client ends at the next safe point, and Helm records that.
	if a.Mode == modeInstall {
		in := action.NewInstall(a.config)
		in.ReleaseName, in.Namespace, in.Replace, in.TakeOwnership = a.ReleaseName, a.Namespace, true, a.TakeOwnership
		in.Wait, in.WaitForJobs, in.Timeout = true, true, a.timeout(ctx)
		in.Labels, in.SkipSchemaValidation, in.DisableOpenAPIValidation = labels, true, true
		return in.Run(chart, a.Values)
	}
	up := action.NewUpgrade(a.config)
	up.Namespace, up.TakeOwnership, up.ResetValues, up.MaxHistory = a.Namespace, a.TakeOwnership, true, cmp.Or(a.MaxHistory, maxHistory)
	up.Wait, up.WaitForJobs, up.Timeout = true, true, a.upgradeTimeout(ctx)
	up.Labels, up.SkipSchemaValidation, up.DisableOpenAPIValidation = labels, true, true
	return up.Run(a.ReleaseName, chart, a.Values)
}

// verify checks, before anything is written, that Helm will make of the literal
// chart what was shown.
func (a *applying) verify(ctx context.Context) error {
	if ctx.Err() != nil {
		return &job.Failure{Message: fmt.Sprintf("the apply of %s was not begun", a.job.Subject())}
	}
	chart := literal(a.Chart, a.Sources, a.CRDs, a.AllValues)
	if err := chartutil.ProcessDependenciesWithMerge(chart, a.Values); err != nil {
		return err
	}
	data, err := chartutil.ToRenderValuesWithSchemaValidation(chart, a.Values, chartutil.ReleaseOptions{}, a.config.Capabilities, true)
	if err != nil {
		return err
	}
	files, err := engine.Render(chart, data)
	if err != nil {
		return err
	}
	got, err := assemble(chart, files)
	if err != nil {
		return err
	}
	if got.Manifest != a.Manifest {
		return job.Refusef("tell those who make the runner", "the chart of %s cannot be installed as it was shown", a.job.Subject())
	}
	return nil
}

// timeout is what is left of the job's time.
func (a *applying) timeout(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline)
	}
	return a.job.Spec.Timeout()
}

// upgradeTimeout is what of it an upgrade may take.
func (a *applying) upgradeTimeout(ctx context.Context) time.Duration {
	left := a.timeout(ctx)
	if a.putsBack() {
		left -= putBackTime(left)
	}
	return left
}

// explain tells how an action failed: by our client's first failure rather than
// by what Helm made of it.
func (a *applying) explain(r *release.Release, err error) error {
	if a.writer.failure != nil {
		err = a.writer.failure
	}
	if isStale(err) && !a.writer.wrote {
		return a.undo(r, err)
	}
	f := job.Failf("look at what is not ready, or at the log of the hook; then plan again", "%s of release %s: %v", a.Mode, a.ReleaseName, err)
	if said, ok := errors.AsType[*job.Failure](err); ok {
		f.Differs, f.Reason = said.Differs, said.Reason
		if said.Remedy != "" {
			f.Remedy = said.Remedy
		}
		if said.Outcome == jobspec.OutcomeRefused && !a.writer.wrote {
			f.Outcome = said.Outcome
		}
	}
	return f
}

// undo takes back the record of an action that wrote nothing else, so that the
// history does not tell of it.
func (a *applying) undo(r *release.Release, err error) error {
	if r == nil || r.Version <= a.LastRevision {
		return err
	}
	if _, undoErr := a.config.Releases.Delete(r.Name, r.Version); undoErr != nil {
		a.job.Logf("revision %d, which wrote nothing, stays in the history as failed: %v", r.Version, undoErr)
	}
	return err
}
