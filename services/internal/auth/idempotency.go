package auth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/httpserver"
)

const (
	// IdempotencyHeader makes a POST safe to send again.
	IdempotencyHeader = "Idempotency-Key"
	// ReplayedHeader is "true" on an answer that was given before.
	ReplayedHeader = "Idempotency-Replayed"

	maxKeyChars = 128

	// finishTimeout is for remembering an answer whose client has gone.
	finishTimeout = 5 * time.Second
)

// Attempt is one request with an Idempotency-Key.
type Attempt struct {
	Principal Principal
	Key       string
	Route     string
	BodyHash  []byte
}

// Remembered is what is known of an earlier request with the same key.
type Remembered struct {
	Route    string
	BodyHash []byte
	// Status of the answer; 0 while the request is still being worked on.
	Status      int
	ContentType string
	Body        []byte
}

// Memory keeps keys and answers.
type Memory interface {
	// Begin claims the key, or returns what is known of it.
	Begin(ctx context.Context, a Attempt) (*Remembered, error)
	// Finish remembers the answer.
	Finish(ctx context.Context, a Attempt, answer Remembered) error
	// Abandon frees the key: nothing was done.
	Abandon(ctx context.Context, a Attempt) error
}

// Idempotent makes POSTs with an Idempotency-Key answer a repetition like the
// first time. It goes after Authorize. Only successes are remembered: whatever
// was refused may be tried again. Streamed bodies are not covered.
func Idempotent(memory Memory) gin.HandlerFunc {
	return func(c *gin.Context) {
		key := c.GetHeader(IdempotencyHeader)
		principal := PrincipalOf(c.Request.Context())
		if c.Request.Method != http.MethodPost || key == "" || principal.Kind == "" || c.ContentType() == "application/octet-stream" {
			return
		}
		if len(key) > maxKeyChars {
			httpserver.WriteProblem(c, fault.Newf(fault.ErrInvalid, "the %s is longer than %d characters", IdempotencyHeader, maxKeyChars))
			return
		}
		body, err := io.ReadAll(c.Request.Body) // limited by the server
		if err != nil {
			httpserver.RequestError(c, err)
			return
		}
		c.Request.Body = io.NopCloser(bytes.NewReader(body))
		hash := sha256.Sum256(body)
		attempt := Attempt{Principal: principal, Key: key, Route: c.Request.Method + " " + c.Request.URL.Path, BodyHash: hash[:]}
		earlier, err := memory.Begin(c.Request.Context(), attempt)
		if err != nil {
			httpserver.WriteProblem(c, err)
			return
		}
		if earlier != nil {
			replay(c, attempt, earlier)
			return
		}
		record(c, memory, attempt)
	}
}

func replay(c *gin.Context, attempt Attempt, earlier *Remembered) {
	same := earlier.Route == attempt.Route && subtle.ConstantTimeCompare(earlier.BodyHash, attempt.BodyHash) == 1
	switch {
	case !same:
		httpserver.WriteProblem(c, fault.With(fault.Newf(fault.ErrConflict, "this %s was used for another request", IdempotencyHeader),
			fault.Code("idempotency_key_reused"), fault.Remedy("use a new key for a new request")))
	case earlier.Status == 0:
		httpserver.WriteProblem(c, fault.With(fault.Newf(fault.ErrConflict, "the first request with this %s is still being worked on", IdempotencyHeader),
			fault.Code("idempotency_key_busy"), fault.Remedy("send it again in a few seconds")))
	default:
		c.Header(ReplayedHeader, "true")
		c.Data(earlier.Status, earlier.ContentType, earlier.Body)
		c.Abort()
	}
}

// record lets the request run and remembers its answer.
func record(c *gin.Context, memory Memory, attempt Attempt) {
	recorder := &recorder{ResponseWriter: c.Writer}
	c.Writer = recorder
	finished := false
	defer func() {
		// Also after a panic, and when the client has gone.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request.Context()), finishTimeout)
		defer cancel()
		c.Writer = recorder.ResponseWriter
		status := recorder.Status()
		var err error
		if finished && status >= 200 && status < 300 {
			err = memory.Finish(ctx, attempt, Remembered{
				Route: attempt.Route, BodyHash: attempt.BodyHash,
				Status: status, ContentType: recorder.Header().Get("Content-Type"), Body: recorder.body.Bytes(),
			})
		} else {
			err = memory.Abandon(ctx, attempt)
		}
		if err != nil {
			// The answer is out; the key stays busy until its memory forgets it.
			_ = c.Error(err)
		}
	}()
	c.Next()
	finished = true
}

type recorder struct {
	gin.ResponseWriter
	body bytes.Buffer
}

func (r *recorder) Write(p []byte) (int, error) {
	r.body.Write(p)
	return r.ResponseWriter.Write(p)
}

func (r *recorder) WriteString(s string) (int, error) {
	r.body.WriteString(s)
	return r.ResponseWriter.WriteString(s)
}
