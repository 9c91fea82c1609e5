package jobspec

import (
	"encoding/json"
	"time"

	"github.com/berth-dev/berth/pkg/footprint"
	"github.com/berth-dev/berth/pkg/policy"
)

// MaxAhead is how far ahead of the control plane's clock a reported time may be.
const MaxAhead = 5 * time.Minute

// Outcome is how an attempt ended.
type Outcome string

// The outcomes. Uncertain is never written by an engine: the agent says it of
// an attempt whose engine ended without a result after the intent was recorded.
const (
	OutcomeSucceeded Outcome = "succeeded"
	OutcomeFailed    Outcome = "failed"
	OutcomeRefused   Outcome = "refused"   // nothing was done; Error and Differs say why
	OutcomeCancelled Outcome = "cancelled" // stopped at a safe point on request
	OutcomeUncertain Outcome = "uncertain" // an effect may have happened
	// OutcomeNotStarted: provably nothing happened; the job may be leased again.
	// An engine that applies a plan says it when it was stopped before its first
	// effect.
	OutcomeNotStarted Outcome = "not_started"
	// OutcomeStale: the live state moved since the plan, or the order was used up
	// before anything was done; nothing was done, and a new plan is needed.
	OutcomeStale Outcome = "stale"
)

// Reason says more about an outcome where somebody acts on it. The zero value:
// there is nothing to add. A reader takes one that it does not know for the zero
// value: a newer runner may have said it.
type Reason string

// ReasonHostEnded: nobody wanted the job to end. The host of its engine did: the
// agent was shut down or killed, the pod deleted, the machine drained. With
// [OutcomeStale] and [OutcomeNotStarted] nothing was done; with
// [OutcomeUncertain] something may have been.
const ReasonHostEnded Reason = "host_ended"

// ReasonMachineReplaced: the job was made for a machine that another one has
// replaced since. Its order names that machine, or a value that it reads is sealed
// for it. With [OutcomeStale]: it is made again for the machine of now.
const ReasonMachineReplaced Reason = "machine_replaced"

// ReasonNeedsChange, with [OutcomeFailed]: the same job fails in the same way
// until somebody changes what its error names (the app, an input, a right), so
// the control plane does not repeat it by itself. Engines say it only of what
// they are sure of: see package runner/engine/job.
const ReasonNeedsChange Reason = "needs_change"

// StoppedOnRequest begins the error of an engine that stopped because somebody
// asked it to.
const StoppedOnRequest = "stopped on request: "

// Result is what came of one attempt. The engine writes it to out/result.json;
// the agent completes, seals and redacts it, and reports it once.
type Result struct {
	JobID   string  `json:"job_id"`
	Attempt int     `json:"attempt"`
	Outcome Outcome `json:"outcome"`
	// Reason says why it ended so, where that decides what happens next.
	Reason   Reason `json:"reason,omitempty"`
	ExitCode int    `json:"exit_code"`
	// Error is one line for people, redacted; Remedy says what to do.
	Error  string `json:"error,omitempty"`
	Remedy string `json:"remedy,omitempty"`
	// Differs names the fields because of which a job was refused or stale.
	Differs []Difference `json:"differs,omitempty"`
	// NoChange: a plan that would do nothing.
	NoChange bool `json:"no_change,omitempty"`
	// Tool is what did the work.
	Tool *Tool `json:"tool,omitempty"`
	// Lineage and Serial are of the Terraform state that the plan read (plan) or
	// that the apply left (apply).
	Lineage string `json:"lineage,omitempty"`
	Serial  int64  `json:"serial,omitempty"`
	// Outputs has sensitive leaves sealed once it has left the agent.
	Outputs Outputs `json:"outputs,omitempty"`
	// Artifact is what a build pushed.
	Artifact *BuiltArtifact `json:"artifact,omitempty"`
	// Judgement is what the vendor's policies say of the image of a build.
	Judgement *policy.Judgement `json:"judgement,omitempty"`
	// Modules are what a build fetched from elsewhere and packed.
	Modules []Module `json:"modules,omitempty"`
	// Metrics are the numbers that the scripts of an action wrote; MetricsError says what
	// of them was left out, and fails nothing.
	Metrics      []Metric `json:"metrics,omitempty"`
	MetricsError string   `json:"metrics_error,omitempty"`
	// Findings are what a look at a component found that is not ready, or unknown.
	Findings []Finding `json:"findings,omitempty"`
	// Certificates are those that it saw; nil when it did not look for them.
	Certificates []Certificate `json:"certificates,omitzero"`
	// Looks are what came of each of several probes, in their order.
	Looks []Look `json:"looks,omitempty"`
	// Drift is what a look for drift found.
	Drift *Drift `json:"drift,omitempty"`
	// Steps tells the parts of an action.
	Steps      []StepResult `json:"steps,omitempty"`
	StartedAt  time.Time    `json:"started_at"`
	FinishedAt time.Time    `json:"finished_at"`
	// FirstInstructionAt is when the engine's main began.
	FirstInstructionAt time.Time `json:"first_instruction_at,omitzero"`
}

