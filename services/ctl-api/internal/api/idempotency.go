package api

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// statusCarriedOut in idempotency_keys.status: committed, and its answer is not
// stored yet, or was lost.
const statusCarriedOut = 1

type idempotencyKey struct{}

// markCarriedOut records, as part of the transaction that does what was asked
// for, that it was done: a repeat after a crash then is not done again, even
// when the answer was lost.
func markCarriedOut(ctx context.Context, tx *database.Tx) error {
	key, ok := ctx.Value(idempotencyKey{}).(string)
	if !ok {
		return nil
	}
	return tx.MarkIdempotencyKeyDone(ctx, ctldb.MarkIdempotencyKeyDoneParams{AccountID: auth.PrincipalOf(ctx).AccountID, Key: key})
}

// memory keeps the answers of POSTs with an Idempotency-Key. An answer may hold
// a secret that is shown once, so it is kept sealed.
type memory struct{ s *Server }

// kept is what is sealed of an answer.
type kept struct {
	ContentType string `json:"content_type"`
	Body        []byte `json:"body"`
}

// Begin implements auth.Memory.
func (m memory) Begin(ctx context.Context, a auth.Attempt) (*auth.Remembered, error) {
	var row ctldb.IdempotencyKey
	first := false
	err := m.s.Store.Tx(ctx, a.Principal.OrgID, func(ctx context.Context, tx *database.Tx) error {
		if err := tx.ForgetIdempotencyKeys(ctx, a.Principal.AccountID); err != nil {
			return err
		}
		n, err := tx.ClaimIdempotencyKey(ctx, ctldb.ClaimIdempotencyKeyParams{AccountID: a.Principal.AccountID, Key: a.Key, Route: a.Route, BodyHash: a.BodyHash})
		if first = n == 1; err != nil || first {
			return err
		}
		row, err = tx.GetIdempotencyKey(ctx, ctldb.GetIdempotencyKeyParams{AccountID: a.Principal.AccountID, Key: a.Key})
		return err
	})
	if err != nil || first {
		return nil, err
	}
	earlier := &auth.Remembered{Route: row.Route, BodyHash: row.BodyHash, Status: int(row.Status)}
	switch row.Status {
	case 0:
		return earlier, nil
	case statusCarriedOut:
		return nil, fault.With(fault.Newf(fault.ErrConflict, "this request was carried out, but its answer was lost"),
			fault.Code("idempotency_answer_lost"), fault.Remedy("check what it made"))
	}
	raw, err := m.s.Keys.Open(keys.AnswerAtRest(row.OrgID, row.AccountID, row.Key), row.Response)
	if err != nil {
		return nil, fmt.Errorf("open kept answer: %w", err)
	}
	var answer kept
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, fmt.Errorf("decode kept answer: %w", err)
	}
	earlier.ContentType, earlier.Body = answer.ContentType, answer.Body
	return earlier, nil
}

// Finish implements auth.Memory.
func (m memory) Finish(ctx context.Context, a auth.Attempt, answer auth.Remembered) error {
	raw, err := json.Marshal(kept{ContentType: answer.ContentType, Body: answer.Body})
	if err != nil {
		return err
	}
	sealed, err := m.s.Keys.Seal(keys.AnswerAtRest(a.Principal.OrgID, a.Principal.AccountID, a.Key), raw)
	if err != nil {
		return err
	}
	return m.s.Store.Tx(ctx, a.Principal.OrgID, func(ctx context.Context, tx *database.Tx) error {
		return tx.StoreIdempotentAnswer(ctx, ctldb.StoreIdempotentAnswerParams{
			AccountID: a.Principal.AccountID, Key: a.Key, Status: int32(answer.Status), Response: sealed,
		})
	})
}

// Abandon implements auth.Memory. A key whose request was carried out without
// an answer stays.
func (m memory) Abandon(ctx context.Context, a auth.Attempt) error {
	return m.s.Store.Tx(ctx, a.Principal.OrgID, func(ctx context.Context, tx *database.Tx) error {
		return tx.ReleaseIdempotencyKey(ctx, ctldb.ReleaseIdempotencyKeyParams{AccountID: a.Principal.AccountID, Key: a.Key})
	})
}
