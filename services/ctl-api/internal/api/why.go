package api

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
	"github.com/berth-dev/berth/services/internal/fault"
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
		ids, err := tx.OpenWorkflowsOfInstall(ctx, install.ID)
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			last, err := tx.ListWorkflows(ctx, ctldb.ListWorkflowsParams{InstallID: &install.ID, Most: 1})
			if err != nil {
				return err
			}
			for _, w := range last {
				ids = append(ids, w.Workflow.ID)
			}
		}
		var all []workflow.Reason
		for _, id := range ids {
			reasons, _, err := s.whyWorkflow(ctx, tx, id)
			if err != nil {
				return err
			}
			all = append(all, reasons...)
		}
		unaccepted, err := whyNotAccepted(ctx, tx, install)
		if err != nil {
			return err
		}
		all = append(all, unaccepted...)
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

// whyNotAccepted looks whether an install has ever accepted the scripts of a
// release.
func whyNotAccepted(ctx context.Context, tx *database.Tx, install ctldb.Install) ([]workflow.Reason, error) {
	if install.ReleaseID == nil {
		return nil, nil
	}
	accepted, err := tx.HasAccepted(ctx, install.ID)
	if err != nil || accepted {
		return nil, err
	}
	release, err := releaseview.Brings(ctx, tx.Queries, *install.ReleaseID)
	return workflow.WhyNotAccepted(install, len(release.Scripts), accepted), err
}

func (s *Server) whyWorkflow(ctx context.Context, tx *database.Tx, id string) ([]workflow.Reason, string, error) {
	w, err := tx.GetWorkflow(ctx, id)
	if err != nil {
		return nil, "", missing(err, "there is no workflow %q", id)
	}
	in := workflow.WhyInput{Workflow: w, Now: s.now()}
	if in.Steps, err = tx.StepsOfWorkflow(ctx, id); err != nil {
		return nil, "", err
	}
	if in.Jobs, err = tx.JobsOfWorkflow(ctx, &id); err != nil {
		return nil, "", err
	}
	runner, err := tx.InstallRunner(ctx, w.InstallID)
	switch {
	case err == nil:
		in.Runner = &runner
	case !errors.Is(err, fault.ErrNotFound):
		return nil, "", err
	}
	return workflow.Why(in), "workflow " + w.ID, nil
}

func whyView(name string, reasons []workflow.Reason) apigen.Why {
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
		out.Summary = fmt.Sprintf("%s: %s, %s", name, reasons[0].What, reasons[0].Reason)
	case decisions > 0:
		out.Summary = fmt.Sprintf("%s waits for %d decisions and %d other things", name, decisions, len(reasons)-decisions)
	case len(reasons) > 0:
		out.Summary = fmt.Sprintf("%s waits for %d things", name, len(reasons))
	}
	return out
}
