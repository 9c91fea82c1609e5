package consents

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// Names of the files, all in one directory.
const (
	changePrefix = "change-"
	planPrefix   = "plan-"
	answerPrefix = "answer-"
	scriptPrefix = "script-" // of a Change that is a script
	rulesFile    = "rules.json"
	floorFile    = "rules-floor.json"
	suffix       = ".json"
)

const (
	// kept is how long a change is remembered: as long as its plan is.
	kept = 90 * 24 * time.Hour
	// maxKept is how many changes are remembered, the newest. Of one that is forgotten the
	// runner does not know what it does, so only people can agree to it.
	maxKept = 1000
)

// ErrNoChange says that the runner planned no such change.
var ErrNoChange = errors.New("no such change")

// Store is the directory. The agent and the customer's command use it at the same time.
type Store struct {
	Dir       datadir.Dir
	InstallID string
	// Machine is this machine's key, which signs where no holders are named.
	Machine ed25519.PublicKey
	Now     func() time.Time
}

// Change is what the runner wrote down of a change that it planned.
type Change struct {
	// ID is that of the change; for the scheduled runs of a script, "script-" and the
	// beginning of its digest.
	ID       string `json:"change_id"`
	OriginID string `json:"origin_id"`
	Effect   string `json:"effect_digest"`
	// Resource is what it is about: a later change of the same takes its place.
	Resource string        `json:"resource,omitempty"`
	Facts    consent.Facts `json:"facts"`
	// Requesters asked for it, by their names at the vendor.
	Requesters []string `json:"requesters,omitempty"`
	// Rule is the standing rule that agreed when it was planned.
	Rule      string    `json:"rule,omitempty"`
	PlannedAt time.Time `json:"planned_at"`
}

// OfScript is the change that the scheduled runs of an accepted script are.
func OfScript(digest, action string, now time.Time) Change {
	_, hex, _ := strings.Cut(digest, ":")
	return Change{
		ID: scriptPrefix + hex[:min(16, len(hex))], OriginID: digest, Effect: digest, PlannedAt: now.UTC(),
		Facts: consent.Facts{ChangeKind: consent.Tick, Component: action, Other: 1},
	}
}

// IsScript says whether it is one of OfScript.
func (c Change) IsScript() bool { return strings.HasPrefix(c.ID, scriptPrefix) }

func (s Store) subject(c Change) consent.Subject {
	return consent.Subject{InstallID: s.InstallID, OriginID: c.OriginID, Effect: c.Effect}
}

// What says in words what the change does.
func (c Change) What() string {
	if c.IsScript() {
		return "scheduled runs of action " + c.Facts.Component
	}
	return c.Facts.Words()
}

func (s Store) path(name string) string { return filepath.Join(s.Dir.Consents(), name) }

// Make makes the directory.
func (s Store) Make() error { return os.MkdirAll(s.Dir.Consents(), 0o700) }

// Keep writes a change down, with what people are shown of its plan.
func (s Store) Keep(c Change, plan jobspec.PlanSummary) error {
	if err := s.Make(); err != nil {
		return err
	}
	if err := datadir.WriteJSON(s.path(planPrefix+c.ID+suffix), plan); err != nil {
		return err
	}
	return datadir.WriteJSON(s.path(changePrefix+c.ID+suffix), c)
}

// list reads all files of a kind. A damaged one is an error: it may be a denial.
func list[T any](s Store, prefix string) (all []T, err error) {
	entries, err := os.ReadDir(s.Dir.Consents())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), prefix) || !strings.HasSuffix(entry.Name(), suffix) {
			continue
		}
		var v T
		found, err := datadir.ReadJSON(s.path(entry.Name()), &v)
		if err != nil {
			return nil, err
		}
		if found { // else it was pruned meanwhile
			all = append(all, v)
		}
	}
	return all, nil
}

// Changes are all that are remembered, the newest first.
func (s Store) Changes() ([]Change, error) {
	all, err := list[Change](s, changePrefix)
	slices.SortFunc(all, func(a, b Change) int {
		if c := b.PlannedAt.Compare(a.PlannedAt); c != 0 {
			return c
		}
		return strings.Compare(b.ID, a.ID)
	})
	return all, err
}

