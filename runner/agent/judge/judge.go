// Package judge asks the policy engine, berth-policy, and sees to it that an answer comes
// whatever the rules do. The engine is a child that lives from question to question, behind
// walls: no network, no file, no environment, a user of its own, and a limit of memory.
//
// A rule that loops, allocates without end or brings the engine down costs its own verdict,
// an error, and no other: the engine is killed and asked again, policy by policy and, of the
// policy that fails, document by document.
//
//	Ask ──▶ the whole request ──ok──▶ reply
//	              │ crash, time-out, an answer that is none
//	              ▼
//	        each policy alone ──ok──▶ its verdicts
//	              │ the same
//	              ▼
//	        each document alone ──▶ its verdicts, or one verdict error
//
// It links no rule language.
package judge

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/agent/users"
)

// Limits, where Options say nothing.
const (
	DefaultMemory  = 1 << 30         // bytes
	DefaultTimeout = 2 * time.Minute // of a whole request
	DefaultIdle    = 5 * time.Minute
)

// strikes are how often one policy may bring the engine down before the documents that
// are left are not tried any more.
const strikes = 3

// Options say how to start the engine.
type Options struct {
	// Executable is berth-policy, an absolute path.
	Executable string
	// Launcher is an executable that has package launcher in it: the runner itself.
	// Without one there are no walls.
	Launcher string
	// Users is where the engine gets a user of its own, when the runner is root, and Dir a
	// directory that stands for it there; it is made. nil: UID, where that is not 0.
	Users *users.Pool
	Dir   string
	UID   int
	// Memory is the most that the engine may have, in bytes; 0 means DefaultMemory.
	Memory int64
	// Timeout is for a request as a whole, and for each that follows when it fails; 0 means
	// DefaultTimeout.
	Timeout time.Duration
	// Idle is how long the engine stays without a question; 0 means DefaultIdle.
	Idle time.Duration
	// Log is told of engines that had to be ended; nil means nobody.
	Log *slog.Logger
}

// Engine asks the policy engine. Safe for concurrent use: questions wait for each other.
type Engine struct {
	opts Options
	turn chan struct{} // holds one token: whose turn it is

	// Of whose turn it is:
	child  *child
	walls  walls
	name   string // Reply.Engine of the last answer
	closed bool
	idle   *time.Timer

	mu sync.Mutex // guards what Isolation reads
}

// ErrClosed says that the engine was closed.
var ErrClosed = errors.New("the policy engine was closed")

// New returns an engine. It starts nothing before there is a question.
func New(o Options) *Engine {
	o.Memory = cmp.Or(o.Memory, DefaultMemory)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.Idle = cmp.Or(o.Idle, DefaultIdle)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	e := &Engine{opts: o, turn: make(chan struct{}, 1), name: "berth-policy"}
	e.turn <- struct{}{}
	return e
}

// Ask holds the rules of a request against its documents. For each pair that the rules look
// at there is at least one verdict. An error means that nothing was judged: the engine cannot
// be started here, or ctx is over. It is never a pass.
func (e *Engine) Ask(ctx context.Context, r policy.Request) (policy.Reply, error) {
	r = relevant(r)
	if len(r.Rules) == 0 {
		return policy.Reply{}, nil
	}
	if err := e.take(ctx); err != nil {
		return policy.Reply{}, err
	}
	defer e.give()
	var verdicts []policy.Verdict
	for _, part := range parts(r) {
		reply, err := e.once(ctx, part)
		if err != nil && worthAnother(ctx, err) {
			reply.Verdicts, err = e.apart(ctx, part, err)
		}
		if err != nil {
			return policy.Reply{}, err
		}
		verdicts = append(verdicts, reply.Verdicts...)
	}
	return policy.Reply{Engine: e.name, Verdicts: verdicts}, nil
}

// Limits of what is asked at once.
const (
	maxPairs = policy.MaxVerdicts / 5
	maxBytes = 32 << 20 // of documents
)

// parts cuts a request into such that an engine can answer at once: each has all rules, and
// some of the documents.
func parts(r policy.Request) []policy.Request {
	var all []policy.Request
	first, bytes := 0, 0
	for i, d := range r.Documents {
		size := len(d.Body) + len(d.Old)
		if i > first && (bytes+size > maxBytes || (i-first+1)*len(r.Rules) > maxPairs) {
			all = append(all, relevant(policy.Request{Rules: r.Rules, Documents: r.Documents[first:i], Namespaces: r.Namespaces}))
			first, bytes = i, 0
		}
		bytes += size
	}
	return append(all, relevant(policy.Request{Rules: r.Rules, Documents: r.Documents[first:], Namespaces: r.Namespaces}))
}

