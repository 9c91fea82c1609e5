package consents

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// Gate is the agent's side of a Store: it lets nothing through that needs a consent and
// has none. Safe for concurrent use.
type Gate struct {
	Store

	chronicle chronicle

	mu       sync.Mutex
	changed  chan struct{}     // closed when a file has changed
	reserved map[string]string // rules that agreed to jobs whose intents may not be in the chain yet
}

// NewGate opens the gate of a store.
func NewGate(s Store) *Gate {
	return &Gate{Store: s, chronicle: chronicle{path: s.Dir.Chain()}, changed: make(chan struct{}), reserved: map[string]string{}}
}

// Answer is what the gate says to a job.
type Answer struct {
	// Agreed is what the intent is to say of the consent; nil when nobody was asked.
	Agreed *chain.Consent
	// Done is to be called once the intent is in the chain, or will not be: until then the
	// job counts as one that its standing rule agreed to.
	Done func()
	// Refusal says why the job may not go on, nil when it may.
	Refusal *Refusal
}

// Refusal is why a change is not brought about now.
type Refusal struct {
	// Outcome is stale where the change is planned again: a standing rule that agreed to
	// it agrees no more.
	Outcome      jobspec.Outcome
	Text, Remedy string
	State        consent.State
}

// Plan keeps a change that was planned and says how it stands.
func (g *Gate) Plan(c Change, plan jobspec.PlanSummary) (consent.Stand, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	view, err := g.view()
	if err != nil {
		return consent.Stand{}, err
	}
	stand := view.Stand(c)
	c.Rule = stand.Rule
	return stand, g.Keep(c, plan)
}

// Clock is the time, never before the last record of the chain.
func (g *Gate) Clock() (time.Time, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	view, err := g.view()
	return view.history.Now, err
}

// view is Look, with what is under way. mu is held.
func (g *Gate) view() (View, error) {
	view, err := g.look(&g.chronicle)
	for _, rule := range g.reserved {
		view.history.Used = append(view.history.Used, consent.Use{Rule: rule, At: view.history.Now})
	}
	return view, err
}

// Grant says whether a job may bring a change about now. requester is who its order
// names.
func (g *Gate) Grant(job string, c Change, requester string) (Answer, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	view, err := g.view()
	if err != nil {
		return Answer{}, fmt.Errorf("consent: %w", err)
	}
	stand := view.Stand(c, requester)
	answer := Answer{Done: func() {}}
	switch stand.State {
	case consent.NotAsked:
		return answer, nil
	case consent.Given:
	default:
		answer.Refusal = refuse(c, stand)
		return answer, nil
	}
	answer.Agreed = &chain.Consent{Mode: string(view.Panel.Mode), By: stand.By, Keys: stand.Keys, Signed: stand.Signed, Rule: stand.Rule}
	if stand.Rule == "" {
		return answer, nil
	}
	floor, err := g.Floor()
	if err != nil {
		return Answer{}, fmt.Errorf("consent: %w", err)
	}
	answer.Agreed.By, answer.Agreed.RulesVersion, answer.Agreed.RulesDigest = nil, floor.Version, floor.Digest
	g.reserved[job] = stand.Rule
	answer.Done = func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.reserved, job)
	}
	return answer, nil
}

// GrantTick is Grant for a scheduled run. One that has no consent yet is written down for
// people to see.
func (g *Gate) GrantTick(job, digest, action string, now time.Time) (Answer, error) {
	c := OfScript(digest, action, now)
	was, found, err := g.Change(c.ID)
	if err != nil {
		return Answer{}, err
	}
	if found {
		c = was
	}
	answer, err := g.Grant(job, c, "")
	if err == nil && answer.Refusal != nil && !found {
		err = g.Keep(c, jobspec.PlanSummary{Text: "script " + digest})
	}
	return answer, err
}

func refuse(c Change, stand consent.Stand) *Refusal {
	r := &Refusal{Outcome: jobspec.OutcomeRefused, State: stand.State, Remedy: stand.Remedy(c.ID)}
	if stand.State == consent.Denied {
		r.Text = "the customer's side denied it: " + strings.Join(stand.By, ", ")
		if stand.Why != "" {
			r.Text += ": " + stand.Why
		}
		return r
	}
	if c.Rule != "" {
		r.Outcome = jobspec.OutcomeStale
	}
	r.Text = fmt.Sprintf("the customer's side has not agreed to it: %s (%d more to agree)", stand.Why, stand.Still)
	return r
}
