package event

import (
	"slices"
	"strings"
)

// Kind is what happened: a noun, a dot and the state or deed.
type Kind string

// Right is what somebody must be allowed to read to get events of a kind.
type Right string

// The rights, as the permissions of the API are called.
const (
	Installs Right = "installs:read"
	Apps     Right = "apps:read"
	Runners  Right = "runners:read"
	Webhooks Right = "webhooks:read"
)

// Doc says what a kind means.
type Doc struct {
	Kind Kind
	When string // in a sentence without a full stop
	// Fields of the body, besides those that every event about an install has
	// (install, app); some may be missing, where there is nothing to say.
	Fields []string
	Right  Right
}

var (
	workflow    = []string{"workflow_id", "number", "workflow_kind", "release_id", "inputs_version", "plan_only", "actor"}
	waiting     = append(slices.Clone(workflow), "wait_reason")
	step        = []string{"workflow_id", "step_id", "step", "step_kind", "resource_id", "resource", "resource_kind", "action", "attempt"}
	change      = []string{"workflow_id", "step_id", "change_id", "change_kind", "resource_id", "resource", "resource_kind", "release_id", "effect_digest", "replaces"}
	decision    = append(slices.Clone(change), "actor", "rule")
	build       = []string{"build_id", "component_id", "component", "app", "reason", "actor", "source_commit", "artifact_digest"}
	resource    = []string{"resource_id", "resource", "resource_kind", "from", "release_id", "change_id"}
	run         = []string{"run_id", "action", "trigger", "actor", "workflow_id", "change_id", "scheduled_at", "exit_code"}
	runner      = []string{"runner_id", "runner_kind", "version"}
	alarm       = []string{"alarm_id", "alarm_kind", "about", "runner_id"}
	secret      = []string{"secret", "version"}
	delivery    = []string{"webhook_id", "webhook", "delivery_id", "event_id", "event_kind", "event_seq", "attempts", "status"}
	fromState   = []string{"from"}
	role        = []string{"role", "switch_id", "actor"}
	remediation = []string{"remediation_id", "check", "action", "resource_id", "attempts", "attempts_of", "reverted", "why"}
	signed      = []string{"release_id", "number", "key_id", "actor"}
	consent     = []string{"change_id", "effect_digest", "reason", "until", "actor"}
	alert       = []string{"alert_id", "alert_kind", "subject", "text", "since", "release_id", "runner_version", "incident_id"}
	incident    = []string{"incident_id", "alert_kind", "subject", "release_id", "runner_version", "installs"}
)

