package helm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/heldreleases"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// Plan says what an apply would do and pins what it needs. It changes nothing.
func Plan(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	result := jobspec.Result{Tool: tool()}
	in, err := renderInputs(j, !j.Spec.Destroy)
	if err != nil {
		return result, err
	}
	cluster, err := kube.Connect(ctx, j)
	if err != nil {
		return result, err
	}
	held, err := readHeld(ctx, j)
	if err != nil {
		return result, err
	}
	keeping := keeping{cluster, in, held, cluster.InventoryOf(j, in.Namespace)}
	at, err := keeping.find(ctx)
	if err != nil {
		return result, err
	}
	p := &planning{job: j, cluster: cluster, in: in, held: held, at: at, standing: stand(at.history)}
	if j.Spec.Destroy {
		err = p.uninstall(ctx)
	} else {
		err = p.release(ctx)
	}
	if err != nil {
		return result, err
	}
	if err := p.write(ctx); err != nil {
		return result, err
	}
	if result.NoChange = p.noChange; result.NoChange {
		j.Logf("nothing to do for %s", j.Subject())
		if !j.Spec.Destroy {
			result.Outputs, err = writeOutputs(ctx, j, cluster, p.standing.Base)
		}
	}
	return result, err
}

// planning is a plan that is being made.
type planning struct {
	job      *job.Job
	cluster  *kube.Cluster
	in       inputs
	held     *heldreleases.Store
	at       located
	standing standing
	// movesFrom is the storage driver that the release leaves, "" when it stays.
	movesFrom string

	mode     mode
	chart    *chart.Chart
	rendered rendered
	objects  []*unstructured.Unstructured
	hooks    []hook
	live     int
	changes  []kube.Change
	noChange bool
	notes    []string // for people: what is out of the ordinary
}

// release plans an install or an upgrade.
func (p *planning) release(ctx context.Context) error {
	p.mode, p.live, p.movesFrom = modeInstall, p.standing.live(), p.at.moves(p.in.StorageDriver)
	if p.standing.Base != nil {
		p.mode = modeUpgrade
	}
	crds, own, err := p.render()
	if err != nil {
		return err
	}
	if err := p.fits(); err != nil {
		return err
	}
	p.hooks = hooksOf(p.rendered.Hooks)
	d, scope, order, err := p.differ(own)
	if err != nil {
		return err
	}
	if p.objects, err = scope.objects(p.rendered.Manifest, p.in.Namespace); err != nil {
		return p.wrong(err)
	}
	for _, obj := range p.objects {
		d.owner.mark(obj)
	}
	namespace, err := p.cluster.NamespaceChange(ctx, p.in.Namespace, p.job.Spec.InstallID, p.in.CreateNamespace)
	if err != nil {
		return err
	}
	d.absent = absentNamespaces(namespace, p.objects)
	p.changes = append(p.changes, namespace)
	look := crdLook{cluster: p.cluster, in: p.in, mode: p.mode, tell: true}
	definitions, err := look.steps(ctx, crds)
	if err != nil {
		return err
	}
	p.changes = append(p.changes, look.changes(definitions)...)
	if note := crdNote(definitions); note != "" {
		p.notes = append(p.notes, note)
	}
	steps, err := d.wanted(ctx, p.objects)
	if err != nil {
		return err
	}
	gone, err := d.unwanted(ctx, order, p.objects)
	if err != nil {
		return err
	}
	p.changes = append(p.changes, changesOf(append(steps, gone...))...)
	if p.noChange = kube.NoChange(p.changes) && p.sameRelease() && p.at.settled(p.in.StorageDriver); p.noChange {
		return nil // also when the change before this one ended without a word
	}
	if err := p.tryHooks(ctx, d); err != nil {
		return err
	}
	before, follows := previous(p.job, p.in, p.mode)
	if follows && p.movesFrom == "" && before.StorageDriver == p.in.StorageDriver {
		p.movesFrom = before.MovesFrom // it is done, and is still a part of what was approved
	}
	p.settle(before, follows)
	return nil
}

// settle makes the changes those of the plan that this one follows, as far as
// they are only being completed. What is gone and was not there for that plan
// either is no part of a plan.
func (p *planning) settle(before pinned, follows bool) {
	if follows {
		p.changes = kube.Settle(kube.Unpin(before.Changes), p.changes)
	}
	p.changes = slices.DeleteFunc(p.changes, func(c kube.Change) bool { return c.Action == kube.ActionNone && c.Live == nil })
}

