package agent

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/pause"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/schedule"
)

// inForce are the settings that the runner works from, with when they came. Its
// version is that of the last good ones, also when they have expired; 0 means
// that there were none.
type inForce struct {
	jobspec.Settings
	received time.Time
	version  int64
}

// until is when the settings end.
func (f inForce) until() time.Time { return schedule.Expiry(f.Settings, f.received) }

// loadSettings takes the last good settings from disk. They are verified again:
// the file proves nothing.
func (a *agent) loadSettings(keys map[string]ed25519.PublicKey) {
	var kept schedule.Stored
	if !readSpare(context.Background(), a, a.dir.Settings(), &kept) {
		return
	}
	var err error
	a.settings.Settings, a.settings.version, err = a.settingsOf(keys).Again(kept, a.cfg.Now())
	a.settings.received = kept.ReceivedAt
	if err != nil && !errors.Is(err, schedule.ErrExpired) { // of those that expired, what reads goes on
		a.cfg.Log.Warn("stored settings are not used", "err", err)
	}
}

func (a *agent) settingsOf(keys map[string]ed25519.PublicKey) schedule.Install {
	return schedule.Install{Keys: keys, OrgID: a.runner.OrgID, ID: a.runner.InstallID}
}

// current returns the settings in force, with a channel that is closed when
// they change.
func (a *agent) current() (inForce, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.settings, a.renewed
}

// followSettings waits for newer settings for as long as a session lasts.
func (a *agent) followSettings(ctx context.Context) error {
	keys, err := a.trust.Keys()
	if err != nil {
		return err
	}
	var refused int64 // the highest version that was not taken
	for try := 0; ; {
		have, _ := a.current()
		env, version, err := a.api.Settings(ctx, max(have.version, refused))
		if err != nil {
			if err := a.again(ctx, err, try); err != nil {
				return err
			}
			try++
			continue
		}
		if version == 0 {
			try = 0
			continue
		}
		now := a.cfg.Now().UTC()
		s, err := a.settingsOf(keys).Accept(env, have.version, now)
		if err != nil {
			a.cfg.Log.ErrorContext(ctx, "settings are refused, the old ones stay in force", "version", version, "err", err)
			a.noteRefusal(ctx, "settings were refused", err.Error())
			refused = max(refused, version) // wait for newer ones
			continue
		}
		if err := datadir.WriteJSON(a.dir.Settings(), schedule.Stored{ReceivedAt: now, Envelope: env}); err != nil {
			// Those in force stay so: after a restart the new ones would be gone.
			if try == 0 {
				a.cfg.Log.ErrorContext(ctx, "settings cannot be stored, the old ones stay in force", "version", version, "err", a.disk.Failed(err))
			}
			if err := pause.For(ctx, control.Backoff(try)); err != nil {
				return err
			}
			try++
			continue
		}
		try = 0
		taken := inForce{Settings: s, received: now, version: s.Version}
		a.anchor(ctx, keys, have.OrgHead, s.OrgHead)
		a.mu.Lock()
		a.settings = taken
		close(a.renewed)
		a.renewed = make(chan struct{})
		a.mu.Unlock()
		if err := a.disk.Insist(func() error { return a.scripts.Settle(a.scheduledScripts()) }); err != nil {
			a.cfg.Log.ErrorContext(ctx, "scripts that are not scheduled any more stay accepted", "err", err) // until the next settings
		}
		if err := a.offers.Tell(ctx); err != nil { // takes the revocations that they bring
			a.cfg.Log.ErrorContext(ctx, "vendor keys and revoked releases cannot be recorded", "err", err) // tried again within a minute
		}
		a.cfg.Log.InfoContext(ctx, "settings are in force", "version", s.Version, "scheduled", len(s.Schedule), "expires_at", taken.until())
		a.writeStatus(func(st *Status) { st.SettingsVersion, st.SettingsExpire = s.Version, taken.until() })
	}
}

// anchor records the head of the org's chain in the install's: the two hold each
// other to their word. A head that is not signed by a key of the trust file, or
// that went back, is recorded as what it is.
func (a *agent) anchor(ctx context.Context, keys map[string]ed25519.PublicKey, last, head *chain.SignedHead) {
	if a.chain == nil || head == nil || last != nil && last.Sig == head.Sig {
		return
	}
	byKey := map[string]ed25519.PublicKey{} // a chain names keys by what they are, not as the trust file does
	for _, key := range keys {
		byKey[capsule.KeyID(key)] = key
	}
	if err := chain.VerifyHead(byKey, *head); err != nil {
		a.noteRefusal(ctx, "the head of the org's chain was refused", err.Error())
		return
	}
	if last != nil && head.Seq < last.Seq {
		a.noteRefusal(ctx, "the head of the org's chain went back", fmt.Sprintf("from record %d to %d", last.Seq, head.Seq))
		return
	}
	at, err := a.chain.Append(ctx, chain.Record{Actor: "control plane", Kind: chain.Anchor, What: "head of the org's chain", Anchored: head})
	if err == nil {
		err = datadir.WriteJSON(a.dir.ChainAnchor(), at) // one more place that knows how far the chain was
	}
	if err != nil {
		a.cfg.Log.ErrorContext(ctx, "chain cannot be written", "err", err)
	}
}
