package survey

import (
	"context"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/berth-dev/berth/runner/engine/kube"
)

const (
	// listFrom is how many wanted objects of one kind and namespace are read by a
	// list instead of one by one.
	listFrom = 8
	// pageSize is how many objects a page of a list has.
	pageSize = 250
	// maxForeign is how many objects of others may be read for each wanted one
	// before it is cheaper to get the rest one by one.
	maxForeign = 10
)

// place is where objects are listed.
type place struct {
	gvk       schema.GroupVersionKind
	namespace string
}

// list reads objects of which many are of one kind and in one place. Secrets are
// never listed: those of others are not ours to read. What is not found here is
// asked for by name.
func (s *surveying) list(ctx context.Context, wanted []*unstructured.Unstructured) error {
	places := map[place]map[kube.Ref]bool{}
	for _, obj := range wanted {
		ref := kube.RefOf(obj)
		if ref.Group == "" && ref.Kind == "Secret" {
			continue
		}
		p := place{ref.GVK(), ref.Namespace}
		if places[p] == nil {
			places[p] = map[kube.Ref]bool{}
		}
		places[p][ref] = true
	}
	s.listed = map[kube.Ref]*unstructured.Unstructured{}
	found := make(chan []*unstructured.Unstructured, len(places))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for p, refs := range places {
		if len(refs) < listFrom {
			continue
		}
		group.Go(func() error {
			objects, err := s.page(ctx, p, refs)
			found <- objects
			return err
		})
	}
	err := group.Wait()
	close(found)
	for objects := range found {
		for _, obj := range objects {
			s.listed[kube.RefOf(obj)] = obj
		}
	}
	return err
}

// page reads the wanted objects of a place page by page, as far as a list gives
// them: it may be forbidden, or too old for its next page.
func (s *surveying) page(ctx context.Context, p place, wanted map[kube.Ref]bool) (found []*unstructured.Unstructured, err error) {
	resource, err := s.cluster.Resource(p.gvk, p.namespace)
	if kube.IsUnknownKind(err) {
		return nil, nil
	}
	if err != nil {
		return nil, kube.Explain(err, "find the kind "+p.gvk.Kind)
	}
	options := metav1.ListOptions{Limit: pageSize}
	for read := 0; ; {
		list, err := resource.List(ctx, options)
		if err != nil {
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
				return found, nil
			}
			if failed, err := failure(err, "list "+p.gvk.Kind); failed == "" {
				return nil, err
			}
			return found, nil
		}
		for _, obj := range list.Items { // a copy: the others of the page can go
			if wanted[kube.RefOf(&obj)] {
				found = append(found, &obj)
			}
		}
		read += len(list.Items)
		options.Continue = list.GetContinue()
		if options.Continue == "" || len(found) == len(wanted) || read > (maxForeign+1)*max(len(wanted), pageSize) {
			return found, nil
		}
	}
}
