package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// operations are the jobs of a deploy, in their order.
var operations = []string{string(jobspec.OperationPlan), string(jobspec.OperationApply)}

// spent is where the time of components went.
type spent struct {
	jobs    map[string]*jobSpent // by operation
	between figures              // of a step, without its jobs: the control plane
}

func newSpent() *spent { return &spent{jobs: map[string]*jobSpent{}} }

// jobSpent takes the jobs of one operation apart.
type jobSpent struct {
	waits    figures // queued, until the runner has it
	starts   figures // until the engine's first instruction: artifact, inputs, record, process
	works    figures // until the engine is done
	reported figures // until the result is accepted: plan packed, record
}

// add takes a finished step of a deploy apart.
func (s *spent) add(ctx context.Context, c *cluster, stepID string) error {
	resp, err := c.api.GetStepWithResponse(ctx, stepID)
	if err != nil {
		return err
	}
	step := resp.JSON200
	if step == nil || step.StartedAt == nil || step.FinishedAt == nil {
		return fmt.Errorf("step %s is not finished: %s", stepID, resp.Status())
	}
	between := step.FinishedAt.Sub(*step.StartedAt)
	for _, job := range step.Jobs {
		if job.StartedAt == nil || job.FinishedAt == nil {
			return fmt.Errorf("job %s of step %s is %s", job.ID, stepID, job.State)
		}
		row, err := readJob(ctx, c.store, c.org, job.ID)
		if err != nil {
			return err
		}
		var result jobspec.Result
		if err := json.Unmarshal(row.Result, &result); err != nil {
			return fmt.Errorf("result of job %s: %w", job.ID, err)
		}
		of := s.jobs[job.Operation]
		if of == nil {
			of = &jobSpent{}
			s.jobs[job.Operation] = of
		}
		at := job.QueuedAt
		for _, phase := range []struct {
			into *figures
			end  time.Time
		}{
			{&of.waits, *job.StartedAt},
			{&of.starts, result.FirstInstructionAt},
			{&of.works, result.FinishedAt},
			{&of.reported, *job.FinishedAt},
		} {
			phase.into.add(phase.end.Sub(at))
			at = phase.end
		}
		between -= job.FinishedAt.Sub(job.QueuedAt)
	}
	s.between.add(between)
	return nil
}
