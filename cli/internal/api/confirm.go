package api

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Unconfirmed is what a request would have removed, when the control plane
// refused it because it does not say the name of what it removes something of.
func Unconfirmed(err error) (goes []string, refused bool) {
	var problem *Problem
	if !errors.As(err, &problem) || problem.Code != "not_confirmed" {
		return nil, false
	}
	for _, item := range Value(problem.Errors) {
		goes = append(goes, item.Message)
	}
	return goes, true
}

// Made lists what there is of an install, as a deprovision finds it.
func (c *Client) Made(ctx context.Context, install string) ([]string, error) {
	resp, err := c.ListResourcesWithResponse(ctx, install)
	if err != nil {
		return nil, err
	}
	page, err := Body(resp.JSON200)
	if err != nil {
		return nil, err
	}
	var goes []string
	for _, r := range page.Items {
		switch {
		case r.Kind == ctlapi.ResourceKindStack, r.State == ctlapi.ResourceStateAbsent:
		case r.Kind == ctlapi.ResourceKindSecrets:
			goes = append(goes, fmt.Sprintf("copies of secrets in the cluster (%s)", r.State))
		default:
			goes = append(goes, fmt.Sprintf("%s %s (%s)", r.Kind, r.Name, r.State))
		}
	}
	return goes, nil
}
