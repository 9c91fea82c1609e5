package logship

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/berth-dev/berth/pkg/logapi"
)

// The problem codes of log-ingest that a shipper acts upon.
const (
	CodeGap      = "log_gap"
	CodeConflict = "log_conflict"
	CodeClosed   = "stream_closed"
	CodeFinished = "stream_finished"
)

// HTTPSink is one stream of log-ingest.
type HTTPSink struct {
	Client logapi.ClientWithResponsesInterface
	Stream string
	// Token returns the stream's log token. It is called for each request, so a
	// newer token is used as soon as the agent has one.
	Token func() string
}

// StatusError is an answer that the contract does not foresee here, such as
// that of a proxy, or of a service that is going away.
type StatusError struct {
	Status int
	Code   string // empty when the body is not a problem
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("log-ingest answered %d %s %s", e.Status, http.StatusText(e.Status), e.Code)
}

// encoder is shared: it keeps no state between batches, and one is enough for
// what an agent sends.
var encoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
})

// Append sends a batch.
func (s HTTPSink) Append(ctx context.Context, b Batch) (int64, error) {
	enc, err := encoder()
	if err != nil {
		return 0, err
	}
	encoding := logapi.AppendRecordsParamsContentEncodingZstd
	params := &logapi.AppendRecordsParams{FirstSeq: b.FirstSeq, PrevHash: b.PrevHash.String(), ContentEncoding: &encoding}
	body := bytes.NewReader(enc.EncodeAll(b.Frames, nil))
	resp, err := s.Client.AppendRecordsWithBodyWithResponse(ctx, s.Stream, params, "application/octet-stream", body, s.authorize)
	if err != nil {
		return 0, err
	}
	if resp.JSON200 != nil {
		return resp.JSON200.NextSeq, nil
	}
	return 0, problem(resp.StatusCode(), resp.ApplicationProblemJSON409, resp.ApplicationProblemJSONDefault)
}

// Finish says the end of the stream.
func (s HTTPSink) Finish(ctx context.Context, end End) error {
	body := logapi.Finish{TotalLines: end.TotalLines, Hash: end.Hash.String(), LateRedaction: &end.LateRedaction}
	resp, err := s.Client.FinishStreamWithResponse(ctx, s.Stream, body, s.authorize)
	if err != nil {
		return err
	}
	if resp.JSON200 != nil {
		return nil
	}
	return problem(resp.StatusCode(), resp.ApplicationProblemJSON409, resp.ApplicationProblemJSONDefault)
}

func (s HTTPSink) authorize(_ context.Context, req *http.Request) error {
	req.Header.Set("Authorization", "Bearer "+s.Token())
	return nil
}

// problem makes the error that Shipper acts upon.
func problem(status int, conflict *logapi.HeadProblem, other *logapi.Problem) error {
	switch {
	case conflict != nil && conflict.Code == CodeGap:
		hash, _ := ParseHash(conflict.Hash)
		return &GapError{NextSeq: conflict.NextSeq, Hash: hash}
	case conflict != nil && conflict.Code == CodeConflict:
		hash, err := ParseHash(conflict.Hash)
		if err != nil {
			return fmt.Errorf("%w: %s at line %d", ErrConflict, conflict.Code, conflict.NextSeq)
		}
		return &ConflictError{Head: Head{NextSeq: conflict.NextSeq, Hash: hash}}
	case conflict != nil && conflict.Code == CodeFinished:
		return fmt.Errorf("%w with line %d", ErrFinished, conflict.NextSeq-1)
	case other != nil && other.Code == CodeClosed:
		return ErrClosed
	case other != nil:
		return &StatusError{Status: status, Code: other.Code}
	}
	return &StatusError{Status: status}
}
