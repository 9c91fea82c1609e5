package alertwatch

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/alerts"
	"github.com/berth-dev/berth/services/ctl-api/internal/availability"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// countEvery is how often the history of an install is read for its objective.
const countEvery = time.Hour

// objective is whether a live install was as healthy as it is to be.
func objective(ctx context.Context, tx *database.Tx, s scene) ([]alerts.Observation, error) {
	if s.Install.State != model.InstallLive || s.Install.HealthObjective == nil {
		return nil, nil
	}
	wanted := *s.Install.HealthObjective
	look, err := tx.GetObjectiveLook(ctx, s.Install.ID)
	if err != nil && !errors.Is(err, fault.ErrNotFound) {
		return nil, err
	}
	if err != nil || look.Objective != wanted || !s.Now.Before(look.LookedAt.Add(countEvery)) {
		if look, err = count(ctx, tx, s, wanted); err != nil {
			return nil, err
		}
	}
	return []alerts.Observation{ofObjective(look)}, nil
}

// count reads the history and keeps what came of it. Of an install whose health changed more
// than availability.MaxRows times nothing is said.
func count(ctx context.Context, tx *database.Tx, s scene, wanted float64) (look ctldb.ObjectiveLook, err error) {
	w := availability.Window{From: s.Now.Add(-alerts.ObjectiveWindow), To: s.Now}
	rows, err := tx.HealthHistory(ctx, ctldb.HealthHistoryParams{InstallIds: []string{s.Install.ID}, Since: w.From, Until: w.To, Most: availability.MaxRows + 1})
	if err != nil {
		return look, fmt.Errorf("read history of health: %w", err)
	}
	look = ctldb.ObjectiveLook{InstallID: s.Install.ID, Objective: wanted, UnknownSeconds: alerts.ObjectiveWindow.Seconds(), LookedAt: s.Now}
	if len(rows) <= availability.MaxRows {
		sum := w.Sum(availability.Worst(w.Resources(rows)))
		look.UnhealthySeconds, look.UnknownSeconds = sum.Unhealthy.Seconds(), sum.Unknown.Seconds()
	}
	return look, tx.PutObjectiveLook(ctx, ctldb.PutObjectiveLookParams{
		InstallID: look.InstallID, Objective: look.Objective, UnhealthySeconds: look.UnhealthySeconds, UnknownSeconds: look.UnknownSeconds, LookedAt: look.LookedAt,
	})
}

func ofObjective(look ctldb.ObjectiveLook) alerts.Observation {
	unhealthy, unknown := seconds(look.UnhealthySeconds), seconds(look.UnknownSeconds)
	return alerts.Observation{
		Kind: model.AlertObjective, Subject: "health", Seen: alerts.Objective(look.Objective, unhealthy, unknown), Since: look.LookedAt, Turns: look.LookedAt.Add(countEvery),
		Text: fmt.Sprintf("unhealthy for %s of the last %d days; the objective of %s %% allows %s",
			unhealthy.Round(time.Second), int(alerts.ObjectiveWindow.Hours()/24), strconv.FormatFloat(look.Objective, 'f', -1, 64), alerts.Allowed(look.Objective, unknown).Round(time.Second)),
	}
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
