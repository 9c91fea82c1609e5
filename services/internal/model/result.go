package model

import (
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
)

// JobResult is the column result of a runner job: what its runner reported, and
// around it what came before and after. runner-api adds members as they come;
// ctl-api and builder read it once the job has ended. It is empty when the job was
// cancelled before any runner took it.
type JobResult struct {
	jobspec.Result
	// Plan is what a plan would do; its runner hands it in before the result.
	Plan *Plan `json:"plan,omitempty"`
	// Reported names the report that was accepted last; zero before the first.
	Reported Reported `json:"reported,omitzero"`
	// Late are reports that came too late: evidence, nothing else.
	Late []LateReport `json:"late,omitempty"`
}

// Requeued is what is written over the result of a job that is queued again.
type Requeued struct {
	Reported Reported `json:"reported"`
}

// Reported names a report of an attempt.
type Reported struct {
	Attempt int    `json:"attempt"`
	Digest  string `json:"digest"`
}

// Plan is what the plan of one attempt would do.
type Plan struct {
	Attempt         int                 `json:"attempt"`
	Effect          capsule.Effect      `json:"effect"`
	EffectDigest    string              `json:"effect_digest"`
	Pinned          string              `json:"pinned"`
	PlanBytesDigest string              `json:"plan_bytes_digest"`
	Summary         jobspec.PlanSummary `json:"summary"`
	// Judgement is nil from a runner that holds plans against no rules.
	Judgement *policy.Judgement `json:"judgement,omitempty"`
}

// Denial is that policies of the vendor deny a plan.
type Denial struct {
	Text         string `json:"text"`
	EffectDigest string `json:"effect_digest"`
}

// LateReport is a report that came when its attempt was over.
type LateReport struct {
	Attempt int            `json:"attempt"`
	Fence   *int64         `json:"fence,omitempty"`
	Digest  string         `json:"digest"`
	At      time.Time      `json:"at"`
	Session string         `json:"session_id"`
	Result  jobspec.Result `json:"result"`
}
