// Package health judges the checks and probes of installs by package verdict, and keeps
// the verdicts.
package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/verdict"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

const (
	// ProbeCron is when a component's objects are probed: each minute.
	ProbeCron = "* * * * *"
	// ProbeTimeout bounds one look.
	ProbeTimeout = 45 * time.Second
)

// Judged is an install that is judged.
type Judged struct {
	Install ctldb.Install
	App     *appconfig.App // its checks
	Probes  []jobspec.Probe
	Now     time.Time
}

// Judge evaluates every health check and probe of an install again and writes
// the verdicts. next is when it should be called again even if nothing is
// reported: when the first of them would fall silent; zero when none can.
//
// A component with probes has the worst verdict of those, as soon as one has reported;
// all else has the worst of the checks. An install that is not live has no
// verdicts.
func Judge(ctx context.Context, tx *database.Tx, j Judged) (next time.Time, err error) {
	if j.Install.State != model.InstallLive {
		return time.Time{}, setResources(ctx, tx, ctldb.SetResourceHealthParams{InstallID: j.Install.ID, Health: model.Unknown, Probed: []string{}})
	}
	var verdicts []model.Verdict                // of the checks
	names, probed := []string{}, []string{}     // not nil: NULL matches nothing
	ofResource := map[string][]model.Verdict{}  // of probes of objects, by the resource's id
	ofComponent := map[string][]model.Verdict{} // of probes that the app writes, by the component's name
	for _, s := range append(checks(j.App), probesOf(j.App, j.Probes)...) {
		v, silentAt, err := judgeOne(ctx, tx, j, s)
		if err != nil {
			return time.Time{}, fmt.Errorf("judge %s: %w", s.name, err)
		}
		names = append(names, s.name)
		switch {
		case s.component != "":
			ofComponent[s.component] = append(ofComponent[s.component], v)
		case s.probes == "":
			verdicts = append(verdicts, v)
		case v != "":
			ofResource[s.probes] = append(ofResource[s.probes], v)
		}
		if !silentAt.IsZero() && (next.IsZero() || silentAt.Before(next)) {
			next = silentAt
		}
	}
	if err := tx.DropChecks(ctx, ctldb.DropChecksParams{InstallID: j.Install.ID, Present: names}); err != nil {
		return time.Time{}, fmt.Errorf("drop checks: %w", err)
	}
	if len(ofComponent) > 0 {
		resources, err := tx.ResourcesOfInstall(ctx, j.Install.ID)
		if err != nil {
			return time.Time{}, fmt.Errorf("read resources: %w", err)
		}
		for _, r := range resources {
			if own := ofComponent[r.Name]; r.Kind == model.KindComponent && len(own) > 0 {
				ofResource[r.ID] = append(ofResource[r.ID], own...)
			}
		}
	}
	for id, own := range ofResource {
		probed = append(probed, id)
		if err := tx.SetProbedHealth(ctx, ctldb.SetProbedHealthParams{ID: id, Health: verdict.Worst(own)}); err != nil {
			return time.Time{}, fmt.Errorf("set health of %s: %w", id, err)
		}
	}
	return next, setResources(ctx, tx, ctldb.SetResourceHealthParams{InstallID: j.Install.ID, Health: verdict.Worst(verdicts), Probed: probed})
}

// source is what outcomes come from: an action that is a health check, or a
// probe.
type source struct {
	name  string
	rules verdict.Rules
	// probes is the id of the resource whose objects a probe looks at.
	probes string
	// component is the name of the component that a probe which the app writes is about.
	component string
}

func checks(app *appconfig.App) []source {
	var all []source
	ofProbe := map[string]string{}
	for i := range app.Components {
		for _, a := range app.Components[i].ProbeActions() {
			ofProbe[a.Name] = app.Components[i].Name
		}
	}
	for i := range app.Actions {
		a := &app.Actions[i]
		check, ok := a.HealthCheck()
		if !ok {
			continue
		}
		var crons []string
		for _, t := range a.Triggers {
			if t.Type == appconfig.TriggerCron {
				crons = append(crons, t.CronSchedule)
			}
		}
		all = append(all, source{name: a.Name, component: ofProbe[a.Name], rules: verdict.Rules{
			UnhealthyAfter: check.UnhealthyAfter, HealthyAfter: check.HealthyAfter, SilentAfter: verdict.Silence(crons, a.Timeout.Std()),
		}})
	}
	return all
}

func probesOf(app *appconfig.App, probes []jobspec.Probe) []source {
	all := make([]source, 0, len(probes))
	for i := range probes {
		name := probes[i].Resource.Name
		at := slices.IndexFunc(app.Components, func(c appconfig.Component) bool { return c.Name == name })
		thresholds := (&appconfig.Component{}).Probe()
		if at >= 0 {
			thresholds = app.Components[at].Probe()
		}
		rules := verdict.Rules{
			UnhealthyAfter: thresholds.UnhealthyAfter, HealthyAfter: thresholds.HealthyAfter,
			SilentAfter: verdict.Silence([]string{ProbeCron}, ProbeTimeout),
		}
		all = append(all, source{name: jobspec.Scheduled{Probe: &probes[i]}.Name(), rules: rules, probes: probes[i].Resource.ID})
	}
	return all
}

// judgeOne writes the verdict of one source and returns it; "" for a probe that
// never reported, of which nothing is written: the deploy has just seen that
// the objects are ready.
func judgeOne(ctx context.Context, tx *database.Tx, j Judged, s source) (model.Verdict, time.Time, error) {
	rows, err := tx.RecentOutcomes(ctx, ctldb.RecentOutcomesParams{InstallID: j.Install.ID, Action: s.name, Most: verdict.MaxRecent})
	if err != nil {
		return model.Unknown, time.Time{}, err
	}
	if len(rows) == 0 && s.probes != "" {
		return "", time.Time{}, nil
	}
	recent := make([]verdict.Outcome, 0, len(rows))
	for _, row := range rows {
		recent = append(recent, verdict.Outcome{RunID: row.ID, Good: row.State == model.RunSucceeded, Unknown: row.Unknown, At: row.EndedAt})
	}
	present := ctldb.Check{Verdict: model.Unknown, Since: j.Now}
	if row, err := tx.GetCheck(ctx, ctldb.GetCheckParams{InstallID: j.Install.ID, Name: s.name}); err == nil {
		present = row
	} else if !errors.Is(err, fault.ErrNotFound) {
		return model.Unknown, time.Time{}, err
	}
	v := verdict.Evaluate(present.Verdict, recent, s.rules, j.Now)
	put := ctldb.PutCheckParams{InstallID: j.Install.ID, Name: s.name, Verdict: v, Since: present.Since}
	if put.Verdict != present.Verdict {
		put.Since = j.Now
	}
	if put.Recent, err = json.Marshal(recent); err != nil {
		return model.Unknown, time.Time{}, err
	}
	var silentAt time.Time
	if s.rules.SilentAfter > 0 && len(recent) > 0 && v != model.Unknown {
		silentAt = recent[0].At.Add(s.rules.SilentAfter + time.Second)
		put.SilentAt = &silentAt
	}
	if err := tx.PutCheck(ctx, put); err != nil {
		return model.Unknown, time.Time{}, err
	}
	return v, silentAt, keepCertificates(ctx, tx, j.Install.ID, s.name)
}

func setResources(ctx context.Context, tx *database.Tx, p ctldb.SetResourceHealthParams) error {
	if err := tx.SetResourceHealth(ctx, p); err != nil {
		return fmt.Errorf("set health of resources: %w", err)
	}
	return nil
}
