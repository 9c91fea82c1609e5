package kube_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

func TestNeedsChange(t *testing.T) {
	t.Parallel()
	deployments, pods := schema.GroupResource{Group: "apps", Resource: "deployments"}, schema.GroupResource{Resource: "pods"}
	invalid := func(text string) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "web", field.ErrorList{field.Invalid(field.NewPath("spec"), "x", text)})
	}
	unknown := func(group, kind, version string) error {
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: group, Kind: kind}, SearchedVersions: []string{version}}
	}
	terminating := apierrors.NewForbidden(pods, "web", errors.New("unable to create new content in namespace shop because it is being terminated"))
	terminating.ErrStatus.Details.Causes = append(terminating.ErrStatus.Details.Causes, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause, Field: "metadata.namespace"})
	webhook := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: `admission webhook "policy.example.com" denied the request: no latest tags`}}
	for _, tc := range []struct {
		name string
		err  error
		want bool
	}{
		{"422: a wrong field", invalid("must be a number"), true},
		{"422: an immutable field", invalid("field is immutable"), true},
		{"422: a port that another service holds", invalid("provided port is already allocated"), false},
		{"400: an unknown field", apierrors.NewBadRequest(`strict decoding error: unknown field "spec.imag"`), true},
		{"403: a missing right", apierrors.NewForbidden(deployments, "web", errors.New(`User "runner" cannot create resource "deployments"`)), true},
		{"403: an admission policy", webhook, true},
		{"403: a quota that is used up", apierrors.NewForbidden(pods, "web", errors.New("exceeded quota: small, requested: pods=1, used: pods=4, limited: pods=4")), false},
		{"403: an account that is still made", apierrors.NewForbidden(pods, "web", errors.New(`error looking up service account shop/default: serviceaccount "default" not found`)), false},
		{"403: a namespace that is going", terminating, false},
		{"an unknown version of Kubernetes itself", unknown("policy", "PodSecurityPolicy", "v1beta1"), true},
		{"an unknown kind of the core", unknown("", "Pot", "v1"), true},
		{"a CRD that an operator may still bring", unknown("pkg.crossplane.io", "Provider", "v1"), false},
		{"wrapped", fmt.Errorf("create Service/web: %w", invalid("must be a number")), true},
		{"401: credentials are renewed", apierrors.NewUnauthorized("expired"), false},
		{"404", apierrors.NewNotFound(deployments, "web"), false},
		{"409", apierrors.NewConflict(deployments, "web", errors.New("the object has been modified")), false},
		{"409: already there", apierrors.NewAlreadyExists(deployments, "web"), false},
		{"408", apierrors.NewTimeoutError("slow", 1), false},
		{"429", apierrors.NewTooManyRequests("later", 1), false},
		{"500: a webhook that does not answer", apierrors.NewInternalError(errors.New(`failed calling webhook "policy.example.com": connection refused`)), false},
		{"503", apierrors.NewServiceUnavailable("starting"), false},
		{"no answer", &net.OpError{Op: "dial", Err: errors.New("connection refused")}, false},
		{"the words alone", errors.New("field not declared in schema"), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := kube.NeedsChange(tc.err); got != tc.want {
				t.Errorf("NeedsChange(%v) is %t", tc.err, got)
			}
			f, ok := errors.AsType[*job.Failure](kube.Explain(tc.err, "create Service/web"))
			if !ok || (f.Reason == jobspec.ReasonNeedsChange) != tc.want {
				t.Errorf("Explain(%v) gives %+v", tc.err, f)
			}
		})
	}
}
