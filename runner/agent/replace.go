package agent

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/recovery"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/runner/agent/consents"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/disk"
	"github.com/berth-dev/berth/runner/agent/offers"
	"github.com/berth-dev/berth/runner/agent/scripts"
)

// Replaced is what a takeover came to.
type Replaced struct {
	Runner    datadir.Runner
	Records   int64 // of the chain that goes on here
	Resources int   // whose states and outputs were sealed to this machine
	// Last is when the machine before wrote the last record that is known.
	Last time.Time
	// Scripts is how many scripts stay accepted; NoScripts says why none do although
	// there were some, or may have been.
	Scripts   int
	NoScripts string
}

// Replace makes this machine take the place of the install's machine, with the
// customer's recovery key: it signs the handover, enrols, takes over the salt and
// the chain, and seals states and outputs to itself. Each part may be repeated: a
// Replace that was broken off continues where it stopped.
func Replace(ctx context.Context, cfg Config, key *recovery.Key) (done Replaced, err error) {
	if cfg, err = cfg.Complete(); err != nil {
		return done, err
	}
	a := newAgent(cfg)
	if a.dir, err = datadir.At(cfg.Data); err != nil {
		return done, err
	}
	if err := a.dir.Make(passage(cfg)); err != nil {
		return done, err
	}
	lock, err := a.dir.Lock()
	if err != nil {
		return done, fmt.Errorf("%s: %w", cfg.Data, err)
	}
	defer datadir.Unlock(lock)
	a.disk = disk.Open(a.dir.Path(), cfg.MinFree, cfg.Log)
	if err := a.openEgress(); err != nil {
		return done, err
	}
	defer a.closeEgress()
	if err := a.isolate(); err != nil {
		return done, err
	}
	if err := a.admit(); err != nil {
		return done, err
	}
	if err := a.dir.SetRecovery(key, cfg.Now()); err != nil {
		return done, err
	}
	if err := a.open(); err != nil {
		return done, err
	}
	if err := a.signHandover(ctx, key); err != nil {
		return done, err
	}
	if err := a.enrol(ctx); err != nil {
		return done, err
	}
	done.Runner = a.runner
	return done, a.takeOver(ctx, key, &done)
}

// signHandover has the customer's key sign that this machine takes over.
func (a *agent) signHandover(ctx context.Context, key *recovery.Key) error {
	var before capsule.Envelope
	if found, err := datadir.ReadJSON(a.dir.Handover(), &before); err != nil || found {
		return err // signed by an earlier try, for the same keys
	}
	if _, found, err := a.dir.LoadRunner(); err != nil || found {
		return errors.Join(err, errors.New("this data directory belongs to a runner already: use an empty one, with the customer's code or secret in it"))
	}
	secret, err := a.dir.EnrolmentSecret()
	if err != nil {
		return fmt.Errorf("%w: %s is missing", ErrEnrolment, a.dir.Enrolment())
	}
	machine := base64.StdEncoding.EncodeToString(a.keys.Public())
	position, err := a.api.EnrolmentPosition(ctx, runnerapi.EnrolmentPosition{Secret: secret, PublicKey: machine})
	if err != nil {
		return err
	}
	own := key.Public().KeyID
	if position.RecoveryKey == nil {
		return errors.New("the control plane knows no recovery key of this install: start the runner without a handover; what was sealed before does not open there")
	}
	if *position.RecoveryKey != own {
		return fmt.Errorf("the recovery key of this install is %s, and the file holds %s", *position.RecoveryKey, own)
	}
	signed, err := key.Sign(recovery.Handover{
		OrgID: position.OrgID, InstallID: position.InstallID, RunnerID: position.RunnerID,
		OldMachine: position.MachineKey, NewMachine: machine, SealRecipient: a.keys.Seal.Recipient(),
		ChainHead: chain.Head{Seq: position.ChainHead.Seq, Hash: position.ChainHead.Hash}, SignedAt: a.cfg.Now().UTC(),
	})
	if err != nil {
		return err
	}
	return datadir.WriteJSON(a.dir.Handover(), signed)
}

// takeOver gets from the control plane what the machine before left there.
func (a *agent) takeOver(ctx context.Context, key *recovery.Key, done *Replaced) error {
	session, err := a.askSession(ctx, runnerapi.SessionRequest{
		RunnerID: a.runner.RunnerID, Version: a.cfg.Version, Trust: a.trustLevel(), Switch: runnerapi.Switch(a.power.Mode()),
		Facts: a.facts(), Running: []runnerapi.Attempt{},
	})
	if err != nil {
		return err
	}
	a.cfg.Log.InfoContext(ctx, "session is open", "session_id", session.SessionID, "epoch", session.Epoch)
	if err := a.takeSalt(ctx, key); err != nil {
		return err
	}
	if err := a.takeChain(ctx, done); err != nil {
		return err
	}
	done.Resources, err = Resealer{
		Store: a.api, Runner: a.runner, Keys: a.keys, Open: seal.EitherOf(a.keys.Open, key.Identity().Opener()),
	}.All(ctx)
	return err
}

