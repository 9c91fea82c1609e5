package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/logapi"
	"github.com/berth-dev/berth/pkg/sse"
)

const (
	// firstPause and maxPause are between two openings of a stream.
	firstPause = 100 * time.Millisecond
	maxPause   = 2 * time.Second
)

// Event is one step forward of a workflow.
type Event struct {
	Seq  int64           `json:"seq"`
	At   time.Time       `json:"at"`
	Kind string          `json:"kind"` // workflow, step, change or job
	Body json.RawMessage `json:"body"`
}

// FollowWorkflow calls fn for each event of a workflow after a number, in order
// and without gaps, until the workflow is finished. It opens the stream again
// when it breaks off.
func (c *Client) FollowWorkflow(ctx context.Context, workflow string, after int64, fn func(Event) error) error {
	open := func(ctx context.Context, last int64) (*http.Response, error) {
		return c.plain.StreamWorkflowEvents(ctx, workflow, &ctlapi.StreamWorkflowEventsParams{AfterSeq: &last})
	}
	return resume(ctx, open, after, func(data []byte) (int64, error) {
		var e Event
		if err := json.Unmarshal(data, &e); err != nil {
			return 0, fmt.Errorf("event of %s: %w", workflow, err)
		}
		return e.Seq, fn(e)
	})
}

// Tail calls fn for each record of a stream after a number, in order and
// without gaps, until the stream is finished or closed; then it returns the
// stream as it is.
func (l *Logs) Tail(ctx context.Context, stream string, after int64, fn func(logapi.Record) error) (*logapi.Stream, error) {
	open := func(ctx context.Context, last int64) (*http.Response, error) {
		return l.plain.TailStream(ctx, stream, &logapi.TailStreamParams{After: &last})
	}
	err := resume(ctx, open, after, func(data []byte) (int64, error) {
		var r logapi.Record
		if err := json.Unmarshal(data, &r); err != nil {
			return 0, fmt.Errorf("record of %s: %w", stream, err)
		}
		return r.Seq, fn(r)
	})
	if err != nil {
		return nil, err
	}
	return l.Stream(ctx, stream)
}

// Stream answers how long a stream is, and whether it is complete.
func (l *Logs) Stream(ctx context.Context, stream string) (*logapi.Stream, error) {
	resp, err := l.GetStreamWithResponse(ctx, stream)
	if err != nil {
		return nil, err
	}
	return Body(resp.JSON200)
}

// errEnd is the event `end`.
var errEnd = errors.New("end of stream")

// resume reads a stream of numbered events until its `end`, and opens it again
// behind the last number whenever it breaks off earlier.
func resume(ctx context.Context, open func(context.Context, int64) (*http.Response, error), last int64, handle func([]byte) (int64, error)) error {
	for pause := firstPause; ; {
		seen := last
		err := once(ctx, open, &last, handle)
		var broken *sse.BrokenOff
		switch {
		case errors.Is(err, errEnd):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !errors.As(err, &broken):
			return err
		}
		if last > seen {
			pause = firstPause
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
		pause = min(2*pause, maxPause)
	}
}

func once(ctx context.Context, open func(context.Context, int64) (*http.Response, error), last *int64, handle func([]byte) (int64, error)) error {
	resp, err := open(ctx, *last)
	if err != nil {
		return err // the client has tried again already
	}
	return sse.Read(resp.Body, func(e sse.Event) error {
		switch {
		case e.Kind == "end":
			return errEnd
		case len(e.Data) > 0:
			return deliver(e.Data, last, handle)
		}
		return nil
	})
}

// deliver hands an event on and makes sure that none is missing before it.
func deliver(data []byte, last *int64, handle func([]byte) (int64, error)) error {
	var number struct {
		Seq int64 `json:"seq"`
	}
	if err := json.Unmarshal(data, &number); err != nil {
		return fmt.Errorf("event without a number: %w", err)
	}
	switch {
	case number.Seq <= *last:
		return nil // known
	case number.Seq > *last+1 && *last > 0:
		return &sse.BrokenOff{Err: fmt.Errorf("event %d is missing", *last+1)}
	}
	seq, err := handle(data)
	if err != nil {
		return err
	}
	*last = seq
	return nil
}
