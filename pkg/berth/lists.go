package berth

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// PageSize is how many items a page has unless Limit says otherwise: the most
// that is given.
const PageSize = 500

// ErrNotUnderstood means that an answer is not what the contract of this version
// says: compare the versions of both sides.
var ErrNotUnderstood = errors.New("this version of the client does not understand the control plane's answer: compare the versions of both sides")

// The lists below read one page after the other while they are ranged over. Of
// their parameters, Limit is the size of a page and After is where to begin. An
// error comes once, with a zero item, and ends the list.

// ActionRuns lists runs of actions, newest first.
func (c *Client) ActionRuns(ctx context.Context, which ctlapi.ListActionRunsParams) iter.Seq2[ctlapi.ActionRun, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.ActionRun], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListActionRunsWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.ActionRun])(resp.JSON200), nil
	})
}

// Alarms lists alarms.
func (c *Client) Alarms(ctx context.Context, which ctlapi.ListAlarmsParams) iter.Seq2[ctlapi.Alarm, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.Alarm], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListAlarmsWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.Alarm])(resp.JSON200), nil
	})
}

// Alerts lists alerts; open ones when no state is named.
func (c *Client) Alerts(ctx context.Context, which ctlapi.ListAlertsParams) iter.Seq2[ctlapi.Alert, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.Alert], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListAlertsWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.Alert])(resp.JSON200), nil
	})
}

// AlertMutes lists mutes.
func (c *Client) AlertMutes(ctx context.Context, which ctlapi.ListAlertMutesParams) iter.Seq2[ctlapi.AlertMute, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.AlertMute], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListAlertMutesWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.AlertMute])(resp.JSON200), nil
	})
}

// Incidents lists incidents.
func (c *Client) Incidents(ctx context.Context, which ctlapi.ListIncidentsParams) iter.Seq2[ctlapi.Incident, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.Incident], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListIncidentsWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.Incident])(resp.JSON200), nil
	})
}

// TerraformStateHistory lists the states that a resource of an install has had.
func (c *Client) TerraformStateHistory(ctx context.Context, install, resource string, which ctlapi.ListTerraformStateHistoryParams) iter.Seq2[ctlapi.TerraformStateVersion, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.TerraformStateVersion], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListTerraformStateHistoryWithResponse(ctx, install, resource, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.TerraformStateVersion])(resp.JSON200), nil
	})
}

// Webhooks lists webhooks, oldest first.
func (c *Client) Webhooks(ctx context.Context, which ctlapi.ListWebhooksParams) iter.Seq2[ctlapi.Webhook, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.Webhook], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListWebhooksWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.Webhook])(resp.JSON200), nil
	})
}

// WebhookDeliveries lists the deliveries of a webhook, newest first.
func (c *Client) WebhookDeliveries(ctx context.Context, webhook string, which ctlapi.ListWebhookDeliveriesParams) iter.Seq2[ctlapi.WebhookDelivery, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.WebhookDelivery], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListWebhookDeliveriesWithResponse(ctx, webhook, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.WebhookDelivery])(resp.JSON200), nil
	})
}

// Bulks lists bulk operations without their items, newest first.
func (c *Client) Bulks(ctx context.Context, which ctlapi.ListBulksParams) iter.Seq2[ctlapi.Bulk, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.Bulk], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListBulksWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.Bulk])(resp.JSON200), nil
	})
}

// Resources lists resources of all installs, by the name of the install.
func (c *Client) Resources(ctx context.Context, which ctlapi.ListAllResourcesParams) iter.Seq2[ctlapi.ResourceOfInstall, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.ResourceOfInstall], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListAllResourcesWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.ResourceOfInstall])(resp.JSON200), nil
	})
}

// Drift goes through the episodes of drift in all installs, newest first.
func (c *Client) Drift(ctx context.Context, which ctlapi.ListDriftParams) iter.Seq2[ctlapi.DriftOfInstall, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.DriftOfInstall], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListDriftWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.DriftOfInstall])(resp.JSON200), nil
	})
}

