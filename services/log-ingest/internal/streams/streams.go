// Package streams owns log streams: the append with its rules, the end, pages
// and the live tail. What a line is, and how a batch is compared with a stream,
// is package logship's, which the agent uses too.
//
// All writes of one stream go through the lock on its row, so any number of
// replicas may serve the same stream. A tail looks at the rows, waits for a
// notification, and looks again; notifications are sent after the commit.
package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/berth-dev/berth/pkg/logship"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/logdb"
	"github.com/berth-dev/berth/services/log-ingest/internal/database"
)

// chunksPerLook bounds what one look at the rows brings into memory: at most
// this many batches of 1 MiB.
const chunksPerLook = 4

// Streams is the door to all log streams. It is safe for concurrent use.
type Streams struct {
	store    *database.Store
	listener *store.Listener
	packer   *zstd.Encoder
	unpacker *zstd.Decoder
	meter    meter
}

// New uses a listener on Channel, which its owner runs.
func New(s *database.Store, listener *store.Listener) (*Streams, error) {
	packer, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return nil, err
	}
	unpacker, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(logship.MaxBatch))
	if err != nil {
		return nil, err
	}
	return &Streams{store: s, listener: listener, packer: packer, unpacker: unpacker, meter: newMeter()}, nil
}

// A Numbered is a record with its place in the stream.
type Numbered struct {
	Seq int64
	logship.Record
}

// Gap is a place where lines are missing.
type Gap struct {
	Expired bool  // past their retention; else dropped by the agent
	Seq     int64 // the record that says the loss, or the first expired line
	Lines   int64
}

// Stream is a stream as readers see it.
type Stream struct {
	logdb.LogStream
	Gaps []Gap
}

// Complete says that the end is known and no line is missing.
func (s Stream) Complete() bool { return s.State == model.StreamFinished && len(s.Gaps) == 0 }

// maxGaps is how many gaps are listed.
const maxGaps = 100

// Get returns a stream of the org, with what is missing in it.
func (s *Streams) Get(ctx context.Context, org, id string) (Stream, error) {
	var stream Stream
	err := s.store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) error {
		row, err := get(ctx, tx, id)
		if err != nil {
			return err
		}
		stream, err = s.withGaps(ctx, tx, row)
		return err
	})
	return stream, err
}

func get(ctx context.Context, tx *database.Tx, id string) (logdb.LogStream, error) {
	row, err := tx.GetLogStream(ctx, id)
	if errors.Is(err, fault.ErrNotFound) {
		return row, noStream(id)
	}
	return row, err
}

func noStream(id string) error {
	return fault.Newf(fault.ErrNotFound, "there is no log stream %q", id)
}

func (s *Streams) withGaps(ctx context.Context, tx *database.Tx, row logdb.LogStream) (Stream, error) {
	stream := Stream{LogStream: row}
	first, err := tx.FirstLogSeq(ctx, logdb.FirstLogSeqParams{StreamID: row.ID, Since: row.CreatedAt})
	if err != nil {
		return stream, err
	}
	if first == 0 {
		first = row.NextSeq // nothing is left
	}
	if first > 1 {
		stream.Gaps = append(stream.Gaps, Gap{Expired: true, Seq: 1, Lines: first - 1})
	}
	if row.LostLines == 0 {
		return stream, nil
	}
	chunks, err := tx.ListLossyLogChunks(ctx, logdb.ListLossyLogChunksParams{StreamID: row.ID, Since: row.CreatedAt, Most: maxGaps})
	if err != nil {
		return stream, err
	}
	for _, c := range chunks {
		records, err := s.unpack(c.FirstSeq, c.Body)
		if err != nil {
			return stream, err
		}
		for _, r := range records {
			if r.Lost && len(stream.Gaps) < maxGaps {
				stream.Gaps = append(stream.Gaps, Gap{Seq: r.Seq, Lines: r.LostLines()})
			}
		}
	}
	return stream, nil
}

// Page asks for the records after a number.
type Page struct {
	After  int64
	Limit  int // how many at most
	Wanted     // for Find
}

// Records returns a page, oldest first, and the record after which the next page begins;
// 0 when there are no more now. It ends before the limit when it grows large.
func (s *Streams) Records(ctx context.Context, org, id string, want Page) (page []Numbered, next int64, err error) {
	const enough = 4 << 20 // bytes of text
	err = s.store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) error {
		page, next = nil, 0
		row, err := get(ctx, tx, id)
		if err != nil {
			return err
		}
		for size, at := 0, want.After; ; {
			records, err := s.look(ctx, tx, row, at, chunksPerLook)
			if err != nil || len(records) == 0 {
				return err
			}
			for _, r := range records {
				if len(page) == want.Limit || size > enough {
					next = at
					return nil
				}
				page, size, at = append(page, r), size+len(r.Text), r.Seq
			}
		}
	})
	return page, next, err
}

// look returns the records of some chunks after a number; none when there are none for now.
func (s *Streams) look(ctx context.Context, tx *database.Tx, row logdb.LogStream, after int64, chunksAtOnce int32) ([]Numbered, error) {
	chunks, err := tx.ListLogChunks(ctx, logdb.ListLogChunksParams{StreamID: row.ID, AfterSeq: after, Since: row.CreatedAt, Most: chunksAtOnce})
	if err != nil {
		return nil, err
	}
	var found []Numbered
	for _, c := range chunks {
		records, err := s.unpack(c.FirstSeq, c.Body)
		if err != nil {
			return nil, err
		}
		found = append(found, records[min(max(after+1-c.FirstSeq, 0), int64(len(records))):]...)
	}
	return found, nil
}

// unpack returns the records of a chunk.
func (s *Streams) unpack(first int64, body []byte) ([]Numbered, error) {
	frames, err := s.unpacker.DecodeAll(body, nil)
	if err != nil {
		return nil, fmt.Errorf("unpack log chunk: %w", err)
	}
	var records []Numbered
	for seq := first; len(frames) > 0; seq++ {
		frame, rest, err := logship.CutFrame(frames)
		if err != nil {
			return nil, fmt.Errorf("read log chunk: %w", err)
		}
		records, frames = append(records, Numbered{Seq: seq, Record: logship.DecodeFrame(frame)}), rest
	}
	return records, nil
}

// since is for metrics.
func since(start time.Time) float64 { return time.Since(start).Seconds() }