// All are the kinds, by name.
var All = []Doc{
	{"action_run.cancelled", "a run of an action was cancelled", run, Installs},
	{"action_run.failed", "a run of an action failed", run, Installs},
	{"action_run.missed", "the runner could not start a scheduled run in time", run, Installs},
	{"action_run.queued", "a run of an action was requested", run, Installs},
	{"action_run.running", "a run of an action started", run, Installs},
	{"action_run.succeeded", "a run of an action succeeded; runs of the probes of components are left out", run, Installs},
	{"alarm.acknowledged", "somebody acknowledged an alarm", append(slices.Clone(alarm), "actor"), Runners},
	{"alarm.raised", "a runner or the control plane noticed something that a person should look at", alarm, Runners},
	{"alert.acknowledged", "somebody acknowledged an alert: they are at it", append(slices.Clone(alert), "actor"), Installs},
	{"alert.closed", "what an alert was about is over, or not there any more; because says which", append(slices.Clone(alert), "because"), Installs},
	{"alert.joined", "an alert belongs to an incident that people were told of as such: no `alert.opened` follows", alert, Installs},
	{"alert.opened", "something is wrong with an install; once per episode", alert, Installs},
	{"approval_policy.changed", "an admin said how many people have to approve changes, and which", []string{"approvals", "roles", "no_self_approval", "hours", "actor"}, Installs},
	{"build.cancelled", "a build was cancelled", build, Apps},
	{"build.failed", "a build failed", build, Apps},
	{"build.queued", "a build was requested", build, Apps},
	{"build.running", "a build started", build, Apps},
	{"build.succeeded", "a build made its artifact, or reused one", build, Apps},
	{"change.applied", "a change was carried out", change, Installs},
	{"change.approved", "a change was approved, by a person or a rule", decision, Installs},
	{"change.denied", "a change was denied, or nobody decided in time", decision, Installs},
	{"change.executing", "a change took the lock of its resource and started", change, Installs},
	{"change.failed", "a change failed while it was planned or carried out", change, Installs},
	{"change.no_change", "the plan of a change was empty: nothing to do", decision, Installs},
	{"change.planned", "a preview made its plan; nothing follows", change, Installs},
	{"change.preparing", "a change is being planned", change, Installs},
	{"change.proposed", "a change has a plan and waits for a decision", change, Installs},
	{"change.refused", "the runner refused to carry out a change", change, Installs},
	{"change.stale", "what is live moved after the plan of a change; it is planned again", change, Installs},
	{"change.superseded", "a newer change replaced a change", change, Installs},
	{"change.uncertain", "it is not known whether a change had its effect; a plan will look", change, Installs},
	{"change.withdrawn", "the workflow of a change ended before the change was carried out", change, Installs},
	{"check.changed", "the verdict of a health check of an install changed", []string{"check", "from", "to"}, Installs},
	{"config.created", "a sync made a new config of an app", []string{"config_id", "number", "actor"}, Apps},
	{"consent.denied", "the customer denied a change", consent, Installs},
	{"consent.given", "the customer agreed to a change", consent, Installs},
	{"consent.needed", "the runner carries a change out only once the customer agrees", consent, Installs},
	{"decision.made", "a person answered a proposal; more approvals may be needed", append(slices.Clone(change), "answer", "actor"), Installs},
	{"drift.changed", "a resource drifted from what was deployed, or no longer does", []string{"resource_id", "resource", "resource_kind", "from", "to"}, Installs},
	{"freeze.added", "a time in which no change is carried out was added to an app or an install", []string{"freeze_id", "starts_at", "ends_at", "weekly", "actor"}, Installs},
	{"freeze.overridden", "an admin let a workflow through a freeze", []string{"freeze_id", "workflow_id", "until", "actor"}, Installs},
	{"freeze.removed", "a freeze was removed", []string{"freeze_id", "starts_at", "ends_at", "weekly", "actor"}, Installs},
	{"health.changed", "the health of a resource changed", []string{"resource_id", "resource", "resource_kind", "from", "to"}, Installs},
	{"incident.closed", "no alert of an incident is open any more", incident, Installs},
	{"incident.opened", "the same is wrong with several installs; installs counts them then, and more may join without another event of this kind", incident, Installs},
	{"inputs.changed", "an install got new inputs; changed names those that differ, overrides the components whose own values do", []string{"version", "changed", "overrides", "actor"}, Installs},
	{"install.created", "an install was made", []string{"stack", "actor"}, Installs},
	{"install.deprovisioned", "nothing of an install is left", fromState, Installs},
	{"install.deprovisioning", "an install is being taken down", fromState, Installs},
	{"install.forgotten", "the record of an install was deleted", nil, Installs},
	{"install.live", "an install was provisioned", fromState, Installs},
	{"install.paused", "the vendor paused an install: no change of it is carried out", []string{"actor"}, Installs},
	{"install.provisioning", "the first provision of an install started", fromState, Installs},
	{"install.resumed", "a pause of an install ended", []string{"actor"}, Installs},
	{"install.updated", "the name, labels, approval option or component toggles of an install changed; toggles has those that differ", []string{"changed", "toggles", "actor"}, Installs},
	{"policy.overridden", "an admin let a change pass that policies of the vendor deny", consent, Installs},
	{"release.created", "an app got a new release", []string{"release_id", "number", "config_id", "made_by"}, Apps},
	{"release.revoked", "the vendor revoked a release for all customers; runners that have pinned key_id believe it", append(slices.Clone(signed), "reason"), Apps},
	{"release.signed", "the vendor signed a release; runners that have pinned key_id believe it", signed, Apps},
	{"remediation.helped", "a check became healthy after the runner ran its remediation", remediation, Installs},
	{"remediation.needs_attention", "no attempt of a remediation helped: a person has to look", remediation, Installs},
	{"remediation.started", "a runner started the remediation of an unhealthy check by itself", remediation, Installs},
	{"resource.absent", "a resource is gone", resource, Installs},
	{"resource.changing", "a change of a resource started", resource, Installs},
	{"resource.failed", "a resource is not as it should be after a change", resource, Installs},
	{"resource.live", "a resource is as its last change wanted it", resource, Installs},
	{"resource.orphaned", "a sync took the component of a resource out of the app", resource, Installs},
	{"resource.unknown", "the outcome of a change of a resource is uncertain", resource, Installs},
	{"role.disabled", "a role of an install went off: the customer switched it off, or its time was over", role, Installs},
	{"role.enabled", "the customer switched on a role of an install", append(slices.Clone(role), "until"), Installs},
	{"runner.enrolled", "a machine enrolled as a runner", runner, Installs},
	{"runner.offline", "a runner has been silent for 2 minutes, or was revoked", append(slices.Clone(runner), "last_seen_at"), Installs},
	{"runner.online", "a runner is being heard", append(slices.Clone(runner), "last_seen_at"), Installs},
	{"runner.revoked", "a runner was revoked", runner, Installs},
	{"runner.switched", "the customer moved the switch of a runner", append(slices.Clone(runner), "from", "to"), Installs},
	{"secret.removed", "the customer took the value of a secret away", secret, Installs},
	{"secret.set", "a secret has its first value, or another one; version counts them", secret, Installs},
	{"step.cancelled", "a step was cancelled", step, Installs},
	{"step.failed", "a step failed", step, Installs},
	{"step.pending", "a step is to be tried again", step, Installs},
	{"step.running", "a step started or resumed", step, Installs},
	{"step.skipped", "a step was skipped, by a person when there is an actor", append(slices.Clone(step), "actor"), Installs},
	{"step.succeeded", "a step succeeded", step, Installs},
	{"step.waiting", "a step waits, or waits for something else than before; wait_reason says for what", append(slices.Clone(step), "wait_reason"), Installs},
	{"variables.changed", "variables of an app changed", []string{"version"}, Apps},
	{"webhook_delivery.dead", "the last attempt to deliver an event to a webhook failed; this kind itself is not reported so", delivery, Webhooks},
	{"workflow.cancelled", "a workflow was cancelled", workflow, Installs},
	{"workflow.failed", "a workflow failed", workflow, Installs},
	{"workflow.queued", "a workflow was requested", workflow, Installs},
	{"workflow.running", "a workflow started or resumed", workflow, Installs},
	{"workflow.succeeded", "a workflow succeeded", workflow, Installs},
	{"workflow.waiting", "a workflow waits, or waits for something else than before; wait_reason says for what", waiting, Installs},
}

// Ping is the kind that a test of a webhook sends. It is in no stream.
const Ping Kind = "webhook.ping"

// Of finds the row of a kind; known is false for one that this version has not.
func Of(k Kind) (doc Doc, known bool) {
	i, found := slices.BinarySearchFunc(All, k, func(d Doc, k Kind) int { return strings.Compare(string(d.Kind), string(k)) })
	if !found {
		return Doc{}, false
	}
	return All[i], true
}

// Expand turns patterns into kinds: a kind stands for itself and "workflow.*" for
// all of a noun. unknown is the first pattern that matches nothing; empty when each
// does. No patterns are no kinds.
func Expand(patterns []string) (kinds []Kind, unknown string) {
	for _, pattern := range patterns {
		noun, all := strings.CutSuffix(pattern, ".*")
		before := len(kinds)
		for _, d := range All {
			if string(d.Kind) == pattern || all && strings.HasPrefix(string(d.Kind), noun+".") {
				kinds = append(kinds, d.Kind)
			}
		}
		if len(kinds) == before {
			return nil, pattern
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds), ""
}