// RunnerJobs lists the jobs of a runner, newest first.
func (c *Client) RunnerJobs(ctx context.Context, runner string, which ctlapi.ListRunnerJobsParams) iter.Seq2[ctlapi.RunnerJob, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.RunnerJob], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListRunnerJobsWithResponse(ctx, runner, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.RunnerJob])(resp.JSON200), nil
	})
}

// Apps lists apps.
func (c *Client) Apps(ctx context.Context, which ctlapi.ListAppsParams) iter.Seq2[ctlapi.App, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.App], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListAppsWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.App])(resp.JSON200), nil
	})
}

// AppVariables lists the variables of an app, without values.
func (c *Client) AppVariables(ctx context.Context, app string, which ctlapi.ListAppVariablesParams) iter.Seq2[ctlapi.AppVariable, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.AppVariable], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListAppVariablesWithResponse(ctx, app, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.AppVariable])(resp.JSON200), nil
	})
}

// Builds lists builds, newest first.
func (c *Client) Builds(ctx context.Context, which ctlapi.ListBuildsParams) iter.Seq2[ctlapi.Build, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.Build], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListBuildsWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.Build])(resp.JSON200), nil
	})
}

// Changes lists changes, newest first.
func (c *Client) Changes(ctx context.Context, which ctlapi.ListChangesParams) iter.Seq2[ctlapi.ChangeSummary, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.ChangeSummary], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListChangesWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.ChangeSummary])(resp.JSON200), nil
	})
}

// PolicyReports lists what policies and guardrails say of changes, those of the newest
// changes first.
func (c *Client) PolicyReports(ctx context.Context, which ctlapi.ListPolicyReportsParams) iter.Seq2[ctlapi.PolicyReport, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.PolicyReport], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListPolicyReportsWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.PolicyReport])(resp.JSON200), nil
	})
}

// Configs lists the configs of an app.
func (c *Client) Configs(ctx context.Context, app string, which ctlapi.ListConfigsParams) iter.Seq2[ctlapi.Config, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.Config], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListConfigsWithResponse(ctx, app, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.Config])(resp.JSON200), nil
	})
}

// Customers lists customers.
func (c *Client) Customers(ctx context.Context, which ctlapi.ListCustomersParams) iter.Seq2[ctlapi.Customer, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.Customer], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListCustomersWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.Customer])(resp.JSON200), nil
	})
}

// Installs lists installs.
func (c *Client) Installs(ctx context.Context, which ctlapi.ListInstallsParams) iter.Seq2[ctlapi.Install, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.Install], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListInstallsWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.Install])(resp.JSON200), nil
	})
}

// Statuses lists how installs stand.
func (c *Client) Statuses(ctx context.Context, which ctlapi.ListStatusParams) iter.Seq2[ctlapi.InstallStatus, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.InstallStatus], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListStatusWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.InstallStatus])(resp.JSON200), nil
	})
}

// HealthHistory lists how healthy installs were over a time. Give both ends of it, so that
// each page is of the same time.
func (c *Client) HealthHistory(ctx context.Context, which ctlapi.ListHealthHistoryParams) iter.Seq2[ctlapi.InstallHealthPast, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.InstallHealthPast], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListHealthHistoryWithResponse(ctx, &params)
		if err != nil || resp.JSON200 == nil {
			return nil, err
		}
		return &page[ctlapi.InstallHealthPast]{Items: resp.JSON200.Items, Next: resp.JSON200.Next}, nil
	})
}

// Members lists the members of the org.
func (c *Client) Members(ctx context.Context, which ctlapi.ListMembersParams) iter.Seq2[ctlapi.Member, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.Member], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListMembersWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.Member])(resp.JSON200), nil
	})
}

// Releases lists the releases of an app.
func (c *Client) Releases(ctx context.Context, app string, which ctlapi.ListReleasesParams) iter.Seq2[ctlapi.Release, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.Release], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListReleasesWithResponse(ctx, app, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.Release])(resp.JSON200), nil
	})
}

