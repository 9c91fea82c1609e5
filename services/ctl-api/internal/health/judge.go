package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/db"
)

// maxRecent outcomes are looked at and kept with the check.
const maxRecent = 20

// silentTicks is how many ticks of its schedule a check may miss before it
// counts as silent.
const silentTicks = 3

// Judge evaluates every health check of an install anew and writes the
// verdicts. next is when it should be called again even if nothing is reported:
// when the first check would fall silent; zero when none can.
//
// An install that is not live has no verdicts.
func Judge(ctx context.Context, tx *store.Tx, install db.Install, app *appconfig.App, now time.Time) (next time.Time, err error) {
	if install.State != "live" {
		return time.Time{}, setResources(ctx, tx, install.ID, Unknown)
	}
	var verdicts []Verdict
	for i := range app.Actions {
		a := &app.Actions[i]
		check, ok := a.HealthCheck()
		if !ok {
			continue
		}
		v, silentAt, err := judgeOne(ctx, tx, install.ID, a, check, now)
		if err != nil {
			return time.Time{}, fmt.Errorf("judge check %s: %w", a.Name, err)
		}
		verdicts = append(verdicts, v)
		if !silentAt.IsZero() && (next.IsZero() || silentAt.Before(next)) {
			next = silentAt
		}
	}
	return next, setResources(ctx, tx, install.ID, Worst(verdicts))
}

func judgeOne(ctx context.Context, tx *store.Tx, installID string, a *appconfig.Action, check appconfig.HealthCheck, now time.Time) (Verdict, time.Time, error) {
	rows, err := tx.RecentOutcomes(ctx, db.RecentOutcomesParams{InstallID: installID, Action: a.Name, Most: maxRecent})
	if err != nil {
		return Unknown, time.Time{}, err
	}
	recent := make([]Outcome, 0, len(rows))
	for _, row := range rows {
		recent = append(recent, Outcome{RunID: row.ID, Good: row.State == "succeeded", At: row.EndedAt})
	}
	present := db.Check{Verdict: string(Unknown), Since: now}
	if row, err := tx.GetCheck(ctx, db.GetCheckParams{InstallID: installID, Name: a.Name}); err == nil {
		present = row
	} else if !errors.Is(err, fault.ErrNotFound) {
		return Unknown, time.Time{}, err
	}
	rules := Rules{UnhealthyAfter: check.UnhealthyAfter, HealthyAfter: check.HealthyAfter, SilentAfter: silence(a)}
	v := Evaluate(Verdict(present.Verdict), recent, rules, now)
	put := db.PutCheckParams{InstallID: installID, Name: a.Name, Verdict: string(v), Since: present.Since}
	if put.Verdict != present.Verdict {
		put.Since = now
	}
	if put.Recent, err = json.Marshal(recent); err != nil {
		return Unknown, time.Time{}, err
	}
	var silentAt time.Time
	if rules.SilentAfter > 0 && len(recent) > 0 && v != Unknown {
		silentAt = recent[0].At.Add(rules.SilentAfter + time.Second)
		put.SilentAt = &silentAt
	}
	return v, silentAt, tx.PutCheck(ctx, put)
}

// silence is how long no outcome may come: some ticks of the check's schedule
// and one run. Zero for a check without a schedule.
func silence(a *appconfig.Action) time.Duration {
	var longest time.Duration
	for _, t := range a.Triggers {
		if t.Type != appconfig.TriggerCron {
			continue
		}
		schedule, err := cron.ParseStandard(t.CronSchedule)
		if err != nil {
			continue // validation refuses such a config
		}
		from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		first := schedule.Next(from)
		for range silentTicks {
			first = schedule.Next(first)
		}
		if d := first.Sub(schedule.Next(from)) + a.Timeout.Std(); longest == 0 || d < longest {
			longest = d
		}
	}
	return longest
}

func setResources(ctx context.Context, tx *store.Tx, installID string, v Verdict) error {
	if err := tx.SetResourceHealth(ctx, db.SetResourceHealthParams{InstallID: installID, Health: string(v)}); err != nil {
		return fmt.Errorf("set health of resources: %w", err)
	}
	return nil
}
