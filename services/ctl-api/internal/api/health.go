package api

import (
	"context"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/verdict"
	"github.com/berth-dev/berth/services/ctl-api/internal/alerts"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/apiref"
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
		certificates, err := tx.CertificatesOfInstall(ctx, ctldb.CertificatesOfInstallParams{InstallID: install.ID, Since: time.Now().Add(-alerts.CertificateSeenFor)})
		if err != nil {
			return err
		}
		if out, err = healthView(install, checks, resources); err != nil {
			return err
		}
		addCertificates(out.Checks, certificates, time.Now())
		return nil
	})
	return apigen.GetHealth200JSONResponse(out), err
}

// healthView joins the rows. An install that is not live has no verdict, though
// checks that once ran are still shown.
func healthView(install ctldb.Install, checks []ctldb.ListChecksRow, resources []ctldb.Resource) (apigen.Health, error) {
	var verdicts []model.Verdict
	var since time.Time
	for _, c := range checks {
		verdicts = append(verdicts, c.Check.Verdict)
		if c.Check.Since.After(since) {
			since = c.Check.Since
		}
	}
	worst := verdict.Worst(verdicts)
	if install.State != model.InstallLive {
		worst = model.Unknown
	}
	out := apigen.Health{Verdict: apigen.HealthVerdict(worst), Since: optional.Of(since)}
	var err error
	out.Checks, err = convertAll(checks, func(row ctldb.ListChecksRow) (apigen.Check, error) { return checkView(row, resources) })
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

// addCertificates adds to each check the certificates that it saw.
func addCertificates(checks []apigen.Check, certificates []ctldb.Certificate, now time.Time) {
	for i := range checks {
		for _, c := range certificates {
			if c.CheckName == checks[i].Name {
				checks[i].Certificates = append(checks[i].Certificates, apigen.Certificate{
					Place: c.Place, Subject: c.Subject, Fingerprint: c.Fingerprint, NotBefore: c.NotBefore, NotAfter: c.NotAfter,
					Soon: !now.Before(alerts.Soon(c.NotBefore, c.NotAfter, alerts.LeadOfCertificate)),
				})
			}
		}
	}
}

// checkView is a check with what it said last and, of a probe, the component and its change.
func checkView(row ctldb.ListChecksRow, resources []ctldb.Resource) (apigen.Check, error) {
	c := row.Check
	var recent []verdict.Outcome
	if err := decode("runs of check "+c.Name, c.Recent, &recent); err != nil {
		return apigen.Check{}, err
	}
	out := apigen.Check{
		Name: c.Name, Verdict: apigen.HealthVerdict(c.Verdict), Since: c.Since, SilentAt: c.SilentAt, Says: row.Error,
		Recent: convert(recent, func(o verdict.Outcome) apigen.CheckOutcome {
			return apigen.CheckOutcome{RunID: optional.Of(o.RunID), Ok: o.Good, Unknown: optional.Of(o.Unknown), At: o.At}
		}),
	}
	for _, r := range resources {
		if r.Kind == model.KindComponent && jobspec.ProbePrefix+r.Name == c.Name {
			out.Resource, out.ChangeID = apiref.Resource(&r.ID, string(r.Kind), r.Name), r.LiveChangeID
		}
	}
	return out, decode("findings of check "+c.Name, row.Findings, &out.Findings)
}