// Change is the one of an id; found is false when it was never planned here.
func (s Store) Change(changeID string) (c Change, found bool, err error) {
	if !id.Valid(id.Change, changeID) && (!strings.HasPrefix(changeID, scriptPrefix) || strings.ContainsAny(changeID, "/.")) {
		return c, false, nil // it becomes a file name
	}
	found, err = datadir.ReadJSON(s.path(changePrefix+changeID+suffix), &c)
	return c, found, err
}

// Find is the one change whose id, or whose end of the id, somebody typed.
func (s Store) Find(text string) (Change, error) {
	all, err := s.Changes()
	if err != nil {
		return Change{}, err
	}
	const shortest = 4 // characters
	all = slices.DeleteFunc(all, func(c Change) bool { return c.ID != text && (len(text) < shortest || !strings.HasSuffix(c.ID, text)) })
	switch len(all) {
	case 0:
		return Change{}, fmt.Errorf("%w: %s; berth-runner changes lists them", ErrNoChange, text)
	case 1:
		return all[0], nil
	}
	return Change{}, fmt.Errorf("%s may be %s or %s: give more of the id", text, all[0].ID, all[1].ID)
}

// Plan is what people are shown of a change.
func (s Store) Plan(c Change) (plan jobspec.PlanSummary, found bool, err error) {
	found, err = datadir.ReadJSON(s.path(planPrefix+c.ID+suffix), &plan)
	return plan, found, err
}

// Statement is an answer to a change, to be signed.
func (s Store) Statement(c Change, answer consent.Answer, reason string, until time.Time) consent.Statement {
	return consent.Statement{
		Type: consent.StatementType, InstallID: s.InstallID, OriginID: c.OriginID, ChangeID: c.ID, Effect: c.Effect, What: c.What(),
		Answer: answer, Reason: reason, At: s.Now().UTC().Truncate(time.Second), Until: until,
	}
}

// Answer keeps a signed answer. It has to be by a holder.
func (s Store) Answer(env capsule.Envelope) error {
	panel, err := s.Panel()
	if err != nil {
		return err
	}
	_, payload, err := consent.Signers(panel.Keys(), consent.ForStatement, env)
	if err != nil {
		return err
	}
	if _, err := consent.ParseStatement(payload); err != nil {
		return err
	}
	raw, err := json.Marshal(env)
	if err != nil {
		return err
	}
	if err := s.Make(); err != nil {
		return err
	}
	_, hex, _ := strings.Cut(capsule.DigestBytes(raw), ":")
	return datadir.Write(s.path(answerPrefix+hex[:32]+suffix), append(raw, '\n'))
}

// Panel is who agrees to changes here now: trust.json is read each time, so that a key
// that is removed there counts no more.
func (s Store) Panel() (consent.Panel, error) {
	trust, err := s.Dir.LoadTrust()
	if err != nil {
		return consent.Panel{}, err
	}
	panel, err := trust.Panel(s.Machine)
	if err != nil {
		return panel, fmt.Errorf("%s: %w", s.Dir.Trust(), err)
	}
	return panel, nil
}

// Prune forgets changes whose plans are forgotten, or that are too many, and answers that
// can count no more.
func (s Store) Prune() error {
	changes, err := s.Changes()
	for i, c := range changes {
		if i >= maxKept || s.Now().Sub(c.PlannedAt) > kept && !c.IsScript() {
			err = errors.Join(err, datadir.Remove(s.path(changePrefix+c.ID+suffix)), datadir.Remove(s.path(planPrefix+c.ID+suffix)))
		}
	}
	answers, readErr := filepath.Glob(s.path(answerPrefix + "*" + suffix))
	err = errors.Join(err, readErr)
	for _, path := range answers {
		if info, statErr := os.Stat(path); statErr == nil && s.Now().Sub(info.ModTime()) > consent.MaxLife+kept {
			err = errors.Join(err, datadir.Remove(path))
		}
	}
	return err
}
