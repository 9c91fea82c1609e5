package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/logship"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/logdb"
	"github.com/berth-dev/berth/services/log-ingest/internal/database"
)

// A HeadError says that a batch, or an end, does not fit the stream, and where
// the stream stands. Code is one of logship's.
type HeadError struct {
	Code   string
	Detail string
	Head   logship.Head
}

func (e *HeadError) Error() string { return e.Code + ": " + e.Detail }

// Packed is a batch as it arrived: frames compressed with zstd, or plain.
type Packed struct {
	FirstSeq int64
	PrevHash logship.Hash
	Body     []byte
	Zstd     bool
}

// Writer is the attempt that shows a log token for a stream of its org.
type Writer struct {
	Org, Stream string
	TokenHash   []byte
}

// Append appends a batch to a stream, for the owner of its log token, and returns
// where the stream stands then. It may be repeated. It returns a HeadError when
// the batch does not fit, and fault.ErrForbidden with the code stream_closed
// when the attempt was voided.
func (s *Streams) Append(ctx context.Context, by Writer, in Packed) (after logship.Head, err error) {
	start := time.Now()
	defer func() {
		if err != nil {
			s.meter.refuse(ctx, err)
		}
	}()
	batch, err := s.open(in)
	if err != nil {
		return logship.Head{}, err
	}
	var added int64
	err = s.write(ctx, by, func(ctx context.Context, tx *database.Tx, row lockedStream) error {
		head := headOf(row)
		d, err := head.Decide(batch)
		if err != nil {
			return fault.Newf(fault.ErrInvalid, "%w", err)
		}
		after, added = head, 0
		switch d.Verdict {
		case logship.Duplicate:
			return nil
		case logship.Gap:
			return &HeadError{Code: logship.CodeGap, Detail: fmt.Sprintf("the batch begins at line %d, but line %d comes next", batch.FirstSeq, head.NextSeq), Head: head}
		case logship.Conflict:
			return conflict(head)
		case logship.Inside:
			same, err := s.endsInside(ctx, tx, row, d.After)
			if err == nil && !same {
				err = conflict(head)
			}
			return err
		}
		if row.State != model.StreamOpen {
			return &HeadError{Code: logship.CodeFinished, Detail: fmt.Sprintf("the stream was finished with %d lines", head.NextSeq-1), Head: head}
		}
		after, added = d.After, d.After.NextSeq-head.NextSeq
		body := in.Body
		if !in.Zstd || len(d.New) != len(batch.Frames) {
			body = s.packer.EncodeAll(d.New, nil)
		}
		return insert(ctx, tx, logdb.InsertLogChunkParams{
			StreamID: row.id, FirstSeq: head.NextSeq, LastSeq: d.After.NextSeq - 1, PrevHash: head.Hash[:],
			RawBytes: int32(len(d.New)), LostLines: lostLines(d.New), Body: body,
		}, d.After)
	})
	if err != nil {
		return logship.Head{}, err
	}
	s.meter.appended(ctx, added, int64(len(batch.Frames)), since(start))
	return after, nil
}

// open unpacks a batch, within its limits.
func (s *Streams) open(in Packed) (logship.Batch, error) {
	batch := logship.Batch{FirstSeq: in.FirstSeq, PrevHash: in.PrevHash, Frames: in.Body}
	if in.Zstd {
		frames, err := s.unpacker.DecodeAll(in.Body, nil)
		if err != nil {
			return batch, fault.Wrap(fault.ErrInvalid, err, "the body is not zstd, or holds more than %d bytes of frames", logship.MaxBatch)
		}
		batch.Frames = frames
	}
	switch {
	case len(batch.Frames) == 0:
		return batch, fault.Newf(fault.ErrInvalid, "the batch has no frames")
	case len(batch.Frames) > logship.MaxBatch:
		return batch, fault.Newf(fault.ErrTooLarge, "the batch has %d bytes of frames; the limit is %d", len(batch.Frames), logship.MaxBatch)
	}
	return batch, nil
}

// insert stores a chunk and moves the stream's head behind it.
func insert(ctx context.Context, tx *database.Tx, chunk logdb.InsertLogChunkParams, after logship.Head) error {
	if err := tx.InsertLogChunk(ctx, chunk); err != nil {
		return fmt.Errorf("insert log chunk: %w", err)
	}
	err := tx.MoveLogHead(ctx, logdb.MoveLogHeadParams{
		StreamID: chunk.StreamID, NextSeq: after.NextSeq, HeadHash: after.Hash[:], AddedBytes: int64(chunk.RawBytes), AddedLost: chunk.LostLines,
	})
	if err != nil {
		return fmt.Errorf("move log head: %w", err)
	}
	tx.NotifyAfterCommit(model.ChannelLogs, chunk.StreamID)
	return nil
}

