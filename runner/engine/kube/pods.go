package kube

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// maxPods is how many pods of a workload are named in a reason: they mostly
// have the same trouble.
const maxPods = 2

// podReasons tells why pods of a workload are not ready; "" for what has none.
func podReasons(pods []corev1.Pod) string {
	var reasons []string
	for _, pod := range pods {
		if why := podReason(pod); why != "" {
			reasons = append(reasons, fmt.Sprintf("pod %s: %s", pod.Name, why))
		}
	}
	slices.Sort(reasons)
	if more := len(reasons) - maxPods; more > 0 {
		reasons = append(reasons[:maxPods], fmt.Sprintf("%d more pods", more))
	}
	return strings.Join(reasons, "; ")
}

func (c *Cluster) podsOf(ctx context.Context, obj *unstructured.Unstructured) ([]corev1.Pod, error) {
	if obj.GroupVersionKind().GroupKind().String() == "Pod" {
		var pod corev1.Pod
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &pod)
		return []corev1.Pod{pod}, err
	}
	given, ok, err := unstructured.NestedMap(obj.Object, "spec", "selector")
	if !ok || err != nil || given["matchLabels"] == nil && given["matchExpressions"] == nil {
		return nil, err // not a workload; the selector of a Service is another thing
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(given, &selector); err != nil {
		return nil, err
	}
	query, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil || query.String() == labels.Everything().String() {
		return nil, err
	}
	list, err := c.Client.CoreV1().Pods(obj.GetNamespace()).List(ctx, metav1.ListOptions{LabelSelector: query.String()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// lastLogBytes bounds what is read of each container's log.
const lastLogBytes = 16 << 10

// LastLines hands over the last lines of the logs of a workload's newest pods, each
// with the pod and the container that said it. What cannot be read is left out:
// it is for people who look for a reason.
func (c *Cluster) LastLines(ctx context.Context, obj *unstructured.Unstructured, lines int64, say func(string)) {
	pods, err := c.podsOf(ctx, obj)
	if err != nil {
		return
	}
	slices.SortStableFunc(pods, func(a, b corev1.Pod) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	for _, pod := range pods[:min(len(pods), maxPods)] {
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			raw, err := c.Client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
				Container: container.Name, TailLines: &lines, LimitBytes: new(int64(lastLogBytes)),
			}).DoRaw(ctx)
			if err != nil {
				continue
			}
			for line := range strings.Lines(string(raw)) {
				say(fmt.Sprintf("pod %s, container %s: %s", pod.Name, container.Name, strings.TrimRight(line, "\r\n")))
			}
		}
	}
}

// podReason tells why a pod is not ready; "" when it is, or only starting.
func podReason(pod corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return ""
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return said(c.Reason, c.Message)
		}
	}
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if why := containerReason(s); why != "" {
			return why
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return said(pod.Status.Reason, pod.Status.Message)
	}
	return ""
}

// starting are reasons of every container that comes up.
var starting = []string{"ContainerCreating", "PodInitializing"}

func containerReason(s corev1.ContainerStatus) string {
	if w := s.State.Waiting; w != nil && w.Reason != "" && !slices.Contains(starting, w.Reason) {
		why := said(w.Reason, w.Message)
		if t := s.LastTerminationState.Terminated; t != nil {
			why += fmt.Sprintf(" (container %s ended with %s)", s.Name, ending(*t))
		}
		return why
	}
	if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
		return fmt.Sprintf("container %s ended with exit code %d: %s", s.Name, t.ExitCode, said(t.Reason, t.Message))
	}
	if s.State.Running != nil && !s.Ready && s.RestartCount > 0 {
		return fmt.Sprintf("container %s is not ready, restarted %d times", s.Name, s.RestartCount)
	}
	return ""
}

// ending is how a container ended: its exit code, and why where that is not only that it failed.
func ending(t corev1.ContainerStateTerminated) string {
	if t.Reason == "" || t.Reason == "Error" || t.Reason == "Completed" {
		return fmt.Sprintf("exit code %d", t.ExitCode)
	}
	return fmt.Sprintf("%s, exit code %d", t.Reason, t.ExitCode)
}

// maxMessage bounds what a pod says, in bytes: pull errors repeat themselves.
const maxMessage = 300

// What containerd and the kubelet put around the cause of a failed pull: each names
// the image again.
var (
	pullInside  = regexp.MustCompile(`(?:rpc error: code = \w+ desc = )?failed to pull and unpack image "([^"]+)": (?:failed to resolve (?:reference|image) "[^"]+": )?`)
	pullOutside = regexp.MustCompile(`^(?:Failed to pull|Back-off pulling) image "[^"]+": (?:(?:ErrImagePull|ImagePullBackOff): )?(image ")`)
)

// said is a reason with its message, in one line, where the message of a failed pull
// is the image and the cause.
func said(reason, message string) string {
	message = strings.Join(strings.Fields(message), " ")
	message = pullOutside.ReplaceAllString(pullInside.ReplaceAllString(message, `image "$1": `), "$1")
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}
