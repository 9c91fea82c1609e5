package kube

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func TestNewestWarnings(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	event := func(uid, kind, name string, ago time.Duration, reason, message string) corev1.Event {
		return corev1.Event{
			InvolvedObject: corev1.ObjectReference{UID: types.UID(uid), Kind: kind, Name: name},
			LastTimestamp:  metav1.NewTime(now.Add(-ago)), Reason: reason, Message: message,
		}
	}
	web := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"}}}
	of := warnedOf{about: map[types.UID]bool{"web": true, "pod": true}, claims: map[string]bool{"data": true}, replicaSets: replicaSetsOf(web), since: now.Add(-10 * time.Minute)}
	for _, tc := range []struct {
		name   string
		list   []corev1.Event
		reason string
		want   string
	}{
		{name: "none"},
		{name: "the newest two, each once", want: "Unhealthy: Readiness probe failed: 500; BackOff: restarting", list: []corev1.Event{
			event("pod", "Pod", "web-1-a", 3*time.Minute, "Failed", "old"), event("pod", "Pod", "web-1-a", time.Minute, "BackOff", "restarting"),
			event("pod", "Pod", "web-1-a", time.Second, "Unhealthy", "Readiness probe failed: 500"), event("web", "Deployment", "web", 2*time.Second, "Unhealthy", "Readiness probe failed: 500"),
		}},
		{name: "what is said already", reason: "pod web-1-a: Unschedulable: 0/1 nodes are available", list: []corev1.Event{
			event("pod", "Pod", "web-1-a", time.Second, "FailedScheduling", "0/1 nodes are available")}},
		{name: "a claim that its pods wait for", want: "of PersistentVolumeClaim/data: ProvisioningFailed: no such class", list: []corev1.Event{
			event("claim", "PersistentVolumeClaim", "data", time.Second, "ProvisioningFailed", "no such class"), event("other", "PersistentVolumeClaim", "logs", 0, "ProvisioningFailed", "x")}},
		{name: "a pull that failed, once", reason: `pod web-1-a: ErrImagePull: image "r.test/a:1": connection refused`, list: []corev1.Event{
			event("pod", "Pod", "web-1-a", time.Second, "Failed", "Error: ImagePullBackOff"),
			event("pod", "Pod", "web-1-a", time.Second, "Failed", `Failed to pull image "r.test/a:1": rpc error: code = Unknown desc = failed to pull and unpack image "r.test/a:1": failed to resolve reference "r.test/a:1": connection refused`)}},
		{name: "a pull that is put off", want: `BackOff: image "r.test/a:1": not found`, list: []corev1.Event{
			event("pod", "Pod", "web-1-a", time.Second, "BackOff", `Back-off pulling image "r.test/a:1": ErrImagePull: rpc error: code = NotFound desc = failed to pull and unpack image "r.test/a:1": failed to resolve image "r.test/a:1": not found`)}},
		{name: "its ReplicaSet, when there is no pod", want: "FailedCreate: exceeded quota", list: []corev1.Event{
			event("x", "ReplicaSet", "web-5f9c", time.Second, "FailedCreate", "exceeded  quota"), event("y", "ReplicaSet", "web-api-5f9c", 0, "FailedCreate", "of another")}},
		{name: "of others, and old ones", list: []corev1.Event{
			event("other", "Pod", "api", time.Second, "Failed", "x"), event("pod", "Pod", "web-1-a", 11*time.Minute, "Failed", "x")}},
		{name: "one that only its series dates", want: "Failed: again", list: []corev1.Event{{
			InvolvedObject: corev1.ObjectReference{UID: "pod"}, Reason: "Failed", Message: "again",
			Series: &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(now.Add(-time.Minute))}}}},
	} {
		if got := newestWarnings(tc.list, of, tc.reason); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
