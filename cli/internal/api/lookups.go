package api

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// NewestWorkflow returns the newest workflow of an install, and an error when it
// has had none.
func (c *Client) NewestWorkflow(ctx context.Context, install string) (*ctlapi.Workflow, error) {
	one := 1
	resp, err := c.ListWorkflowsWithResponse(ctx, &ctlapi.ListWorkflowsParams{Install: &install, Limit: &one})
	if err != nil {
		return nil, err
	}
	page, err := Body(resp.JSON200)
	if err != nil {
		return nil, err
	}
	if len(page.Items) == 0 {
		return nil, fmt.Errorf("install %s has had no workflow yet", install)
	}
	return &page.Items[0], nil
}

// Change returns a change.
func (c *Client) Change(ctx context.Context, id string) (*ctlapi.Change, error) {
	resp, err := c.GetChangeWithResponse(ctx, id)
	if err != nil {
		return nil, err
	}
	return Body(resp.JSON200)
}

// Install returns an install, by name or id.
func (c *Client) Install(ctx context.Context, name string) (*ctlapi.Install, error) {
	resp, err := c.GetInstallWithResponse(ctx, name)
	if err != nil {
		return nil, err
	}
	return Body(resp.JSON200)
}

// ChangeInstall reads the settings of an install and changes them, unless somebody
// else was faster.
func (c *Client) ChangeInstall(ctx context.Context, name string, change func(now ctlapi.Install) (ctlapi.InstallUpdate, error)) (*ctlapi.Install, error) {
	read, err := c.GetInstallWithResponse(ctx, name)
	if err != nil {
		return nil, err
	}
	now, err := Body(read.JSON200)
	if err != nil {
		return nil, err
	}
	update, err := change(*now)
	if err != nil {
		return nil, err
	}
	resp, err := c.UpdateInstallWithResponse(ctx, name, &ctlapi.UpdateInstallParams{IfMatch: Optional(read.HTTPResponse.Header.Get("ETag"))}, update)
	if err != nil {
		return nil, err
	}
	return Body(resp.JSON200)
}

// Workflow returns a workflow with its steps.
func (c *Client) Workflow(ctx context.Context, id string) (*ctlapi.Workflow, error) {
	resp, err := c.GetWorkflowWithResponse(ctx, id, &ctlapi.GetWorkflowParams{})
	if err != nil {
		return nil, err
	}
	return Body(resp.JSON200)
}

// SecretsOfInstall are the names of the sensitive inputs of an install.
func (c *Client) SecretsOfInstall(ctx context.Context, install string) (map[string]bool, error) {
	resp, err := c.GetInputsWithResponse(ctx, install)
	if err != nil {
		return nil, err
	}
	inputs, err := Body(resp.JSON200)
	if err != nil {
		return nil, err
	}
	secrets := map[string]bool{}
	for _, input := range inputs.Items {
		secrets[input.Name] = input.Sensitive
	}
	return secrets, nil
}

// SecretsOfApp are the names of the sensitive inputs of the newest config of an
// app; none when it has no config.
func (c *Client) SecretsOfApp(ctx context.Context, app string) (map[string]bool, error) {
	resp, err := c.GetAppWithResponse(ctx, app)
	if err != nil {
		return nil, err
	}
	found, err := Body(resp.JSON200)
	if err != nil || found.Config == nil {
		return nil, err
	}
	config, err := c.GetConfigWithResponse(ctx, found.Config.ID, &ctlapi.GetConfigParams{})
	if err != nil {
		return nil, err
	}
	body, err := Body(config.JSON200)
	if err != nil {
		return nil, err
	}
	secrets := map[string]bool{}
	for _, input := range body.Inputs {
		secrets[input.Name] = input.Sensitive
	}
	return secrets, nil
}
