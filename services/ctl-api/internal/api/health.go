package api

import (
	"context"
	"time"

	"github.com/berth-dev/berth/pkg/verdict"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// GetHealth answers the verdict on an install, with the checks behind it.
func (s *Server) GetHealth(ctx context.Context, req apigen.GetHealthRequestObject) (apigen.GetHealthResponseObject, error) {
	var out apigen.Health
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		install, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return err
		}
		checks, err := tx.ListChecks(ctx, install.ID)
		if err != nil {
			return err
		}
		resources, err := tx.ResourcesOfInstall(ctx, install.ID)
		if err != nil {
			return err
		}
		out, err = healthView(install, checks, resources)
		return err
	})
	return apigen.GetHealth200JSONResponse(out), err
}

// healthView joins the rows. An install that is not live has no verdict, though
// checks that once ran are still shown.
func healthView(install ctldb.Install, checks []ctldb.Check, resources []ctldb.Resource) (apigen.Health, error) {
	var verdicts []model.Verdict
	var since time.Time
	for _, c := range checks {
		verdicts = append(verdicts, c.Verdict)
		if c.Since.After(since) {
			since = c.Since
		}
	}
	worst := verdict.Worst(verdicts)
	if install.State != model.InstallLive {
		worst = model.Unknown
	}
	out := apigen.Health{Verdict: apigen.HealthVerdict(worst), Since: optional.Of(since)}
	var err error
	out.Checks, err = convertAll(checks, func(c ctldb.Check) (apigen.Check, error) {
		var recent []verdict.Outcome
		err := decode("runs of check "+c.Name, c.Recent, &recent)
		return apigen.Check{
			Name: c.Name, Verdict: apigen.HealthVerdict(c.Verdict), Since: c.Since, SilentAt: c.SilentAt,
			Recent: convert(recent, func(o verdict.Outcome) apigen.CheckOutcome {
				return apigen.CheckOutcome{RunID: optional.Of(o.RunID), Ok: o.Good, At: o.At}
			}),
		}, err
	})
	out.Resources = []apigen.ResourceHealth{}
	for _, r := range resources {
		if r.Kind == model.KindStack || r.Kind == model.KindSecrets {
			continue
		}
		out.Resources = append(out.Resources, apigen.ResourceHealth{
			ID: r.ID, Kind: apigen.ResourceHealthKind(r.Kind), Name: r.Name, Health: apigen.HealthVerdict(r.Health), Since: r.HealthSince,
		})
	}
	return out, err
}
