package engine

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/helm"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
	"github.com/berth-dev/berth/runner/engine/manifest"
)

// looksAtOnce is how many components are looked at side by side: enough that one which waits
// for its cluster does not hold up the others.
const looksAtOnce = 4

// looks are how components of a kind are looked at.
var looks = map[jobspec.Kind]func(context.Context, *job.Job) (jobspec.Result, error){
	jobspec.KindHelmChart:          helm.Health,
	jobspec.KindKubernetesManifest: manifest.Health,
}

// probes looks at several components over one connection: to start a process and to ask a
// cluster for its kinds takes longer than most looks. What it finds is in the looks; the job
// itself fails only when nothing could be looked at.
func probes(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	c, err := kube.Connect(ctx, j)
	if err != nil {
		return jobspec.Result{}, err
	}
	if _, err := j.State(); err != nil { // decoded once
		return jobspec.Result{}, err
	}
	ctx = kube.Share(ctx, c)
	result := jobspec.Result{Looks: make([]jobspec.Look, len(j.Spec.Probes))}
	var group errgroup.Group
	group.SetLimit(looksAtOnce)
	for i := range j.Spec.Probes {
		group.Go(func() error {
			result.Looks[i] = lookAt(ctx, j, j.Spec.Probes[i])
			return nil
		})
	}
	return result, group.Wait()
}

// lookAt is one look, as a job of its own would be.
func lookAt(ctx context.Context, j *job.Job, p jobspec.Probe) jobspec.Look {
	own := *j
	own.Spec.Probes, own.Spec.Kind, own.Spec.Resource, own.Spec.Work = nil, p.Kind, &p.Resource, p.Work
	own.StartedAt = time.Now()
	var result jobspec.Result
	look := looks[p.Kind]
	err := fmt.Errorf("this engine cannot look at a %s", p.Kind)
	if look != nil {
		result, err = look(ctx, &own)
	}
	if err != nil {
		err = explain(ctx, &own, err)
	}
	finish(&result, &own, err)
	if err != nil {
		j.Logf("%s: %s", own.Subject(), result.Error)
	}
	return jobspec.Look{
		Outcome: result.Outcome, ExitCode: result.ExitCode, Error: result.Error, Findings: result.Findings, Certificates: result.Certificates,
		StartedAt: result.StartedAt, FinishedAt: result.FinishedAt,
	}
}
