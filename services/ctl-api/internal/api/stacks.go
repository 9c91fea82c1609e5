package api

import (
	"context"
	"errors"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/stacks"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// GetStack answers how the runner of an install gets in.
func (s *Server) GetStack(ctx context.Context, req apigen.GetStackRequestObject) (apigen.GetStackResponseObject, error) {
	var out apigen.GetStack200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		found, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return err
		}
		stack, err := tx.NewestStack(ctx, found.ID)
		if errors.Is(err, fault.ErrNotFound) {
			return fault.With(fault.Newf(fault.ErrNotFound, "the %s stack of install %s has no version yet", found.StackKind, found.Name),
				fault.Code("no_stack_version"), fault.Remedy("make a code for the customer: berth installs stack %s --new", found.Name))
		}
		if err != nil {
			return err
		}
		out = apigen.GetStack200JSONResponse(stackView(stack))
		runner, err := tx.StackRunner(ctx, &found.ID)
		if errors.Is(err, fault.ErrNotFound) {
			return nil
		}
		view := s.runnerView(runner, found.Name)
		out.Runner = &view
		return err
	})
	return out, err
}

// CreateStackVersion makes the code with which a cluster makes its runner.
func (s *Server) CreateStackVersion(ctx context.Context, req apigen.CreateStackVersionRequestObject) (apigen.CreateStackVersionResponseObject, error) {
	var out apigen.CreateStackVersion201JSONResponse
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		found, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return "", err
		}
		made, err := s.Stacks.Code(ctx, tx, stacks.EnrolRequest{Install: found, Replaces: req.Body.Replaces, Actor: auth.PrincipalOf(ctx).AccountName})
		if err != nil {
			return "", err
		}
		out = apigen.CreateStackVersion201JSONResponse{
			ID: made.Stack.ID, Version: int(made.Stack.Version), RunnerID: made.Enrolment.RunnerID, Code: made.Code,
			Replaces: made.Enrolment.Replaces, ExpiresAt: made.Stack.ExpiresAt,
		}
		what := "make a code for the stack of install " + found.Name
		if made.Enrolment.Replaces {
			what += " that replaces its machine"
		}
		return what, nil
	})
	return out, err
}

// CreateEnrolment makes a secret with which a machine becomes the runner.
func (s *Server) CreateEnrolment(ctx context.Context, req apigen.CreateEnrolmentRequestObject) (apigen.CreateEnrolmentResponseObject, error) {
	var out apigen.CreateEnrolment201JSONResponse
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		found, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return "", err
		}
		made, err := s.Stacks.Enrol(ctx, tx, stacks.EnrolRequest{Install: found, Replaces: req.Body.Replaces, Actor: auth.PrincipalOf(ctx).AccountName})
		if err != nil {
			return "", err
		}
		out = apigen.CreateEnrolment201JSONResponse{
			ID: made.Row.ID, RunnerID: made.Row.RunnerID, Secret: made.Secret, Replaces: made.Row.Replaces, ExpiresAt: made.Row.ExpiresAt,
		}
		what := "make an enrolment of install " + found.Name
		if made.Row.Replaces {
			what += " that replaces its machine"
		}
		return what, nil
	})
	return out, err
}

func stackView(v ctldb.StackVersion) apigen.Stack {
	view := apigen.Stack{
		ID: v.ID, Kind: apigen.StackKind(v.Kind), Version: int(v.Version), State: apigen.StackState(v.State), Outputs: redacted(v.Outputs),
		CreatedAt: v.CreatedAt, ExpiresAt: v.ExpiresAt, PhonedHomeAt: v.PhonedHomeAt,
	}
	if v.State == model.StackPending {
		view.Wait = &apigen.Waiting{Reason: "the stack has not phoned home yet", On: "the person applying the stack", Deadline: v.ExpiresAt}
	}
	return view
}
