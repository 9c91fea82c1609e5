package stacks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// The kinds of stacks that can be made.
const (
	// KindLocal runs an install on the machine of `berth up`.
	KindLocal = "local"
	// KindKubernetes has its runner in the customer's cluster. It begins with a
	// code, which a person asks for: see Service.Code.
	KindKubernetes = "kubernetes"
)

// stackPrefix starts the ids of stack versions; berth.org_of knows it.
const stackPrefix = "stk"

// secretTTL is how long a machine has to phone home and to enrol.
const secretTTL = 7 * 24 * time.Hour

// Service makes stacks.
type Service struct {
	Keys *keys.Ring
	// Insert queues a River job as part of the transaction.
	Insert func(ctx context.Context, tx *database.Tx, args river.JobArgs) error
	// RunnerAPIURL and LogURL are where runners find the control plane.
	RunnerAPIURL string
	LogURL       string
	// PublicURL is the one address at which runners elsewhere find all of the
	// control plane; empty: there is none, and only local stacks can be made.
	PublicURL string
	// MinRunnerVersion is the oldest runner that is let in; empty for any.
	MinRunnerVersion string
	// RunnerImage is the image that clusters run; empty: customers say it.
	RunnerImage string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

func (s *Service) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// Create makes the runner of an install. For a local stack it also makes the
// first version, with the runner's enrolment, and queues the handover; other
// stacks have no version until somebody asks for a code.
func (s *Service) Create(ctx context.Context, tx *database.Tx, install ctldb.Install, actor string) error {
	runner, err := tx.InsertInstallRunner(ctx, ctldb.InsertInstallRunnerParams{ID: id.New(id.Runner), InstallID: &install.ID, Name: install.Name})
	if err != nil {
		return fmt.Errorf("make runner: %w", err)
	}
	if install.StackKind != KindLocal {
		return nil
	}
	enrolment, err := s.enrol(ctx, tx, runner.ID, EnrolRequest{Install: install, Actor: actor})
	if err != nil {
		return err
	}
	phoneHome, phoneHomeHash := auth.NewSecret(auth.PhoneHomePrefix)
	body, err := s.sealHandover(keys.HandoverAtRest(tx.OrgID(), install.ID), secrets{Runner: runner.ID, Enrolment: enrolment.Secret, PhoneHome: phoneHome})
	if err != nil {
		return err
	}
	stack, err := tx.InsertStackVersion(ctx, ctldb.InsertStackVersionParams{
		ID: id.New(stackPrefix), InstallID: install.ID, Kind: install.StackKind, Body: body,
		PhoneHomeHash: phoneHomeHash, ExpiresAt: s.now().Add(secretTTL),
	})
	if err != nil {
		return fmt.Errorf("make stack version: %w", err)
	}
	return s.Insert(ctx, tx, HandoverArgs{StackVersionID: stack.ID})
}

// NewEnrolment is an enrolment whose secret has not been shown yet.
type NewEnrolment struct {
	Row    ctldb.Enrolment
	Secret string
}

// EnrolRequest asks for a new enrolment secret for the runner of an install.
type EnrolRequest struct {
	Install ctldb.Install
	// Replaces says that the machine that has enrolled, if one has, is gone.
	Replaces bool
	Actor    string
}

// Enrol makes a new enrolment secret; those before it become worthless.
func (s *Service) Enrol(ctx context.Context, tx *database.Tx, req EnrolRequest) (NewEnrolment, error) {
	install := req.Install
	runner, err := tx.StackRunner(ctx, &install.ID)
	if errors.Is(err, fault.ErrNotFound) || err == nil && runner.State == model.RunnerRevoked {
		return NewEnrolment{}, fault.With(fault.Newf(fault.ErrConflict, "the runner of install %s is revoked", install.Name), fault.Code("runner_revoked"))
	}
	if err != nil {
		return NewEnrolment{}, err
	}
	if runner.PublicKey != nil && !req.Replaces {
		return NewEnrolment{}, fault.With(fault.Newf(fault.ErrConflict, "install %s already has a machine as its runner", install.Name), fault.Code("already_enrolled"),
			fault.Remedy("if that machine is gone, set replaces: what it was doing then counts as uncertain"))
	}
	if err := tx.ExpireEnrolments(ctx, runner.ID); err != nil {
		return NewEnrolment{}, err
	}
	return s.enrol(ctx, tx, runner.ID, req)
}

func (s *Service) enrol(ctx context.Context, tx *database.Tx, runnerID string, req EnrolRequest) (NewEnrolment, error) {
	secret, hash := auth.NewSecret(auth.EnrolmentPrefix)
	row, err := tx.InsertEnrolment(ctx, ctldb.InsertEnrolmentParams{
		ID: id.New(id.Enrolment), RunnerID: runnerID, SecretHash: hash, Replaces: req.Replaces, CreatedBy: req.Actor, ExpiresAt: s.now().Add(secretTTL),
	})
	if err != nil {
		return NewEnrolment{}, fmt.Errorf("make enrolment: %w", err)
	}
	return NewEnrolment{Row: row, Secret: secret}, nil
}

// Remove takes the runner of a forgotten install out of service and queues the
// order to stop it.
func (s *Service) Remove(ctx context.Context, tx *database.Tx, install ctldb.Install) error {
	runner, err := tx.StackRunner(ctx, &install.ID)
	if errors.Is(err, fault.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	reason := "the install was forgotten"
	if err := tx.ExpireEnrolments(ctx, runner.ID); err != nil {
		return err
	}
	if err := tx.CloseRunnerSessions(ctx, ctldb.CloseRunnerSessionsParams{RunnerID: runner.ID, Reason: &reason}); err != nil {
		return err
	}
	if err := tx.RevokeRunnerOfInstall(ctx, runner.ID); err != nil {
		return err
	}
	tx.NotifyAfterCommit(model.ChannelRevoked, runner.ID)
	if install.StackKind != KindLocal {
		return nil // nobody here started it
	}
	return s.Insert(ctx, tx, RemovalArgs{RunnerID: runner.ID})
}

// secrets are what the supervisor needs and nobody else may see.
type secrets struct {
	Runner    string `json:"runner_id"`
	Enrolment string `json:"enrolment_secret"`
	PhoneHome string `json:"phone_home_secret"`
}

// stackBody is stack_versions.body of a local stack. Handover is sealed to the
// org at rest, and gone once the supervisor has acknowledged.
type stackBody struct {
	Handover []byte `json:"handover,omitempty"`
}

func (s *Service) sealHandover(purpose seal.Purpose, plain secrets) (json.RawMessage, error) {
	raw, err := json.Marshal(plain)
	if err != nil {
		return nil, err
	}
	sealed, err := s.Keys.Seal(purpose, raw)
	if err != nil {
		return nil, err
	}
	return json.Marshal(stackBody{Handover: sealed})
}
