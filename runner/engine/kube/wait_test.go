package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// What waits is told when it changes, and again after a while.
func TestWaitingSays(t *testing.T) {
	t.Parallel()
	var lines []string
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := waiting{began: start, total: 2, said: map[Ref]string{}, at: map[Ref]time.Time{}, log: func(format string, args ...any) {
		lines = append(lines, fmt.Sprintf(format, args...))
	}}
	web, db := Ref{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, Ref{Kind: "StatefulSet", Name: "db"}
	waits := func(ref Ref, why string) Status { return Status{Object: ref, Reason: why} }
	ready := func(ref Ref) Status { return Status{Object: ref, Ready: true} }
	for _, look := range []struct {
		after    time.Duration
		statuses []Status
	}{
		{0, []Status{waits(web, "0 of 2"), ready(db)}},
		{time.Second, []Status{waits(web, "0 of 2")}},
		{2 * time.Second, []Status{waits(web, "1 of 2")}},
		{11 * time.Second, []Status{waits(web, "1 of 2")}},
		{12 * time.Second, []Status{waits(web, "1 of 2")}},
	} {
		left := w.seen(look.statuses, start.Add(look.after))
		if diff := cmp.Diff([]Ref{web}, left); diff != "" {
			t.Errorf("what is left after %s (-want +got):\n%s", look.after, diff)
		}
	}
	progress := jobspec.Progress{What: "Deployment shop/web", Doing: "1 of 2", Since: start, Done: 1, Total: 2}
	if diff := cmp.Diff(progress, w.progress()); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	if err := w.failure().Error(); err != "not ready: Deployment/web: 1 of 2" {
		t.Errorf("the failure says %q", err)
	}
	if left := w.seen([]Status{ready(web)}, start.Add(13*time.Second)); len(left) > 0 {
		t.Errorf("still waiting for %v", left)
	}
	if p := w.progress(); p != (jobspec.Progress{}) {
		t.Errorf("progress of nothing: %+v", p)
	}
	want := []string{
		"waiting for Deployment/web: 0 of 2",
		"waiting for Deployment/web: 1 of 2", // at 2 s
		"waiting for Deployment/web: 1 of 2", // at 12 s, and not before
		"Deployment/web is ready",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// A request that the client does not make any more, because its turn would come too late, is
// the end of the wait and no reason why something is not ready.
func TestNoTime(t *testing.T) {
	t.Parallel()
	limiter := flowcontrol.NewTokenBucketRateLimiter(0.1, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := limiter.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	err := fmt.Errorf("client rate limiter Wait returned an error: %w", limiter.Wait(ctx))
	if !noTime(err) || ctx.Err() != nil {
		t.Errorf("the client says %q, %v", err, ctx.Err())
	}
	if noTime(nil) || noTime(errors.New("connection refused")) {
		t.Error("something else is taken for it")
	}
}

func TestPodReason(t *testing.T) {
	t.Parallel()
	container := func(s corev1.ContainerStatus) corev1.Pod {
		s.Name = "web"
		return corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{s}}}
	}
	waiting := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	now := metav1.Now()
	for _, tc := range []struct {
		name string
		pod  corev1.Pod
		want string
	}{
		{name: "only starting", pod: container(corev1.ContainerStatus{State: waiting("ContainerCreating", "")})},
		{name: "no image", pod: container(corev1.ContainerStatus{State: waiting("ImagePullBackOff", "Back-off  pulling\nimage")}), want: "ImagePullBackOff: Back-off pulling image"},
		{
			name: "crashing",
			pod: container(corev1.ContainerStatus{
				State:                waiting("CrashLoopBackOff", "back-off 10s"),
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}},
			}),
			want: "CrashLoopBackOff: back-off 10s (container web ended with exit code 3)",
		},
		{
			name: "no node",
			pod: corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes"},
			}}},
			want: "Unschedulable: 0/1 nodes",
		},
		{
			name: "on its way out",
			pod: corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now},
				Status:     corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"},
			},
		},
		{name: "evicted", pod: corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "low on memory"}}, want: "Evicted: low on memory"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := podReason(tc.pod); got != tc.want {
				t.Errorf("podReason() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		text string
		want Status
	}{
		{
			name: "a ConfigMap is ready when it is there",
			text: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}", want: Status{Ready: true},
		},
		{
			name: "a pod that failed does not become ready",
			text: "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: shop}, status: {phase: Failed}}",
			want: Status{Failed: true, Reason: "Pod has completed, but not successfully"},
		},
		{
			name: "a Deployment of which the controller has not heard",
			text: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: shop, generation: 2}, status: {observedGeneration: 1}}",
			want: Status{Reason: "Deployment generation is 2, but latest observed generation is 1"},
		},
		{
			name: "a Job that runs",
			text: "{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: shop}, status: {startTime: \"2026-01-01T00:00:00Z\", active: 1}}",
			want: Status{Ready: true, Runs: true, Reason: "Job in progress. success:0, active: 1, failed: 0"},
		},
		{
			name: "a Job that completed",
			text: "{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: shop}, status: {startTime: \"2026-01-01T00:00:00Z\", succeeded: 1, conditions: [{type: Complete, status: \"True\"}]}}",
			want: Status{Ready: true},
		},
		{
			name: "a Job that failed",
			text: "{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: shop}, status: {startTime: \"2026-01-01T00:00:00Z\", failed: 1, conditions: [{type: Failed, status: \"True\"}]}}",
			want: Status{Failed: true, Reason: "Job Failed. failed: 1/1"},
		},
		{
			name: "a Job that somebody has to start, and never has",
			text: "{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: shop}, spec: {suspend: true}, status: {conditions: [{type: Suspended, status: \"True\"}]}}",
			want: Status{Ready: true},
		},
		{
			name: "a Job that somebody has to start",
			text: "{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: shop}, spec: {suspend: true}, status: {startTime: \"2026-01-01T00:00:00Z\"}}",
			want: Status{Ready: true},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			obj := parseOne(t, tc.text)
			tc.want.Object = RefOf(obj)
			if diff := cmp.Diff(tc.want, judge(RefOf(obj), obj)); diff != "" {
				t.Errorf("judge (-want +got):\n%s", diff)
			}
		})
	}
}

func parseOne(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	objects, err := ParseObjects(text)
	if err != nil || len(objects) != 1 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	return objects[0]
}

func TestInventoryName(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, component := range []string{"web", "web-app", "web_app", "Web", "web.app", strings.Repeat("a", 80), strings.Repeat("a", 81)} {
		name := (&Inventory{Kind: jobspec.KindKubernetesManifest, Component: component}).Name()
		if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 || len(name) > maxName {
			t.Errorf("%s is no name: %v", name, wrong)
		}
		if other, ok := seen[name]; ok {
			t.Errorf("%s and %s have the same inventory %s", component, other, name)
		}
		seen[name] = component
	}
	if want := "berth-kubernetes-manifest-web"; seen[want] != "web" {
		t.Errorf("the inventory of web is not called %s: %v", want, seen)
	}
}
