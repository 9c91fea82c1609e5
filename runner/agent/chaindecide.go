package agent

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/pause"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/heads"
)

// What the customer may decide.
const (
	ChainRestore = "restore"
	ChainAccept  = "accept"
)

// ChainDecision is the customer's, on its way to the agent.
type ChainDecision struct {
	Problem string    `json:"problem"` // ChainProblem.ID
	Action  string    `json:"action"`
	Reason  string    `json:"reason,omitempty"`
	At      time.Time `json:"at"`
}

// decisionPause is how often the agent looks for a decision while it needs one.
const decisionPause = time.Second

// followDecision carries out what the customer decides, while a session lasts.
func (a *agent) followDecision(ctx context.Context) error {
	for {
		p, changed := a.stand.chainProblem()
		var look <-chan time.Time
		if p != nil {
			var d ChainDecision
			if readSpare(ctx, a, a.dir.ChainDecision(), &d) {
				if err := a.decide(ctx, *p, d); err != nil {
					if ctx.Err() != nil {
						return context.Cause(ctx)
					}
					a.refuseDecision(ctx, *p, err)
				}
				continue
			}
			look = time.After(decisionPause)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		case <-look:
		}
	}
}

// refuseDecision tells the customer why nothing came of it.
func (a *agent) refuseDecision(ctx context.Context, p ChainProblem, why error) {
	a.cfg.Log.ErrorContext(ctx, "the decision about the chain was not carried out", "err", why)
	p.Refused = why.Error()
	err := errors.Join(datadir.WriteJSON(a.dir.ChainProblem(), p), datadir.Remove(a.dir.ChainDecision()))
	if err != nil {
		a.cfg.Log.ErrorContext(ctx, "the decision about the chain cannot be answered", "err", err)
		_ = pause.For(ctx, decisionPause)
	}
}

// decide carries a decision out. It may be repeated: one that a crash cut off is
// still there, and the record of an acceptance is written once.
func (a *agent) decide(ctx context.Context, p ChainProblem, d ChainDecision) error {
	if d.Problem != p.ID {
		return errors.New("the decision was made about another state of the chain: look at it again and decide again")
	}
	for _, done := range a.chain.Decisions() {
		if done.Problem == p.ID {
			return a.goOn(ctx)
		}
	}
	found, err := a.fetchCopy(ctx)
	if err != nil {
		return err
	}
	record := chain.Record{Actor: "customer", Kind: chain.Event}
	kept, cut := p.Kept, a.chain.Head()
	switch {
	case d.Action == ChainRestore:
		if err := a.restorable(found, kept); err != nil {
			return err
		}
		record.What = fmt.Sprintf("chain restored: %d records from the control plane's copy", len(found.missing))
	case d.Action == ChainAccept && d.Reason != "":
		record.What = "chain accepted: " + p.Text
		record.Accepted = &chain.Acceptance{Reason: d.Reason, Problem: p.ID, Abandoned: found.lost(a.chain, kept, cut), Restored: int64(len(found.missing))}
	default:
		return errors.New("the decision is neither a restore nor an acceptance with a reason")
	}
	if err := a.keepTail(found.common, p.Text); err != nil {
		return err
	}
	if err := a.chain.adopt(found.common, found.missing, record); err != nil {
		return err
	}
	a.cfg.Log.InfoContext(ctx, "the customer decided about the chain", "action", d.Action, "reason", d.Reason, "restored", len(found.missing), "head", a.chain.Head().Seq)
	return a.goOn(ctx)
}

// goOn lets mutations resume after a decision that is in the chain.
func (a *agent) goOn(ctx context.Context) error {
	err := a.chain.second.Reset(a.chain.Head())
	for _, path := range []string{a.dir.ChainAnchor(), a.dir.ChainProblem(), a.dir.ChainDecision()} {
		if err == nil {
			err = datadir.Remove(path)
		}
	}
	if err != nil {
		return err
	}
	a.cfg.Log.InfoContext(ctx, "mutations are allowed again")
	a.stand.setChain(nil)
	a.closeIntents(ctx)
	return a.recordHeld(ctx)
}

// planeCopy is what the control plane's copy has to offer.
type planeCopy struct {
	head chain.Head
	// common is the last record that it has in common with the chain here, and
	// missing what follows there. Nothing is missing when the copy is not a chain,
	// or has no more than the file: then the file stays as it is, and common is its
	// end.
	common  int64
	missing []chain.Line
	// own: the last of the missing records is signed by this machine.
	own bool
}