// render renders the chart of the artifact, twice: what differs is not what an
// approval can be about.
func (p *planning) render() ([]*unstructured.Unstructured, kinds, error) {
	options := chartutil.ReleaseOptions{
		Name: p.in.ReleaseName, Namespace: p.in.Namespace, Revision: 1,
		IsInstall: p.mode == modeInstall, IsUpgrade: p.mode == modeUpgrade,
	}
	if p.mode == modeUpgrade {
		options.Revision = p.standing.last() + 1
	}
	var crds []*unstructured.Unstructured
	var own kinds
	var renders [2]rendered
	for i := range renders {
		c, err := loader.LoadDir(p.job.In("artifact"))
		if err != nil {
			return nil, nil, job.Refusef("build the component again", "the chart of %s cannot be read: %v", p.job.Subject(), err)
		}
		var files []crd
		if p.in.CRDMode != jobspec.CRDsSkip {
			files = crdFiles(c.CRDObjects())
		}
		if crds, own, err = parseCRDs(files); err != nil {
			return nil, nil, p.wrong(err)
		}
		caps, err := capabilities(p.cluster, crds)
		if err != nil {
			return nil, nil, err
		}
		if renders[i], err = render(c, p.in.Values, options, caps, p.cluster.Config); err != nil {
			return nil, nil, p.wrong(err)
		}
		p.chart = c
	}
	p.rendered = renders[0]
	if p.in.CRDMode == jobspec.CRDsSkip {
		p.rendered.CRDs = nil
	}
	if names := unstable(renders[0], renders[1]); len(names) > 0 {
		p.notes = append(p.notes, fmt.Sprintf("each render of %s gives something else (a random function, a time): each plan is a new change", strings.Join(names, ", ")))
	}
	return crds, own, nil
}

// wrong is a fault in the chart or in its values. One that a template found when
// it looked at the cluster may pass.
func (p *planning) wrong(err error) error {
	f := job.Wrongf("correct the chart or the values", "chart of %s: %v", p.job.Subject(), err)
	if said, ok := errors.AsType[*job.Failure](err); ok {
		f.Reason = said.Reason
	} else if strings.Contains(err.Error(), "error calling lookup:") {
		f.Reason = ""
	}
	return f
}

// differ prepares the comparison with what is live.
func (p *planning) differ(own kinds) (*differ, scoped, []kube.Ref, error) {
	return newDiffer(p.cluster, p.in, p.standing, own)
}

func newDiffer(cluster *kube.Cluster, in inputs, s standing, own kinds) (*differ, scoped, []kube.Ref, error) {
	scope := scoped{cluster: cluster, own: own}
	d := &differ{
		cluster: cluster, owner: owner{in.ReleaseName, in.Namespace}, takeOwnership: in.TakeOwnership,
		own: own, base: map[kube.Ref]bool{},
	}
	revisions := s.After
	if s.Base != nil {
		revisions = append([]*release.Release{s.Base}, revisions...)
		base, _, err := scope.past([]*release.Release{s.Base})
		if err != nil {
			return nil, scope, nil, err
		}
		for key := range base {
			d.base[key] = true
		}
	}
	past, order, err := scope.past(revisions)
	d.past = past
	return d, scope, order, err
}

// absentNamespaces are those in which nothing can be tried, since the same apply
// makes them.
func absentNamespaces(own kube.Change, objects []*unstructured.Unstructured) map[string]bool {
	absent := map[string]bool{}
	if own.Action == kube.ActionCreate {
		absent[own.Object.Name] = true
	}
	for _, obj := range objects {
		if ref := kube.RefOf(obj); ref.Group == "" && ref.Kind == "Namespace" {
			absent[ref.Name] = true
		}
	}
	return absent
}

// sameRelease tells whether the release that is deployed is the one that this
// plan would make, so that a new revision would say nothing new.
func (p *planning) sameRelease() bool {
	base, last := p.standing.Base, p.standing.Last
	if base == nil || last != base || base.Info.Status != release.StatusDeployed || base.Chart == nil || base.Chart.Metadata == nil {
		return false
	}
	want, have := p.chart.Metadata, base.Chart.Metadata
	return want.Name == have.Name && want.Version == have.Version && want.AppVersion == have.AppVersion &&
		base.Manifest == p.rendered.Manifest && reflect.DeepEqual(hooksOf(base.Hooks), hooksOf(p.rendered.Hooks)) &&
		sameValues(base.Config, p.in.Values)
}

// sameValues compares values as they are stored: as JSON, where all numbers are
// of one kind.
func sameValues(a, b map[string]any) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(asStored(a), asStored(b))
}

func asStored(values map[string]any) any {
	data, err := json.Marshal(values)
	if err != nil {
		return nil
	}
	var v any
	_ = json.Unmarshal(data, &v)
	return v
}
