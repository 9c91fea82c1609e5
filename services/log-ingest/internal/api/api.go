// Package api answers the routes of openapi/log-ingest.yaml: it checks the
// caller, calls package streams, and converts. It decides nothing about logs.
package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/berth-dev/berth/pkg/logship"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/httpserver"
	"github.com/berth-dev/berth/services/log-ingest/internal/apigen"
	"github.com/berth-dev/berth/services/log-ingest/internal/streams"
)

// maxBody is a batch that zstd could not make smaller, and its framing.
const maxBody = logship.MaxBatch + 64<<10

type server struct {
	streams *streams.Streams
	tails   tailLimits
}

var _ apigen.StrictServerInterface = server{}

// org is whose streams the caller sees. It is empty, and shows nothing, outside
// of an authorised request.
func org(ctx context.Context) string {
	return auth.PrincipalOf(ctx).OrgID
}

// writerOf is the attempt that shows its log token.
func writerOf(ctx context.Context, stream string) streams.Writer {
	hash, _ := ctx.Value(tokenKey{}).([]byte)
	return streams.Writer{Stream: stream, Org: org(ctx), TokenHash: hash}
}

type tokenKey struct{}

// nameWriter is the middleware that lets handlers know which token was shown.
func nameWriter(c *gin.Context) {
	if bearer, err := auth.Bearer(c.Request); err == nil {
		c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), tokenKey{}, auth.Hash(bearer)))
	}
}

// GetStream answers how long a stream is and what is missing.
func (s server) GetStream(ctx context.Context, req apigen.GetStreamRequestObject) (apigen.GetStreamResponseObject, error) {
	stream, err := s.streams.Get(ctx, org(ctx), req.Stream)
	if err != nil {
		return nil, err
	}
	return apigen.GetStream200JSONResponse(streamOut(stream)), nil
}

// ListRecords answers a page, or what a search finds.
func (s server) ListRecords(ctx context.Context, req apigen.ListRecordsRequestObject) (apigen.ListRecordsResponseObject, error) {
	want := streams.Page{After: *req.Params.After, Limit: *req.Params.Limit}
	if text := req.Params.Contains; text != nil {
		want.Contains = *text
	}
	if level := req.Params.Level; level != nil {
		want.Level = streams.Level(*level)
	}
	var page []streams.Numbered
	var next int64
	var err error
	if want.Wanted == (streams.Wanted{}) {
		page, next, err = s.streams.Records(ctx, org(ctx), req.Stream, want)
	} else {
		page, next, err = s.streams.Find(ctx, org(ctx), req.Stream, want)
	}
	if err != nil {
		return nil, err
	}
	out := apigen.RecordPage{Items: make([]apigen.Record, len(page))}
	for i, r := range page {
		out.Items[i] = recordOut(r)
	}
	if next > 0 {
		out.Next = &next
	}
	return apigen.ListRecords200JSONResponse(out), nil
}

// AppendRecords stores a batch.
func (s server) AppendRecords(ctx context.Context, req apigen.AppendRecordsRequestObject) (apigen.AppendRecordsResponseObject, error) {
	prev, err := logship.ParseHash(req.Params.PrevHash)
	if err != nil {
		return nil, fault.Newf(fault.ErrInvalid, "prev_hash: %w", err)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err // too large, or cut short
	}
	encoding := req.Params.ContentEncoding
	head, err := s.streams.Append(ctx, writerOf(ctx, req.Stream), streams.Packed{
		FirstSeq: req.Params.FirstSeq, PrevHash: prev, Body: body,
		Zstd: encoding != nil && *encoding == apigen.AppendRecordsParamsContentEncodingZstd,
	})
	var unfit *streams.HeadError
	if errors.As(err, &unfit) {
		return apigen.AppendRecords409ApplicationProblemPlusJSONResponse(headProblem(ctx, unfit)), nil
	}
	if err != nil {
		return nil, err
	}
	return apigen.AppendRecords200JSONResponse{NextSeq: head.NextSeq, Hash: head.Hash.String()}, nil
}

