package helm

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/pkg/footprint"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// known is what the footprint of the plan needs besides the documents: what carrying it out
// takes, and the hooks of the release that is deployed.
func (p *planning) known(ctx context.Context) (known footprint.Known, err error) {
	if p.noChange {
		return known, nil
	}
	needs := kube.NeedsOf(p.changes, func(ref kube.Ref) kube.Verbs {
		if ref.Group == "apiextensions.k8s.io" && p.in.CRDMode == jobspec.CRDsUpgrade {
			return kube.Applies
		}
		return kube.Patches
	})
	hooks, err := p.hookObjects(p.hooks, p.mode)
	if err != nil {
		return known, err
	}
	for _, obj := range hooks {
		for _, verb := range []string{"create", "delete", "get"} { // what an earlier run left goes first
			needs = append(needs, kube.Need{Verb: verb, Object: kube.RefOf(obj)})
		}
	}
	records := []string{"ConfigMap"}
	if p.in.StorageDriver == driverSecret {
		records = append(records, "Secret")
	}
	known.Uses = p.cluster.Uses(ctx, append(needs, kube.RecordsIn(p.in.Namespace, records...)...))
	known.Before, err = p.hooksBefore()
	return known, err
}

// hooksBefore are the hooks that ran for the release that is deployed, without what Secrets
// hold.
func (p *planning) hooksBefore() ([]json.RawMessage, error) {
	base := p.standing.Base
	if base == nil {
		return nil, nil
	}
	var objects []*unstructured.Unstructured
	for _, m := range []mode{modeInstall, modeUpgrade} {
		found, err := p.hookObjects(hooksOf(base.Hooks), m)
		if err != nil { // one that cannot be read did not run either
			p.job.Logf("hooks of the release that is deployed cannot be read: %v", err)
		}
		objects = append(objects, found...)
	}
	return kube.Bare(objects)
}
