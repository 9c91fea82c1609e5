package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/pkg/weakened"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/heads"
)

// Who keeps heads of the chain, for people.
const (
	byCopy   = "the second copy here"
	byAnchor = "the last anchor here"
	byPlane  = "the control plane's copy"
)

// ChainProblem is why mutations are stopped, on disk from the moment it is found
// until the customer has decided: nothing that anybody says later lifts it.
type ChainProblem struct {
	// ID recognises the problem: a decision names the one that was shown.
	ID    string       `json:"id"`
	State heads.State  `json:"state"`
	Text  string       `json:"text"`
	Local chain.Head   `json:"local"`
	Kept  []heads.Kept `json:"kept"`
	Found time.Time    `json:"found"`
	// Refused says why the last decision could not be carried out.
	Refused string `json:"refused,omitempty"`
}

// ChainRemedy is what the customer can do about a ChainProblem.
const ChainRemedy = "the customer decides on the runner's machine: `berth-runner chain restore` takes missing records from the control plane's copy, " +
	"`berth-runner chain accept --reason TEXT` continues without them and records that"

// openChain opens the chain. One that is damaged stays as it is until the customer
// accepts that: then what is good of it goes on, and the whole file is set aside.
func (a *agent) openChain() (*chain.Writer, error) {
	signer := chain.Signer{Chain: a.runner.InstallID, Key: a.keys.Sign, Now: a.cfg.Now}
	w, err := chain.Open(a.dir.Chain(), signer)
	if !errors.Is(err, chain.ErrCorrupt) {
		if err != nil {
			return nil, damaged(a.dir.Chain(), err, chainRemedy)
		}
		return w, nil
	}
	why := damaged(a.dir.Chain(), err, chainRemedy)
	p := ChainProblem{State: heads.Damaged, Text: err.Error(), Found: a.cfg.Now().UTC(), ID: capsule.DigestBytes([]byte(err.Error()))}
	var d ChainDecision
	found, err := datadir.ReadJSON(a.dir.ChainDecision(), &d)
	if err != nil || !found || d.Problem != p.ID || d.Action != ChainAccept {
		return nil, errors.Join(why, datadir.WriteJSON(a.dir.ChainProblem(), p))
	}
	text, err := os.ReadFile(a.dir.Chain())
	if err != nil {
		return nil, err
	}
	report, err := chain.Verify(bytes.NewReader(text), chain.VerifyOptions{Chain: a.runner.InstallID})
	if err != nil {
		return nil, err
	}
	p.State, p.Local = heads.Behind, report.Head
	p.Text = fmt.Sprintf("the chain of this install was damaged after record %d, and the rest is given up", report.Records)
	p.ID = capsule.DigestBytes([]byte(p.Text))
	good := bytes.Join(bytes.SplitAfter(text, []byte("\n"))[:report.Records], nil)
	// The problem first: it stands until the cut is on record.
	if err := datadir.WriteJSON(a.dir.ChainProblem(), p); err != nil {
		return nil, err
	}
	if _, err := a.dir.SetAside(a.dir.Chain(), "agent", why); err != nil {
		return nil, err
	}
	if err := errors.Join(datadir.Write(a.dir.Chain(), good), datadir.Remove(a.dir.ChainDecision())); err != nil {
		return nil, err
	}
	if w, err = chain.Open(a.dir.Chain(), signer); err != nil {
		return nil, damaged(a.dir.Chain(), err, chainRemedy)
	}
	return w, nil
}

// openHeads compares the chain with the heads that were kept here.
func (a *agent) openHeads(ctx context.Context) error {
	second, found, err := heads.Open(a.dir.ChainHead())
	if err != nil {
		return err
	}
	a.chain.second = second
	a.chain.held = &held{path: a.dir.ChainHeld(), now: a.cfg.Now}
	var kept []heads.Kept
	if found {
		kept = append(kept, heads.Kept{By: byCopy, Head: second.Head()})
	}
	var anchor chain.Head
	if readSpare(ctx, a, a.dir.ChainAnchor(), &anchor) {
		kept = append(kept, heads.Kept{By: byAnchor, Head: anchor})
	}
	var before ChainProblem
	stopped, err := datadir.ReadJSON(a.dir.ChainProblem(), &before)
	if err != nil {
		return damaged(a.dir.ChainProblem(), err, "remove it: it is written again while its cause stands")
	}
	if stopped && before.State == heads.Damaged { // it is whole again: somebody restored it
		if err := datadir.Remove(a.dir.ChainProblem()); err != nil {
			return err
		}
		stopped = false
	}
	switch ok := a.judge(ctx, kept); {
	case !ok:
		return nil
	case stopped:
		a.stand.setChain(&before)
		return nil
	case !found: // of a version that kept none, or damaged
		err = second.Reset(a.chain.Head())
	default:
		err = second.Keep(a.chain.Head())
	}
	if err != nil {
		return err
	}
	return a.recordHeld(ctx) // an agent that was killed after the decision left them
}

