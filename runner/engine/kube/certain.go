package kube

import (
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes/scheme"
)

// NeedsChange tells whether the API server answers the same until somebody
// changes the object, the cluster or the rights in it:
//
//   - 400 and 422: what was sent is wrong, or an admission policy refuses it
//   - 403: a right is missing, or an admission policy refuses it
//   - an unknown kind of a group that Kubernetes itself serves, such as a
//     removed version
//
// It is false for all that may pass: 409, 429, 5xx, an address or a port that
// another object still holds, a quota that is used up, a namespace that is going,
// the account of a pod that is still made. So it is for unknown kinds of other
// groups: operators bring their CRDs a while after they are deployed.
func NeedsChange(err error) bool {
	if e, ok := errors.AsType[*meta.NoKindMatchError](err); ok {
		return scheme.Scheme.IsGroupRegistered(e.GroupKind.Group)
	}
	if _, ok := errors.AsType[*apierrors.StatusError](err); !ok {
		return false
	}
	text := err.Error()
	switch {
	case apierrors.IsInvalid(err):
		return !strings.Contains(text, "already allocated")
	case apierrors.IsBadRequest(err), strings.Contains(text, "field not declared in schema"):
		return true
	case apierrors.IsForbidden(err):
		return !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) &&
			!strings.Contains(text, "exceeded quota") && !strings.Contains(text, "error looking up service account")
	}
	return false
}
