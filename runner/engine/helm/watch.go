package helm

import (
	"context"
	"fmt"
	"time"

	helmkube "helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

const (
	firstLook = 100 * time.Millisecond
	lastLook  = time.Second
	// sayAgain is how often it is said that a hook still runs.
	sayAgain = 10 * time.Second
	// hookLines is how much of a hook's log is shown, of each container.
	hookLines = 100
	// lastWordsTimeout is for the log of a hook whose time is over: an engine that is
	// told to end has a few seconds more.
	lastWordsTimeout = 3 * time.Second
)

// WatchUntilReady waits until hooks that run have ended: Jobs and Pods. All other
// kinds are done when they are there.
func (w *writer) WatchUntilReady(list helmkube.ResourceList, timeout time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(w.ctx, timeout, job.ErrTimeout)
	defer cancel()
	for _, ref := range infoRefs(list) {
		if runs(ref) {
			if err := w.runHook(ctx, ref); err != nil {
				return w.fail(err)
			}
		}
	}
	return nil
}

func runs(ref kube.Ref) bool {
	return ref.Group == "batch" && ref.Kind == "Job" || ref.Group == "" && ref.Kind == "Pod"
}

func (w *writer) runHook(ctx context.Context, ref kube.Ref) error {
	said, saidAt, began := "", time.Time{}, time.Now()
	defer w.job.Show(jobspec.Progress{})
	for every := firstLook; ; every = min(every*3/2, lastLook) {
		obj, err := w.cluster.Get(ctx, ref)
		switch {
		case err != nil:
			said = err.Error() // the API server may be away for a moment
		case obj == nil:
			return job.Failf("", "hook %s was removed before it ended", ref)
		default:
			done, failed := ended(obj)
			if done || failed != "" { // a hook that succeeded may be removed next
				w.hookLog(ctx, obj)
			}
			if failed != "" {
				return job.Failf("look at its log", "hook %s failed: %s", ref, failed)
			}
			if done {
				w.job.Logf("hook %s is done", ref)
				return nil
			}
			if why := w.whyNot(ctx, ref); why != said || time.Since(saidAt) >= sayAgain {
				w.job.Logf("waiting for hook %s: %s", ref, why)
				said, saidAt = why, time.Now()
				w.job.Show(jobspec.Progress{What: "hook " + ref.Shown(), Doing: why, Since: began})
			}
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
			w.lastWords(ctx, ref)
			return job.Failf("look at its log", "hook %s has not ended: %s", ref, said)
		}
	}
}

func (w *writer) hookLog(ctx context.Context, obj *unstructured.Unstructured) {
	w.cluster.LastLines(ctx, obj, hookLines, func(line string) { w.job.Logf("%s", line) })
}

// lastWords shows the log of a hook whose time is over.
func (w *writer) lastWords(ctx context.Context, ref kube.Ref) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWordsTimeout)
	defer cancel()
	if obj, err := w.cluster.Get(ctx, ref); err == nil && obj != nil {
		w.hookLog(ctx, obj)
	}
}

// whyNot is what its pods say of a hook that has not ended.
func (w *writer) whyNot(ctx context.Context, ref kube.Ref) string {
	statuses, err := w.cluster.Ready(ctx, []kube.Ref{ref})
	if err != nil || len(statuses) == 0 || statuses[0].Reason == "" {
		return "it runs"
	}
	return statuses[0].Reason
}

// ended reads from a Job or a Pod whether it has ended, and why it failed.
func ended(obj *unstructured.Unstructured) (done bool, failed string) {
	if obj.GetKind() == "Pod" {
		phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase")
		message, _, _ := unstructured.NestedString(obj.Object, "status", "message")
		switch phase {
		case "Succeeded":
			return true, ""
		case "Failed":
			return false, fmt.Sprintf("its pod ended with an error %s", message)
		}
		return false, ""
	}
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, c := range conditions {
		m, _ := c.(map[string]any)
		if m["status"] != "True" {
			continue
		}
		switch m["type"] {
		case "Complete":
			return true, ""
		case "Failed":
			return false, fmt.Sprintf("%v: %v", m["reason"], m["message"])
		}
	}
	return false, ""
}
