package kube_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

func TestSaid(t *testing.T) {
	t.Parallel()
	invalid := func(kind string, faults ...*field.Error) error {
		return apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: kind}, "web", faults)
	}
	selector := metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	spec := field.NewPath("spec")
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{"every field with its fault", invalid("Deployment", field.Required(spec.Child("template", "image"), ""), field.Invalid(spec.Child("replicas"), -1, "must be greater than or equal to 0")),
			"the cluster finds it invalid: spec.template.image: Required value; spec.replicas: Invalid value: -1: must be greater than or equal to 0"},
		{"no whole structures", invalid("Deployment", field.Invalid(spec.Child("selector"), selector, "field is immutable")),
			"the cluster finds it invalid: spec.selector: field is immutable"},
		{"no regular expressions", invalid("Service", field.Invalid(field.NewPath("metadata", "name"), "Web", "a DNS-1035 label must consist of lower case letters (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]')")),
			`the cluster finds it invalid: metadata.name: Invalid value: "Web": a DNS-1035 label must consist of lower case letters`},
		{"no value of a Secret", invalid("Secret", field.Invalid(field.NewPath("data", "key"), "hunter2-hunter2", "is no JSON")),
			"the cluster finds it invalid: data.key"},
		{"one line", apierrors.NewBadRequest("strict decoding error:\n  unknown field \"spec.imag\"\n"), `strict decoding error: unknown field "spec.imag"`},
		{"what is not the server's", errors.New("dial tcp:\nconnection refused"), "dial tcp: connection refused"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, kube.Said(tc.err)); diff != "" {
				t.Errorf("Said(%q) (-want +got):\n%s", tc.err, diff)
			}
		})
	}
}

func TestAll(t *testing.T) {
	t.Parallel()
	many := make([]*job.Failure, 20)
	for i := range many {
		many[i] = job.Failf("", "x")
	}
	for _, tc := range []struct {
		name     string
		failures []*job.Failure
		want     string
	}{
		{"none", []*job.Failure{nil, nil}, ""},
		{"every one", []*job.Failure{nil, job.Failf("mend it", "create a: no"), nil, job.Failf("", "create b: no")}, "create a: no; create b: no (mend it)"},
		{"too many for a line", many, "x; x; x; x; x; x; x; x; and 12 more"},
	} {
		got := ""
		if f, ok := errors.AsType[*job.Failure](kube.All(tc.failures)); ok {
			if got = f.Message; f.Remedy != "" {
				got += " (" + f.Remedy + ")"
			}
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
