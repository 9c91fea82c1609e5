package kube

import (
	"context"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Status is the readiness of an object.
type Status struct {
	Object Ref
	Ready  bool
	// Failed: it says itself that waiting does not help.
	Failed bool
	// Runs: it is a Job that has neither completed nor failed. It counts as ready,
	// but for a wait that asks for its end.
	Runs bool
	// Reason says why it is not ready, with what its pods and the newest warnings
	// about them say: "Available: 0/2; pod web-5f9c-abcde: ImagePullBackOff: …;
	// event Failed: …".
	Reason string
}

// Ready asks once for the readiness of each object, in their order. An object
// that is not there is not ready.
func (c *Cluster) Ready(ctx context.Context, refs []Ref) ([]Status, error) {
	out := make([]Status, 0, len(refs))
	for _, ref := range refs {
		s, err := c.status(ctx, ref)
		if err != nil {
			return nil, Explain(err, "read "+ref.Address())
		}
		out = append(out, s)
	}
	return out, nil
}

// NotReady is what of them is not ready, for people; "" when all are.
func NotReady(statuses []Status) string {
	var lines []string
	for _, s := range statuses {
		if !s.Ready {
			lines = append(lines, s.Object.String()+": "+s.Reason)
		}
	}
	return strings.Join(lines, "; ")
}

func (c *Cluster) status(ctx context.Context, ref Ref) (Status, error) {
	obj, err := c.Get(ctx, ref)
	if err != nil {
		return Status{}, err
	}
	if obj == nil {
		return Status{Object: ref, Reason: "is not there"}, nil
	}
	s := judge(ref, obj)
	if s.Ready && !s.Runs {
		return s, nil
	}
	// What pods say is a help; a wait does not fail for it.
	pods, err := c.podsOf(ctx, obj)
	if why := podReasons(pods); err == nil && why != "" {
		s.Reason += "; " + why
	}
	if why := c.eventReasons(ctx, obj, pods, s.Reason); why != "" {
		s.Reason += "; event " + why
	}
	return s, nil
}

// judge is the readiness by what the object says of itself.
func judge(ref Ref, obj *unstructured.Unstructured) Status {
	s := Status{Object: ref}
	result, err := status.Compute(obj)
	if err != nil {
		s.Reason = "its status cannot be read: " + err.Error()
		return s
	}
	s.Ready = result.Status == status.CurrentStatus
	s.Failed = result.Status == status.FailedStatus
	// For kstatus a pod that failed has only ended.
	if phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase"); ref.Group == "" && ref.Kind == "Pod" && phase == "Failed" {
		s.Ready, s.Failed = false, true
	}
	// One that was never started counts as in progress for kstatus.
	s.Ready = s.Ready || !s.Failed && suspended(ref, obj)
	s.Runs = s.Ready && runs(ref, obj)
	if s.Ready && !s.Runs {
		return s
	}
	if s.Reason = result.Message; s.Reason == "" {
		s.Reason = strings.ToLower(result.Status.String())
	}
	if phase, unbound := strings.CutPrefix(s.Reason, "PVC is not Bound. phase: "); unbound {
		s.Reason = "it has no volume yet, its phase is " + phase
	}
	return s
}

func isJob(ref Ref) bool { return ref.GVK().GroupKind().String() == "Job.batch" }

// suspended tells whether a Job waits for somebody else to start it.
func suspended(ref Ref, obj *unstructured.Unstructured) bool {
	held, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend")
	return isJob(ref) && held
}

// runs tells whether a Job has begun and not ended.
func runs(ref Ref, obj *unstructured.Unstructured) bool {
	if !isJob(ref) || suspended(ref, obj) {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		if c["status"] == "True" && (c["type"] == "Complete" || c["type"] == "Failed") {
			return false
		}
	}
	return true
}
