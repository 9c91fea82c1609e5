package alertwatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/alerts"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

const (
	// failedFor is for how long a failed workflow is worth an alert.
	failedFor = 30 * 24 * time.Hour
	// In characters; the rows take no more.
	longestName    = 500
	longestText    = 1000
	longestVersion = 100
)

// scene is what sources look at.
type scene struct {
	Install ctldb.Install
	Runner  *ctldb.Runner // the one that is not revoked, or nil
	Now     time.Time
}

// source says what is wrong with an install, and what is not: a subject that it does not
// name is not there, and an alert about it closes.
type source func(ctx context.Context, tx *database.Tx, s scene) ([]alerts.Observation, error)

// sources are all of them. One more kind of alert is one more function here.
var sources = map[string]source{
	"verdicts": verdicts, "runner": runner, "workflows": workflows, "waits": waits, "ends": ends, "chain": chain, "drift": drift, "certificates": certificates, "objective": objective,
}

// observe asks all sources. A rehearsal, and an install of which nothing is left, has
// nothing wrong with it.
func observe(ctx context.Context, tx *database.Tx, s scene) (all []alerts.Observation, err error) {
	if s.Install.Rehearsal != nil || s.Install.State == model.InstallDeprovisioned || s.Install.State == model.InstallForgotten {
		return nil, nil
	}
	row, err := tx.InstallRunner(ctx, s.Install.ID)
	switch {
	case err == nil && row.State != model.RunnerRevoked:
		s.Runner = &row
	case err != nil && !errors.Is(err, fault.ErrNotFound):
		return nil, err
	}
	for name, ask := range sources {
		seen, err := ask(ctx, tx, s)
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", name, err)
		}
		all = append(all, seen...)
	}
	return distinct(all), nil
}

// distinct keeps one observation of each subject, a bad one if there is one, as long as
// rows take them: names come from apps and from customers.
func distinct(all []alerts.Observation) (one []alerts.Observation) {
	at := map[subject]int{}
	for _, o := range all {
		o.Subject, o.Text = clip(o.Subject, longestName), clip(o.Text, longestText)
		o.Cause.Of, o.Cause.RunnerVersion = clip(o.Cause.Of, longestName), clip(o.Cause.RunnerVersion, longestVersion)
		key := subject{o.Kind, o.Subject}
		i, known := at[key]
		switch {
		case !known:
			at[key] = len(one)
			one = append(one, o)
		case o.Seen == alerts.Bad && one[i].Seen != alerts.Bad:
			one[i] = o
		}
	}
	return one
}

