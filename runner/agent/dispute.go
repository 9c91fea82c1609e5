package agent

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/ending"
)

// errOvertaken: another process opened a session with this runner's key. There is
// one agent on a data directory, which has one session at a time, so it is no
// process of this machine that has gone on properly.
var errOvertaken = errors.New("another process opened a session with the key of this runner")

// KeyProblem is that another process holds this runner's key, on disk from the
// moment it shows. Nothing lifts it: another machine takes over, with other keys.
type KeyProblem struct {
	Text  string    `json:"text"`
	Found time.Time `json:"found"`
	// Recorded: the event is in the chain.
	Recorded bool `json:"recorded"`
}

// KeyRemedy is what the customer can do about a KeyProblem.
const KeyRemedy = "find out who has a copy of this data directory (a thief, a cloned machine, a snapshot), then let a new machine take over: " +
	"`berth-runner replace --recovery FILE` there, and rotate the secrets that the copy could open"

// mostOvertaken is the longest wait before a session is opened that will end the
// other process's: the two end each other's for as long as nobody decides.
const mostOvertaken = 5 * time.Minute

// afterOvertaken is how long to wait before the next session after n that another
// process has ended: at first hardly, for the control plane learns of the dispute
// by it, then doubling, with a random half.
func afterOvertaken(n int) time.Duration {
	const doublings = 12 // of 200 ms, which is more than five minutes
	d := min(200*time.Millisecond<<min(n, doublings), mostOvertaken)
	return d/2 + rand.N(d/2) //nolint:gosec // G404: spreads requests, protects nothing
}

// openDispute reads what an earlier agent found.
func (a *agent) openDispute() error {
	var p KeyProblem
	found, err := datadir.ReadJSON(a.dir.KeyProblem(), &p)
	if err != nil {
		return damaged(a.dir.KeyProblem(), err, "let a new machine take over: the file says that another process holds the key of this one")
	}
	if found {
		a.stand.setKey(&p)
	}
	return nil
}

// dispute stops mutations permanently: another process holds the key.
func (a *agent) dispute(ctx context.Context, text string) {
	if a.stand.disputed() != nil {
		return
	}
	p := KeyProblem{Text: text, Found: a.cfg.Now().UTC()}
	a.cfg.Log.ErrorContext(ctx, "mutations are stopped: another process holds the key of this runner", "problem", text, "remedy", KeyRemedy)
	a.stand.setKey(&p)
	a.keepDispute(ctx, p)
	a.recordDispute(ctx)
}

// recordDispute puts the event into the chain. After a crash in between it is
// there twice.
func (a *agent) recordDispute(ctx context.Context) {
	p := a.stand.disputed()
	if p == nil || p.Recorded || a.chain == nil {
		return
	}
	_, err := a.chain.Append(ctx, chain.Record{
		Actor: "runner", Kind: chain.Event, What: "another process holds the key of this runner", Result: chain.Disputed, Detail: p.Text,
	})
	if err != nil {
		a.cfg.Log.ErrorContext(ctx, "chain cannot be written", "err", err) // the next agent tries again
		return
	}
	next := *p
	next.Recorded = true
	a.stand.setKey(&next)
	a.keepDispute(ctx, next)
}

func (a *agent) keepDispute(ctx context.Context, p KeyProblem) {
	if err := a.disk.Insist(func() error { return datadir.WriteJSON(a.dir.KeyProblem(), p) }); err != nil {
		a.cfg.Log.ErrorContext(ctx, "that another process holds the key cannot be stored", "err", err) // the next session shows it again
	}
}

// overtaken ends what runs and stops mutations, after another process ended this
// one's session. What ran has lost its leases.
func (a *agent) overtaken(ctx context.Context) {
	a.dispute(ctx, "another process holds the key of this runner: it opened a session that ended this one's")
	a.jobs.StopAll(ending.Lost)
}

// replaced reports whether an answer means that another machine took over: the key
// counts no more, and it is known that somebody else had it.
func (a *agent) replaced(err error) bool {
	return a.stand.disputed() != nil && control.Is(err, "signature_refused")
}
