package control

import (
	"context"
	"net/http"

	"github.com/berth-dev/berth/pkg/runnerapi"
)

// Plan hands in what a plan job would do.
func (c *Client) Plan(ctx context.Context, jobID string, plan runnerapi.Plan) error {
	const what = "hand in plan"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.api.PutPlanWithResponse(ctx, jobID, plan)
	switch {
	case err != nil:
		return unreachable(what, err)
	case resp.StatusCode() != http.StatusNoContent:
		return problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
	}
	return nil
}

// Result reports how an attempt ended.
func (c *Client) Result(ctx context.Context, jobID string, report runnerapi.ResultReport) error {
	const what = "report result"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.api.PutResultWithResponse(ctx, jobID, report)
	switch {
	case err != nil:
		return unreachable(what, err)
	case resp.JSON200 == nil:
		return problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
	}
	return nil
}

// State returns the sealed state of a resource, nil when it has none.
func (c *Client) State(ctx context.Context, resource string, a runnerapi.Attempt) (*runnerapi.State, error) {
	const what = "read state"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.api.GetStateWithResponse(ctx, resource, &runnerapi.GetStateParams{JobID: a.JobID, Attempt: a.Attempt})
	switch {
	case err != nil:
		return nil, unreachable(what, err)
	case resp.JSON200 != nil:
		return resp.JSON200, nil
	case resp.StatusCode() == http.StatusNoContent:
		return nil, nil //nolint:nilnil // no state is an answer, as documented
	}
	return nil, problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
}

// PutState writes the sealed state of a resource.
func (c *Client) PutState(ctx context.Context, resource string, w runnerapi.StateWrite) error {
	const what = "write state"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.api.PutStateWithResponse(ctx, resource, w)
	switch {
	case err != nil:
		return unreachable(what, err)
	case resp.JSON200 != nil:
		return nil
	case resp.ApplicationProblemJSON409 != nil:
		p := resp.ApplicationProblemJSON409
		return &Error{What: what, Status: resp.StatusCode(), Code: p.Code, Detail: deref(p.Detail), Remedy: deref(p.Remedy)}
	}
	return problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
}

// LockState locks the state of a resource. When somebody else holds it, holder
// says who, in addition to the error.
func (c *Client) LockState(ctx context.Context, resource string, in runnerapi.LockRequest) (holder *runnerapi.Lock, err error) {
	const what = "lock state"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.api.LockStateWithResponse(ctx, resource, in)
	switch {
	case err != nil:
		return nil, unreachable(what, err)
	case resp.JSON200 != nil:
		return nil, nil //nolint:nilnil // nobody else holds it
	case resp.ApplicationProblemJSON423 != nil:
		p := resp.ApplicationProblemJSON423
		return &p.Holder, &Error{What: what, Status: resp.StatusCode(), Code: p.Code, Detail: deref(p.Detail), Remedy: deref(p.Remedy)}
	}
	return nil, problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
}

// StateLock says who holds the state of a resource, whichever job that is; nil when
// nobody does.
func (c *Client) StateLock(ctx context.Context, resource string) (*runnerapi.HeldLock, error) {
	const what = "read state lock"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.api.GetStateLockWithResponse(ctx, resource)
	switch {
	case err != nil:
		return nil, unreachable(what, err)
	case resp.JSON200 != nil:
		return resp.JSON200, nil
	case resp.StatusCode() == http.StatusNoContent:
		return nil, nil //nolint:nilnil // nobody holds it
	}
	return nil, problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
}

// UnlockState frees the lock of an attempt.
func (c *Client) UnlockState(ctx context.Context, resource string, in runnerapi.UnlockRequest) error {
	const what = "unlock state"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.api.UnlockStateWithResponse(ctx, resource, in)
	switch {
	case err != nil:
		return unreachable(what, err)
	case resp.StatusCode() == http.StatusNoContent:
		return nil
	case resp.ApplicationProblemJSON423 != nil:
		p := resp.ApplicationProblemJSON423
		return &Error{What: what, Status: resp.StatusCode(), Code: p.Code, Detail: deref(p.Detail), Remedy: deref(p.Remedy)}
	}
	return problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
}