// clip cuts a text off at so many characters.
func clip(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// verdicts are the checks and probes of a live install.
func verdicts(ctx context.Context, tx *database.Tx, s scene) (all []alerts.Observation, err error) {
	if s.Install.State != model.InstallLive {
		return nil, nil
	}
	rows, err := tx.VerdictsToAlert(ctx, s.Install.ID)
	if err != nil {
		return nil, err
	}
	healed, err := tx.RemediationsToAlert(ctx, s.Install.ID)
	for _, row := range rows {
		o := ofVerdict(row, optional.Value(s.Install.ReleaseID))
		for _, r := range healed {
			if r.CheckName == row.Name {
				o = withRemedy(o, r, s.Now)
			}
		}
		all = append(all, o)
	}
	return all, err
}

// withRemedy is what is unhealthy while the runner heals it, or after that did not help:
// either way it is one trouble, and one alert.
func withRemedy(o alerts.Observation, r ctldb.RemediationsToAlertRow, now time.Time) alerts.Observation {
	switch {
	case o.Seen != alerts.Bad:
	case r.State == model.RemediationNeedsAttention:
		o.Text = fmt.Sprintf("%s is unhealthy, and %s did not help (%d of %d attempts)", o.Subject, r.Action, r.Attempts, r.AttemptsOf)
		if r.Reverted {
			o.Text += "; its attempts were taken back"
		}
	default: // each report of the runner has it looked at again
		o.Heals = now.Add(alerts.Grace)
	}
	return o
}

// drift are the resources that differ from what was deployed, and those that do not.
func drift(ctx context.Context, tx *database.Tx, s scene) (all []alerts.Observation, err error) {
	if s.Install.State != model.InstallLive {
		return nil, nil
	}
	rows, err := tx.DriftToAlert(ctx, s.Install.ID)
	for _, row := range rows {
		all = append(all, ofDrift(row))
	}
	return all, err
}

func ofDrift(row ctldb.DriftToAlertRow) alerts.Observation {
	about := string(row.Kind)
	if row.Kind == model.KindComponent {
		about = "component/" + row.Name
	}
	o := alerts.Observation{Kind: model.AlertDrift, Subject: about, Seen: alerts.Good, Since: row.OpenedAt, Text: about + " drifted from what was deployed"}
	switch row.Class {
	case "":
		return o
	case "human_edit":
		o.Text = about + " was changed by hand"
	case "real": // the release may be the cause, in other installs too; an edit by hand is of one
		if row.ReleaseID != "" {
			o.Cause = alerts.Cause{Of: about, ReleaseID: row.ReleaseID}
		}
	}
	o.Seen = alerts.Bad
	return o
}

func ofVerdict(row ctldb.VerdictsToAlertRow, release string) alerts.Observation {
	o := alerts.Observation{Kind: model.AlertUnhealthy, Subject: row.Name, Seen: alerts.Unknown, Since: row.Since}
	switch row.Verdict {
	case model.Healthy:
		o.Seen = alerts.Good
	case model.Unhealthy:
		o.Seen = alerts.Bad
	}
	if row.ReleaseID != "" {
		release = row.ReleaseID
	}
	if release != "" {
		o.Cause = alerts.Cause{Of: row.Name, ReleaseID: release}
	}
	o.Text = row.Name + " is unhealthy"
	return o
}

// runner is whether the install's runner is heard.
func runner(_ context.Context, _ *database.Tx, s scene) ([]alerts.Observation, error) {
	if s.Runner == nil || s.Runner.State != model.RunnerActive || s.Runner.LastSeenAt == nil {
		return nil, nil
	}
	o := alerts.Observation{
		Kind: model.AlertRunnerSilent, Subject: "runner", Seen: alerts.Good, Since: *s.Runner.LastSeenAt,
		Text: "nothing was heard of the runner since " + s.Runner.LastSeenAt.UTC().Format(time.RFC3339),
	}
	if !s.Runner.Online {
		o.Seen = alerts.Bad
	}
	if s.Runner.Switch == "sever" {
		o.Text += ", which the customer has severed"
	}
	if s.Runner.Version != "" {
		o.Cause = alerts.Cause{Of: "runner", RunnerVersion: s.Runner.Version}
	}
	return []alerts.Observation{o}, nil
}

// workflows are those that ended last.
func workflows(ctx context.Context, tx *database.Tx, s scene) (all []alerts.Observation, err error) {
	rows, err := tx.WorkflowsToAlert(ctx, ctldb.WorkflowsToAlertParams{InstallID: s.Install.ID, Since: s.Now.Add(-failedFor)})
	for _, row := range rows {
		all = append(all, ofWorkflow(row))
	}
	return all, err
}

// ofWorkflow: one that is at work, that a person ended, or that gave way to a newer one
// does not tell whether the trouble of the one before it is over.
func ofWorkflow(row ctldb.WorkflowsToAlertRow) alerts.Observation {
	o := alerts.Observation{Kind: model.AlertWorkflowFailed, Subject: row.About, Seen: alerts.Unknown, Since: optional.Value(row.FinishedAt)}
	o.Text = fmt.Sprintf("%s #%d failed", flowName(row.Kind), row.Number)
	if row.FailedStep != "" {
		o.Text += " at " + row.FailedStep
	}
	switch {
	case row.State == model.WorkflowSucceeded, row.State == model.WorkflowFailed && row.Ended != nil:
		o.Seen = alerts.Good
	case row.State == model.WorkflowFailed && !row.Superseded:
		o.Seen = alerts.Bad
	}
	if row.ReleaseID != "" && row.FailedStep != "" {
		o.Cause = alerts.Cause{Of: row.FailedStep, ReleaseID: row.ReleaseID}
	}
	return o
}

// waits are workflows that wait for somebody: for each, the step that has waited longest.
func waits(ctx context.Context, tx *database.Tx, s scene) (all []alerts.Observation, err error) {
	rows, err := tx.WaitsToAlert(ctx, s.Install.ID)
	if err != nil {
		return nil, err
	}
	return ofWaits(rows), nil
}

func ofWaits(rows []ctldb.WaitsToAlertRow) (all []alerts.Observation) {
	for _, row := range rows {
		about := fmt.Sprintf("%s #%d", flowName(row.Kind), row.Number)
		o := alerts.Observation{
			Kind: model.AlertWaitingTooLong, Subject: about, Seen: alerts.Bad, Since: row.Since,
			Text: fmt.Sprintf("%s waits at %s %s since %s", about, row.Name, waited(optional.Value(row.WaitReason)), row.Since.UTC().Format(time.RFC3339)),
		}
		if n := len(all); n > 0 && all[n-1].Subject == about {
			if o.Since.Before(all[n-1].Since) {
				all[n-1] = o
			}
			continue
		}
		all = append(all, o)
	}
	return all
}

// chain is whether the runner reports its chain along with its work.
func chain(ctx context.Context, tx *database.Tx, s scene) ([]alerts.Observation, error) {
	if s.Runner == nil || s.Runner.State != model.RunnerActive {
		return nil, nil
	}
	row, err := tx.ChainToAlert(ctx, ctldb.ChainToAlertParams{InstallID: s.Install.ID, RunnerID: s.Runner.ID})
	if errors.Is(err, fault.ErrNotFound) {
		return nil, nil // it has recorded nothing yet
	}
	if err != nil {
		return nil, err
	}
	o := alerts.Observation{
		Kind: model.AlertChainUnreported, Subject: "chain", Seen: alerts.Good, Since: row.BeganAt,
		Text: "the runner changes things, and has not reported its chain since " + row.GrownAt.UTC().Format(time.RFC3339),
	}
	if row.BeganAt.After(row.GrownAt) {
		o.Seen = alerts.Bad
	}
	if s.Runner.Version != "" {
		o.Cause = alerts.Cause{Of: "chain", RunnerVersion: s.Runner.Version}
	}
	return []alerts.Observation{o}, nil
}