// FinishStream takes the end of a stream.
func (s server) FinishStream(ctx context.Context, req apigen.FinishStreamRequestObject) (apigen.FinishStreamResponseObject, error) {
	hash, err := logship.ParseHash(req.Body.Hash)
	if err != nil {
		return nil, fault.Newf(fault.ErrInvalid, "hash: %w", err)
	}
	end := logship.End{TotalLines: req.Body.TotalLines, Hash: hash, LateRedaction: req.Body.LateRedaction != nil && *req.Body.LateRedaction}
	stream, err := s.streams.Finish(ctx, writerOf(ctx, req.Stream), end)
	var unfit *streams.HeadError
	if errors.As(err, &unfit) {
		return apigen.FinishStream409ApplicationProblemPlusJSONResponse(headProblem(ctx, unfit)), nil
	}
	if err != nil {
		return nil, err
	}
	return apigen.FinishStream200JSONResponse(streamOut(stream)), nil
}

// TailStream follows a stream.
func (s server) TailStream(ctx context.Context, req apigen.TailStreamRequestObject) (apigen.TailStreamResponseObject, error) {
	after := *req.Params.After
	if id := req.Params.LastEventID; id != nil {
		var err error
		if after, err = strconv.ParseInt(*id, 10, 64); err != nil {
			return nil, fault.Newf(fault.ErrInvalid, "Last-Event-ID must be the id of a record")
		}
	}
	tail, err := s.streams.Tail(ctx, org(ctx), req.Stream, after)
	if err != nil {
		return nil, err
	}
	return apigen.TailStream200TextEventStreamResponse{Body: newEvents(ctx, tail, s.tails)}, nil
}

func recordOut(r streams.Numbered) apigen.Record {
	out := apigen.Record{Seq: r.Seq, Time: r.Time, Source: apigen.Source(r.Source.String()), Text: r.Text}
	if r.Continues {
		out.Continues = &r.Continues
	}
	if lost := r.LostLines(); lost > 0 {
		out.LostLines = &lost
	}
	if level := streams.LevelOf(r.Record); level != streams.NoLevel {
		said := apigen.Level(level)
		out.Level = &said
	}
	return out
}

func streamOut(s streams.Stream) apigen.Stream {
	out := apigen.Stream{
		ID: s.ID, InstallID: s.InstallID, JobID: s.JobID, RunID: s.RunID, Attempt: s.Attempt,
		State: apigen.StreamState(s.State), Lines: s.NextSeq - 1, Bytes: s.Bytes, Sha256: logship.Hash(s.HeadHash).String(),
		Complete: s.Complete(), Gaps: make([]apigen.Gap, len(s.Gaps)), LateRedaction: s.LateRedaction, CreatedAt: s.CreatedAt.UTC(),
	}
	if s.FinishedAt != nil {
		at := s.FinishedAt.UTC()
		out.FinishedAt = &at
	}
	for i, g := range s.Gaps {
		reason := apigen.GapReasonDropped
		if g.Expired {
			reason = apigen.GapReasonExpired
		}
		out.Gaps[i] = apigen.Gap{Reason: reason, Seq: g.Seq, Lines: g.Lines}
	}
	return out
}

func headProblem(ctx context.Context, e *streams.HeadError) apigen.HeadProblem {
	request := httpserver.RequestID(ctx)
	return apigen.HeadProblem{
		Type: "about:blank", Title: http.StatusText(http.StatusConflict), Status: http.StatusConflict,
		Code: e.Code, Detail: &e.Detail, RequestID: &request, NextSeq: e.Head.NextSeq, Hash: e.Head.Hash.String(),
	}
}

// tailLimits are the times of a tail.
type tailLimits struct {
	// beat is how often a silent tail says that it lives, and looks at the rows
	// without being woken.
	beat time.Duration
	// age is when a tail ends so that its reader must show its token again.
	age time.Duration
}
