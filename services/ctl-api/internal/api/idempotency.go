package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/berth-dev/berth/services/ctl-api/internal/access"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/httpserver"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/db"
)

const (
	idempotencyHeader = "Idempotency-Key"
	// replayedHeader marks an answer that was given before.
	replayedHeader = "Idempotency-Replayed"

	// Values of idempotency_keys.status that are no HTTP status.
	statusWorking    = 0
	statusCarriedOut = 1 // committed; its answer is not stored, or was lost
)

type idempotencyKey struct{}

// markCarriedOut records, as part of the transaction that does what was asked
// for, that it was done: a repeat after a crash then is not done again, even
// when the answer was lost.
func markCarriedOut(ctx context.Context, tx *store.Tx) error {
	key, ok := ctx.Value(idempotencyKey{}).(string)
	if !ok || tx.OrgID() != access.PrincipalOf(ctx).OrgID {
		return nil
	}
	return tx.MarkIdempotencyKeyDone(ctx, db.MarkIdempotencyKeyDoneParams{AccountID: access.PrincipalOf(ctx).AccountID, Key: key})
}

// idempotent gives a POST with an Idempotency-Key its first answer again. The
// answer may hold a secret that is shown once, so it is kept sealed.
func (s *Server) idempotent(c *gin.Context) {
	key := c.GetHeader(idempotencyHeader)
	if c.Request.Method != http.MethodPost || key == "" {
		return
	}
	body, err := io.ReadAll(c.Request.Body)
	if err != nil {
		httpserver.RequestError(c, err)
		return
	}
	c.Request.Body = io.NopCloser(bytes.NewReader(body))
	hash := sha256.Sum256(body)
	ctx := c.Request.Context()
	claim := db.ClaimIdempotencyKeyParams{
		AccountID: access.PrincipalOf(ctx).AccountID, Key: key, Route: c.Request.Method + " " + c.Request.URL.RequestURI(), BodyHash: hash[:],
	}
	first, err := s.claim(ctx, claim)
	if err == nil && !first {
		if err = s.replay(c, claim); err == nil {
			c.Abort()
			return
		}
	}
	if err != nil {
		httpserver.WriteProblem(c, err)
		return
	}
	recorder := &answerRecorder{ResponseWriter: c.Writer}
	c.Writer = recorder
	c.Request = c.Request.WithContext(context.WithValue(ctx, idempotencyKey{}, key))
	// Also when a handler panics. The caller may be gone; what was done must
	// be remembered all the same.
	defer s.remember(context.WithoutCancel(ctx), claim, recorder)
	c.Next()
}

func (s *Server) claim(ctx context.Context, claim db.ClaimIdempotencyKeyParams) (first bool, err error) {
	err = s.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		n, err := tx.ClaimIdempotencyKey(ctx, claim)
		first = n == 1
		return err
	})
	return first, err
}

// answer is what is kept of an answer.
type answer struct {
	ContentType string `json:"content_type"`
	Body        []byte `json:"body"`
}

func (s *Server) replay(c *gin.Context, claim db.ClaimIdempotencyKeyParams) error {
	ctx := c.Request.Context()
	var row db.IdempotencyKey
	err := s.read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		row, err = tx.GetIdempotencyKey(ctx, db.GetIdempotencyKeyParams{AccountID: claim.AccountID, Key: claim.Key})
		return err
	})
	switch {
	case err != nil:
		return err
	case row.Route != claim.Route || !bytes.Equal(row.BodyHash, claim.BodyHash):
		return fault.With(fault.Newf(fault.ErrConflict, "this Idempotency-Key was used for another request"), fault.Code("idempotency_mismatch"),
			fault.Remedy("use a new key for a new request"))
	case row.Status == statusWorking:
		return fault.With(fault.Newf(fault.ErrConflict, "a request with this Idempotency-Key is being worked on"), fault.Code("idempotency_in_progress"),
			fault.Remedy("send it again in a moment"))
	case row.Status == statusCarriedOut:
		return fault.With(fault.Newf(fault.ErrConflict, "this request was carried out, and its answer was lost"), fault.Code("idempotency_answer_lost"),
			fault.Remedy("look at what it made"))
	}
	raw, err := s.Keys.Open(row.OrgID, row.Response)
	if err != nil {
		return err
	}
	var kept answer
	if err := json.Unmarshal(raw, &kept); err != nil {
		return err
	}
	c.Header(replayedHeader, "true")
	c.Data(int(row.Status), kept.ContentType, kept.Body)
	return nil
}

// remember keeps the answer of a request that was served, and frees the key of
// one that did nothing. A key whose request was carried out without an answer
// is left as it is.
func (s *Server) remember(ctx context.Context, claim db.ClaimIdempotencyKeyParams, got *answerRecorder) {
	err := s.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		if status := got.Status(); got.body.Len() > 0 && status < http.StatusBadRequest {
			raw, err := json.Marshal(answer{ContentType: got.Header().Get("Content-Type"), Body: got.body.Bytes()})
			if err != nil {
				return err
			}
			sealed, err := s.Keys.Seal(tx.OrgID(), raw)
			if err != nil {
				return err
			}
			return tx.StoreIdempotentAnswer(ctx, db.StoreIdempotentAnswerParams{AccountID: claim.AccountID, Key: claim.Key, Status: int32(status), Response: sealed})
		}
		return tx.ReleaseIdempotencyKey(ctx, db.ReleaseIdempotencyKeyParams{AccountID: claim.AccountID, Key: claim.Key})
	})
	if err != nil {
		s.Log.WarnContext(ctx, "answer not kept for repeats", "err", err)
	}
}

// answerRecorder keeps what is written to the caller.
type answerRecorder struct {
	gin.ResponseWriter
	body bytes.Buffer
}

func (r *answerRecorder) Write(p []byte) (int, error) {
	r.body.Write(p)
	return r.ResponseWriter.Write(p)
}

func (r *answerRecorder) WriteString(text string) (int, error) {
	r.body.WriteString(text)
	return r.ResponseWriter.WriteString(text)
}
