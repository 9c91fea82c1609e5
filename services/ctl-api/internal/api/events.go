package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/httpserver"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

const (
	// eventBatch bounds one read of a workflow's events.
	eventBatch = 500
	// keepAlive is how often a silent stream sends a comment, so that proxies
	// keep it and a client that is gone is noticed.
	keepAlive = 20 * time.Second
)

// workflowEvent is the contract's WorkflowEvent, which no generated type
// exists for: it is only sent inside of a stream.
type workflowEvent struct {
	Seq  int64           `json:"seq"`
	At   time.Time       `json:"at"`
	Kind string          `json:"kind"`
	Body json.RawMessage `json:"body"`
}

// StreamWorkflowEvents sends a workflow's events as they come, gapless.
func (s *Server) StreamWorkflowEvents(ctx context.Context, req apigen.StreamWorkflowEventsRequestObject) (apigen.StreamWorkflowEventsResponseObject, error) {
	after := optional.Value(req.Params.AfterSeq)
	if last := optional.Value(req.Params.LastEventID); last != "" {
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil {
			return nil, fault.Newf(fault.ErrInvalid, "Last-Event-ID is not the number of an event")
		}
		after = n
	}
	// What cannot be read at all is a problem, not a stream that breaks off.
	if err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		_, err := tx.GetWorkflow(ctx, req.Workflow)
		return missing(err, "there is no workflow %q", req.Workflow)
	}); err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	go func() {
		sub := s.Listener.Subscribe(model.ChannelWorkflow, req.Workflow)
		defer sub.Close()
		w.CloseWithError(s.sendEvents(ctx, w, sub, ctldb.WorkflowEventsAfterParams{WorkflowID: req.Workflow, AfterSeq: after, Most: eventBatch}))
	}()
	// The writer ends when the reader is closed or the request is over.
	context.AfterFunc(ctx, func() { _ = r.CloseWithError(context.Cause(ctx)) })
	return apigen.StreamWorkflowEvents200TextEventStreamResponse{Body: r}, nil
}

// sendEvents writes events, a batch at a time, until the workflow is finished, the
// server ends or ctx is over.
func (s *Server) sendEvents(ctx context.Context, w io.Writer, sub *store.Subscription, next ctldb.WorkflowEventsAfterParams) error {
	for {
		var rows []ctldb.WorkflowEventsAfterRow
		var state model.WorkflowState
		err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
			// First the state, then the events: a workflow seen finished has all
			// its events in the read that follows.
			row, err := tx.GetWorkflow(ctx, next.WorkflowID)
			if err != nil {
				return err
			}
			state = row.State
			rows, err = tx.WorkflowEventsAfter(ctx, next)
			return err
		})
		if err != nil {
			return err
		}
		for _, e := range rows {
			data, err := json.Marshal(workflowEvent{Seq: e.Seq, At: e.At, Kind: e.Kind, Body: e.Body})
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", e.Seq, e.Kind, data); err != nil {
				return err
			}
			next.AfterSeq = e.Seq
		}
		if len(rows) == int(next.Most) {
			continue
		}
		if state.Finished() {
			_, err := fmt.Fprintf(w, "event: end\ndata: {\"state\":%q}\n\n", state)
			return err
		}
		select {
		case <-sub.C:
		case <-time.After(keepAlive):
			if _, err := io.WriteString(w, ": still here\n\n"); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-httpserver.Draining(ctx):
			return nil // the reader comes back with Last-Event-ID, to another replica
		}
	}
}
