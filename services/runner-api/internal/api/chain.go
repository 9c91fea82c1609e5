package api

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/apigen"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/dated"
	"github.com/berth-dev/berth/services/runner-api/internal/gate"
)

// Problems with a place in the chain, as the contract names them.
const (
	chainGap  = "chain_gap"
	chainFork = "chain_fork"
)

// GetChainHead says where the copy of the install's chain ends.
func (a *API) GetChainHead(ctx context.Context, _ apigen.GetChainHeadRequestObject) (apigen.GetChainHeadResponseObject, error) {
	s, err := gate.SessionOf(ctx)
	if err != nil {
		return nil, err
	}
	install, err := installOf(s)
	if err != nil {
		return nil, err
	}
	var head chain.Head
	err = a.read(ctx, s, func(ctx context.Context, tx *database.Tx) error {
		head, err = chainHead(ctx, tx, install)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read chain head: %w", err)
	}
	return apigen.GetChainHead200JSONResponse{Seq: head.Seq, Hash: head.Hash}, nil
}

// compareChain raises an alarm when the chain that a runner comes with is not a
// continuation of the copy. The runner finds out by itself and stops mutations;
// the alarm does not depend on that.
func (a *API) compareChain(ctx context.Context, tx *database.Tx, runner runnerdb.RunnerLockRow, brought *apigen.ChainHead) error {
	if brought == nil {
		return nil
	}
	install := *runner.InstallID
	stored, err := chainHead(ctx, tx, install)
	if err != nil || stored.Seq < brought.Seq {
		return err // the rest is compared as it is copied
	}
	at := chain.Head{}
	if brought.Seq > 0 {
		rows, err := tx.RunnerChainRecords(ctx, runnerdb.RunnerChainRecordsParams{Chain: install, FirstSeq: brought.Seq, LastSeq: brought.Seq})
		if err != nil {
			return err
		}
		if len(rows) == 1 {
			at = chain.Head{Seq: rows[0].Seq, Hash: shownHash(rows[0].Hash)}
		}
	}
	found := alarm{
		runnerID: runner.ID, installID: &install,
		subject: fmt.Sprintf("record %d %s", stored.Seq, stored.Hash),
		detail:  map[string]any{"stored_seq": stored.Seq, "runner_seq": brought.Seq, "runner_hash": brought.Hash},
	}
	switch {
	case brought.Seq > 0 && at.Hash != brought.Hash:
		found.kind = alarmChainFork
		a.metrics.chainForks.Add(ctx, 1)
	case stored.Seq > brought.Seq:
		found.kind = alarmChainBehind
	default:
		return nil
	}
	a.log.ErrorContext(ctx, "chain of a runner does not continue its copy", "org_id", tx.OrgID(), "install_id", install, "runner_id", runner.ID,
		"alarm", found.kind, "runner_seq", brought.Seq, "stored_seq", stored.Seq)
	return raise(ctx, tx, found)
}

// AppendChain copies records of the install's chain.
func (a *API) AppendChain(ctx context.Context, req apigen.AppendChainRequestObject) (apigen.AppendChainResponseObject, error) {
	s, err := gate.SessionOf(ctx)
	if err != nil {
		return nil, err
	}
	install, err := installOf(s)
	if err != nil {
		return nil, err
	}
	records := req.Body.Records
	for i, record := range records {
		if record.Seq != records[0].Seq+int64(i) || bytes.IndexByte(record.Body, '\n') >= 0 {
			return nil, fault.Newf(fault.ErrInvalid, "records must be in order, without a gap, each one line")
		}
	}
	var head chain.Head
	var problem string
	err = a.write(ctx, s, func(ctx context.Context, tx *database.Tx) error {
		head, problem, err = appendChain(ctx, tx, install, records)
		if err != nil || problem != chainFork {
			return err
		}
		fork := forkAlarm(head, records)
		fork.runnerID, fork.installID = s.RunnerID, &install
		return raise(ctx, tx, fork)
	})
	if err != nil {
		return nil, fmt.Errorf("append chain: %w", err)
	}
	if problem == "" {
		return apigen.AppendChain200JSONResponse{Seq: head.Seq, Hash: head.Hash}, nil
	}
	detail := fmt.Sprintf("the stored chain ends with record %d", head.Seq)
	if problem == chainFork {
		detail = fmt.Sprintf("record %d or one before differs from the stored chain", records[0].Seq)
		a.metrics.chainForks.Add(ctx, 1)
		a.log.ErrorContext(ctx, "chain forked", "org_id", s.OrgID, "install_id", install, "runner_id", s.RunnerID, "first_seq", records[0].Seq, "stored_seq", head.Seq)
	}
	return apigen.AppendChain409ApplicationProblemPlusJSONResponse{
		Type: "about:blank", Title: http.StatusText(http.StatusConflict), Status: http.StatusConflict,
		Code: problem, Detail: &detail, Seq: head.Seq, Hash: head.Hash,
	}, nil
}

// forkAlarm is about the stored history, of which there is one, and not about
// the others, of which a runner can make as many as it likes.
func forkAlarm(stored chain.Head, offered []apigen.ChainRecord) alarm {
	return alarm{
		kind: alarmChainFork, subject: fmt.Sprintf("record %d %s", stored.Seq, stored.Hash),
		detail: map[string]any{"first_seq": offered[0].Seq, "records": len(offered), "first_digest": capsule.DigestBytes(offered[0].Body)},
	}
}

// chainCopy is the copy of an install's chain that the transaction sees.
type chainCopy struct {
	tx      *database.Tx
	install string
	head    chain.Head
}

// appendChain returns the head after the records, or the present one and what
// stands against them.
func appendChain(ctx context.Context, tx *database.Tx, install string, records []apigen.ChainRecord) (head chain.Head, problem string, _ error) {
	head, err := chainHead(ctx, tx, install)
	if err != nil {
		return head, "", err
	}
	if records[0].Seq > head.Seq+1 {
		return head, chainGap, nil
	}
	stored := chainCopy{tx, install, head}
	known := min(head.Seq-records[0].Seq+1, int64(len(records)))
	same, err := stored.has(ctx, records[:known])
	if err != nil {
		return head, "", err
	}
	if !same {
		return head, chainFork, nil
	}
	fresh := records[known:]
	if len(fresh) == 0 {
		return head, "", nil
	}
	if first, err := chain.ParseRecord(fresh[0].Body); err == nil && first.Prev != head.Hash {
		return head, chainFork, nil
	}
	if err := stored.verify(ctx, fresh); err != nil {
		return head, "", err
	}
	head, err = stored.add(ctx, fresh)
	return head, "", err
}

// has compares records with the stored ones of the same numbers.
func (c chainCopy) has(ctx context.Context, records []apigen.ChainRecord) (bool, error) {
	if len(records) == 0 {
		return true, nil
	}
	stored, err := c.tx.RunnerChainRecords(ctx, runnerdb.RunnerChainRecordsParams{Chain: c.install, FirstSeq: records[0].Seq, LastSeq: records[len(records)-1].Seq})
	if err != nil || len(stored) != len(records) {
		return false, err
	}
	for i := range records {
		if !bytes.Equal(stored[i].Body, records[i].Body) {
			return false, nil
		}
	}
	return true, nil
}

// verify checks numbers, hashes and signatures. The keys are all that
// the install's runners ever had: a chain outlives a machine.
func (c chainCopy) verify(ctx context.Context, records []apigen.ChainRecord) error {
	rows, err := c.tx.RunnerChainKeys(ctx, &c.install)
	if err != nil {
		return err
	}
	keys := make(map[string]ed25519.PublicKey, len(rows))
	for _, row := range rows {
		if keys[row.KeyID], err = capsule.ParsePublicKey(row.PublicKey); err != nil {
			return fmt.Errorf("key %s: %w", row.KeyID, err)
		}
	}
	if len(keys) == 0 {
		// Without keys Verify would not look at signatures.
		return fault.Newf(fault.ErrForbidden, "no runner of this install has a key")
	}
	var lines bytes.Buffer
	for _, record := range records {
		lines.Write(record.Body)
		lines.WriteByte('\n')
	}
	report, err := chain.Verify(&lines, chain.VerifyOptions{Chain: c.install, After: c.head, Keys: keys})
	if err != nil {
		return err
	}
	if !report.OK() {
		return fault.With(fault.Newf(fault.ErrInvalid, "record %d %s", report.FirstBad, report.Problem), fault.Code("chain_record_bad"))
	}
	var times []dated.Time
	for i, record := range records {
		parsed, err := chain.ParseRecord(record.Body)
		if err != nil {
			return err // they were just verified
		}
		times = append(times, dated.Time{Pointer: fmt.Sprintf("/records/%d", i), At: parsed.Time})
	}
	return dated.Check(time.Now(), times...)
}

// add appends records that were verified, and returns the head after them.
func (c chainCopy) add(ctx context.Context, records []apigen.ChainRecord) (chain.Head, error) {
	prev, err := rawHash(c.head.Hash)
	if err != nil {
		return c.head, err
	}
	add := runnerdb.RunnerAddChainRecordsParams{Chain: c.install}
	for _, record := range records {
		hash := sha256.Sum256(record.Body)
		add.Seqs = append(add.Seqs, record.Seq)
		add.Prevs = append(add.Prevs, prev)
		add.Hashes = append(add.Hashes, hash[:])
		add.Bodies = append(add.Bodies, record.Body)
		prev = hash[:]
	}
	if err := c.tx.RunnerAddChainRecords(ctx, add); err != nil {
		return c.head, err
	}
	last := records[len(records)-1].Seq
	if err := c.tx.RunnerMoveChainHead(ctx, runnerdb.RunnerMoveChainHeadParams{Chain: c.install, Seq: last, Hash: prev}); err != nil {
		return c.head, err
	}
	return chain.Head{Seq: last, Hash: shownHash(prev)}, nil
}

func chainHead(ctx context.Context, tx *database.Tx, install string) (chain.Head, error) {
	row, err := found(tx.RunnerChainHead(ctx, install))
	if err != nil || row == nil {
		return chain.Head{}, err
	}
	return chain.Head{Seq: row.Seq, Hash: shownHash(row.Hash)}, nil
}

// Rows hold the 32 bytes of a hash; records and the API write it as text.
func shownHash(raw []byte) string { return "sha256:" + hex.EncodeToString(raw) }

func rawHash(shown string) ([]byte, error) {
	if shown == "" {
		return []byte{}, nil
	}
	return hex.DecodeString(shown[len("sha256:"):])
}