// Close ends the engine after the question that it works on. Questions that wait, and
// later ones, fail with ErrClosed.
func (e *Engine) Close() {
	<-e.turn
	e.closed = true
	if e.idle != nil {
		e.idle.Stop()
	}
	e.end()
	e.mu.Lock()
	e.walls.remove()
	e.mu.Unlock()
	e.turn <- struct{}{}
}

func (e *Engine) take(ctx context.Context) error {
	select {
	case <-e.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	if e.closed {
		e.turn <- struct{}{}
		return ErrClosed
	}
	if e.idle != nil {
		e.idle.Stop()
	}
	return nil
}

// give lets the next one ask, and the engine end when nobody does.
func (e *Engine) give() {
	e.idle = time.AfterFunc(e.opts.Idle, func() {
		select {
		case <-e.turn:
			e.end()
			e.turn <- struct{}{}
		default: // somebody asks
		}
	})
	e.turn <- struct{}{}
}

// end ends the child, if there is one.
func (e *Engine) end() {
	if e.child != nil {
		e.child.kill()
		e.child = nil
	}
}

// startError says that there is no engine: asking it something else changes nothing.
type startError struct{ error }

func (e startError) Unwrap() error { return e.error }

// worthAnother: it failed by what it was asked.
func worthAnother(ctx context.Context, err error) bool {
	var start startError
	return ctx.Err() == nil && !errors.As(err, &start)
}

// once asks once. After any error the child is gone.
func (e *Engine) once(ctx context.Context, r policy.Request) (policy.Reply, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, e.opts.Timeout, fmt.Errorf("no answer within %s", e.opts.Timeout))
	defer cancel()
	if e.child == nil || e.child.over() {
		e.end()
		c, err := e.start()
		if err != nil {
			return policy.Reply{}, startError{fmt.Errorf("start the policy engine %s: %w", e.opts.Executable, err)}
		}
		e.child = c
	}
	raw, err := e.child.ask(ctx, r)
	if errors.Is(err, errRetired) && e.child.answered > 0 {
		e.end() // between two questions, as it does after one that it could not stop
		return e.once(ctx, r)
	}
	if err != nil {
		e.end()
		return policy.Reply{}, err
	}
	e.child.answered++
	reply, err := policy.ReadReply(bytes.NewReader(raw), r)
	if err != nil {
		e.end()
		return policy.Reply{}, err
	}
	e.name = reply.Engine
	return reply, nil
}

// apart asks policy by policy what could not be answered together.
func (e *Engine) apart(ctx context.Context, r policy.Request, because error) ([]policy.Verdict, error) {
	e.opts.Log.WarnContext(ctx, "policy engine was restarted", "policies", len(r.Rules), "documents", len(r.Documents), "err", because)
	var all []policy.Verdict
	for _, rules := range r.Rules {
		one := relevant(policy.Request{Rules: []policy.Rules{rules}, Documents: r.Documents, Namespaces: r.Namespaces})
		reply, err := policy.Reply{}, because
		if len(r.Rules) > 1 {
			reply, err = e.once(ctx, one)
		}
		if err != nil && worthAnother(ctx, err) {
			reply.Verdicts, err = e.singly(ctx, one, err)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, reply.Verdicts...)
	}
	return all, nil
}

// singly asks what the one policy of a request says of each document, as long as it has not
// brought the engine down too often.
func (e *Engine) singly(ctx context.Context, r policy.Request, because error) ([]policy.Verdict, error) {
	var all []policy.Verdict
	failures := 0
	for _, d := range r.Documents {
		one := policy.Request{Rules: r.Rules, Documents: []policy.Document{d}, Namespaces: r.Namespaces}
		reply, err := policy.Reply{}, because
		if failures < strikes && len(r.Documents) > 1 {
			reply, err = e.once(ctx, one)
		}
		switch {
		case err == nil:
			all = append(all, reply.Verdicts...)
		case worthAnother(ctx, err):
			failures++
			because = err
			all = append(all, policy.Verdict{
				Policy: r.Rules[0].Name, Document: d.Name, Component: d.Component, Result: policy.Error,
				Message: "the policy engine ended while it held this policy against it: " + err.Error(),
			})
		default:
			return nil, err
		}
	}
	return all, nil
}

// relevant leaves out rules that look at no document, and documents that no rules look at.
func relevant(r policy.Request) policy.Request {
	out := policy.Request{Namespaces: r.Namespaces}
	for _, rules := range r.Rules {
		if slices.ContainsFunc(r.Documents, rules.Applies) {
			out.Rules = append(out.Rules, rules)
		}
	}
	for _, d := range r.Documents {
		if slices.ContainsFunc(out.Rules, func(rules policy.Rules) bool { return rules.Applies(d) }) {
			out.Documents = append(out.Documents, d)
		}
	}
	return out
}

// Missing says why there can be no engine, nil when its executable is there.
func (e *Engine) Missing() error {
	_, err := os.Stat(e.opts.Executable)
	return err
}
