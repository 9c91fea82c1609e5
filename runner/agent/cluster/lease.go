package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"
)

// ErrLeaseLost says that another pod is the runner now, or this one could not say for
// too long that it still is.
var ErrLeaseLost = errors.New("the lease of the runner is lost")

// leaseTimes are those of a lease. What runs must have stopped when the lease
// ends: renewWithin and the grace of engines (30 s) are less than duration.
type leaseTimes struct {
	duration    time.Duration // after which others may take it
	every       time.Duration // between renewals
	renewWithin time.Duration // after which this pod stops by itself
	look        time.Duration // between looks while another pod has it
}

var defaultLease = leaseTimes{duration: 60 * time.Second, every: 10 * time.Second, renewWithin: 25 * time.Second, look: 2 * time.Second}

// Annotations of the lease.
const (
	annotationNode = "berth.dev/node"
	annotationData = "berth.dev/data"
)

// lease is a coordination.k8s.io/v1 Lease, as far as it is looked into.
type lease struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Metadata   leaseMeta `json:"metadata"`
	Spec       leaseSpec `json:"spec"`
}

type leaseMeta struct {
	Name            string            `json:"name"`
	Namespace       string            `json:"namespace"`
	UID             string            `json:"uid,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
}

type leaseSpec struct {
	HolderIdentity       string `json:"holderIdentity,omitempty"`
	LeaseDurationSeconds int    `json:"leaseDurationSeconds,omitempty"`
	AcquireTime          string `json:"acquireTime,omitempty"`
	RenewTime            string `json:"renewTime,omitempty"`
	LeaseTransitions     int    `json:"leaseTransitions,omitempty"`
}

const microTime = "2006-01-02T15:04:05.000000Z07:00"

// LeaseConfig says who wants the lease.
type LeaseConfig struct {
	// Data names the data directory of this pod on its node. An agent that holds
	// the lease with the same data on the same node is shown dead when nobody
	// has that directory locked.
	Data   string
	Locked func() bool
	Log    *slog.Logger

	times leaseTimes // zero for the defaults
}

// holder keeps the lease for one pod.
type holder struct {
	pod  *Pod
	cfg  LeaseConfig
	me   string
	seen string    // resource version that was seen last, of another's lease
	when time.Time // when that was
}

// Hold waits until this pod has the lease and keeps it: the context that it
// returns ends with ErrLeaseLost when that fails. release gives the lease to
// the next pod that waits for it, and must be called when all work is done.
func (p *Pod) Hold(ctx context.Context, cfg LeaseConfig) (held context.Context, release func(), err error) {
	if cfg.times == (leaseTimes{}) {
		cfg.times = defaultLease
	}
	h := &holder{pod: p, cfg: cfg, me: p.Name + "/" + p.UID}
	if err := h.acquire(ctx); err != nil {
		return nil, nil, err
	}
	held, cancel := context.WithCancelCause(ctx)
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := h.keep(keeping); err != nil {
			cancel(err)
		}
	}()
	return held, func() {
		stop() // kept until now: engines may still have been stopping
		<-done
		h.giveUp(context.WithoutCancel(ctx))
		cancel(nil)
	}, nil
}

func (h *holder) acquire(ctx context.Context) error {
	told := ""
	for {
		other, err := h.take(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil && other == "":
			return nil
		case err != nil && told != "error":
			h.cfg.Log.WarnContext(ctx, "lease of the runner cannot be taken, trying again", "err", err)
			told = "error"
		case err == nil && told != other:
			h.cfg.Log.InfoContext(ctx, "another pod is the runner, waiting for its lease", "holder", other)
			told = other
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(h.cfg.times.look):
		}
	}
}

// take takes or renews the lease, unless somebody else has it.
func (h *holder) take(ctx context.Context) (other string, err error) {
	l, err := h.get(ctx)
	if err != nil {
		return "", err
	}
	if l.Spec.HolderIdentity != h.me && !h.free(l) {
		return l.Spec.HolderIdentity, nil
	}
	now := time.Now().UTC().Format(microTime)
	if l.Spec.HolderIdentity != h.me {
		l.Spec.AcquireTime = now
		l.Spec.LeaseTransitions++
	}
	l.Spec.HolderIdentity, l.Spec.RenewTime = h.me, now
	l.Spec.LeaseDurationSeconds = max(1, int(h.cfg.times.duration/time.Second))
	if l.Metadata.Annotations == nil {
		l.Metadata.Annotations = map[string]string{}
	}
	l.Metadata.Annotations[annotationNode], l.Metadata.Annotations[annotationData] = h.pod.Node, h.cfg.Data
	return "", h.put(ctx, l)
}

// free reports whether the lease of somebody else may be taken: it was given
// up, it was not renewed for as long as it lasts by our own clock, or its
// holder worked on our data directory on our node, and does not any more.
func (h *holder) free(l lease) bool {
	if l.Spec.HolderIdentity == "" {
		return true
	}
	a := l.Metadata.Annotations
	if h.cfg.Data != "" && a[annotationNode] == h.pod.Node && a[annotationData] == h.cfg.Data && !h.cfg.Locked() {
		return true
	}
	if l.Metadata.ResourceVersion != h.seen {
		h.seen, h.when = l.Metadata.ResourceVersion, time.Now()
	}
	lasts := max(h.cfg.times.duration, time.Duration(l.Spec.LeaseDurationSeconds)*time.Second)
	return time.Since(h.when) > lasts
}

// keep renews the lease until ctx ends.
func (h *holder) keep(ctx context.Context) error {
	renewed := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(h.cfg.times.every):
		}
		began := time.Now()
		other, err := h.take(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // told to end: what came of the last try does not matter
		case err == nil && other == "":
			renewed = began
		case err == nil:
			return fmt.Errorf("%w: pod %s has it", ErrLeaseLost, other)
		case time.Since(renewed) > h.cfg.times.renewWithin:
			return fmt.Errorf("%w: it could not be renewed for %s: %w", ErrLeaseLost, time.Since(renewed).Round(time.Second), err)
		default:
			h.cfg.Log.WarnContext(ctx, "lease of the runner cannot be renewed, trying again", "err", err)
		}
	}
}

// giveUp lets the next pod begin at once. That is a courtesy: when it fails,
// that pod waits.
func (h *holder) giveUp(ctx context.Context) {
	l, err := h.get(ctx)
	if err == nil && l.Spec.HolderIdentity == h.me {
		l.Spec.HolderIdentity = ""
		err = h.put(ctx, l)
	}
	if err != nil {
		h.cfg.Log.WarnContext(ctx, "lease of the runner cannot be given up", "err", err)
	}
}

func (h *holder) path() string {
	return "/apis/coordination.k8s.io/v1/namespaces/" + url.PathEscape(h.pod.Namespace) + "/leases/" + LeaseName
}

func (h *holder) get(ctx context.Context) (lease, error) {
	var l lease
	err := h.pod.Get(ctx, h.path(), &l)
	return l, err
}

// put writes the lease as it was read, with our change: anybody else's change
// in between makes it a conflict.
func (h *holder) put(ctx context.Context, l lease) error {
	return h.pod.Put(ctx, h.path(), l)
}
