package api

import (
	"context"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// PageSize is how many items are asked for at once, the most that is given.
const PageSize = 500

// The lists below read as many pages as they need for limit items; 0 means all.
// Limit and After of the parameters that they take are theirs to set.

// Apps lists apps.
func (c *Client) Apps(ctx context.Context, limit int) ([]ctlapi.App, error) {
	return collect(limit, func(limit int, after *string) (*page[ctlapi.App], error) {
		resp, err := c.ListAppsWithResponse(ctx, &ctlapi.ListAppsParams{Limit: &limit, After: after})
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.App])(resp.JSON200), nil
	})
}

// Variables lists the variables of an app, without values.
func (c *Client) Variables(ctx context.Context, limit int, app string) ([]ctlapi.AppVariable, error) {
	return collect(limit, func(limit int, after *string) (*page[ctlapi.AppVariable], error) {
		resp, err := c.ListAppVariablesWithResponse(ctx, app, &ctlapi.ListAppVariablesParams{Limit: &limit, After: after})
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.AppVariable])(resp.JSON200), nil
	})
}

// Configs lists the configs of an app.
func (c *Client) Configs(ctx context.Context, limit int, app string) ([]ctlapi.Config, error) {
	return collect(limit, func(limit int, after *string) (*page[ctlapi.Config], error) {
		resp, err := c.ListConfigsWithResponse(ctx, app, &ctlapi.ListConfigsParams{Limit: &limit, After: after})
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.Config])(resp.JSON200), nil
	})
}

// Releases lists the releases of an app.
func (c *Client) Releases(ctx context.Context, limit int, app string) ([]ctlapi.Release, error) {
	return collect(limit, func(limit int, after *string) (*page[ctlapi.Release], error) {
		resp, err := c.ListReleasesWithResponse(ctx, app, &ctlapi.ListReleasesParams{Limit: &limit, After: after})
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.Release])(resp.JSON200), nil
	})
}

// Builds lists builds, newest first.
func (c *Client) Builds(ctx context.Context, limit int, which ctlapi.ListBuildsParams) ([]ctlapi.Build, error) {
	return collect(limit, func(limit int, after *string) (*page[ctlapi.Build], error) {
		which.Limit, which.After = &limit, after
		resp, err := c.ListBuildsWithResponse(ctx, &which)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.Build])(resp.JSON200), nil
	})
}

// Installs lists installs.
func (c *Client) Installs(ctx context.Context, limit int, which ctlapi.ListInstallsParams) ([]ctlapi.Install, error) {
	return collect(limit, func(limit int, after *string) (*page[ctlapi.Install], error) {
		which.Limit, which.After = &limit, after
		resp, err := c.ListInstallsWithResponse(ctx, &which)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.Install])(resp.JSON200), nil
	})
}

// Workflows lists workflows, newest first.
func (c *Client) Workflows(ctx context.Context, limit int, which ctlapi.ListWorkflowsParams) ([]ctlapi.Workflow, error) {
	return collect(limit, func(limit int, after *string) (*page[ctlapi.Workflow], error) {
		which.Limit, which.After = &limit, after
		resp, err := c.ListWorkflowsWithResponse(ctx, &which)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.Workflow])(resp.JSON200), nil
	})
}

// Changes lists changes, newest first.
func (c *Client) Changes(ctx context.Context, limit int, which ctlapi.ListChangesParams) ([]ctlapi.ChangeSummary, error) {
	return collect(limit, func(limit int, after *string) (*page[ctlapi.ChangeSummary], error) {
		which.Limit, which.After = &limit, after
		resp, err := c.ListChangesWithResponse(ctx, &which)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.ChangeSummary])(resp.JSON200), nil
	})
}

// Alarms lists alarms.
func (c *Client) Alarms(ctx context.Context, limit int, which ctlapi.ListAlarmsParams) ([]ctlapi.Alarm, error) {
	return collect(limit, func(limit int, after *string) (*page[ctlapi.Alarm], error) {
		which.Limit, which.After = &limit, after
		resp, err := c.ListAlarmsWithResponse(ctx, &which)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.Alarm])(resp.JSON200), nil
	})
}

// Runs lists runs of actions, newest first.
func (c *Client) Runs(ctx context.Context, limit int, which ctlapi.ListActionRunsParams) ([]ctlapi.ActionRun, error) {
	return collect(limit, func(limit int, after *string) (*page[ctlapi.ActionRun], error) {
		which.Limit, which.After = &limit, after
		resp, err := c.ListActionRunsWithResponse(ctx, &which)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.ActionRun])(resp.JSON200), nil
	})
}

// Runners lists runners; of one install when it is named.
func (c *Client) Runners(ctx context.Context, limit int, install string) ([]ctlapi.Runner, error) {
	return collect(limit, func(limit int, after *string) (*page[ctlapi.Runner], error) {
		resp, err := c.ListRunnersWithResponse(ctx, &ctlapi.ListRunnersParams{Install: Optional(install), Limit: &limit, After: after})
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.Runner])(resp.JSON200), nil
	})
}

// Customers lists customers.
func (c *Client) Customers(ctx context.Context, limit int) ([]ctlapi.Customer, error) {
	return collect(limit, func(limit int, after *string) (*page[ctlapi.Customer], error) {
		resp, err := c.ListCustomersWithResponse(ctx, &ctlapi.ListCustomersParams{Limit: &limit, After: after})
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.Customer])(resp.JSON200), nil
	})
}

// Members lists members, oldest first.
func (c *Client) Members(ctx context.Context, limit int) ([]ctlapi.Member, error) {
	return collect(limit, func(limit int, after *string) (*page[ctlapi.Member], error) {
		resp, err := c.ListMembersWithResponse(ctx, &ctlapi.ListMembersParams{Limit: &limit, After: after})
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.Member])(resp.JSON200), nil
	})
}

// Tokens lists tokens.
func (c *Client) Tokens(ctx context.Context, limit int) ([]ctlapi.Token, error) {
	return collect(limit, func(limit int, after *string) (*page[ctlapi.Token], error) {
		resp, err := c.ListTokensWithResponse(ctx, &ctlapi.ListTokensParams{Limit: &limit, After: after})
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.Token])(resp.JSON200), nil
	})
}

// page is what every page of the contract is.
type page[T any] struct {
	Items []T
	Next  ctlapi.Next
}

// collect reads pages until there is no more, or enough.
func collect[T any](limit int, read func(limit int, after *string) (*page[T], error)) ([]T, error) {
	var all []T
	var after *string
	for {
		size := PageSize
		if limit > 0 {
			size = min(size, limit-len(all))
		}
		answer, err := read(size, after)
		if err != nil {
			return nil, err
		}
		got, err := Body(answer)
		if err != nil {
			return nil, err
		}
		all = append(all, got.Items...)
		if got.Next == "" || limit > 0 && len(all) >= limit {
			return all, nil
		}
		after = &got.Next
	}
}
