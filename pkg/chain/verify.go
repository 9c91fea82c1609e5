package chain

import (
	"bufio"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// VerifyOptions say what a chain is checked against. The zero value checks
// that the file is a chain of its own, from the first record.
type VerifyOptions struct {
	// Chain is the wanted chain id; empty takes that of the first record.
	Chain string
	// After is the head before the first line, for a part of a chain. An
	// outcome may then name an intent that is not in the part.
	After Head
	// Keys are the chain's writers by key id. Without any, signatures are not
	// checked, and anybody who holds the file could have made it up.
	Keys map[string]ed25519.PublicKey
	// Heads are heads of this chain that somebody else kept. Those of other
	// chains are left out; when none is left, that is a problem.
	Heads []SignedHead
	// HeadKeys are the keys, in addition to Keys, of those who kept and signed
	// heads. A bad signature under a known key is a problem; with any HeadKeys,
	// one under an unknown key is too. Without, such a head is compared all the
	// same: see Report.HeadsSigned.
	HeadKeys map[string]ed25519.PublicKey
	// AnchorKeys are the writers of chains that this one anchors; with any,
	// an anchor that none of them signed is bad.
	AnchorKeys map[string]ed25519.PublicKey
	// Check, if set, is asked about each good record, in order: what it finds wrong with
	// what a record carries makes the record bad.
	Check func(Record) error
	// changes lets the writer name another recovery key. Only good where the last writer is
	// trusted: a thief of the machine's key could name a key of their own.
	changes bool
}

// Report is what Verify found. When Problem is set, the other fields count
// only what came before the bad record.
type Report struct {
	Chain       string   `json:"chain"`
	Records     int64    `json:"records"`
	Head        Head     `json:"head"`
	Signed      bool     `json:"signed"`       // signatures were checked
	HeadsAgreed int      `json:"heads_agreed"` // of VerifyOptions.Heads
	HeadsSigned bool     `json:"heads_signed"` // there are kept heads, and the signatures of all were checked
	LastAgreed  int64    `json:"last_agreed"`  // the highest record that a kept head vouches for
	Anchors     int      `json:"anchors"`      // heads of others recorded here
	Effects     int      `json:"effects"`      // intents
	Handovers   int      `json:"handovers"`    // changes of the writer that the recovery key signed
	Unfinished  []Record `json:"unfinished"`   // intents without outcome, oldest first
	// Decisions are the customer's, to continue although records are missing. A
	// chain with any is good only in what it still has.
	Decisions []Decision `json:"decisions,omitempty"`
	// Disputes are events by which the writer says that another process holds its key.
	Disputes []Record `json:"disputes,omitempty"`
	// HeadsAbandoned are of VerifyOptions.Heads, and of records that a decision
	// abandoned: they agree with nothing here.
	HeadsAbandoned int `json:"heads_abandoned,omitempty"`

	// Writer is the id of the key that wrote the last record.
	Writer string `json:"writer,omitempty"`
	// Keys are from when to when each key stands behind records.
	Keys []Vouched `json:"keys"`
	// Fork is where the chain and a kept head part: another record stands there than the
	// one whose head was kept.
	Fork *Fork `json:"fork,omitempty"`

	// FirstBad is the number of the first bad record, and Problem says in a
	// sentence what is wrong. A problem without number is about the whole.
	FirstBad int64  `json:"first_bad,omitempty"`
	Problem  string `json:"problem,omitempty"`
}

// Fork is two histories under one name.
type Fork struct {
	Seq  int64  `json:"seq"`
	Here string `json:"here"` // hash of the record in the file
	Kept string `json:"kept"` // that was kept by KeyID at that time
	By   string `json:"by"`
	// Common is the last record that a kept head vouches for before, 0 for none.
	Common int64     `json:"common"`
	KeptAt time.Time `json:"kept_at"`
}

// OK reports whether nothing is wrong. Effects without outcome do not count:
// they may be under way.
func (r Report) OK() bool { return r.Problem == "" }

// Verify reads a chain to its end or to its first bad record. The error is
// about reading; what is wrong with the chain is in the report. It needs
// nothing but its arguments, and memory only for what is unfinished.
func Verify(r io.Reader, o VerifyOptions) (Report, error) {
	v := &verifier{
		options: o,
		report:  Report{Chain: o.Chain, Head: o.After, Signed: len(o.Keys) > 0},
		open:    map[int64]Record{},
		heads:   map[int64][]SignedHead{},
		anchors: map[string]Head{},
	}
	if o.Chain != "" {
		v.begin(o.Chain)
	}
	in := bufio.NewReaderSize(r, maxLine+1)
	for {
		raw, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && len(raw) == 0:
			v.finish()
			v.report.Keys = v.vouching.list()
			return v.report, nil
		case errors.Is(err, io.EOF):
			v.bad("last line is cut off")
		case errors.Is(err, bufio.ErrBufferFull):
			v.bad("line is too long")
		case err != nil:
			return v.report, err
		default:
			v.line(raw[:len(raw)-1])
		}
		if !v.report.OK() {
			v.unfinished()
			v.report.Keys = v.vouching.list()
			return v.report, nil
		}
	}
}

