package berth

import (
	"context"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/pause"
)

// longPoll is how long one question is held by the service: shorter than the
// minute after which many proxies give up.
const longPoll = "30s"

// unheld is the pause after an answer that was not held back and has no news, as
// of a proxy that answers from its memory.
const unheld = time.Second

// WorkflowEnded tells whether nothing more happens in a workflow.
func WorkflowEnded(w *ctlapi.Workflow) bool {
	switch w.State {
	case ctlapi.WorkflowStateSucceeded, ctlapi.WorkflowStateFailed, ctlapi.WorkflowStateCancelled:
		return true
	}
	return false
}

// AwaitWorkflow waits until a workflow has ended and returns it with its steps;
// look at State for how it came out. A workflow that needs a decision waits for
// days: give the context a deadline, or stop sooner with until, which sees every
// new version and may be nil.
func (c *Client) AwaitWorkflow(ctx context.Context, id string, until func(*ctlapi.Workflow) bool) (*ctlapi.Workflow, error) {
	return await(ctx, func(wait *string, after int64) (*ctlapi.Workflow, int64, error) {
		resp, err := c.GetWorkflowWithResponse(ctx, id, &ctlapi.GetWorkflowParams{Wait: wait, AfterVersion: &after})
		if err != nil || resp.JSON200 == nil {
			return nil, 0, orNotUnderstood(err)
		}
		return resp.JSON200, resp.JSON200.Version, nil
	}, func(w *ctlapi.Workflow) bool { return WorkflowEnded(w) || until != nil && until(w) })
}

// AwaitConfig waits until the builds of a config have ended: its State is then
// released, and Release is set, or failed.
func (c *Client) AwaitConfig(ctx context.Context, id string) (*ctlapi.Config, error) {
	return await(ctx, func(wait *string, after int64) (*ctlapi.Config, int64, error) {
		resp, err := c.GetConfigWithResponse(ctx, id, &ctlapi.GetConfigParams{Wait: wait, AfterVersion: &after})
		if err != nil || resp.JSON200 == nil {
			return nil, 0, orNotUnderstood(err)
		}
		return resp.JSON200, resp.JSON200.Version, nil
	}, func(config *ctlapi.Config) bool { return config.State != ctlapi.ConfigStateBuilding })
}

// AwaitBuild waits until a build has succeeded, failed or been cancelled.
func (c *Client) AwaitBuild(ctx context.Context, id string) (*ctlapi.Build, error) {
	return await(ctx, func(wait *string, after int64) (*ctlapi.Build, int64, error) {
		resp, err := c.GetBuildWithResponse(ctx, id, &ctlapi.GetBuildParams{Wait: wait, AfterVersion: &after})
		if err != nil || resp.JSON200 == nil {
			return nil, 0, orNotUnderstood(err)
		}
		return resp.JSON200, resp.JSON200.Version, nil
	}, func(build *ctlapi.Build) bool {
		return build.State != ctlapi.BuildStateQueued && build.State != ctlapi.BuildStateRunning
	})
}

func orNotUnderstood(err error) error {
	if err == nil {
		return ErrNotUnderstood
	}
	return err
}

// await reads a thing, at once and then after each of its versions, until it is
// done.
func await[T any](ctx context.Context, read func(wait *string, after int64) (*T, int64, error), done func(*T) bool) (*T, error) {
	var wait *string
	for after := int64(0); ; {
		asked := time.Now()
		got, version, err := read(wait, after)
		if err != nil {
			return nil, err
		}
		if done(got) {
			return got, nil
		}
		if wait != nil && version <= after && time.Since(asked) < unheld {
			if err := pause.For(ctx, unheld); err != nil {
				return nil, err
			}
		}
		wait, after = new(longPoll), version
	}
}
