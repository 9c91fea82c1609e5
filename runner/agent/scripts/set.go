package scripts

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// ErrMoved says that the set is not the one that the release was compared with.
var ErrMoved = errors.New("the accepted scripts are not those that the release was compared with")

// Accepted is a script that this runner may run, with where it comes from.
type Accepted struct {
	Digest string         `json:"digest"`
	Script jobspec.Script `json:"script"`
	// ReleaseID and Release, its number, brought it first.
	ReleaseID string    `json:"release_id"`
	Release   int       `json:"release"`
	Since     time.Time `json:"since"`
	// JobID is the order by which it was accepted.
	JobID string `json:"job_id"`
	// NoText: only digest and particulars are known, from the chain of the machine
	// before. The text comes with the next order, settings or release that has one of
	// this digest.
	NoText bool `json:"no_text,omitempty"`
}

// document is the file.
type document struct {
	// Version rises with each acceptance. By names the last order that made one.
	Version int64      `json:"version"`
	By      string     `json:"by,omitempty"`
	Scripts []Accepted `json:"scripts"` // sorted by name and digest
	// Kept are digests of scripts that the last release does not bring, and that
	// stay for as long as settings schedule them.
	Kept []string `json:"kept,omitempty"`
}

// Set is the accepted scripts, on disk. Safe for concurrent use.
type Set struct {
	path string

	mu  sync.Mutex
	doc document
}

// Open reads the set at path; an empty one when there is no file. Digests are
// computed from the texts again.
func Open(path string) (*Set, error) {
	s := &Set{path: path}
	if _, err := datadir.ReadJSON(path, &s.doc); err != nil {
		return nil, fmt.Errorf("accepted scripts: %w", err)
	}
	for _, a := range s.doc.Scripts {
		if a.NoText {
			continue
		}
		digest, err := a.Script.Digest()
		if err != nil || digest != a.Digest {
			return nil, fmt.Errorf("accepted scripts: %s: the text of %q is not the one that was accepted as %s", path, a.Script.Action.Name, a.Digest)
		}
	}
	return s, nil
}

// Position names the set by its scripts (a digest) and by how often it was
// replaced. Two sets of the same scripts have the same digest.
func (s *Set) Position() (digest string, version int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return digestOf(s.doc.Scripts), s.doc.Version
}

func sorted(byDigest map[string]Accepted) []Accepted {
	return slices.SortedFunc(maps.Values(byDigest), func(x, y Accepted) int {
		return cmp.Or(cmp.Compare(x.Script.Action.Name, y.Script.Action.Name), cmp.Compare(x.Digest, y.Digest))
	})
}

func digestOf(list []Accepted) string {
	digests := make([]string, 0, len(list))
	for _, a := range list {
		digests = append(digests, a.Digest)
	}
	slices.Sort(digests)
	return capsule.DigestBytes([]byte("berth-accepted-scripts-1\n" + strings.Join(digests, "\n")))
}

// List returns the scripts, by name.
func (s *Set) List() []Accepted {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.doc.Scripts)
}

// By names the order that replaced the set last, "" when none did.
func (s *Set) By() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doc.By
}

// Get finds an accepted script by its digest.
func (s *Set) Get(digest string) (Accepted, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.doc.Scripts, func(a Accepted) bool { return a.Digest == digest })
	if i < 0 {
		return Accepted{}, false
	}
	return s.doc.Scripts[i], true
}

// Find finds the accepted script that an order to run an action once carries. An
// order says nothing of the schedule, nor of what follows from the script
// itself: all else must be as it was accepted. It learns a text that was missing.
func (s *Set) Find(action jobspec.Action, timeoutSeconds int) (Accepted, bool) {
	for _, a := range s.List() {
		if a.Script.Action.Name != action.Name {
			continue
		}
		asked := a.Script
		asked.Action, asked.TimeoutSeconds = action, timeoutSeconds
		if digest, err := asked.Digest(); err == nil && digest == a.Digest {
			return s.learn(a, asked), true
		}
	}
	return Accepted{}, false
}

// Learn takes the texts that are missing here from scripts that bring them. The
// digest says that a text is the accepted one, so it does not matter whose they are.
func (s *Set) Learn(list ...jobspec.Script) {
	for _, script := range list {
		if digest, err := script.Digest(); err == nil {
			if a, found := s.Get(digest); found {
				s.learn(a, script)
			}
		}
	}
}

