// Package settings publishes what a runner works from by itself: the schedule
// of its checks and the state that their templates read, signed and numbered.
package settings

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/health"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// renewBefore is how long before they expire settings are signed again, though
// nothing changed.
const renewBefore = jobspec.SettingsLifetime / 2

// Publisher signs with the org's dispatch key.
type Publisher struct {
	Keys             *keys.Ring
	MinRunnerVersion string
}

// Facts are what the settings of an install say.
type Facts struct {
	Install ctldb.Install
	Runner  ctldb.Runner
	App     *appconfig.App // nil for an install that is not live
	State   ctldb.StateVersion
	Probes  []jobspec.Probe
	Surveys []jobspec.Scheduled // looks for drift
	Revoked []capsule.Envelope  // what the vendor signed against releases of the app
}

// Publish stores a new version of an install's settings when they differ from
// the last ones or those are about to expire. next is when it should be called
// again.
func (p *Publisher) Publish(ctx context.Context, tx *database.Tx, f Facts, now time.Time) (next time.Time, err error) {
	s := jobspec.Settings{
		OrgID: f.Install.OrgID, InstallID: f.Install.ID, Schedule: []jobspec.Scheduled{}, MinRunnerVersion: p.MinRunnerVersion,
		State: f.State.Tree, StateVersion: int(f.State.Version), Revoked: f.Revoked,
	}
	if f.Install.State == model.InstallLive && f.App != nil {
		if s.Schedule, s.Remedies, err = schedule(f.App, f.Probes); err != nil {
			return time.Time{}, err
		}
		s.Surveys = f.Surveys
	}
	digest, err := capsule.DigestOf(s) // without version, times and head, which always differ
	if err != nil {
		return time.Time{}, fmt.Errorf("digest settings: %w", err)
	}
	last, err := tx.LatestSettings(ctx, f.Install.ID)
	if err != nil && !errors.Is(err, fault.ErrNotFound) {
		return time.Time{}, fmt.Errorf("read settings: %w", err)
	}
	if last.Version > 0 && last.Digest == digest && now.Before(last.ExpiresAt.Add(-renewBefore)) {
		return last.ExpiresAt.Add(-renewBefore), nil
	}
	// Not part of the digest: the org's chain grows all the time, and settings
	// are published for other reasons.
	if s.OrgHead, err = p.Keys.Head(ctx, tx); err != nil {
		return time.Time{}, err
	}
	s.Version, s.IssuedAt, s.ExpiresAt = last.Version+1, now, now.Add(jobspec.SettingsLifetime)
	envelope, err := p.Keys.Sign(ctx, tx, capsule.SettingsType, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("sign settings: %w", err)
	}
	err = tx.InsertSettings(ctx, ctldb.InsertSettingsParams{InstallID: f.Install.ID, Version: s.Version, Digest: digest, Envelope: envelope, ExpiresAt: s.ExpiresAt})
	if err != nil {
		return time.Time{}, fmt.Errorf("store settings: %w", err)
	}
	tx.NotifyAfterCommit(model.ChannelSettings, f.Runner.ID)
	return s.ExpiresAt.Add(-renewBefore), nil
}

// schedule lists the actions with a cron trigger, the probes, and the actions that heal
// them. A runner runs
// those scripts only that it accepted with a release; the acceptance shows which of
// them run by themselves and may change something. A break-glass action never does.
func schedule(app *appconfig.App, probes []jobspec.Probe) (out []jobspec.Scheduled, remedies []jobspec.Script, err error) {
	out = []jobspec.Scheduled{}
	scripts, err := orders.Scripts(app)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range scripts {
		if len(s.Heals) > 0 {
			remedies = append(remedies, s)
		}
		if s.Cron != "" && (s.HealthCheck || s.Unattended) {
			out = append(out, jobspec.Scheduled{
				Action: s.Action, Inputs: s.Inputs, Role: s.Role, Cron: s.Cron, TimeoutSeconds: s.TimeoutSeconds,
				HealthCheck: s.HealthCheck, Unattended: s.Unattended, Heals: s.Heals,
			})
		}
	}
	for _, p := range probes {
		out = append(out, jobspec.Scheduled{Probe: &p, Cron: health.ProbeCron, TimeoutSeconds: int(health.ProbeTimeout / time.Second), HealthCheck: true})
	}
	return out, remedies, nil
}
