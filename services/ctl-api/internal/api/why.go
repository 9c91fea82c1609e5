package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/ctl-api/internal/rollback"
	"github.com/berth-dev/berth/services/ctl-api/internal/status"
	"github.com/berth-dev/berth/services/ctl-api/internal/why"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// WhyWorkflow explains what is blocking a workflow.
func (s *Server) WhyWorkflow(ctx context.Context, req apigen.WhyWorkflowRequestObject) (apigen.WhyWorkflowResponseObject, error) {
	var out apigen.Why
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		reasons, name, err := s.whyWorkflow(ctx, tx, req.Workflow)
		out = whyView(name, reasons)
		return err
	})
	return apigen.WhyWorkflow200JSONResponse(out), err
}

// WhyInstall answers what keeps an install from being where it should be: its
// open workflows, or the last one when that failed; and its open alarms.
func (s *Server) WhyInstall(ctx context.Context, req apigen.WhyInstallRequestObject) (apigen.WhyInstallResponseObject, error) {
	var out apigen.Why
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		install, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return err
		}
		var all []why.Reason
		ids, err := tx.OpenWorkflowsOfInstall(ctx, install.ID)
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			last, err := tx.ListWorkflows(ctx, ctldb.ListWorkflowsParams{InstallID: &install.ID, Most: 1})
			if err != nil {
				return err
			}
			failed := false
			for _, w := range last {
				ids, failed = append(ids, w.Workflow.ID), w.Workflow.State == model.WorkflowFailed
			}
			if all, err = s.whySettled(ctx, tx, install, failed); err != nil {
				return err
			}
		}
		for _, id := range ids {
			reasons, _, err := s.whyWorkflow(ctx, tx, id)
			if err != nil {
				return err
			}
			all = append(reasons, all...)
		}
		unaccepted, err := whyNotAccepted(ctx, tx, install)
		if err != nil {
			return err
		}
		all = append(all, unaccepted...)
		rotated, err := whyRotated(ctx, tx, install)
		if err != nil {
			return err
		}
		all = append(all, rotated...)
		open, err := whyAlarms(ctx, tx, install.ID)
		if err != nil {
			return err
		}
		all = append(all, open...)
		out = whyView(install.Name, all)
		return nil
	})
	return apigen.WhyInstall200JSONResponse(out), err
}

// whySettled explains how an install stands in which nothing is at work.
func (s *Server) whySettled(ctx context.Context, tx *database.Tx, install ctldb.Install, lastFailed bool) ([]why.Reason, error) {
	rows, err := tx.ShowInstalls(ctx, ctldb.ShowInstallsParams{ID: install.ID, Labels: json.RawMessage(`{}`), Everywhere: true, Most: 1})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	a, err := s.readAround(ctx, tx, rows)
	if err != nil {
		return nil, err
	}
	newest := a.newest[install.AppID]
	settled := status.Settled{
		Install: install, Status: status.Of(a.facts(install)), Release: int(optional.Value(rows[0].ReleaseNumber)), Newest: int(newest.Number), LastFailed: lastFailed,
	}
	if runner, ok := a.runners[install.ID]; ok {
		settled.Runner = &runner
	}
	if settled.Status.Standing == status.ProvisionFailed && newest.ID != "" {
		if settled.Missing, err = releaseview.Missing(ctx, tx.Queries, install, newest.ID); err != nil {
			return nil, err
		}
	}
	return status.Why(settled), nil
}

// whyNotAccepted looks whether an install has ever accepted the scripts of a
// release.
func whyNotAccepted(ctx context.Context, tx *database.Tx, install ctldb.Install) ([]why.Reason, error) {
	if install.ReleaseID == nil {
		return nil, nil
	}
	accepted, err := tx.HasAccepted(ctx, install.ID)
	if err != nil || accepted {
		return nil, err
	}
	release, err := releaseview.Brings(ctx, tx.Queries, *install.ReleaseID)
	return why.NotAccepted(install, len(release.Scripts), accepted), err
}

func (s *Server) whyWorkflow(ctx context.Context, tx *database.Tx, id string) ([]why.Reason, string, error) {
	w, err := tx.GetWorkflow(ctx, id)
	if err != nil {
		return nil, "", missing(err, "there is no workflow %q", id)
	}
	install, err := installs.Find(ctx, tx, w.InstallID)
	if err != nil {
		return nil, "", err
	}
	in := why.Input{Workflow: w, Install: install.Name, Now: s.now()}
	if in.Steps, err = tx.StepsOfWorkflow(ctx, id); err != nil {
		return nil, "", err
	}
	if in.Jobs, err = tx.JobsOfWorkflow(ctx, &id); err != nil {
		return nil, "", err
	}
	if in.Runner, err = runnerOf(ctx, tx, w.InstallID); err != nil {
		return nil, "", err
	}
	secrets, err := tx.SecretsOfInstall(ctx, w.InstallID)
	if err != nil {
		return nil, "", err
	}
	in.MissingSecrets = why.Missing(secrets)
	if w.State == model.WorkflowFailed {
		changes, err := tx.CurrentChanges(ctx, id)
		if err != nil {
			return nil, "", err
		}
		in.Superseded = map[string]bool{}
		for _, c := range changes {
			in.Superseded[c.StepID] = c.State == model.ChangeSuperseded
		}
	}
	offered, err := (rollback.Finder{Installs: s.Installs}).Why(ctx, tx, w)
	return append(why.Workflow(in), offered...), "workflow " + w.ID, err
}

// runnerOf reads the runner of an install; nil for none.
func runnerOf(ctx context.Context, tx *database.Tx, installID string) (*ctldb.Runner, error) {
	runner, err := tx.InstallRunner(ctx, installID)
	if errors.Is(err, fault.ErrNotFound) {
		return nil, nil
	}
	return &runner, err
}

func whyView(name string, reasons []why.Reason) apigen.Why {
	out := apigen.Why{Summary: name + " waits for nothing", Items: []apigen.WhyItem{}}
	decisions := 0
	for _, r := range reasons {
		if r.On == "an approver" {
			decisions++
		}
		out.Items = append(out.Items, apigen.WhyItem{
			What: r.What, ID: optional.Of(r.ID), Reason: r.Reason, On: optional.Of(r.On), Deadline: r.Deadline, RetryAt: r.RetryAt, Unblock: optional.Of(r.Unblock),
		})
	}
	switch {
	case len(reasons) == 1:
		out.Summary = fmt.Sprintf("%s: %s: %s", name, reasons[0].What, reasons[0].Reason)
		if strings.HasSuffix(reasons[0].What, " "+name) { // about the install itself
			out.Summary = name + ": " + reasons[0].Reason
		}
	case decisions > 0:
		out.Summary = fmt.Sprintf("%s waits for %d decisions and %d other things", name, decisions, len(reasons)-decisions)
	case len(reasons) > 0:
		out.Summary = fmt.Sprintf("%s: %d things to look at", name, len(reasons))
	}
	return out
}