// NotAhead sets times that are further ahead of now than MaxAhead to now, and
// reports whether there were any: they are of a clock that was wrong, and the
// control plane would refuse the whole report for them.
func (r *Result) NotAhead(now time.Time) (changed bool) {
	times := []*time.Time{&r.StartedAt, &r.FinishedAt, &r.FirstInstructionAt}
	for i := range r.Looks {
		times = append(times, &r.Looks[i].StartedAt, &r.Looks[i].FinishedAt)
	}
	for _, t := range times {
		if t.After(now.Add(MaxAhead)) {
			*t, changed = now, true
		}
	}
	return changed
}

// Difference is a field that is not as it was approved.
type Difference struct {
	Field string `json:"field"`
	Want  string `json:"want"`
	Got   string `json:"got"`
}

// Tool is an executable that an engine used.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Digest  string `json:"digest"`
}

// Names of the tools whose digest is measured by the agent.
const (
	ToolTerraform = "terraform"
	ToolOpenTofu  = "opentofu"
	ToolPulumi    = "pulumi"
)

// Outputs are named values. In out/outputs.json Value is in clear; when
// Sensitive is set the agent seals it before it leaves.
type Outputs map[string]Output

// Output is one named value.
type Output struct {
	Value     json.RawMessage `json:"value"`
	Sensitive bool            `json:"sensitive,omitempty"`
}

// BuiltArtifact is what the agent pushed for a build.
type BuiltArtifact struct {
	Repository string `json:"repository"`
	Digest     string `json:"digest"`
	SizeBytes  int64  `json:"size_bytes"`
	// Attestations hang on the artifact in the same repository, each signed by the machine
	// that built. SignedBy is that machine's public key, "" without any.
	Attestations []Attestation `json:"attestations,omitempty"`
	SignedBy     string        `json:"signed_by,omitempty"`
}

// Attestation is a signed statement about an artifact, or about one platform of an image.
type Attestation struct {
	// PredicateType says what it is: SLSA's provenance, an SPDX document.
	PredicateType string `json:"predicate_type"`
	Digest        string `json:"digest"`  // of its manifest
	Subject       string `json:"subject"` // of the manifest that it is about
}

// StepResult is how one script of an action ended.
type StepResult struct {
	Name     string          `json:"name"`
	ExitCode int             `json:"exit_code"`
	Outputs  map[string]any  `json:"outputs,omitempty"`
	Took     json.RawMessage `json:"took,omitempty"`
}

