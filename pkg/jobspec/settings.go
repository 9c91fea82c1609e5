package jobspec

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
)

// SettingsLifetime is how long a runner may act on settings without newer ones.
const SettingsLifetime = 7 * 24 * time.Hour

// Settings are what a runner works from by itself, also while the control plane
// is away: what to run on which schedule, and the state that its templates
// read. They are signed with the org's dispatch key (a DSSE envelope, package
// capsule) and versioned; a runner never takes a lower version.
type Settings struct {
	Version   int64     `json:"version"`
	OrgID     string    `json:"org_id"`
	InstallID string    `json:"install_id"`
	IssuedAt  time.Time `json:"issued_at"`
	ExpiresAt time.Time `json:"expires_at"`
	// Schedule is empty until the install is live, and again after it is gone.
	Schedule []Scheduled `json:"schedule"`
	// Remedies are the scripts that heal checks of the Schedule. Which may run, about what and
	// how often is what the runner accepted.
	Remedies []Script `json:"remedies,omitempty"`
	// Surveys are looks for drift. They stand apart from Schedule, where a runner of before
	// would take them for something else.
	Surveys []Scheduled `json:"surveys,omitempty"`
	// State is what the templates of the scheduled actions read, sealed leaves
	// included.
	State        json.RawMessage `json:"state,omitempty"`
	StateVersion int             `json:"state_version"`
	// MinRunnerVersion is the oldest runner that the control plane works with.
	MinRunnerVersion string `json:"min_runner_version,omitempty"`
	// OrgHead is how far the org's own chain had come when these settings were
	// signed, for the runner to record as an anchor in the install's chain.
	OrgHead *chain.SignedHead `json:"org_head,omitempty"`
	// Revoked are revocations of the app's releases that the vendor signed (package offer),
	// the newest. The runner keeps those that count for good.
	Revoked []capsule.Envelope `json:"revoked,omitempty"`
}

// Scheduled is what the runner runs at its own initiative: an action, or a look
// at the objects of a component.
type Scheduled struct {
	// Action is run only when the runner has accepted the Script that it makes
	// with the schedule, the role and the rest; the runner computes its digest.
	Action Action `json:"action"`
	// Inputs and Role are those of the Script.
	Inputs []string `json:"inputs,omitempty"`
	Role   string   `json:"role,omitempty"`
	// Probe, when it is set, stands in the action's place.
	Probe *Probe `json:"probe,omitempty"`
	// Drift, next to Probe: what is live is compared with what was deployed.
	Drift *DriftLook `json:"drift,omitempty"`
	// Cron is a standard five-field expression, read in UTC.
	Cron           string `json:"cron"`
	TimeoutSeconds int    `json:"timeout_seconds"`
	// HealthCheck says that the outcome is a health verdict.
	HealthCheck bool `json:"health_check,omitempty"`
	// Unattended and Heals are those of the Script.
	Unattended bool   `json:"unattended,omitempty"`
	Heals      []Heal `json:"heals,omitempty"`
}

// Probe asks whether the objects of a component in a cluster are ready.
type Probe struct {
	Resource Resource `json:"resource"`
	Kind     Kind     `json:"kind"`
	Work              // of Kind
}

// ProbePrefix begins the names under which probes are reported. No action can
// have such a name.
const ProbePrefix = "component/"

// AppProbePrefix begins the names of the actions that probes which an app writes are made into.
// No other action can have such a name.
const AppProbePrefix = "probe."

// ExitProbeUnknown is how the script of such an action ends when it could not look: nobody can
// tell, which is neither good nor bad.
const ExitProbeUnknown = 3

// IsProbe tells whether an action is made of a probe that an app writes.
func (a Action) IsProbe() bool { return strings.HasPrefix(a.Name, AppProbePrefix) }

// Name is what the runs of a scheduled thing are reported under.
func (s Scheduled) Name() string {
	switch {
	case s.Probe != nil && s.Drift != nil:
		return DriftName(s.Probe.Resource)
	case s.Probe != nil:
		return ProbePrefix + s.Probe.Resource.Name
	}
	return s.Action.Name
}

// Script is the script that a scheduled action is. Whether it may run follows
// from its digest, also for the health checks among them.
func (s Scheduled) Script() Script {
	return Script{Action: s.Action, Inputs: s.Inputs, Cron: s.Cron, Role: s.Role, TimeoutSeconds: s.TimeoutSeconds, HealthCheck: s.HealthCheck, Unattended: s.Unattended, Heals: s.Heals}
}

// Run is the report of an action that the runner started itself. It is accepted
// once per Key.
type Run struct {
	// Action, a Scheduled.Name, and ScheduledAt make the key:
	// "<action>@<RFC 3339 UTC>".
	Action      string    `json:"action"`
	ScheduledAt time.Time `json:"scheduled_at"`
	// State is queued, running, succeeded, failed or missed. Queued: the run waits,
	// and Error says what for. Missed: the tick passed without a run, and Error says
	// why.
	State    string         `json:"state"`
	ExitCode int            `json:"exit_code"`
	Error    string         `json:"error,omitempty"`
	Outputs  map[string]any `json:"outputs,omitempty"`
	// Metrics and MetricsError are those of a Result.
	Metrics      []Metric `json:"metrics,omitempty"`
	MetricsError string   `json:"metrics_error,omitempty"`
	// Drift is that of a Result.
	Drift      *Drift    `json:"drift,omitempty"`
	StartedAt  time.Time `json:"started_at,omitzero"`
	FinishedAt time.Time `json:"finished_at,omitzero"`
	// Remedy is set for a run about an unhealthy check; ScheduledAt is when it was started.
	Remedy *RunRemedy `json:"remedy,omitempty"`
}

// RunRemedy is what a run heals.
type RunRemedy struct {
	// Remediation is the id of the episode, Check the check or probe that is unhealthy.
	Remediation string `json:"remediation"`
	Check       string `json:"check"`
	// Attempt counts from 1, Of is how many there may be. A revert has the last one's.
	Attempt int `json:"attempt"`
	Of      int `json:"of"`
	// Reverts: the run takes the attempts back.
	Reverts bool `json:"reverts,omitempty"`
}

// Key is what the run is accepted once under.
func (r Run) Key() string {
	key := RunKey(r.Action, r.ScheduledAt)
	if r.Remedy != nil {
		key += " of " + r.Remedy.Remediation
	}
	return key
}

// RunKey is the idempotency key of a scheduled run.
func RunKey(action string, scheduled time.Time) string {
	return action + "@" + scheduled.UTC().Format(time.RFC3339)
}
