package stacks

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/pkg/enrolcode"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// NewCode is a version of a stack with the code that applies it, which has not
// been shown yet.
type NewCode struct {
	Stack     ctldb.StackVersion
	Enrolment ctldb.Enrolment
	Code      string
}

// Code makes a version of a kubernetes stack and the code with which the
// customer applies it. The versions and secrets before it become worthless.
func (s *Service) Code(ctx context.Context, tx *database.Tx, req EnrolRequest) (NewCode, error) {
	install := req.Install
	if install.StackKind != KindKubernetes {
		return NewCode{}, fault.With(fault.Newf(fault.ErrConflict, "install %s has the stack %q, which needs no code", install.Name, install.StackKind),
			fault.Code("stack_without_code"), fault.Remedy("create an install with the stack %q", KindKubernetes))
	}
	if s.PublicURL == "" {
		return NewCode{}, noPublicURL()
	}
	if err := s.checkImage(); err != nil {
		return NewCode{}, err
	}
	enrolment, err := s.Enrol(ctx, tx, req)
	if err != nil {
		return NewCode{}, err
	}
	if err := tx.ExpireStackVersions(ctx, install.ID); err != nil {
		return NewCode{}, fmt.Errorf("expire stack versions: %w", err)
	}
	phoneHome, phoneHomeHash := auth.NewSecret(auth.PhoneHomePrefix)
	stack, err := tx.InsertStackVersion(ctx, ctldb.InsertStackVersionParams{
		ID: id.New(stackPrefix), InstallID: install.ID, Kind: install.StackKind, Body: []byte(`{}`),
		PhoneHomeHash: phoneHomeHash, ExpiresAt: enrolment.Row.ExpiresAt,
	})
	if err != nil {
		return NewCode{}, fmt.Errorf("make stack version: %w", err)
	}
	key, err := tx.GetDispatchKey(ctx)
	if err != nil {
		return NewCode{}, fmt.Errorf("read dispatch key: %w", err)
	}
	code, err := enrolcode.Code{
		URL: s.PublicURL, OneHost: true, InstallID: install.ID, Install: install.Name,
		EnrolmentSecret: enrolment.Secret, PhoneHomeSecret: phoneHome,
		DispatchKeys:     []enrolcode.Key{{KeyID: key.KeyID, PublicKey: key.PublicKey}},
		MinRunnerVersion: s.MinRunnerVersion, RunnerImage: s.RunnerImage, ExpiresAt: enrolment.Row.ExpiresAt.UTC(),
	}.Encode()
	if err != nil {
		return NewCode{}, fmt.Errorf("make code: %w", err)
	}
	return NewCode{Stack: stack, Enrolment: enrolment.Row, Code: code}, nil
}

// Check refuses a kind of stack that cannot be made here.
func (s *Service) Check(kind string) error {
	switch {
	case kind == KindKubernetes && s.PublicURL == "":
		return noPublicURL()
	case kind != KindLocal && kind != KindKubernetes:
		return fault.With(fault.Newf(fault.ErrInvalid, "stack %q is not supported yet", kind), fault.Code("stack_unsupported"),
			fault.Remedy("use %q, which runs the install on this machine, or %q", KindLocal, KindKubernetes))
	}
	return nil
}

// checkImage refuses to hand out an image that a tag decides. Without an image
// each customer names one, and `berth-runner manifest` asks the same of that.
func (s *Service) checkImage() error {
	if s.RunnerImage == "" {
		return nil
	}
	if err := enrolcode.CheckImage(s.RunnerImage); err != nil {
		return fault.With(fault.Newf(fault.ErrConflict, "BERTH_RUNNER_IMAGE: %v", err), fault.Code("runner_image_without_digest"),
			fault.Remedy("set BERTH_RUNNER_IMAGE of ctl-api to the image by digest and restart it"))
	}
	return nil
}

func noPublicURL() error {
	return fault.With(fault.Newf(fault.ErrConflict, "this control plane has no public address for a customer's cluster to call"), fault.Code("no_public_url"),
		fault.Remedy("set BERTH_PUBLIC_URL to the https address of its front (see `berth front`) and restart it"))
}
