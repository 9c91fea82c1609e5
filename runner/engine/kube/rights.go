package kube

import (
	"cmp"
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/pkg/footprint"
)

// Verbs are what carrying out each action takes of the API server.
type Verbs map[Action][]string

var (
	// Applies is server-side apply, which also asks for create where nothing is there.
	Applies = Verbs{
		ActionCreate: {"create", "get", "patch"}, ActionUpdate: {"get", "patch"},
		ActionReplace: {"create", "delete", "get", "patch"}, ActionDelete: {"delete", "get"},
	}
	// Patches makes objects by create and changes them by patch.
	Patches = Verbs{
		ActionCreate: {"create", "get"}, ActionUpdate: {"get", "patch"},
		ActionReplace: {"create", "delete", "get"}, ActionDelete: {"delete", "get"},
	}
	// Updates makes objects by create and changes them by update.
	Updates = Verbs{
		ActionCreate: {"create", "get"}, ActionUpdate: {"get", "update"},
		ActionReplace: {"create", "delete", "get"}, ActionDelete: {"delete", "get"},
	}
)

// Need is a verb on one object that carrying a change out takes.
type Need struct {
	Verb   string
	Object Ref
	// Record: the object is the runner's own.
	Record bool
}

// NeedsOf are the verbs that changes take.
func NeedsOf(changes []Change, verbs func(Ref) Verbs) []Need {
	var list []Need
	for _, c := range changes {
		for _, verb := range verbs(c.Object)[c.Action] {
			list = append(list, Need{Verb: verb, Object: c.Object})
		}
	}
	return list
}

// RecordsIn are the verbs for what engines keep in a namespace: the list of a component's
// objects, and what holds releases, where that is there.
func RecordsIn(namespace string, kinds ...string) []Need {
	var list []Need
	for _, kind := range kinds {
		for _, verb := range []string{"create", "delete", "get", "list", "update"} {
			list = append(list, Need{Verb: verb, Object: Ref{Version: "v1", Kind: kind, Namespace: namespace}, Record: true})
		}
	}
	return list
}

const (
	// reviewsAtOnce and reviewTimeout bound what a plan asks about rights, and mostReviews
	// how often: what is left is unknown.
	reviewsAtOnce = 8
	reviewTimeout = 15 * time.Second
	mostReviews   = 400
	// mostNames bounds for how many objects of a kind a right is asked one by one.
	mostNames = 20
)

// Uses says of needs, kind by kind, whether the runner has them, as the API server answers
// at this moment. It is never an error: what cannot be found out is unknown.
func (c *Cluster) Uses(ctx context.Context, needs []Need) []footprint.Use {
	uses, names := c.gather(needs)
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	left := mostReviews
	var group errgroup.Group
	group.SetLimit(reviewsAtOnce)
	for i := range uses {
		u := &uses[i]
		cost := 1 + min(len(names[i]), mostNames)
		if u.Access = footprint.AccessUnknown; left < cost || u.Resource == "" {
			continue
		}
		left -= cost
		group.Go(func() error {
			u.Access = reviewed(names[i], func(name string) footprint.Access { return c.review(ctx, *u, name) })
			return nil
		})
	}
	_ = group.Wait() // no question fails
	for i := range uses {
		if u := &uses[i]; u.Resource == "" { // a kind that the same change brings
			plural, _ := meta.UnsafeGuessKindToResource(Ref{Group: u.Group, Version: "v1", Kind: u.Kind}.GVK())
			u.Resource = plural.Resource
		}
	}
	return uses
}

// gather puts the needs on objects of a kind together, with the names of the objects. The
// resource of a kind that the cluster does not know is left empty.
func (c *Cluster) gather(needs []Need) (uses []footprint.Use, names [][]string) {
	resources := map[Ref]string{}
	at := map[footprint.Use]int{}
	for _, n := range needs {
		kind := n.Object
		kind.Namespace, kind.Name = "", ""
		resource, known := resources[kind]
		if !known {
			if mapping, err := c.Mapper.RESTMapping(kind.GVK().GroupKind(), kind.Version); err == nil {
				resource = mapping.Resource.Resource
			}
			resources[kind] = resource
		}
		u := footprint.Use{Verb: n.Verb, Group: kind.Group, Kind: kind.Kind, Resource: resource, Namespace: n.Object.Namespace, Record: n.Record}
		i, known := at[u]
		if !known {
			i = len(uses)
			at[u] = i
			uses, names = append(uses, u), append(names, nil)
		}
		if n.Object.Name != "" && n.Verb != "create" { // nobody may create by a name
			names[i] = append(names[i], n.Object.Name)
		}
	}
	order := make([]int, len(uses))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := uses[a], uses[b]
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Group, y.Group), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Verb, y.Verb))
	})
	sorted, sortedNames := make([]footprint.Use, len(uses)), make([][]string, len(uses))
	for to, from := range order {
		sorted[to], sortedNames[to] = uses[from], names[from]
	}
	return sorted, sortedNames
}

// reviewed is the answer about all objects of a kind: one for all, or else each by its name,
// since a role may be limited to names.
func reviewed(names []string, ask func(name string) footprint.Access) footprint.Access {
	answer := ask("")
	if answer != footprint.AccessLacks || len(names) == 0 {
		return answer
	}
	for i, name := range names {
		if i == mostNames {
			return footprint.AccessUnknown
		}
		if answer = ask(name); answer != footprint.AccessHas {
			return answer
		}
	}
	return answer
}

func (c *Cluster) review(ctx context.Context, u footprint.Use, name string) footprint.Access {
	said, err := c.Client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: u.Namespace, Verb: u.Verb, Group: u.Group, Resource: u.Resource, Name: name,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return footprint.AccessUnknown
	}
	return accessOf(said.Status)
}

// accessOf reads an answer. An authorizer that failed, and that did not deny it either, may
// have allowed it.
func accessOf(s authorizationv1.SubjectAccessReviewStatus) footprint.Access {
	switch {
	case s.Allowed:
		return footprint.AccessHas
	case s.EvaluationError != "" && !s.Denied:
		return footprint.AccessUnknown
	}
	return footprint.AccessLacks
}