// takeSalt makes the salt of the machine before this machine's own, so that its
// digests go on.
func (a *agent) takeSalt(ctx context.Context, key *recovery.Key) error {
	list, err := a.api.ListSealed(ctx)
	if err != nil {
		return err
	}
	if list.SealedSalt == nil {
		return errors.New("the control plane has no salt of this install: no session of the machine before brought it")
	}
	salt, err := seal.Open(key.Identity(), datadir.SaltPurpose(a.runner), *list.SealedSalt)
	if err != nil {
		return fmt.Errorf("salt of the install: %w", err)
	}
	if err := a.dir.SetSalt(salt); err != nil {
		return err
	}
	a.keys.Salt = salt
	return nil
}

// takeChain goes on with the install's chain: the copy, and after it the handover
// as this machine's first record. The copy must end where the customer signed that
// it ends.
func (a *agent) takeChain(ctx context.Context, done *Replaced) error {
	var signed capsule.Envelope
	if _, err := datadir.ReadJSON(a.dir.Handover(), &signed); err != nil {
		return err
	}
	handover, err := recovery.VerifyHandover(a.keys.Recovery, signed, recovery.Handover{
		OrgID: a.runner.OrgID, InstallID: a.runner.InstallID, RunnerID: a.runner.RunnerID, OldMachine: oldMachine(signed),
		NewMachine: capsule.EncodePublicKey(a.keys.Public()), SealRecipient: a.keys.Seal.Recipient(),
	})
	if err != nil {
		return err
	}
	var copied bytes.Buffer
	head := chain.Head{}
	for head.Seq < handover.ChainHead.Seq {
		page, err := a.api.Chain(ctx, head.Seq)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		for _, r := range page {
			if r.Seq > handover.ChainHead.Seq {
				break
			}
			copied.Write(r.Body)
			copied.WriteByte('\n')
			head.Seq = r.Seq
		}
	}
	report, err := chain.Verify(bytes.NewReader(copied.Bytes()), chain.VerifyOptions{Chain: a.runner.InstallID})
	if err != nil {
		return err
	}
	if !report.OK() || report.Head != handover.ChainHead {
		return fmt.Errorf("the copy of the chain ends at record %d (%s), and the handover says %d: %s",
			report.Head.Seq, report.Head.Hash, handover.ChainHead.Seq, report.Problem)
	}
	known, err := knownScripts(a.runner.InstallID, a.keys.Recovery, copied.Bytes(), a.cfg.Now())
	if err != nil {
		return err
	}
	done.Last, done.Scripts, done.NoScripts = known.last, len(known.set.Scripts()), known.set.Nothing
	trusted := make([]string, len(a.trust.DispatchKeys))
	for i, k := range a.trust.DispatchKeys {
		trusted[i] = k.KeyID
	}
	line, err := chain.Next(report.Head, chain.Record{
		Actor: "customer", Kind: chain.Event, What: "handover: this machine goes on", Handover: &signed, Time: handover.SignedAt,
		Keys: &chain.Keys{Machine: handover.NewMachine, Recovery: a.keys.Recovery.SigningKey, Dispatch: trusted, Vouched: a.keys.Vouched},
	}, chain.Signer{Chain: a.runner.InstallID, Key: a.keys.Sign})
	if err != nil {
		return err
	}
	done.Records = line.Seq
	copied.Write(line.Raw)
	copied.WriteByte('\n')
	if a.continues(line.Head) {
		return nil // an earlier try did this, and a chain only grows
	}
	// Before the chain: once that is there, the scripts are the agent's.
	if err := scripts.Restore(a.dir.Scripts(), known.set); err != nil {
		return err
	}
	if err := (consents.Store{Dir: a.dir}).RestoreFloor(known.rules); err != nil {
		return err
	}
	if err := (offers.Store{Dir: a.dir}).Restore(known.releases); err != nil {
		return err
	}
	if err := a.roles().Restore(known.roles); err != nil {
		return err
	}
	return datadir.Write(a.dir.Chain(), copied.Bytes())
}

// continues reports whether the chain here holds the record already.
func (a *agent) continues(head chain.Head) bool {
	w, err := chain.Open(a.dir.Chain(), chain.Signer{Chain: a.runner.InstallID, Key: a.keys.Sign})
	if err != nil {
		return false
	}
	defer func() { _ = w.Close() }()
	return w.Head().Seq >= head.Seq
}

// oldMachine is the machine that a signed handover names; the signature is checked
// by the caller.
func oldMachine(env capsule.Envelope) string {
	var h recovery.Handover
	payload, err := base64.StdEncoding.DecodeString(env.Payload)
	if err != nil || json.Unmarshal(payload, &h) != nil {
		return ""
	}
	return h.OldMachine
}

// nameKeys makes the chain name the keys of this install, once there is a recovery
// key: from then on only that key lets another machine go on with the chain.
func (a *agent) nameKeys(ctx context.Context) {
	if a.keys.Recovery.SigningKey == "" {
		return
	}
	keys := chain.Keys{Machine: capsule.EncodePublicKey(a.keys.Public()), Recovery: a.keys.Recovery.SigningKey, Vouched: a.keys.Vouched}
	if named := a.chain.Named(); named != nil && named.Machine == keys.Machine && named.Recovery == keys.Recovery && (named.Vouched != nil || keys.Vouched == nil) {
		return
	}
	for _, k := range a.trust.DispatchKeys {
		keys.Dispatch = append(keys.Dispatch, k.KeyID)
	}
	if _, err := a.chain.Append(ctx, chain.Record{Actor: "runner", Kind: chain.Event, What: "keys of this install", Keys: &keys}); err != nil {
		a.cfg.Log.ErrorContext(ctx, "chain cannot be written", "err", err)
	}
}
