package alerts

import (
	"time"

	"github.com/berth-dev/berth/services/internal/model"
)

// Severity is how urgent a kind is.
type Severity string

// The severities.
const (
	Critical Severity = "critical" // the install does not do its work, or nobody knows
	Warning  Severity = "warning"  // somebody has to do something, not at night
)

// Rules of a kind.
type Rules struct {
	Severity Severity
	// OpenAfter is how long it has to be bad before people are told.
	OpenAfter time.Duration
	// ClearAfter is the clear window: how long it has to be good before the episode
	// is over.
	ClearAfter time.Duration
	// Planned work that touches the subject holds it back.
	Planned bool
}

// rules by kind. A verdict needs several bad outcomes in a row, so it is told at once.
var rules = map[model.AlertKind]Rules{
	model.AlertUnhealthy:       {Severity: Critical, ClearAfter: 5 * time.Minute, Planned: true},
	model.AlertRunnerSilent:    {Severity: Critical, OpenAfter: 10 * time.Minute, ClearAfter: 5 * time.Minute},
	model.AlertWaitingTooLong:  {Severity: Warning, OpenAfter: 4 * time.Hour},
	model.AlertWorkflowFailed:  {Severity: Warning},
	model.AlertExpiring:        {Severity: Warning},
	model.AlertChainUnreported: {Severity: Warning, OpenAfter: 15 * time.Minute, ClearAfter: 5 * time.Minute},
	model.AlertDrift:           {Severity: Warning, ClearAfter: 5 * time.Minute, Planned: true},
	model.AlertObjective:       {Severity: Warning},
}

// RulesOf are the rules of a kind.
func RulesOf(kind model.AlertKind) Rules { return rules[kind] }

// The longest time before an end in which people are told that it is near.
const (
	LeadOfDay         = 24 * time.Hour      // of what somebody can renew at once
	LeadOfCertificate = 14 * 24 * time.Hour // of what others have to issue
)

// CertificateSeenFor is for how long a certificate counts that no look has seen again: the
// customer may have switched off what looks tell, and nobody claims anything then.
const CertificateSeenFor = 24 * time.Hour

// Soon is from when on an end is near: the last quarter of a life, at most lead. What is
// renewed after two thirds of its life, as cert-manager does, never comes so far.
func Soon(starts, ends time.Time, lead time.Duration) time.Time {
	return ends.Add(-min(lead, ends.Sub(starts)/4))
}

// ObjectiveWindow is the time that an objective is about: the one that ends now.
const ObjectiveWindow = 30 * 24 * time.Hour

// spareToClose is the share of what an objective allows that has to be left before a missed
// one is met again, so that it is not both in turns.
const spareToClose = 0.1

// Allowed is how long an install may be unhealthy within the window. Time of which nothing
// is known does not count; time before the install was there does, as time that is still to
// come, or a young one would miss its objective by its first bad minute.
func Allowed(percent float64, unknown time.Duration) time.Duration {
	return time.Duration((100 - percent) / 100 * float64(ObjectiveWindow-unknown))
}

// Objective says whether an install missed its objective: bad when what it allows is used
// up, good when enough of it is left, and neither in between.
func Objective(percent float64, unhealthy, unknown time.Duration) Seen {
	allowed := Allowed(percent, unknown)
	switch {
	case unknown >= ObjectiveWindow:
		return Unknown
	case unhealthy > allowed:
		return Bad
	case float64(unhealthy) <= (1-spareToClose)*float64(allowed):
		return Good
	}
	return Unknown
}

// Kinds are those of a severity; all with "".
func Kinds(of Severity) (kinds []model.AlertKind) {
	for _, k := range model.AlertKinds {
		if of == "" || rules[k].Severity == of {
			kinds = append(kinds, k)
		}
	}
	return kinds
}
