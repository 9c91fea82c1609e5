package kube

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/pkg/jobspec"
)

func TestStartedAgain(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	container := func(restarts, code int32, ago time.Duration, reason string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: "web", Ready: true, RestartCount: restarts, LastTerminationState: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, FinishedAt: metav1.NewTime(now.Add(-ago))},
		}}
	}
	leaving := metav1.NewTime(now)
	for _, tt := range []struct {
		name string
		pod  corev1.Pod
		want string
	}{
		{"killed for memory a moment ago", pod(container(4, 137, 20*time.Second, "OOMKilled")), "pod web-1: container web was started again 4 times, last after OOMKilled, exit code 137"},
		{"failed a moment ago", pod(container(1, 1, 20*time.Second, "Error")), "pod web-1: container web was started again 1 times, last after exit code 1"},
		{"a while ago", pod(container(4, 137, 5*time.Minute, "OOMKilled")), ""},
		{"it ended well", pod(container(4, 0, 20*time.Second, "Completed")), ""},
		{"never", pod(corev1.ContainerStatus{Name: "web"}), ""},
		{"on its way out", func() corev1.Pod {
			p := pod(container(4, 1, time.Second, "Error"))
			p.DeletionTimestamp = &leaving
			return p
		}(), ""},
	} {
		if got := startedAgain([]corev1.Pod{tt.pod}, now); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func pod(statuses ...corev1.ContainerStatus) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}, Status: corev1.PodStatus{ContainerStatuses: statuses}}
}

// What is wrong comes before what nobody can tell, texts are cut, and what is left out is
// counted.
func TestBoundedFindings(t *testing.T) {
	t.Parallel()
	var all []jobspec.Finding
	for range 8 {
		all = append(all, jobspec.Finding{Object: "Basket a/b", Unknown: true, Condition: "its status does not say"})
	}
	for range 5 {
		all = append(all, jobspec.Finding{Object: "Deployment a/b", Condition: strings.Repeat("é", 2000)})
	}
	got := bounded(slices.Clone(all))
	if len(got) != jobspec.MaxFindings || got[0].Unknown || !got[5].Unknown || got[9].Object != "4 more objects" || !got[9].Unknown {
		t.Errorf("got %d: %+v", len(got), got)
	}
	if n := len(got[0].Condition); n > jobspec.MaxFindingText {
		t.Errorf("a text has %d bytes", n)
	}
	if says := Verdict(got); strings.Contains(says, "Basket") || !strings.Contains(says, "Deployment a/b: ") {
		t.Errorf("verdict: %.80s", says)
	}
	if Verdict(all[:8]) != "" || Untold(all[:8]) != "; of 8 others nobody can tell, Basket a/b first" {
		t.Errorf("unknown only: %q, %q", Verdict(all[:8]), Untold(all[:8]))
	}
}