// learn completes a script with its text, whose digest the caller has compared.
func (s *Set) learn(a Accepted, script jobspec.Script) Accepted {
	if !a.NoText {
		return a
	}
	script.Action.Inputs, script.Action.SwitchedOff = nil, ""
	a.Script, a.NoText = script, false
	s.mu.Lock()
	defer s.mu.Unlock()
	doc := s.doc
	doc.Scripts = slices.Clone(doc.Scripts)
	i := slices.IndexFunc(doc.Scripts, func(known Accepted) bool { return known.Digest == a.Digest })
	if i < 0 {
		return a
	}
	doc.Scripts[i] = a
	if datadir.WriteJSON(s.path, doc) == nil { // otherwise it is learned again
		s.doc = doc
	}
	return a
}

// Named is what the chain says of the set, after the order that replaced it last.
func (s *Set) Named(about chain.Scripts) chain.Scripts {
	s.mu.Lock()
	defer s.mu.Unlock()
	about.Version = s.doc.Version
	for _, a := range s.doc.Scripts {
		about.List = append(about.List, chain.AcceptedScript{
			Digest: a.Digest, Name: a.Script.Action.Name, Inputs: a.Script.Inputs, Cron: a.Script.Cron, Role: a.Script.Role,
			TimeoutSeconds: a.Script.TimeoutSeconds, ReadOnly: a.Script.Action.ReadOnly, HealthCheck: a.Script.HealthCheck, Unattended: a.Script.Unattended,
			Heals: healsOf(a.Script), BreakGlassRole: a.Script.Action.BreakGlassRole, WhenRoleIsOff: a.Script.WhenRoleIsOff,
			Kept: slices.Contains(s.doc.Kept, a.Digest),
		})
	}
	return about.Fitting()
}

// Acceptance is one replacement of the set.
type Acceptance struct {
	// From is the version of the set that the release was compared with.
	From    int64
	Release jobspec.Release
	// Keep holds digests that stay, though the release does not bring them, until
	// Settle.
	Keep  []string
	JobID string
	Now   time.Time
}

// Replace makes the scripts of a release the accepted ones, and returns once
// that is on disk. It is ErrMoved when somebody else did so since the look.
// Scripts that were accepted before keep where they come from.
func (s *Set) Replace(a Acceptance) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.doc.Version != a.From {
		return fmt.Errorf("%w: they changed %d times since", ErrMoved, s.doc.Version-a.From)
	}
	before := map[string]Accepted{}
	for _, was := range s.doc.Scripts {
		before[was.Digest] = was
	}
	next := map[string]Accepted{}
	kept := map[string]bool{}
	for _, digest := range a.Keep {
		if was, ok := before[digest]; ok {
			next[digest] = was
			if was.Script.Plugin == "" { // a plugin is not scheduled, and stays
				kept[digest] = true
			}
		}
	}
	for _, script := range a.Release.Scripts {
		script.Action.Inputs, script.Action.SwitchedOff = nil, ""
		digest, err := script.Digest()
		if err != nil {
			return fmt.Errorf("script %q: %w", script.Action.Name, err)
		}
		was, ok := before[digest]
		if !ok {
			was = Accepted{
				Digest: digest, Script: script, ReleaseID: a.Release.ID, Release: a.Release.Number, Since: a.Now.UTC(), JobID: a.JobID,
			}
		}
		if was.NoText {
			was.Script, was.NoText = script, false
		}
		next[digest] = was
		delete(kept, digest)
	}
	doc := document{Version: s.doc.Version + 1, By: a.JobID, Kept: slices.Sorted(maps.Keys(kept)), Scripts: sorted(next)}
	if err := datadir.WriteJSON(s.path, doc); err != nil {
		return err
	}
	s.doc = doc
	return nil
}

// Settle takes out the scripts that were only kept, and that settings schedule no
// more.
func (s *Set) Settle(scheduled []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	over := func(digest string) bool {
		return slices.Contains(s.doc.Kept, digest) && !slices.Contains(scheduled, digest)
	}
	if !slices.ContainsFunc(s.doc.Kept, over) {
		return nil
	}
	doc := s.doc
	doc.Scripts = slices.DeleteFunc(slices.Clone(doc.Scripts), func(a Accepted) bool { return over(a.Digest) })
	doc.Kept = slices.DeleteFunc(slices.Clone(doc.Kept), over)
	if err := datadir.WriteJSON(s.path, doc); err != nil {
		return err
	}
	s.doc = doc
	return nil
}
