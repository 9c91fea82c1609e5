package recipient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/recovery"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Kinds of alarms about recipients. Trusted is none: it is how the org's chain
// learns whom is sealed to.
const (
	AlarmRefused = "recipient_refused"
	Trusted      = "recipient_trusted"
)

// Of says whom to seal the secrets of a runner's install to: nobody (nil) while no
// machine is enrolled, or while the one that is was not verified. It keeps what it
// verified, and leaves for the org's chain what it believed and what it did not.
// The caller holds the install's row.
func Of(ctx context.Context, tx *database.Tx, runner ctldb.Runner) (*Verified, error) {
	if runner.InstallID == nil || runner.PublicKey == nil || runner.SealRecipient == nil {
		return nil, nil //nolint:nilnil // nobody, as documented
	}
	install := *runner.InstallID
	last, err := tx.NewestRecipient(ctx, install)
	if err != nil && !errors.Is(err, fault.ErrNotFound) {
		return nil, fmt.Errorf("read recipient: %w", err)
	}
	claim := Claim{OrgID: tx.OrgID(), InstallID: install, RunnerID: runner.ID, MachineKey: *runner.PublicKey, SealRecipient: *runner.SealRecipient}
	brought, err := tx.GetInstallRecovery(ctx, install)
	if err != nil && !errors.Is(err, fault.ErrNotFound) {
		return nil, fmt.Errorf("read recovery key: %w", err)
	}
	claim.Recovery = public(brought.KeyID, brought.SigningKey, brought.Recipient)
	claim.Signed, claim.Handover = brought.Change, brought.Handover
	if claim.Consented, err = tx.ConsentedReplacement(ctx, ctldb.ConsentedReplacementParams{RunnerID: runner.ID, Key: claim.MachineKey}); err != nil {
		return nil, fmt.Errorf("read consent: %w", err)
	}
	var before *Verified
	if last.Number > 0 {
		before = &Verified{
			MachineKey: last.MachineKey, SealRecipient: last.SealRecipient,
			Recovery: public(last.RecoveryKeyID, last.RecoverySigningKey, last.RecoveryRecipient),
		}
	}
	number := last.Number
	for { // a first machine may bring a recovery key at once
		d := Decide(before, claim)
		if d.Problem != nil {
			if err := claim.leave(ctx, tx, AlarmRefused, map[string]any{"reason": d.Problem.Error()}); err != nil {
				return nil, err
			}
		}
		if d.Reason == "" {
			return d.To, nil
		}
		number++
		if err := tx.AddRecipient(ctx, d.row(install, number)); err != nil {
			return nil, fmt.Errorf("store recipient: %w", err)
		}
		if err := claim.leave(ctx, tx, Trusted, map[string]any{"number": number, "reason": d.Reason, "recipients": d.To.Recipients()}); err != nil {
			return nil, err
		}
		before = d.To
	}
}

// row is what is kept of a decision that verified somebody.
func (d Decision) row(install string, number int32) ctldb.AddRecipientParams {
	row := ctldb.AddRecipientParams{
		InstallID: install, Number: number, MachineKey: d.To.MachineKey, SealRecipient: d.To.SealRecipient, Reason: d.Reason, Evidence: d.Evidence,
	}
	if r := d.To.Recovery; r != nil {
		row.RecoveryKeyID, row.RecoverySigningKey, row.RecoveryRecipient = &r.KeyID, &r.SigningKey, &r.Recipient
	}
	return row
}

// leave leaves something for the org's chain, in which it is recorded once.
func (c Claim) leave(ctx context.Context, tx *database.Tx, kind string, detail map[string]any) error {
	key, err := capsule.ParsePublicKey(c.MachineKey)
	if err != nil {
		return fmt.Errorf("key of runner %s: %w", c.RunnerID, err)
	}
	raw, err := json.Marshal(detail)
	if err != nil {
		return err
	}
	subject := fmt.Sprintf("install %s machine %s recipient %s", c.InstallID, capsule.KeyID(key), c.SealRecipient)
	if n, ok := detail["number"]; ok {
		subject += fmt.Sprintf(" number %v", n)
	}
	if _, err := tx.RaiseAlarm(ctx, ctldb.RaiseAlarmParams{ID: id.New("alm"), RunnerID: c.RunnerID, Kind: kind, Subject: subject, Detail: raw}); err != nil {
		return fmt.Errorf("raise alarm: %w", err)
	}
	return nil
}

func public(keyID, signingKey, recipient *string) *recovery.Public {
	if keyID == nil || signingKey == nil || recipient == nil {
		return nil
	}
	return &recovery.Public{KeyID: *keyID, SigningKey: *signingKey, Recipient: *recipient}
}
