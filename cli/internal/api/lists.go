package api

import (
	"context"
	"iter"

	"github.com/berth-dev/berth/pkg/berth"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// PageSize is how many items are asked for at once, the most that is given.
const PageSize = berth.PageSize

// The lists below read as many pages as they need for limit items; 0 means all.
// Limit of the parameters that they take is theirs to set.

// Apps lists apps.
func (c *Client) Apps(ctx context.Context, limit int) ([]ctlapi.App, error) {
	return collect(limit, c.Client.Apps(ctx, ctlapi.ListAppsParams{Limit: size(limit)}))
}

// Variables lists the variables of an app, without values.
func (c *Client) Variables(ctx context.Context, limit int, app string) ([]ctlapi.AppVariable, error) {
	return collect(limit, c.Client.AppVariables(ctx, app, ctlapi.ListAppVariablesParams{Limit: size(limit)}))
}

// Configs lists the configs of an app.
func (c *Client) Configs(ctx context.Context, limit int, app string) ([]ctlapi.Config, error) {
	return collect(limit, c.Client.Configs(ctx, app, ctlapi.ListConfigsParams{Limit: size(limit)}))
}

// Releases lists the releases of an app.
func (c *Client) Releases(ctx context.Context, limit int, app string) ([]ctlapi.Release, error) {
	return collect(limit, c.Client.Releases(ctx, app, ctlapi.ListReleasesParams{Limit: size(limit)}))
}

// Builds lists builds, newest first.
func (c *Client) Builds(ctx context.Context, limit int, which ctlapi.ListBuildsParams) ([]ctlapi.Build, error) {
	which.Limit = size(limit)
	return collect(limit, c.Client.Builds(ctx, which))
}

// Installs lists installs.
func (c *Client) Installs(ctx context.Context, limit int, which ctlapi.ListInstallsParams) ([]ctlapi.Install, error) {
	which.Limit = size(limit)
	return collect(limit, c.Client.Installs(ctx, which))
}

// Statuses lists how installs stand.
func (c *Client) Statuses(ctx context.Context, limit int) ([]ctlapi.InstallStatus, error) {
	return collect(limit, c.Client.Statuses(ctx, ctlapi.ListStatusParams{Limit: size(limit)}))
}

// HealthHistory lists how healthy installs were.
func (c *Client) HealthHistory(ctx context.Context, limit int, which ctlapi.ListHealthHistoryParams) ([]ctlapi.InstallHealthPast, error) {
	which.Limit = size(limit)
	return collect(limit, c.Client.HealthHistory(ctx, which))
}

// Workflows lists workflows, newest first.
func (c *Client) Workflows(ctx context.Context, limit int, which ctlapi.ListWorkflowsParams) ([]ctlapi.Workflow, error) {
	which.Limit = size(limit)
	return collect(limit, c.Client.Workflows(ctx, which))
}

// Changes lists changes, newest first.
func (c *Client) Changes(ctx context.Context, limit int, which ctlapi.ListChangesParams) ([]ctlapi.ChangeSummary, error) {
	which.Limit = size(limit)
	return collect(limit, c.Client.Changes(ctx, which))
}

// Alarms lists alarms.
func (c *Client) Alarms(ctx context.Context, limit int, which ctlapi.ListAlarmsParams) ([]ctlapi.Alarm, error) {
	which.Limit = size(limit)
	return collect(limit, c.Client.Alarms(ctx, which))
}

// Alerts lists alerts.
func (c *Client) Alerts(ctx context.Context, limit int, which ctlapi.ListAlertsParams) ([]ctlapi.Alert, error) {
	which.Limit = size(limit)
	return collect(limit, c.Client.Alerts(ctx, which))
}

// AlertMutes lists mutes.
func (c *Client) AlertMutes(ctx context.Context, limit int, which ctlapi.ListAlertMutesParams) ([]ctlapi.AlertMute, error) {
	which.Limit = size(limit)
	return collect(limit, c.Client.AlertMutes(ctx, which))
}

// Incidents lists incidents.
func (c *Client) Incidents(ctx context.Context, limit int, which ctlapi.ListIncidentsParams) ([]ctlapi.Incident, error) {
	which.Limit = size(limit)
	return collect(limit, c.Client.Incidents(ctx, which))
}

// TerraformStates lists the states that a resource of an install has had, newest first.
func (c *Client) TerraformStates(ctx context.Context, limit int, install, resource string) ([]ctlapi.TerraformStateVersion, error) {
	return collect(limit, c.Client.TerraformStateHistory(ctx, install, resource, ctlapi.ListTerraformStateHistoryParams{Limit: size(limit)}))
}

// Runs lists runs of actions, newest first.
func (c *Client) Runs(ctx context.Context, limit int, which ctlapi.ListActionRunsParams) ([]ctlapi.ActionRun, error) {
	which.Limit = size(limit)
	return collect(limit, c.Client.ActionRuns(ctx, which))
}

// Runners lists runners; of one install when it is named.
func (c *Client) Runners(ctx context.Context, limit int, install string) ([]ctlapi.Runner, error) {
	return collect(limit, c.Client.Runners(ctx, ctlapi.ListRunnersParams{Install: Optional(install), Limit: size(limit)}))
}

// Customers lists customers.
func (c *Client) Customers(ctx context.Context, limit int) ([]ctlapi.Customer, error) {
	return collect(limit, c.Client.Customers(ctx, ctlapi.ListCustomersParams{Limit: size(limit)}))
}

// Members lists members, oldest first.
func (c *Client) Members(ctx context.Context, limit int) ([]ctlapi.Member, error) {
	return collect(limit, c.Client.Members(ctx, ctlapi.ListMembersParams{Limit: size(limit)}))
}

// Tokens lists tokens.
func (c *Client) Tokens(ctx context.Context, limit int) ([]ctlapi.Token, error) {
	return collect(limit, c.Client.Tokens(ctx, ctlapi.ListTokensParams{Limit: size(limit)}))
}

// BrowserSessions lists the browsers that are logged in.
func (c *Client) BrowserSessions(ctx context.Context, limit int) ([]ctlapi.BrowserSession, error) {
	return collect(limit, c.Client.BrowserSessions(ctx, ctlapi.ListBrowserSessionsParams{Limit: size(limit)}))
}

// Webhooks lists webhooks, oldest first.
func (c *Client) Webhooks(ctx context.Context, limit int) ([]ctlapi.Webhook, error) {
	return collect(limit, c.Client.Webhooks(ctx, ctlapi.ListWebhooksParams{Limit: size(limit)}))
}

// WebhookDeliveries lists the deliveries of a webhook, newest first; state "" for all.
func (c *Client) WebhookDeliveries(ctx context.Context, limit int, webhook string, state ctlapi.WebhookDeliveryState) ([]ctlapi.WebhookDelivery, error) {
	return collect(limit, c.Client.WebhookDeliveries(ctx, webhook, ctlapi.ListWebhookDeliveriesParams{Limit: size(limit), State: Optional(state)}))
}

// Bulks lists bulk operations without their items, newest first.
func (c *Client) Bulks(ctx context.Context, limit int) ([]ctlapi.Bulk, error) {
	return collect(limit, c.Client.Bulks(ctx, ctlapi.ListBulksParams{Limit: size(limit)}))
}

// Resources lists resources of all installs, by install.
func (c *Client) Resources(ctx context.Context, limit int, which ctlapi.ListAllResourcesParams) ([]ctlapi.ResourceOfInstall, error) {
	which.Limit = size(limit)
	return collect(limit, c.Client.Resources(ctx, which))
}

// Drift lists the episodes of drift in all installs, newest first.
func (c *Client) Drift(ctx context.Context, limit int, which ctlapi.ListDriftParams) ([]ctlapi.DriftOfInstall, error) {
	which.Limit = size(limit)
	return collect(limit, c.Client.Drift(ctx, which))
}

// RunnerJobs lists the jobs of a runner, newest first; state "" for all.
func (c *Client) RunnerJobs(ctx context.Context, limit int, runner string, state ctlapi.JobState) ([]ctlapi.RunnerJob, error) {
	return collect(limit, c.Client.RunnerJobs(ctx, runner, ctlapi.ListRunnerJobsParams{Limit: size(limit), State: Optional(state)}))
}

// EventsOf lists events of the org, oldest first.
func (c *Client) EventsOf(ctx context.Context, limit int, which ctlapi.ListEventsParams) ([]ctlapi.Event, error) {
	which.Limit = size(limit)
	return collect(limit, c.Client.Events(ctx, which))
}

// Metrics lists the series of numbers that runs wrote in an install.
func (c *Client) Metrics(ctx context.Context, limit int, install string, which ctlapi.ListMetricsParams) ([]ctlapi.Metric, error) {
	which.Limit = size(limit)
	return collect(limit, c.Client.Metrics(ctx, install, which))
}

// Remediations lists what the runner of an install did by itself about unhealthy checks.
func (c *Client) Remediations(ctx context.Context, limit int, install string, which ctlapi.ListRemediationsParams) ([]ctlapi.Remediation, error) {
	which.Limit = size(limit)
	return collect(limit, c.Client.Remediations(ctx, install, which))
}

// PointsOf says which points of which series are asked for.
type PointsOf struct {
	Install, Series string // Series is an id
	ctlapi.ListMetricPointsParams
}

// MetricPoints lists the points of a series, newest first.
func (c *Client) MetricPoints(ctx context.Context, limit int, of PointsOf) ([]ctlapi.MetricPoint, error) {
	of.Limit = size(limit)
	return collect(limit, c.Client.MetricPoints(ctx, of.Install, of.Series, of.ListMetricPointsParams))
}

// PolicyReports lists what policies and guardrails say of changes.
func (c *Client) PolicyReports(ctx context.Context, limit int, which ctlapi.ListPolicyReportsParams) ([]ctlapi.PolicyReport, error) {
	which.Limit = size(limit)
	return collect(limit, c.Client.PolicyReports(ctx, which))
}

// Timeline lists what happened to an install.
func (c *Client) Timeline(ctx context.Context, limit int, install string, which ctlapi.ListTimelineParams) ([]ctlapi.TimelineEntry, error) {
	which.Limit = size(limit)
	return collect(limit, c.Client.Timeline(ctx, install, which))
}

// StateVersions lists the versions of an install's state tree, newest first.
func (c *Client) StateVersions(ctx context.Context, limit int, install string) ([]ctlapi.StateVersion, error) {
	const most = 100 // of a page: each brings what differs
	page := most
	if limit > 0 {
		page = min(limit, most)
	}
	return collect(limit, c.Client.StateVersions(ctx, install, ctlapi.ListStateVersionsParams{Limit: &page}))
}

// size is that of a page, when so many items are wanted.
func size(limit int) *int {
	if limit <= 0 || limit > PageSize {
		limit = PageSize
	}
	return &limit
}

// collect reads a list until there is no more, or enough.
func collect[T any](limit int, list iter.Seq2[T, error]) ([]T, error) {
	var all []T
	for item, err := range list {
		if err != nil {
			return nil, err
		}
		all = append(all, item)
		if limit > 0 && len(all) >= limit {
			break
		}
	}
	return all, nil
}