type verifier struct {
	options  VerifyOptions
	report   Report
	open     map[int64]Record
	writer   string                 // key id of the record before
	recovery ed25519.PublicKey      // that the chain names, nil without one
	heads    map[int64][]SignedHead // kept heads that were not met yet, by seq
	vouching vouching
	anchors  map[string]Head // last anchored head of each other chain
}

// begin takes the heads that were kept of this chain.
func (v *verifier) begin(id string) {
	v.report.Chain = id
	// Heads are signed by the chain's writer, or by who kept them: the control
	// plane signs what it anchors itself.
	keys := maps.Clone(v.options.Keys)
	if keys == nil {
		keys = map[string]ed25519.PublicKey{}
	}
	maps.Copy(keys, v.options.HeadKeys)
	signed := true
	for _, h := range v.options.Heads {
		if h.Chain != id {
			continue
		}
		if _, known := keys[h.KeyID]; !known && len(v.options.HeadKeys) == 0 {
			signed = false
		} else if err := VerifyHead(keys, h); err != nil {
			v.report.Problem = fmt.Sprintf("the kept head of record %d is not to be trusted: %v", h.Seq, err)
			return
		}
		v.heads[h.Seq] = append(v.heads[h.Seq], h)
	}
	v.report.HeadsSigned = signed && len(v.heads) > 0
}

// bad names the record after the last good one.
func (v *verifier) bad(format string, args ...any) {
	v.report.FirstBad = v.report.Head.Seq + 1
	v.report.Problem = fmt.Sprintf(format, args...)
}

// line checks one record and moves the report on.
func (v *verifier) line(raw []byte) {
	rec, err := ParseRecord(raw)
	if err != nil {
		v.bad("%v", err)
		return
	}
	if v.report.Chain == "" {
		if v.begin(rec.Chain); !v.report.OK() {
			return
		}
	}
	head := Head{Seq: rec.Seq, Hash: hashOf(raw)}
	if _, known := v.options.Keys[rec.KeyID]; v.report.Signed && !known && rec.Handover != nil {
		if err := v.takeOver(rec); err != nil {
			v.bad("%v", err)
			return
		}
	}
	switch {
	case rec.Chain != v.report.Chain:
		v.bad("belongs to chain %.80q, not %q", rec.Chain, v.report.Chain)
	case rec.Seq != v.report.Head.Seq+1:
		v.bad("has number %d, want %d", rec.Seq, v.report.Head.Seq+1)
	case rec.Prev != v.report.Head.Hash:
		v.bad("does not follow the record before: its hash is another")
	case v.report.Signed && !checkSignature(raw, v.options.Keys[rec.KeyID]):
		v.bad("is not signed by a given key")
	case !v.agrees(head, rec.Accepted):
		v.bad("is not the record whose head was kept: the chain was rewritten here or before")
	default:
		v.kind(rec)
	}
	if v.report.OK() && v.options.Check != nil {
		if err := v.options.Check(rec); err != nil {
			v.bad("%v", err)
		}
	}
	if v.report.OK() {
		v.report.Records++
		v.report.Head = head
		v.writer, v.report.Writer = rec.KeyID, rec.KeyID
		v.names(rec)
		v.vouching.record(rec, v.report.Signed, v.options.Check != nil)
	}
}