// endsInside says whether the stream's running hash was at once what a batch
// says, at a line before the last: the hash is computed again in its chunk. A
// chunk that retention has dropped cannot be compared; its lines were accepted
// once, and nothing is stored, so the batch passes.
func (s *Streams) endsInside(ctx context.Context, tx *database.Tx, row lockedStream, want logship.Head) (bool, error) {
	chunks, err := tx.ListLogChunks(ctx, logdb.ListLogChunksParams{StreamID: row.id, AfterSeq: want.NextSeq - 2, Since: row.CreatedAt, Most: 1})
	if err != nil {
		return false, err
	}
	if len(chunks) == 0 || chunks[0].FirstSeq >= want.NextSeq {
		return true, nil
	}
	frames, err := s.unpacker.DecodeAll(chunks[0].Body, nil)
	if err != nil {
		return false, fmt.Errorf("unpack log chunk: %w", err)
	}
	at := logship.Head{NextSeq: chunks[0].FirstSeq, Hash: logship.Hash(chunks[0].PrevHash)}
	at, _, err = at.Advance(frames, want.NextSeq)
	return at == want, err
}

// Finish says the end of a stream. It may be repeated with the same end.
func (s *Streams) Finish(ctx context.Context, by Writer, end logship.End) (Stream, error) {
	var stream Stream
	err := s.write(ctx, by, func(ctx context.Context, tx *database.Tx, row lockedStream) error {
		head := headOf(row)
		stored := head.NextSeq - 1
		same := end.TotalLines == stored && end.Hash == head.Hash
		switch {
		case row.State == model.StreamFinished && !same:
			return &HeadError{Code: logship.CodeFinished, Detail: fmt.Sprintf("the stream was finished with %d lines", stored), Head: head}
		case end.TotalLines > stored:
			return &HeadError{Code: logship.CodeGap, Detail: fmt.Sprintf("%d of %d lines have arrived", stored, end.TotalLines), Head: head}
		case !same:
			return conflict(head)
		}
		if row.State == model.StreamOpen {
			if err := tx.FinishLogStream(ctx, logdb.FinishLogStreamParams{StreamID: by.Stream, LateRedaction: end.LateRedaction}); err != nil {
				return fmt.Errorf("finish log stream: %w", err)
			}
			tx.NotifyAfterCommit(model.ChannelLogs, by.Stream)
		}
		now, err := get(ctx, tx, by.Stream)
		if err != nil {
			return err
		}
		stream, err = s.withGaps(ctx, tx, now)
		return err
	})
	return stream, err
}

// lockedStream is a stream whose row the transaction has locked.
type lockedStream struct {
	id string
	logdb.LockLogStreamRow
}

// write runs fn with the stream's row locked, if the token may write to it.
func (s *Streams) write(ctx context.Context, by Writer, fn func(context.Context, *database.Tx, lockedStream) error) error {
	return s.store.Tx(ctx, by.Org, func(ctx context.Context, tx *database.Tx) error {
		row, err := tx.LockLogStream(ctx, logdb.LockLogStreamParams{StreamID: by.Stream, TokenHash: by.TokenHash})
		switch {
		case errors.Is(err, fault.ErrNotFound):
			return noStream(by.Stream) // also for a stream that exists, but is not the token's
		case err != nil:
			return fmt.Errorf("lock log stream: %w", err)
		case row.TokenRevoked || row.State == model.StreamClosed:
			return fault.With(
				fault.Newf(fault.ErrForbidden, "the attempt of this log stream was voided; it accepts no more lines"),
				fault.Code(logship.CodeClosed))
		case row.TokenExpired:
			return fault.Newf(fault.ErrUnauthenticated, "the log token is not valid")
		}
		return fn(ctx, tx, lockedStream{by.Stream, row})
	})
}

func headOf(row lockedStream) logship.Head {
	return logship.Head{NextSeq: row.NextSeq, Hash: logship.Hash(row.HeadHash)}
}

func conflict(head logship.Head) error {
	return &HeadError{Code: logship.CodeConflict, Detail: "the stream already has different lines with these numbers", Head: head}
}

// lostLines sums what the records of the agent say about dropped lines.
func lostLines(frames []byte) (lost int64) {
	for len(frames) > 0 {
		frame, rest, err := logship.CutFrame(frames)
		if err != nil {
			return lost // cannot be: they were just hashed
		}
		if logship.IsLost(frame) {
			lost += logship.DecodeFrame(frame).LostLines()
		}
		frames = rest
	}
	return lost
}
