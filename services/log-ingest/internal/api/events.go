package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/berth-dev/berth/services/internal/httpserver"
	"github.com/berth-dev/berth/services/log-ingest/internal/streams"
)

// events is a tail as server-sent events. It is pulled: a reader that is slow
// holds up its own tail and keeps no lines in memory beyond one look.
type events struct {
	// next waits for more of the tail, at most for one beat. It ends with io.EOF
	// when the reader goes away or the service stops.
	next  func() ([]streams.Numbered, *streams.Stream, error)
	close func()
	until time.Time
	buf   bytes.Buffer
	ended bool
}

func newEvents(ctx context.Context, tail *streams.Tail, limits tailLimits) *events {
	ctx, cancel := context.WithCancel(ctx)
	e := &events{
		next: func() ([]streams.Numbered, *streams.Stream, error) {
			records, end, err := tail.Next(ctx, limits.beat)
			if err != nil && ctx.Err() != nil {
				err = io.EOF
			}
			return records, end, err
		},
		close: func() { cancel(); tail.Close() },
		until: time.Now().Add(limits.age),
	}
	// The service waits for its requests when it stops: end this one.
	go func() {
		select {
		case <-httpserver.Draining(ctx):
			cancel()
		case <-ctx.Done():
		}
	}()
	// Sent at once, so that the reader knows that it is connected.
	e.buf.WriteString("retry: 1000\n\n")
	return e
}

// Read returns what is there and waits only when there is nothing.
func (e *events) Read(p []byte) (int, error) {
	for e.buf.Len() == 0 {
		if e.ended || time.Now().After(e.until) {
			return 0, io.EOF
		}
		if err := e.more(); err != nil {
			return 0, err
		}
	}
	return e.buf.Read(p)
}

func (e *events) more() error {
	records, end, err := e.next()
	if err != nil {
		return err
	}
	encode := json.NewEncoder(&e.buf) // ends each value with a line end
	for _, r := range records {
		fmt.Fprintf(&e.buf, "id: %d\nevent: record\ndata: ", r.Seq)
		if err := encode.Encode(recordOut(r)); err != nil {
			return err
		}
		e.buf.WriteByte('\n')
	}
	switch {
	case end != nil:
		e.ended = true
		e.buf.WriteString("event: end\ndata: ")
		if err := encode.Encode(streamOut(*end)); err != nil {
			return err
		}
		e.buf.WriteByte('\n')
	case len(records) == 0:
		e.buf.WriteString(": still here\n\n")
	}
	return nil
}

// Close ends the tail.
func (e *events) Close() error {
	e.close()
	return nil
}
