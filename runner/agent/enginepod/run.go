package enginepod

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/berth-dev/berth/runner/agent/cluster"
)

const (
	// startWithin is how long a pod may take until its engine begins: an image
	// is pulled, a node has no room.
	startWithin = 5 * time.Minute
	// pullWithin is how long the image of an action may not be had: a registry is
	// restarted, a node tries again.
	pullWithin = time.Minute
	// lookAgain is the longest time between two looks at a Job and its pods;
	// changes of the pods are seen at once.
	lookAgain = 30 * time.Second
	// tryAgain is between calls that fail.
	tryAgain = 2 * time.Second
)

// Run is one engine in a pod. It is over only when every pod of the attempt has
// ended, and none can start an engine any more.
type Run struct {
	pods  *Pods
	order Order
	warn  func(trouble string, err error) // says the same once

	mu      sync.Mutex
	stop    *time.Duration // the grace, once it is to stop
	stopped chan struct{}  // closed then
	reason  string         // what a pod that began nothing says
	settled bool           // reason stays, whatever the end of the pod looks like

	done  chan struct{}
	code  int  // valid after done
	began bool // valid after done
}

func (p *Pods) newRun(o Order) *Run {
	r := &Run{pods: p, order: o, stopped: make(chan struct{}), done: make(chan struct{}), code: -1}
	told := ""
	r.warn = func(trouble string, err error) {
		if told != trouble {
			p.Log.Warn("trouble with the pod of an engine", "pod_job", JobName(o.Name), "trouble", trouble, "err", err)
		}
		told = trouble
	}
	return r
}

// Done is closed when the engine is over, and all that it started.
func (r *Run) Done() <-chan struct{} { return r.done }

// ExitCode is the engine's, after Done; -1 when it is not known.
func (r *Run) ExitCode() int { return r.code }

// Began reports, after Done, whether an engine was started at all.
func (r *Run) Began() bool { return r.began }

// Reason is why none was, as far as it is known.
func (r *Run) Reason() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reason
}

// Stop asks the engine to stop at its next safe point, and lets Kubernetes end
// it when it did not within grace. A shorter grace than before counts.
func (r *Run) Stop(grace time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop == nil {
		close(r.stopped)
	}
	if r.stop == nil || grace < *r.stop {
		r.stop = &grace
	}
}

func (r *Run) toStop() (grace time.Duration, stop bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop == nil {
		return 0, false
	}
	return *r.stop, true
}

func (r *Run) because(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if reason != "" && !r.settled {
		r.reason = reason
	}
}

// settle is because, for the reason why the pod is taken away.
func (r *Run) settle(reason string) {
	r.because(reason)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settled = true
}

// work follows the attempt to its end. When life ends first, Done stays open:
// the next agent adopts it.
func (r *Run) work(life context.Context) {
	began := time.Now()
	var told string
	var image pulling
	for life.Err() == nil {
		s, err := r.look(life)
		if err != nil {
			r.warn("it cannot be looked after, trying again", err)
			pause(life)
			continue
		}
		if code, known := s.exitCode(); known {
			r.code = code
		}
		waits := s.waits()
		r.because(waits)
		grace, stop := r.toStop()
		switch {
		case s.over():
			if r.conclude(s) {
				r.tidy(life, s)
				return
			}
			pause(life) // rare: a container that outlives its pod
			continue
		case stop:
			err = r.remove(life, s, grace)
		case image.hopeless(s, time.Now()) != "":
			r.settle(image.said)
			err = r.remove(life, s, 0)
		case !s.running() && time.Since(began) > startWithin:
			r.settle("the engine's pod did not start within " + startWithin.String() + ": " + waits)
			err = r.remove(life, s, 0)
		case waits != "" && waits != told:
			r.order.Note("the engine's pod waits: " + waits)
			told = waits
		}
		if err == nil {
			err = r.wait(life, s, stop)
		}
		if err != nil && life.Err() == nil {
			r.warn("it cannot be looked after, trying again", err)
			pause(life)
		}
	}
}