// agrees checks the kept heads of this record. Those of records that the
// customer has given up, by this record or one before, agree with nothing.
func (v *verifier) agrees(head Head, accepted *Acceptance) bool {
	for _, kept := range v.heads[head.Seq] {
		if kept.Hash != head.Hash {
			if !v.abandoned(kept.Seq) && (accepted == nil || head.Seq > Decision{Acceptance: *accepted}.last()) {
				v.report.Fork = &Fork{Seq: head.Seq, Here: head.Hash, Kept: kept.Hash, By: kept.KeyID, Common: v.report.LastAgreed, KeptAt: kept.Time}
				return false
			}
			v.report.HeadsAbandoned++
			continue
		}
		v.report.HeadsAgreed++
		v.report.LastAgreed = head.Seq
	}
	delete(v.heads, head.Seq)
	return true
}

// kind checks what a record says about others.
func (v *verifier) kind(rec Record) {
	switch rec.Kind {
	case Intent:
		v.open[rec.Seq] = rec
		v.report.Effects++
	case Outcome:
		if _, known := v.open[rec.Intent]; !known && rec.Intent > v.options.After.Seq {
			v.bad("is the outcome of record %d, which is not an intent without outcome", rec.Intent)
		}
		delete(v.open, rec.Intent)
	case Anchor:
		v.anchor(*rec.Anchored)
	case Event:
		if rec.Accepted != nil {
			v.report.Decisions = append(v.report.Decisions, Decision{Seq: rec.Seq, Acceptance: *rec.Accepted})
		}
		if rec.Result == Disputed {
			v.report.Disputes = append(v.report.Disputes, rec)
		}
	}
}

// abandoned reports whether a decision has given record seq up.
func (v *verifier) abandoned(seq int64) bool {
	for _, d := range v.report.Decisions {
		if seq >= d.Seq && seq <= d.last() {
			return true
		}
	}
	return false
}

// anchor checks a head of another chain: it may stand still or grow.
func (v *verifier) anchor(h SignedHead) {
	if len(v.options.AnchorKeys) > 0 {
		if err := VerifyHead(v.options.AnchorKeys, h); err != nil {
			v.bad("anchors chain %.80q: %v", h.Chain, err)
			return
		}
	}
	before := v.anchors[h.Chain]
	if h.Seq < before.Seq || h.Seq == before.Seq && h.Seq > 0 && h.Hash != before.Hash {
		v.bad("anchors chain %.80q at %d, which was at %d before: that chain was rewritten", h.Chain, h.Seq, before.Seq)
		return
	}
	v.anchors[h.Chain] = h.Head
	v.report.Anchors++
}

// finish checks what can be said only at the end.
func (v *verifier) finish() {
	v.unfinished()
	if !v.report.OK() {
		return // already when it began
	}
	last := v.report.Head.Seq
	for _, seq := range slices.Sorted(maps.Keys(v.heads)) {
		if seq > last && v.abandoned(seq) {
			v.report.HeadsAbandoned += len(v.heads[seq])
			continue
		}
		if seq > last {
			v.bad("is missing: the head of record %d was kept, but the chain ends at %d", seq, last)
			return
		}
		for _, kept := range v.heads[seq] {
			if kept.Head == v.options.After {
				v.report.HeadsAgreed++
				v.report.LastAgreed = max(v.report.LastAgreed, seq)
			}
		}
	}
	if len(v.options.Heads) > 0 && v.report.HeadsAgreed+v.report.HeadsAbandoned == 0 {
		v.report.Problem = "none of the kept heads is of this chain"
	}
}

func (v *verifier) unfinished() {
	for _, seq := range slices.Sorted(maps.Keys(v.open)) {
		v.report.Unfinished = append(v.report.Unfinished, v.open[seq])
	}
}
