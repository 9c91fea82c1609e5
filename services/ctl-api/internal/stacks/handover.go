package stacks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/riverqueue/river"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// HandoverArgs is the River job that hands a stack to the supervisor.
type HandoverArgs struct {
	StackVersionID string `json:"stack_version_id"`
}

// Kind implements river.JobArgs.
func (HandoverArgs) Kind() string { return "stack_handover" }

// RemovalArgs is the River job that has the supervisor stop a runner.
type RemovalArgs struct {
	RunnerID string `json:"runner_id"`
}

// Kind implements river.JobArgs.
func (RemovalArgs) Kind() string { return "stack_removal" }

// Handover gives the supervisor what it needs to start the runner of a stack,
// then forgets the secrets. Doing it twice is fine: the supervisor takes the
// same order again, and afterwards there is nothing left to hand over.
func (s *Service) Handover(ctx context.Context, st *database.Store, supervisor *Supervisor, stackID string) error {
	org, err := orgOf(ctx, st, stackID)
	if err != nil || org == "" {
		return err
	}
	order, err := s.order(ctx, st, org, stackID)
	if err != nil || order == nil {
		return err
	}
	if err := supervisor.Start(ctx, *order); err != nil {
		return fmt.Errorf("hand stack %s to the supervisor: %w", stackID, err)
	}
	return st.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) error {
		return tx.SetStackBody(ctx, ctldb.SetStackBodyParams{ID: stackID, Body: json.RawMessage(`{}`)})
	})
}

// order reads what is to be handed over; nil when it was already.
func (s *Service) order(ctx context.Context, st *database.Store, org, stackID string) (*Order, error) {
	var order *Order
	err := st.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) error {
		stack, err := tx.LockStackVersion(ctx, stackID)
		if errors.Is(err, fault.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		var body stackBody
		if err := json.Unmarshal(stack.Body, &body); err != nil {
			return fmt.Errorf("decode stack: %w", err)
		}
		install, err := tx.FindInstall(ctx, stack.InstallID)
		if err != nil {
			return err
		}
		if body.Handover == nil || install.ForgottenAt != nil {
			return nil
		}
		raw, err := s.Keys.Open(keys.HandoverAtRest(org, install.ID), body.Handover)
		if err != nil {
			return fmt.Errorf("open handover: %w", err)
		}
		var plain secrets
		if err := json.Unmarshal(raw, &plain); err != nil {
			return errors.New("decode handover") // the cause could quote it
		}
		key, err := tx.GetDispatchKey(ctx)
		if err != nil {
			return err
		}
		order = &Order{
			RunnerID: plain.Runner, Kind: "install", OrgID: org, InstallID: install.ID, Name: install.Name,
			EnrolmentSecret: plain.Enrolment, PhoneHomeSecret: plain.PhoneHome, StackVersion: int(stack.Version),
			DispatchKeys: []DispatchKey{{KeyID: key.KeyID, PublicKey: key.PublicKey}},
			RunnerAPIURL: s.RunnerAPIURL, LogURL: s.LogURL,
		}
		return nil
	})
	return order, err
}

func orgOf(ctx context.Context, st *database.Store, objectID string) (org string, err error) {
	err = st.System(ctx, func(ctx context.Context, tx *database.Tx) error {
		org, err = tx.OrgOfObject(ctx, objectID)
		return err
	})
	return org, err
}

// HandoverWorker works HandoverArgs.
type HandoverWorker struct {
	river.WorkerDefaults[HandoverArgs]
	Store      *database.Store
	Stacks     *Service
	Supervisor *Supervisor
}

// Work implements river.Worker.
func (w *HandoverWorker) Work(ctx context.Context, job *river.Job[HandoverArgs]) error {
	return w.Stacks.Handover(ctx, w.Store, w.Supervisor, job.Args.StackVersionID)
}

// RemovalWorker works RemovalArgs.
type RemovalWorker struct {
	river.WorkerDefaults[RemovalArgs]
	Supervisor *Supervisor
}

// Work implements river.Worker.
func (w *RemovalWorker) Work(ctx context.Context, job *river.Job[RemovalArgs]) error {
	return w.Supervisor.Stop(ctx, job.Args.RunnerID)
}