// look reads the Job and its pods, these last: a Job that is gone makes none.
func (r *Run) look(ctx context.Context) (sight, error) {
	var s sight
	err := r.pods.Pod.Get(ctx, r.jobPath(), &s.job)
	switch {
	case cluster.IsStatus(err, http.StatusNotFound):
		s.noJob = true
	case err != nil:
		return s, err
	}
	list := r.pods.path("/api/v1", "pods") + "?" + r.query().Encode()
	return s, r.pods.Pod.Get(ctx, list, &s.pods)
}

// remove deletes the Job and its pods. Asking twice does not give the engine
// more time.
func (r *Run) remove(ctx context.Context, s sight, grace time.Duration) error {
	var errs []error
	seconds := int64(grace / time.Second)
	for _, pod := range s.pods.Items {
		if left := pod.Metadata.GraceSeconds; pod.Metadata.DeletedAt != "" && (left == nil || *left <= seconds) {
			continue
		}
		errs = append(errs, r.delete(ctx, r.pods.path("/api/v1", "pods")+"/"+url.PathEscape(pod.Metadata.Name), object{"gracePeriodSeconds": max(seconds, 1)}))
	}
	if !s.noJob && s.job.Metadata.DeletedAt == "" {
		// In the foreground: the Job is there as long as a pod of it.
		errs = append(errs, r.delete(ctx, r.jobPath(), object{"propagationPolicy": "Foreground"}))
	}
	return errors.Join(errs...)
}

func (r *Run) delete(ctx context.Context, path string, options object) error {
	options["apiVersion"], options["kind"] = "v1", "DeleteOptions"
	err := r.pods.Pod.Delete(ctx, path, options)
	if cluster.IsStatus(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// wait returns when something may have changed.
func (r *Run) wait(life context.Context, s sight, stopping bool) error {
	limit := lookAgain
	if len(s.pods.Items) == 0 || stopping {
		limit = tryAgain // the Job itself changes, which is not watched
	}
	ctx, cancel := context.WithCancel(life)
	defer cancel()
	if !stopping {
		go func() {
			select {
			case <-r.stopped:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	pods := cluster.List{Path: r.pods.path("/api/v1", "pods"), Query: r.query(), Version: s.pods.Metadata.ResourceVersion}
	err := r.pods.Pod.Wait(ctx, pods, limit)
	if ctx.Err() != nil {
		return nil // asked to stop, or the agent ends
	}
	return err
}

// conclude makes sure that no engine runs, nor will.
func (r *Run) conclude(s sight) bool {
	began, err := giveUp(r.order.Folder.marker())
	if err != nil {
		r.warn("it has ended, but its engine cannot be shown to be over, trying again", err)
		return false
	}
	if s.outOfMemory() {
		r.order.Note("the engine was ended: it used more memory than its pod may (--engine-memory)")
	}
	r.began = began
	close(r.done)
	return true
}

// tidy removes what is left. When that fails, Kubernetes does it after a while.
// Only the Job that was seen goes: another one of its name is not ours to delete.
func (r *Run) tidy(life context.Context, s sight) {
	if s.noJob {
		return
	}
	err := r.delete(life, r.jobPath(), object{"propagationPolicy": "Background", "preconditions": object{"uid": s.job.Metadata.UID}})
	if err != nil && !cluster.IsStatus(err, http.StatusConflict) && life.Err() == nil {
		r.warn("the Job stays for now", err)
	}
}

func (r *Run) jobPath() string {
	return r.pods.path("/apis/batch/v1", "jobs") + "/" + JobName(r.order.Name)
}

func (r *Run) query() url.Values {
	return url.Values{"labelSelector": {labelJob + "=" + JobName(r.order.Name)}}
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(tryAgain):
	}
}