// Runners lists runners.
func (c *Client) Runners(ctx context.Context, which ctlapi.ListRunnersParams) iter.Seq2[ctlapi.Runner, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.Runner], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListRunnersWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.Runner])(resp.JSON200), nil
	})
}

// BrowserSessions lists the browsers that are logged in.
func (c *Client) BrowserSessions(ctx context.Context, which ctlapi.ListBrowserSessionsParams) iter.Seq2[ctlapi.BrowserSession, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.BrowserSession], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListBrowserSessionsWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.BrowserSession])(resp.JSON200), nil
	})
}

// Tokens lists tokens, without their secrets.
func (c *Client) Tokens(ctx context.Context, which ctlapi.ListTokensParams) iter.Seq2[ctlapi.Token, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.Token], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListTokensWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.Token])(resp.JSON200), nil
	})
}

// Workflows lists workflows without their steps, newest first.
func (c *Client) Workflows(ctx context.Context, which ctlapi.ListWorkflowsParams) iter.Seq2[ctlapi.Workflow, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.Workflow], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListWorkflowsWithResponse(ctx, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.Workflow])(resp.JSON200), nil
	})
}

// page is what every page of the contract is.
type page[T any] struct {
	Items []T
	Next  ctlapi.Next
}

// pages ranges over all items, page after page.
func pages[T any](limit *int, begin *string, read func(limit int, after *string) (*page[T], error)) iter.Seq2[T, error] {
	size := PageSize
	if limit != nil {
		size = *limit
	}
	return func(yield func(T, error) bool) {
		var none T
		for after := begin; ; {
			got, err := read(size, after)
			if err == nil && got == nil {
				err = ErrNotUnderstood
			}
			if err != nil {
				yield(none, err)
				return
			}
			for _, item := range got.Items {
				if !yield(item, nil) {
					return
				}
			}
			if got.Next == "" {
				return
			}
			if got.Next == value(after) {
				yield(none, fmt.Errorf("the list does not continue after %q", got.Next))
				return
			}
			after = &got.Next
		}
	}
}

// Metrics lists the series of numbers that runs wrote in an install.
func (c *Client) Metrics(ctx context.Context, install string, which ctlapi.ListMetricsParams) iter.Seq2[ctlapi.Metric, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.Metric], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListMetricsWithResponse(ctx, install, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.Metric])(resp.JSON200), nil
	})
}

// Remediations lists what the runner of an install did by itself about unhealthy checks, newest
// first.
func (c *Client) Remediations(ctx context.Context, install string, which ctlapi.ListRemediationsParams) iter.Seq2[ctlapi.Remediation, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.Remediation], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListRemediationsWithResponse(ctx, install, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.Remediation])(resp.JSON200), nil
	})
}

// MetricPoints lists the points of a series, by its id, newest first; of the last day
// unless which says otherwise.
func (c *Client) MetricPoints(ctx context.Context, install, series string, which ctlapi.ListMetricPointsParams) iter.Seq2[ctlapi.MetricPoint, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.MetricPoint], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListMetricPointsWithResponse(ctx, install, series, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.MetricPoint])(resp.JSON200), nil
	})
}

// Timeline lists what happened to an install, newest first unless which says otherwise.
func (c *Client) Timeline(ctx context.Context, install string, which ctlapi.ListTimelineParams) iter.Seq2[ctlapi.TimelineEntry, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.TimelineEntry], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListTimelineWithResponse(ctx, install, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.TimelineEntry])(resp.JSON200), nil
	})
}

// StateVersions lists the versions of an install's state tree, newest first. A page has at most 100.
func (c *Client) StateVersions(ctx context.Context, install string, which ctlapi.ListStateVersionsParams) iter.Seq2[ctlapi.StateVersion, error] {
	return pages(which.Limit, which.After, func(limit int, after *string) (*page[ctlapi.StateVersion], error) {
		params := which
		params.Limit, params.After = &limit, after
		resp, err := c.ListStateVersionsWithResponse(ctx, install, &params)
		if err != nil {
			return nil, err
		}
		return (*page[ctlapi.StateVersion])(resp.JSON200), nil
	})
}
