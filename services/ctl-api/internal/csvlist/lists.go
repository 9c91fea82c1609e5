package csvlist

import "encoding/json"

// list is one list of the API. A column is a name, or name=path where the value is
// not the item's field of this name. The order stays and new ones come last: people
// refer to columns by number. Where the command line shows the same fact as text, it
// has the same name there (berth … list -o csv).
type list struct {
	name    string
	columns []string
	// next is the parameter with which the next page begins, and its value; "" on
	// the last page.
	next func(page map[string]any, items []any) (param, value string)
	// prepare changes an item before it is read; nil leaves it.
	prepare func(item any)
}

// starts are the parameters that say where a page begins.
var starts = []string{"after", "after_seq", "since", "from_now"}

// lists by operation of the contract.
var lists = map[string]list{
	"ListInstalls": {name: "installs", next: pages, columns: []string{
		"name", "app=app.name", "customer=customer.name", "state", "health", "release=release.number", "created_at", "id", "stack", "approval=approval_option",
		"workflow=workflow_id", "open_alarms", "labels", "created_by",
	}},
	"ListAllResources": {name: "resources", next: pages, columns: []string{
		"install=install.name", "resource=name", "type", "state", "health", "release=live_release.number", "updated_at", "app=app.name", "customer=customer.name",
		"drift", "id", "changed_by=live_change_id", "kind", "install_id=install.id", "health_since",
	}},
	"ListDrift": {name: "drift", next: pages, columns: []string{
		"install=install.name", "component=component.name", "class", "opened_at", "seen_at", "closed_at", "closed_by", "type", "app=app.name",
		"customer=customer.name", "id", "install_id=install.id",
	}},
	"ListWorkflows": {name: "workflows", next: pages, columns: []string{
		"id", "install=install.name", "kind", "state", "release=release.number", "waits_for=wait.reason", "created_at", "by=created_by", "error", "number",
		"install_id=install.id", "action", "started_at", "finished_at",
	}},
	"ListChanges": {name: "changes", next: pages, columns: []string{
		"id", "install=install.name", "resource=resource.name", "kind", "state", "created_at", "effect=effect_digest", "error", "create=counts.create",
		"update=counts.update", "replace=counts.replace", "delete=counts.delete", "run=counts.run", "rollback_class", "workflow=workflow_id",
		"install_id=install.id", "proposed_at", "expires_at", "decided_at",
	}},
	"ListBuilds": {name: "builds", next: pages, columns: []string{
		"id", "app=app.name", "component=component.name", "state", "reason", "created_at", "waits_for=wait.reason", "artifact=artifact.digest", "error",
		"started_at", "finished_at", "by=requested_by",
	}},
	"ListRunners": {name: "runners", next: pages, columns: []string{
		"id", "name", "kind", "state", "switch", "trust", "last_seen_at", "version", "problem", "switch_since", "switch_reason", "install=install.name", "slots",
		"epoch", "online", "install_id=install.id", "created_at", "revoked_at",
	}},
	"ListRunnerJobs": {name: "jobs", next: pages, columns: []string{
		"job=id", "operation", "state", "queued_at", "error", "type=kind", "attempt", "workflow=workflow_id", "change=change_id", "log=stream_id",
		"install=install.name", "resource=resource.name", "started_at", "finished_at",
	}},
	"ListActionRuns": {name: "action-runs", next: pages, columns: []string{
		"id", "install=install.name", "action", "trigger", "state", "created_at", "stream=stream_id", "error", "scheduled_at", "exit_code", "started_at",
		"finished_at", "by=created_by", "numbers=metrics_kept", "numbers_left_out=metrics_error",
	}},
	"ListRemediations": {name: "remediations", next: pages, columns: []string{
		"check", "action", "state", "attempts", "attempts_of", "began_at", "changed_at", "ended_at", "why", "reverted", "id", "resource=resource_id",
	}},
	"ListMetrics": {name: "metrics", next: pages, columns: []string{
		"series", "action", "kind", "value", "at", "run=run_id", "id", "name", "labels", "help",
	}},
	"ListMetricPoints": {name: "points", next: pages, columns: []string{"at", "value", "run=run_id", "min", "max", "mean", "count"}},
	"ListAlarms": {name: "alarms", next: pages, columns: []string{
		"id", "alarm=kind", "install=install.name", "created_at", "cause", "acknowledged_at", "about", "remedy", "runner=runner_id", "acknowledged_by", "reason",
	}},
	"ListAlerts": {name: "alerts", next: pages, columns: []string{
		"id", "install=install.name", "alert=kind", "severity", "state", "text", "since", "acknowledged_by", "note", "subject", "release=release.number", "runner_version",
		"incident=incident_id", "opened_at", "acknowledged_at", "closed_at", "closed_because", "held=held.because", "held_until=held.until", "relapses", "install_id=install.id",
	}},
	"ListAlertMutes": {name: "mutes", next: pages, columns: []string{
		"id", "install=install.name", "alert=kind", "subject", "until", "by=created_by", "reason", "created_at", "removed_at", "removed_by", "install_id=install.id",
	}},
	"ListIncidents": {name: "incidents", next: pages, columns: []string{
		"id", "alert=kind", "severity", "about", "app", "release=release.number", "open_alerts", "alerts", "opened_at", "closed_at", "runner_version",
	}},
	"ListEvents": {name: "events", next: events, columns: []string{
		"seq", "at", "kind", "install=body.install", "app=body.app", "resource=body.resource", "actor=body.actor", "id", "install_id", "app_id", "customer_id", "body",
	}},
	"ListChainRecords": {name: "audit", next: records, prepare: decodeRecord, columns: []string{
		"seq", "recorded_at", "actor=body.actor", "kind=body.kind", "what=body.what", "result=body.result", "detail=body.detail", "job=body.job",
		"effect=body.effect", "capsule=body.capsule", "hash",
	}},
}

func pages(page map[string]any, _ []any) (param, value string) {
	value, _ = page["next"].(string)
	return "after", value
}

func events(page map[string]any, _ []any) (param, value string) {
	if more, _ := page["more"].(bool); !more {
		return "after", ""
	}
	return "after", numberIn(page, "position")
}

func records(page map[string]any, items []any) (param, value string) {
	if len(items) == 0 {
		return "after_seq", ""
	}
	last, _ := items[len(items)-1].(map[string]any)
	if value = numberIn(last, "seq"); value == numberIn(page, "head_seq") {
		return "after_seq", ""
	}
	return "after_seq", value
}

func numberIn(of map[string]any, field string) string {
	n, _ := of[field].(json.Number)
	return n.String()
}
