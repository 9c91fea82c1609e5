package agent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/pause"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/power"
)

// answersSoon is how quickly an answer without work comes when the control plane
// did not hold the claim; the agent waits as long by itself then.
const answersSoon = time.Second

// pendingClaim is the claim whose answer is awaited, on disk so that a lost
// answer gives the same jobs again.
type pendingClaim struct {
	ClaimID string `json:"claim_id"`
}

// claimer asks for work in one session.
type claimer struct {
	agent   *agent
	pending pendingClaim
	try     int // failures in a row
}

// offer is how many jobs the agent can take, and what it depends on.
type offer struct {
	slots int // 0: the claim only tells how the agent is
	state power.State
	// switched and moved are closed when the switch, or the room on the disk, is
	// another.
	switched, moved <-chan struct{}
}

// claim asks for work until ctx ends. Jobs that came are begun even then.
func (a *agent) claim(ctx, session context.Context) error {
	if err := a.trial.over(ctx); err != nil { // it may not be the one that works on
		return idleOr(ctx, session, err)
	}
	c := claimer{agent: a}
	readSpare(ctx, a, a.dir.Claim(), &c.pending) // without it, jobs that were given out wait for the next session
	for {
		if err := c.once(ctx); err != nil {
			return idleOr(ctx, session, err)
		}
	}
}

// once sends one claim and begins what it brings, or waits until there is
// something to ask for. It fails when ctx or the session is over.
func (c *claimer) once(ctx context.Context) error {
	state, switched := c.agent.power.Now()
	free, changed := c.agent.jobs.Free()
	room, moved := c.agent.disk.Now()
	o := offer{slots: free, state: state, switched: switched, moved: moved}
	switch {
	case !state.Mode.Claims() || room.Low():
		o.slots = 0
	case free == 0:
		return wait(ctx, o, changed)
	}
	claim, err := c.request(o)
	if err != nil {
		// No reason to end the session: without the claim on disk none is sent.
		c.agent.cfg.Log.ErrorContext(ctx, "claim cannot be stored, no new work is taken", "err", c.agent.disk.Failed(err))
		return c.backOff(ctx)
	}
	asked := time.Now()
	jobs, err := c.agent.ask(ctx, claim, moved)
	if err != nil {
		return c.unanswered(ctx, o, err)
	}
	begun := c.beginAll(ctx, jobs)
	if o.slots > 0 {
		c.pending.ClaimID = ""
	}
	if begun {
		c.try = 0
	} else if err := c.backOff(ctx); err != nil {
		return err
	}
	if len(jobs) == 0 && time.Since(asked) < answersSoon {
		return hold(ctx, o)
	}
	return nil
}

// request makes a claim. One that asks for work is on disk before.
func (c *claimer) request(o offer) (runnerapi.ClaimRequest, error) {
	claim := runnerapi.ClaimRequest{Slots: o.slots, WaitSeconds: control.WaitSeconds, Switch: runnerapi.Switch(o.state.Mode)}
	claim.SwitchReason, claim.SwitchSince = switchNote(o.state)
	if problem := c.agent.problem(); problem != "" {
		claim.Problem = &problem
	}
	if o.slots == 0 { // it asks for nothing, so its answer cannot be lost
		claim.ClaimID = newClaimID()
		return claim, nil
	}
	if c.pending.ClaimID == "" {
		fresh := pendingClaim{ClaimID: newClaimID()}
		if err := datadir.WriteJSON(c.agent.dir.Claim(), fresh); err != nil {
			return claim, err
		}
		c.pending = fresh
	}
	claim.ClaimID = c.pending.ClaimID
	return claim, nil
}

// maxReason bounds what is sent of the switch's reason, in bytes.
const maxReason = 1000

// switchNote is what the customer wrote about the switch, and since when it stands
// so; nil for what is not known.
func switchNote(s power.State) (reason *string, since *time.Time) {
	if text := strings.ToValidUTF8(s.Reason[:min(len(s.Reason), maxReason)], ""); text != "" {
		reason = &text
	}
	if !s.At.IsZero() {
		since = &s.At
	}
	return reason, since
}

// unanswered decides what to do after a claim that failed.
func (c *claimer) unanswered(ctx context.Context, o offer, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if c.agent.power.Mode() != o.state.Mode || closed(o.moved) {
		return nil // the same claim again, with the switch and the disk as they are now
	}
	if err := c.agent.again(ctx, err, c.try); err != nil {
		return err
	}
	c.try++
	return nil
}

// beginAll begins what a claim brought. It is false when a job could not be
// begun, which the control plane gives out again.
func (c *claimer) beginAll(ctx context.Context, jobs []runnerapi.Assignment) bool {
	all := true
	for _, assignment := range jobs {
		if err := c.agent.jobs.Start(assignment); err != nil {
			all = false
			c.agent.cfg.Log.ErrorContext(ctx, "job cannot be begun and is given back", "job_id", assignment.JobID, "err", err)
			continue
		}
		c.agent.cfg.Log.InfoContext(ctx, "job was claimed", "job_id", assignment.JobID, "attempt", assignment.Attempt, "operation", assignment.Operation)
	}
	return all
}

func (c *claimer) backOff(ctx context.Context) error {
	if err := pause.For(ctx, control.Backoff(c.try)); err != nil {
		return err
	}
	c.try++
	return nil
}

// hold waits after a claim that the control plane did not hold.
func hold(ctx context.Context, o offer) error {
	if err := pause.For(ctx, answersSoon); err != nil || o.slots > 0 {
		return err
	}
	return wait(ctx, o, time.After(control.WaitSeconds*time.Second))
}

// wait returns when the switch or the room on the disk is another, or when other
// has something.
func wait[T any](ctx context.Context, o offer, other <-chan T) error {
	select {
	case <-other:
	case <-o.switched:
	case <-o.moved:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// ask sends one claim. It is broken off when the switch or the room on the disk
// moves.
func (a *agent) ask(ctx context.Context, claim runnerapi.ClaimRequest, moved <-chan struct{}) ([]runnerapi.Assignment, error) {
	ctx, cancel := a.power.While(ctx, func(m power.Mode) bool { return m == power.Mode(claim.Switch) })
	defer cancel()
	go func() {
		select {
		case <-moved:
			cancel()
		case <-ctx.Done():
		}
	}()
	return a.api.Claim(ctx, claim)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// idleOr waits for the end of the session once no more work is wanted.
func idleOr(ctx, session context.Context, err error) error {
	if ctx.Err() == nil || session.Err() != nil {
		return err
	}
	<-session.Done()
	return context.Cause(session)
}

func newClaimID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b[:])
}
