package agent

import (
	"context"
	"strings"
	"sync"
)

// stand is why mutations are stopped. Each reason is on disk from the moment it is
// found, and goes in its own way: nothing that the control plane says later lifts
// one. Safe for concurrent use.
type stand struct {
	mu      sync.Mutex
	chain   *ChainProblem // until the customer decides
	key     *KeyProblem   // permanent: another machine takes over
	changed chan struct{}
}

func newStand() *stand { return &stand{changed: make(chan struct{})} }

// chainProblem is what is wrong with the chain, nil for nothing, and a channel that is
// closed when something changes.
func (s *stand) chainProblem() (*ChainProblem, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.chain, s.changed
}

func (s *stand) setChain(p *ChainProblem) { s.set(func() { s.chain = p }) }

func (s *stand) setKey(p *KeyProblem) { s.set(func() { s.key = p }) }

func (s *stand) set(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	close(s.changed)
	s.changed = make(chan struct{})
}

// disputed is what is known of another process with this runner's key.
func (s *stand) disputed() *KeyProblem {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key
}

// stopped is why mutations are stopped and what can be done about it, "" when they
// are not.
func (s *stand) stopped() (why, remedy string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var whys, remedies []string
	if s.key != nil {
		whys, remedies = append(whys, s.key.Text), append(remedies, KeyRemedy)
	}
	if s.chain != nil {
		whys, remedies = append(whys, s.chain.Text), append(remedies, ChainRemedy)
	}
	if len(whys) == 0 {
		return "", ""
	}
	return "mutations are stopped: " + strings.Join(whys, "; "), strings.Join(remedies, "; ")
}

// text is why mutations are stopped, "" when they are not.
func (s *stand) text() string {
	why, _ := s.stopped()
	return why
}

// chainIsGood waits until nothing is wrong with the chain.
func (s *stand) chainIsGood(ctx context.Context) error {
	for {
		p, changed := s.chainProblem()
		if p == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// problem is what people should know of this runner.
func (a *agent) problem() string {
	room, _ := a.disk.Now()
	text := room.Problem()
	stopped := a.stand.text()
	if text != "" && stopped != "" {
		text += "; "
	}
	return text + stopped
}
