package api

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/ctl-api/internal/alertapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/explain"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/ctl-api/internal/rollback"
	"github.com/berth-dev/berth/services/ctl-api/internal/status"
	"github.com/berth-dev/berth/services/ctl-api/internal/why"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// WhyWorkflow explains what is blocking a workflow.
func (s *Server) WhyWorkflow(ctx context.Context, req apigen.WhyWorkflowRequestObject) (apigen.WhyWorkflowResponseObject, error) {
	var out apigen.Why
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		answer, err := s.whyWorkflow(ctx, tx, req.Workflow)
		out = explain.View(answer)
		return missing(err, "there is no workflow %q", req.Workflow)
	})
	return apigen.WhyWorkflow200JSONResponse(out), err
}

// WhyInstall answers what keeps an install from being where it should be: its
// open workflows, or the last one when that failed; and its open alarms.
func (s *Server) WhyInstall(ctx context.Context, req apigen.WhyInstallRequestObject) (apigen.WhyInstallResponseObject, error) {
	var out apigen.Why
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		answer, err := s.whyInstall(ctx, tx, req.Install)
		out = explain.View(answer)
		return err
	})
	return apigen.WhyInstall200JSONResponse(out), err
}

// WhyObject explains anything that can wait, by its id.
func (s *Server) WhyObject(ctx context.Context, req apigen.WhyObjectRequestObject) (apigen.WhyObjectResponseObject, error) {
	var out apigen.Why
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		if strings.HasPrefix(req.Object, id.Workflow+"_") {
			answer, err := s.whyWorkflow(ctx, tx, req.Object)
			out = explain.View(answer)
			return missing(err, "there is no workflow %q", req.Object)
		}
		answer, ok, err := explain.Object(ctx, tx, req.Object, s.now())
		if !ok {
			answer, err = s.whyInstall(ctx, tx, req.Object)
		}
		out = explain.View(answer)
		return err
	})
	return apigen.WhyObject200JSONResponse(out), err
}

func (s *Server) whyInstall(ctx context.Context, tx *database.Tx, ref string) (explain.Answer, error) {
	install, err := installs.Find(ctx, tx, ref)
	if err != nil {
		return explain.Answer{}, err
	}
	var all []why.Reason
	ids, err := tx.OpenWorkflowsOfInstall(ctx, install.ID)
	if err != nil {
		return explain.Answer{}, err
	}
	if len(ids) == 0 {
		last, err := tx.ListWorkflows(ctx, ctldb.ListWorkflowsParams{InstallID: &install.ID, Most: 1})
		if err != nil {
			return explain.Answer{}, err
		}
		failed := false
		for _, w := range last {
			ids, failed = append(ids, w.Workflow.ID), w.Workflow.State == model.WorkflowFailed
		}
		if all, err = s.whySettled(ctx, tx, install, failed); err != nil {
			return explain.Answer{}, err
		}
	}
	for _, id := range ids {
		of, err := s.whyWorkflow(ctx, tx, id)
		if err != nil {
			return explain.Answer{}, err
		}
		all = append(of.Reasons, all...)
	}
	// What holds the others comes first.
	slices.SortStableFunc(all, func(a, b why.Reason) int { return cmp.Compare(a.Rank(), b.Rank()) })
	unaccepted, err := whyNotAccepted(ctx, tx, install)
	if err != nil {
		return explain.Answer{}, err
	}
	all = append(all, unaccepted...)
	rotated, err := whyRotated(ctx, tx, install)
	if err != nil {
		return explain.Answer{}, err
	}
	all = append(all, rotated...)
	unhealed, err := whyUnhealed(ctx, tx, install)
	if err != nil {
		return explain.Answer{}, err
	}
	all = append(all, unhealed...)
	open, err := whyAlarms(ctx, tx, install.ID)
	if err != nil {
		return explain.Answer{}, err
	}
	all = append(all, open...)
	wrong, err := alertapi.Why(ctx, tx, install.ID)
	if err != nil {
		return explain.Answer{}, err
	}
	all = append(all, wrong...)
	return explain.Answer{Name: install.Name, Reasons: all}, nil
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

// whyUnhealed are the remediations of an install that did not help.
func whyUnhealed(ctx context.Context, tx *database.Tx, install ctldb.Install) ([]why.Reason, error) {
	rows, err := tx.OpenRemediations(ctx, ctldb.OpenRemediationsParams{InstallID: &install.ID, Most: mostAlarms})
	var reasons []why.Reason
	for _, r := range rows {
		reasons = append(reasons, why.Reason{
			What: "remediation of " + r.Remediation.CheckName, ID: r.Remediation.ID, Code: why.CodeNeedsAttention, Who: why.Operator, WokenBy: why.WakeRunner,
			Reason: "action " + r.Remediation.Action + " did not help: " + r.Remediation.Why, On: "somebody who looks into it",
			Unblock: "berth installs remediations " + install.Name,
		})
	}
	return reasons, err
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

// whyWorkflow explains a workflow; of one that failed also what the install can go
// back to.
func (s *Server) whyWorkflow(ctx context.Context, tx *database.Tx, ref string) (explain.Answer, error) {
	answer, err := explain.Workflow(ctx, tx, ref, s.now())
	if err != nil {
		return answer, err
	}
	w, err := tx.GetWorkflow(ctx, ref)
	if err != nil {
		return answer, err
	}
	offered, err := (rollback.Finder{Installs: s.Installs}).Why(ctx, tx, w)
	answer.Reasons = append(answer.Reasons, offered...)
	return answer, err
}
