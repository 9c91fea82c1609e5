package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/logapi"
)

const (
	// silence is how long a stream may say nothing, not even "still here",
	// before it is opened again. Services say so every 20 s.
	silence = 65 * time.Second

	maxEventBytes = 1 << 20

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
		var broken *brokenOff
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

// brokenOff is a failure of the connection, after which one tries again.
type brokenOff struct{ error }

func once(ctx context.Context, open func(context.Context, int64) (*http.Response, error), last *int64, handle func([]byte) (int64, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := open(ctx, *last)
	if err != nil {
		return err // the client has tried again already
	}
	defer func() { _ = resp.Body.Close() }()
	watchdog := time.AfterFunc(silence, cancel)
	defer watchdog.Stop()
	scanner := bufio.NewScanner(reading{resp.Body, watchdog})
	scanner.Buffer(nil, maxEventBytes)
	var kind string
	var data []byte
	for scanner.Scan() {
		field, value, _ := bytes.Cut(scanner.Bytes(), []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			kind = string(value)
		case "data":
			data = append(data, value...)
		case "": // an empty line ends an event; a comment has an empty name too
			if len(scanner.Bytes()) > 0 {
				continue
			}
			if kind == "end" {
				return errEnd
			}
			if len(data) > 0 {
				if err := deliver(data, last, handle); err != nil {
					return err
				}
			}
			kind, data = "", nil
		}
	}
	return &brokenOff{errors.Join(scanner.Err(), io.ErrUnexpectedEOF)}
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
		return &brokenOff{fmt.Errorf("event %s is missing", strconv.FormatInt(*last+1, 10))}
	}
	seq, err := handle(data)
	if err != nil {
		return err
	}
	*last = seq
	return nil
}

// reading keeps the watchdog quiet while bytes come.
type reading struct {
	io.Reader
	watchdog *time.Timer
}

func (r reading) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.watchdog.Reset(silence)
	return n, err
}
