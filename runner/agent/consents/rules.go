package consents

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// ErrOlder says that the standing rules are not newer than those that were in force.
var ErrOlder = errors.New("older standing rules")

// Floor names the newest rules that were in force. Older ones are refused.
type Floor struct {
	Version int64  `json:"version"`
	Digest  string `json:"digest"`
}

// Floor is what is on disk; zero before there were rules.
func (s Store) Floor() (f Floor, err error) {
	_, err = datadir.ReadJSON(s.path(floorFile), &f)
	return f, err
}

// admits says whether rules are those of the floor, or newer.
func (f Floor) admits(r *consent.Rules, digest string) (newer bool, err error) {
	switch {
	case r.Version > f.Version:
		return true, nil
	case r.Version < f.Version:
		return false, fmt.Errorf("%w: version %d is on disk, and version %d was in force", ErrOlder, r.Version, f.Version)
	case digest != f.Digest:
		return false, fmt.Errorf("%w: another version %d was in force; give the file a higher version and sign it again", ErrOlder, r.Version)
	}
	return false, nil
}

// SignedRules is the file as it was put there; found is false without one.
func (s Store) SignedRules() (env capsule.Envelope, found bool, err error) {
	found, err = datadir.ReadJSON(s.path(rulesFile), &env)
	return env, found, err
}

// PutRules puts signed rules in the place of those before. The agent puts them in force.
func (s Store) PutRules(env capsule.Envelope) (*consent.Rules, error) {
	panel, err := s.Panel()
	if err != nil {
		return nil, err
	}
	rules, err := panel.OpenRules(s.InstallID, env)
	if err != nil {
		return nil, err
	}
	floor, err := s.Floor()
	if err != nil {
		return nil, err
	}
	if _, err := floor.admits(rules, env.PayloadDigest()); err != nil {
		return nil, err
	}
	if err := s.Make(); err != nil {
		return nil, err
	}
	return rules, datadir.WriteJSON(s.path(rulesFile), env)
}

// rules are those in force. When there are none, problem says why not although there is a
// file.
func (s Store) rules(panel consent.Panel) (rules *consent.Rules, problem string) {
	env, found, err := s.SignedRules()
	if err == nil && !found {
		return nil, ""
	}
	var floor Floor
	var newer bool
	if err == nil {
		rules, err = panel.OpenRules(s.InstallID, env)
	}
	if err == nil {
		floor, err = s.Floor()
	}
	if err == nil {
		newer, err = floor.admits(rules, env.PayloadDigest())
	}
	switch {
	case err != nil:
		return nil, "the standing rules do not count: " + err.Error()
	case newer:
		return nil, fmt.Sprintf("version %d of the standing rules is not in force yet: the chain does not have it", rules.Version)
	}
	return rules, ""
}

// RulesInForce are the standing rules, and why they do not count when there are none.
func (s Store) RulesInForce() (rules *consent.Rules, problem string, err error) {
	panel, err := s.Panel()
	if err != nil {
		return nil, "", err
	}
	rules, problem = s.rules(panel)
	return rules, problem, nil
}

// enforce puts newer rules in force: into the chain, then above the floor. A crash in
// between records them twice; none is used without its record.
func (s Store) enforce(ctx context.Context, record func(context.Context, chain.Record) error) error {
	env, found, err := s.SignedRules()
	if err != nil || !found {
		return err
	}
	panel, err := s.Panel()
	if err != nil {
		return err
	}
	rules, err := panel.OpenRules(s.InstallID, env)
	if err != nil {
		return err
	}
	floor, err := s.Floor()
	if err != nil {
		return err
	}
	digest := env.PayloadDigest()
	newer, err := floor.admits(rules, digest)
	if err != nil || !newer {
		return err
	}
	err = record(ctx, chain.Record{
		Actor: "customer", Kind: chain.Event, What: fmt.Sprintf("standing rules version %d", rules.Version),
		Detail: fmt.Sprintf("%d rules until %s", len(rules.Rules), rules.Expires.UTC().Format("2006-01-02 15:04 MST")),
		Rules:  &chain.StandingRules{Version: rules.Version, Digest: digest, Signed: env},
	})
	if err != nil {
		return err
	}
	return datadir.WriteJSON(s.path(floorFile), Floor{Version: rules.Version, Digest: digest})
}

// FloorFromChain is the floor that another machine's chain tells of, for the one that takes
// its place.
func FloorFromChain(records []chain.Record) (f Floor) {
	for _, r := range records {
		if r.Rules != nil && r.Rules.Version > f.Version {
			f = Floor{Version: r.Rules.Version, Digest: r.Rules.Digest}
		}
	}
	return f
}

// RestoreFloor stores the floor of a machine that has none, or a lower one.
func (s Store) RestoreFloor(f Floor) error {
	now, err := s.Floor()
	if err != nil || f.Version <= now.Version {
		return err
	}
	if err := s.Make(); err != nil {
		return err
	}
	return datadir.WriteJSON(s.path(floorFile), f)
}

// RulesText is the text that was signed.
func RulesText(env capsule.Envelope) ([]byte, error) {
	return base64.StdEncoding.DecodeString(env.Payload)
}
