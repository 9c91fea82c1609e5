package control

import (
	"context"
	"net/http"

	"github.com/berth-dev/berth/pkg/runnerapi"
)

// EnrolmentPosition says what a handover has to name.
func (c *Client) EnrolmentPosition(ctx context.Context, in runnerapi.EnrolmentPosition) (runnerapi.MachinePosition, error) {
	const what = "ask for the machine to replace"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.api.EnrolmentPositionWithResponse(ctx, in)
	switch {
	case err != nil:
		return runnerapi.MachinePosition{}, unreachable(what, err)
	case resp.JSON200 == nil:
		return runnerapi.MachinePosition{}, problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
	}
	return *resp.JSON200, nil
}

// ListSealed names what is kept of the install that only its customer can open.
func (c *Client) ListSealed(ctx context.Context) (runnerapi.SealedList, error) {
	const what = "list what is sealed"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.api.ListSealedWithResponse(ctx)
	switch {
	case err != nil:
		return runnerapi.SealedList{}, unreachable(what, err)
	case resp.JSON200 == nil:
		return runnerapi.SealedList{}, problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
	}
	return *resp.JSON200, nil
}

// Sealed reads state and outputs of a resource.
func (c *Client) Sealed(ctx context.Context, resource string) (runnerapi.Sealed, error) {
	const what = "read what is sealed"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.api.GetSealedWithResponse(ctx, resource)
	switch {
	case err != nil:
		return runnerapi.Sealed{}, unreachable(what, err)
	case resp.JSON200 == nil:
		return runnerapi.Sealed{}, problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
	}
	return *resp.JSON200, nil
}

// PutSealed writes state and outputs back, sealed again.
func (c *Client) PutSealed(ctx context.Context, resource string, w runnerapi.SealedWrite) error {
	const what = "write what is sealed"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.api.PutSealedWithResponse(ctx, resource, w)
	switch {
	case err != nil:
		return unreachable(what, err)
	case resp.StatusCode() != http.StatusNoContent:
		return problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
	}
	return nil
}

// Chain reads records of the copy of the install's chain, those after a number.
func (c *Client) Chain(ctx context.Context, after int64) ([]runnerapi.ChainRecord, error) {
	const what = "read chain"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.api.GetChainWithResponse(ctx, &runnerapi.GetChainParams{After: after})
	switch {
	case err != nil:
		return nil, unreachable(what, err)
	case resp.JSON200 == nil:
		return nil, problem(what, resp.StatusCode(), resp.ApplicationProblemJSONDefault)
	}
	return resp.JSON200.Records, nil
}
