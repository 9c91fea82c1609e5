package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// restartsAge is how long after its last end a container that was started again counts against
// its pod: between two crashes it looks ready. Looks come each minute and two bad ones make a
// verdict, so one crash makes none.
const restartsAge = time.Minute

// Health looks once at each object, for a verdict on what runs. It is stricter than Ready: a
// container that was started again a moment ago is not ready, and a kind with a status in
// which nothing says whether it is ready is unknown.
func (c *Cluster) Health(ctx context.Context, refs []Ref) ([]jobspec.Finding, error) {
	var findings []jobspec.Finding
	for _, ref := range refs {
		f, err := c.look(ctx, ref)
		if err != nil {
			return nil, Explain(err, "read "+ref.Address())
		}
		if f != nil {
			findings = append(findings, *f)
		}
	}
	return bounded(findings), nil
}

// look is one look at an object; nil when it is ready.
func (c *Cluster) look(ctx context.Context, ref Ref) (*jobspec.Finding, error) {
	obj, err := c.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	f := &jobspec.Finding{Object: ref.Shown()}
	if obj == nil {
		f.Condition = "is not there"
		return f, nil
	}
	s := judge(ref, obj)
	pods, err := c.podsOf(ctx, obj)
	if err != nil {
		pods = nil // they are a help
	}
	again := ""
	if !isJob(ref) { // a Job says itself when it has tried often enough
		again = startedAgain(pods, time.Now())
	}
	switch {
	case s.Ready && again != "":
		f.Pod = again
	case s.Ready && withoutAddress(ref, obj):
		f.Condition = "it is a LoadBalancer, and nothing has given it an address"
	case s.Ready && c.unknown(obj):
		f.Unknown, f.Condition = true, "its status does not say whether it is ready"
		return f, nil
	case s.Ready:
		return nil, nil
	default:
		f.Condition, f.Pod = s.Reason, podReasons(pods)
	}
	f.Event = c.eventReasons(ctx, obj, pods, f.Condition+f.Pod)
	return f, nil
}

// withoutAddress tells whether a Service is to be reached from outside, and cannot be. kstatus
// takes it for ready.
func withoutAddress(ref Ref, obj *unstructured.Unstructured) bool {
	if ref.Group != "" || ref.Kind != "Service" {
		return false
	}
	kind, _, _ := unstructured.NestedString(obj.Object, "spec", "type")
	addresses, _, _ := unstructured.NestedSlice(obj.Object, "status", "loadBalancer", "ingress")
	return kind == "LoadBalancer" && len(addresses) == 0
}

// startedAgain tells of containers that ended by themselves and were started again a moment
// ago; "" for none.
func startedAgain(pods []corev1.Pod, now time.Time) string {
	var said []string
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		for _, s := range pod.Status.ContainerStatuses {
			t := s.LastTerminationState.Terminated
			if s.RestartCount == 0 || t == nil || t.ExitCode == 0 || now.Sub(t.FinishedAt.Time) > restartsAge {
				continue
			}
			said = append(said, fmt.Sprintf("pod %s: container %s was started again %d times, last after %s", pod.Name, s.Name, s.RestartCount, ending(*t)))
		}
	}
	slices.Sort(said)
	if more := len(said) - maxPods; more > 0 {
		said = append(said[:maxPods], fmt.Sprintf("%d more", more))
	}
	return strings.Join(said, "; ")
}

// telling are the types of conditions that say whether an object is ready, where no rule of
// kstatus is for its kind.
var telling = []string{
	"Ready", "Reconciling", "Stalled", "Available", "Healthy", "Synced", "Established", "Accepted", "Programmed", "Resolved", "Complete", "Succeeded", "Failed", "Progressing",
}

// unknown tells whether nobody can say of an object that it is ready: its kind has a status
// and is not one of Kubernetes' own, and no condition in it tells.
func (c *Cluster) unknown(obj *unstructured.Unstructured) bool {
	gvk := obj.GroupVersionKind()
	if builtIn(gvk.Group) {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, item := range conditions {
		if m, ok := item.(map[string]any); ok && slices.Contains(telling, fmt.Sprint(m["type"])) {
			return false
		}
	}
	mapping, err := c.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return true
	}
	list, err := c.Discovery.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	if err != nil {
		return true
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == mapping.Resource.Resource+"/status" })
}

// builtIn tells whether a group is one of Kubernetes itself, whose kinds kstatus knows.
func builtIn(group string) bool {
	return !strings.Contains(group, ".") || group == "k8s.io" || strings.HasSuffix(group, ".k8s.io") && !strings.HasPrefix(group, "gateway.")
}

// Verdict is what findings make of a look: what is wrong, for people, "" when nothing is. What
// is only unknown is not wrong.
func Verdict(findings []jobspec.Finding) string {
	var lines []string
	for _, f := range findings {
		if !f.Unknown {
			lines = append(lines, Says(f))
		}
	}
	return strings.Join(lines, "; ")
}

// Counted says how many of so many objects have no finding.
func Counted(total int, findings []jobspec.Finding) string {
	if len(findings) == 0 {
		return fmt.Sprintf("all %d objects", total)
	}
	return fmt.Sprintf("%d of %d objects", total-len(findings), total)
}

// Untold is what a look that found nothing wrong adds for those that are unknown.
func Untold(findings []jobspec.Finding) string {
	if len(findings) == 0 {
		return ""
	}
	return fmt.Sprintf("; of %d others nobody can tell, %s first", len(findings), findings[0].Object)
}

// Says is a finding in a line: "Deployment shop/web: Available: 0/2; pod web-5f9c: …; event …".
func Says(f jobspec.Finding) string {
	var parts []string
	for _, part := range []string{f.Condition, f.Pod} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if f.Event != "" {
		parts = append(parts, "event "+f.Event)
	}
	return f.Object + ": " + strings.Join(parts, "; ")
}

// bounded keeps the first findings, those that are wrong before those that are unknown, and
// cuts their texts.
func bounded(findings []jobspec.Finding) []jobspec.Finding {
	slices.SortStableFunc(findings, func(a, b jobspec.Finding) int {
		switch {
		case a.Unknown == b.Unknown:
			return 0
		case a.Unknown:
			return 1
		}
		return -1
	})
	if more := len(findings) - jobspec.MaxFindings; more > 0 {
		last := findings[jobspec.MaxFindings-1]
		findings = append(findings[:jobspec.MaxFindings-1], jobspec.Finding{Object: fmt.Sprintf("%d more objects", more+1), Condition: "are not ready either", Unknown: last.Unknown})
	}
	for i := range findings {
		for _, text := range []*string{&findings[i].Object, &findings[i].Condition, &findings[i].Pod, &findings[i].Event} {
			*text = jobspec.CutText(*text, jobspec.MaxFindingText)
		}
	}
	return findings
}
