package agent

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/runnerapi"
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
	"`berth-runner chain accept --reason TEXT` goes on without them, on record"

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

// stand is whether mutations are stopped.
type stand struct {
	mu      sync.Mutex
	problem *ChainProblem
	changed chan struct{}
}

func newStand() *stand { return &stand{changed: make(chan struct{})} }

func (s *stand) now() (*ChainProblem, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problem, s.changed
}

func (s *stand) set(p *ChainProblem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problem = p
	close(s.changed)
	s.changed = make(chan struct{})
}

// text is why mutations are stopped, "" when they are not.
func (s *stand) text() string {
	if p, _ := s.now(); p != nil {
		return "mutations are stopped: " + p.Text
	}
	return ""
}

// free waits until nothing is stopped.
func (s *stand) free(ctx context.Context) error {
	for {
		p, changed := s.now()
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
		a.chain.stand.set(&before)
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
	if state == heads.Continues {
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
	if before, _ := a.chain.stand.now(); before != nil && before.ID == p.ID {
		return
	}
	a.cfg.Log.ErrorContext(ctx, "mutations are stopped: the chain does not lead to a head that was kept", "problem", p.Text, "remedy", ChainRemedy)
	if err := a.disk.Insist(func() error { return datadir.WriteJSON(a.dir.ChainProblem(), p) }); err != nil {
		a.cfg.Log.ErrorContext(ctx, "the problem of the chain cannot be stored", "err", err) // it is found again with the next session
	}
	a.chain.stand.set(&p)
}

func (a *agent) givenUp() (given []chain.Head) {
	for _, d := range a.chain.Decisions() {
		given = append(given, d.Abandoned...)
	}
	return given
}

// comparePlane compares the chain with the copy of the control plane, whose word
// can stop mutations and never let them go on.
func (a *agent) comparePlane(ctx context.Context) error {
	if a.chain == nil {
		return nil
	}
	var plane runnerapi.ChainHead
	err := control.Retry(ctx, a.cfg.Log, "compare chain head", func(ctx context.Context) (err error) {
		plane, err = a.api.ChainHead(ctx)
		return err
	})
	if err != nil {
		return verdict(err)
	}
	a.judgePlane(ctx, chain.Head{Seq: plane.Seq, Hash: plane.Hash})
	return nil
}

func (a *agent) judgePlane(ctx context.Context, plane chain.Head) (ok bool) {
	kept := []heads.Kept{{By: byPlane, Head: plane}}
	if p, _ := a.chain.stand.now(); p != nil {
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

// problem is what people should know of this runner.
func (a *agent) problem() string {
	room, _ := a.disk.Now()
	text := room.Problem()
	if a.chain == nil || a.chain.stand.text() == "" {
		return text
	}
	if text != "" {
		text += "; "
	}
	return text + a.chain.stand.text()
}

// followDecision carries out what the customer decides, while a session lasts.
func (a *agent) followDecision(ctx context.Context) error {
	for {
		p, changed := a.chain.stand.now()
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
		_ = control.Sleep(ctx, decisionPause)
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

// goOn lets mutations go on after a decision that is in the chain.
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
	a.cfg.Log.InfoContext(ctx, "mutations go on")
	a.chain.stand.set(nil)
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
	const otherwise = "; to go on all the same: `berth-runner chain accept --reason TEXT`"
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

// held are events that wait until the customer has decided about the chain.
type held struct {
	path string
	now  func() time.Time

	mu sync.Mutex
}

// mostHeld keeps a decision that nobody makes from filling the disk.
const mostHeld = 10_000

func (h *held) add(record chain.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var records []chain.Record
	if _, err := datadir.ReadJSON(h.path, &records); err != nil {
		return err
	}
	if len(records) >= mostHeld {
		return fmt.Errorf("%d events wait for a decision about the chain, and there is no room for more", len(records))
	}
	if record.Time.IsZero() {
		record.Time = h.now().UTC()
	}
	return datadir.WriteJSON(h.path, append(records, record))
}

// recordHeld appends the events that waited. After a crash in between some are
// there twice, with the same time.
func (a *agent) recordHeld(ctx context.Context) error {
	h := a.chain.held
	h.mu.Lock()
	defer h.mu.Unlock()
	var records []chain.Record
	if !readSpare(ctx, a, h.path, &records) {
		return nil
	}
	for _, record := range records {
		if _, err := a.chain.Append(ctx, record); err != nil {
			return err
		}
	}
	return datadir.Remove(h.path)
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