// PlanSummary is what people are shown of a plan. It holds no secret: values of
// sensitive attributes and of everything the redactor knows are replaced.
type PlanSummary struct {
	// Rehearsed is set when the plan is not of what an install that is no rehearsal
	// would get.
	Rehearsed *Rehearsed `json:"rehearsed,omitempty"`

	NoChange bool `json:"no_change"`
	Create   int  `json:"create"`
	Update   int  `json:"update"`
	Replace  int  `json:"replace"`
	Delete   int  `json:"delete"`
	// Objects are the things that change, in a stable order.
	Objects []ObjectChange `json:"objects,omitempty"`
	// Outputs are the outputs that change.
	Outputs []FieldChange `json:"outputs,omitempty"`
	// Text is what the tool itself shows of the plan, redacted.
	Text string `json:"text,omitempty"`
	// NotShownBytes is how much of all this was left out because a plan is shown
	// only up to a limit. Where something is missing, the text says so.
	NotShownBytes int64 `json:"not_shown_bytes,omitempty"`
	// Footprint is what the plan newly needs and exposes; the agent adds it. nil where
	// nothing changes, for scripts and images, and from a runner that does not say.
	Footprint *footprint.Footprint `json:"footprint,omitempty"`
	// Reversal says what going back costs once the plan is applied; nil from a runner
	// that does not say, and for what is not a resource.
	Reversal *Reversal `json:"reversal,omitempty"`
}

// ReversalClass says what going back to what was before a plan costs.
type ReversalClass string

// All of them. Who does not know more treats another one as unknown.
const (
	Reversible     ReversalClass = "reversible"   // nothing
	ReverseUnknown ReversalClass = "unknown"      // the plan does not tell
	ReverseLoses   ReversalClass = "data_loss"    // what was written since the plan was applied
	Irreversible   ReversalClass = "irreversible" // it cannot be done
)

// Reversal is the class of a plan, and why it has it.
type Reversal struct {
	Class ReversalClass `json:"class"`
	// Why are sentences for people, the worst first; none when it is reversible.
	Why []string `json:"why,omitempty"`
	// Backwards: what the plan shows, backwards, is what going back does. So it is of
	// objects of a cluster; Terraform plans going back by itself.
	Backwards bool `json:"backwards,omitempty"`
}

// PlannedWith begins the text of a rehearsed plan for which another version of
// Terraform or OpenTofu was used than the module asks for.
const PlannedWith = "Planned with "

// ReadsCluster is in the error of a rehearsed chart that does not render, and that asks
// the cluster which a rehearsal without one does not have.
const ReadsCluster = "reads the cluster, and there is none"

// RehearsedHow says what stands in the place of a resource in a rehearsal.
type RehearsedHow string

// All of them. What is deployed as it is has none.
const (
	RehearsedStandIn    RehearsedHow = "stand_in"    // a sandbox of ours with the same outputs
	RehearsedMocked     RehearsedHow = "mocked"      // planned with mocked providers, or rendered without a cluster; a stand-in gives its outputs
	RehearsedNotPlanned RehearsedHow = "not_planned" // could not be planned; a stand-in gives its outputs
)

// Rehearsed says how a resource was rehearsed, and why.
type Rehearsed struct {
	How RehearsedHow `json:"how"`
	// Why is a sentence for people.
	Why string `json:"why"`
	// Providers are the clouds that it needs, such as "hashicorp/aws".
	Providers []string `json:"providers,omitempty"`
	// Unreachable are those of them that could not be had.
	Unreachable []string `json:"unreachable,omitempty"`
	// MadeUp are the names of outputs that are made up in part or whole.
	MadeUp []string `json:"made_up,omitempty"`
}

// ScriptField is the path of the field that holds a script which a plan runs.
const ScriptField = "script"

// ObjectChange is one thing that a plan creates, updates, replaces or deletes.
type ObjectChange struct {
	Address string        `json:"address"`
	Action  string        `json:"action"` // create, update, replace, delete, run
	Fields  []FieldChange `json:"fields,omitempty"`
	Reason  string        `json:"reason,omitempty"`
}

// FieldChange is one field of it. Before and After are JSON, what stands for a sensitive
// value (IsSensitive), or "(known after apply)".
type FieldChange struct {
	Path   string `json:"path"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}