// judge compares the chain with heads, and stops mutations when it does not lead
// to them.
func (a *agent) judge(ctx context.Context, kept []heads.Kept) (ok bool) {
	head := a.chain.Head()
	state, worst := heads.Judge(heads.Facts{Begun: true, Head: head, At: a.chain.At, Kept: kept, GivenUp: a.givenUp()})
	if state == heads.Continues || weakened.Is(weakened.ChainHeads) {
		return true
	}
	p := ChainProblem{State: state, Text: heads.Describe(state, head, worst), Local: head, Kept: kept, Found: a.cfg.Now().UTC()}
	a.stop(ctx, p)
	return false
}

// stop stops mutations until the customer decides.
func (a *agent) stop(ctx context.Context, p ChainProblem) {
	text := fmt.Sprintf("%s %d %s", p.State, p.Local.Seq, p.Local.Hash)
	for _, k := range p.Kept {
		text += fmt.Sprintf(" %d %s", k.Seq, k.Hash)
	}
	p.ID = capsule.DigestBytes([]byte(text))
	if before, _ := a.stand.chainProblem(); before != nil && before.ID == p.ID {
		return
	}
	a.cfg.Log.ErrorContext(ctx, "mutations are stopped: the chain does not lead to a head that was kept", "problem", p.Text, "remedy", ChainRemedy)
	if err := a.disk.Insist(func() error { return datadir.WriteJSON(a.dir.ChainProblem(), p) }); err != nil {
		a.cfg.Log.ErrorContext(ctx, "the problem of the chain cannot be stored", "err", err) // it is found again with the next session
	}
	a.stand.setChain(&p)
}

func (a *agent) givenUp() (given []chain.Head) {
	for _, d := range a.chain.Decisions() {
		given = append(given, d.Abandoned...)
	}
	return given
}

// comparePlane compares the chain with the copy of the control plane, whose word
// can stop mutations and never let them resume.
func (a *agent) comparePlane(ctx context.Context) error {
	if a.chain == nil {
		return nil
	}
	var plane runnerapi.ChainHead
	var over error
	err := control.Retry(ctx, a.cfg.Log, "compare chain head", func(ctx context.Context) (err error) {
		plane, err = a.api.ChainHead(ctx)
		if control.Status(err) == http.StatusUnauthorized { // nobody opens the next session meanwhile
			over, err = errors.Join(errReopen, verdict(err)), nil
		}
		return err
	})
	if err = errors.Join(err, over); err != nil {
		return err
	}
	a.judgePlane(ctx, chain.Head{Seq: plane.Seq, Hash: plane.Hash})
	return nil
}

func (a *agent) judgePlane(ctx context.Context, plane chain.Head) (ok bool) {
	kept := []heads.Kept{{By: byPlane, Head: plane}}
	if p, _ := a.stand.chainProblem(); p != nil {
		// What is shown to the customer says all that is known.
		for _, k := range p.Kept {
			if k.By != byPlane {
				kept = append(kept, k)
			}
		}
		next := *p
		next.Kept, next.Local = kept, a.chain.Head()
		state, worst := heads.Judge(heads.Facts{Begun: true, Head: next.Local, At: a.chain.At, Kept: kept, GivenUp: a.givenUp()})
		if state != heads.Continues { // else what was found before stands
			next.State, next.Text = state, heads.Describe(state, next.Local, worst)
		}
		a.stop(ctx, next)
		return false
	}
	return a.judge(ctx, kept)
}

// localHead is where the chain ends, for the control plane; nil without one.
func (a *agent) localHead() *runnerapi.ChainHead {
	if a.chain == nil {
		return nil
	}
	head := a.chain.Head()
	return &runnerapi.ChainHead{Seq: head.Seq, Hash: head.Hash}
}

// beginChain says on disk that the chain of this install is about to begin, before
// the runner takes its identity: a runner with an identity and neither chain nor
// second copy has lost both.
func (a *agent) beginChain() error {
	for _, path := range []string{a.dir.Chain(), a.dir.ChainHead()} {
		if _, err := os.Lstat(path); err == nil || !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	second, _, err := heads.Open(a.dir.ChainHead())
	if err != nil {
		return err
	}
	return second.Reset(chain.Head{})
}