// fetchCopy reads and checks the whole copy: by its hashes its last record
// vouches for all before.
func (a *agent) fetchCopy(ctx context.Context) (planeCopy, error) {
	var found planeCopy
	plane, err := a.api.ChainHead(ctx)
	if err != nil {
		return found, err
	}
	var text bytes.Buffer
	var lines []chain.Line
	for seq := int64(0); seq < plane.Seq; {
		page, err := a.api.Chain(ctx, seq)
		if err != nil {
			return found, err
		}
		if len(page) == 0 {
			break
		}
		for _, r := range page {
			text.Write(r.Body)
			text.WriteByte('\n')
			lines = append(lines, chain.Line{Head: chain.Head{Seq: r.Seq}, Raw: r.Body})
			seq = max(seq, r.Seq)
		}
	}
	found.head = chain.Head{Seq: plane.Seq, Hash: plane.Hash}
	local := a.chain.Head()
	report, err := chain.Verify(bytes.NewReader(text.Bytes()), chain.VerifyOptions{Chain: a.runner.InstallID})
	if err != nil {
		return found, err
	}
	whole := report.OK() && report.Head.Seq >= found.head.Seq
	mine, err := a.chain.ReadFrom(1, int(local.Seq))
	if err != nil {
		return found, err
	}
	same := int64(0)
	for same < min(int64(len(mine)), int64(len(lines))) && bytes.Equal(mine[same].Raw, lines[same].Raw) {
		same++
	}
	found.common = local.Seq
	if !whole || same == int64(len(lines)) {
		return found, nil
	}
	found.common, found.missing = same, lines[same:]
	last := chain.Head{}
	if n := len(lines); n > 1 {
		if last, err = headOf(lines[:n-1]); err != nil {
			return found, err
		}
	}
	signed, err := chain.Verify(bytes.NewReader(append(bytes.Clone(lines[len(lines)-1].Raw), '\n')), chain.VerifyOptions{
		Chain: a.runner.InstallID, After: last, Keys: map[string]ed25519.PublicKey{capsule.KeyID(a.keys.Public()): a.keys.Public()},
	})
	found.own = err == nil && signed.OK()
	return found, err
}

// restorable reports why the copy cannot simply be gone on with.
func (a *agent) restorable(found planeCopy, kept []heads.Kept) error {
	local := a.chain.Head()
	const otherwise = "; to continue anyway: `berth-runner chain accept --reason TEXT`"
	switch {
	case found.common < local.Seq:
		return fmt.Errorf("the control plane's copy is another history from record %d on%s", found.common+1, otherwise)
	case len(found.missing) == 0:
		return fmt.Errorf("the control plane's copy has no records that are missing here%s", otherwise)
	case !found.own:
		return fmt.Errorf("the last record of the control plane's copy is not signed by this machine%s", otherwise)
	}
	if lost := found.lost(a.chain, kept, local); len(lost) > 0 {
		return fmt.Errorf("with the control plane's copy the chain still would not lead to record %d%s", lost[0].Seq, otherwise)
	}
	return nil
}

// lost are the heads to which the chain would not lead: kept ones, and its own
// end when that is cut off.
func (c planeCopy) lost(w *recorder, kept []heads.Kept, local chain.Head) (lost []chain.Head) {
	after := func(seq int64) (chain.Head, bool) {
		if seq <= c.common {
			return w.At(seq)
		}
		if i := seq - c.common - 1; i < int64(len(c.missing)) {
			head, err := headOf(c.missing[:i+1])
			return head, err == nil
		}
		return chain.Head{}, false
	}
	add := func(h chain.Head) {
		if at, found := after(h.Seq); h.Seq > 0 && (!found || at != h) {
			for _, have := range lost {
				if have == h {
					return
				}
			}
			lost = append(lost, h)
		}
	}
	for _, k := range kept {
		add(k.Head)
	}
	add(local)
	return lost
}

// headOf is the head of lines, by the last of them.
func headOf(lines []chain.Line) (chain.Head, error) {
	return chain.HeadOf(lines[len(lines)-1].Raw)
}

// keepTail sets the records that are about to be cut off aside, where nobody
// cleans up.
func (a *agent) keepTail(common int64, why string) error {
	tail, err := a.chain.ReadFrom(common+1, int(a.chain.Head().Seq))
	if err != nil || len(tail) == 0 {
		return err
	}
	var text bytes.Buffer
	for _, line := range tail {
		text.Write(line.Raw)
		text.WriteByte('\n')
	}
	path := filepath.Join(a.dir.Path(), "chain-given-up.jsonl")
	if err := datadir.Write(path, text.Bytes()); err != nil {
		return err
	}
	_, err = a.dir.SetAside(path, "agent", errors.New(why))
	return err
}
