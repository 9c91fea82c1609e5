package berth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/pause"
	"github.com/berth-dev/berth/pkg/sse"
)

// Events reads the org's stream from After, Since or FromNow to where it is now.
// Limit is the size of a page.
func (c *Client) Events(ctx context.Context, which ctlapi.ListEventsParams) iter.Seq2[ctlapi.Event, error] {
	return func(yield func(ctlapi.Event, error) bool) {
		which.Follow = nil
		if which.Limit == nil {
			which.Limit = new(PageSize)
		}
		for {
			resp, err := c.ListEventsWithResponse(ctx, &which)
			if err == nil && resp.JSON200 == nil {
				err = ErrNotUnderstood
			}
			if err != nil {
				yield(ctlapi.Event{}, err)
				return
			}
			for _, e := range resp.JSON200.Items {
				if !yield(e, nil) {
					return
				}
			}
			if !resp.JSON200.More {
				return
			}
			which.LastEventID = new(strconv.FormatInt(resp.JSON200.Position, 10))
		}
	}
}

// FollowEvents calls fn for each event of the org's stream from After, Since or
// FromNow on, in order, each once and without a gap in what the caller may see. It
// opens the stream again whenever that breaks off, and returns when ctx ends, fn
// returns an error or the control plane refuses, as for events that are no longer kept.
func (c *Client) FollowEvents(ctx context.Context, which ctlapi.ListEventsParams, fn func(ctlapi.Event) error) error {
	which.Follow, which.Limit = new(true), nil
	f := follower{client: c, which: which, fn: fn}
	for wait := firstPause; ; wait = min(2*wait, maxPause) {
		before := f.position
		err := f.once(ctx)
		var broken *sse.BrokenOff
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.As(err, &broken):
			return err
		}
		if f.position > before {
			wait = firstPause
		}
		if err := pause.For(ctx, wait); err != nil {
			return err
		}
	}
}

// follower is one reader of the stream.
type follower struct {
	client   *Client
	which    ctlapi.ListEventsParams
	fn       func(ctlapi.Event) error
	position int64 // everything up to it was seen
	begun    bool  // the position is known
}

// once reads until the stream breaks off.
func (f *follower) once(ctx context.Context) error {
	resp, err := f.client.ListEvents(ctx, &f.which)
	if err != nil {
		return err
	}
	return sse.Read(resp.Body, f.take)
}

// take hands an event on, unless it is known, and makes sure that none is missing.
func (f *follower) take(e sse.Event) error {
	if len(e.Data) == 0 {
		return nil
	}
	var event ctlapi.Event
	if err := json.Unmarshal(e.Data, &event); err != nil {
		return fmt.Errorf("%w: event %s: %w", ErrNotUnderstood, e.ID, err)
	}
	switch {
	case f.begun && event.Seq <= f.position:
		return nil
	case e.Kind == "position":
	case f.begun && event.After > f.position:
		return &sse.BrokenOff{Err: fmt.Errorf("what lies between the events %d and %d is missing", f.position, event.After)}
	default:
		if err := f.fn(event); err != nil {
			return err
		}
	}
	f.position, f.begun = event.Seq, true
	f.which.LastEventID = new(strconv.FormatInt(event.Seq, 10))
	return nil
}
