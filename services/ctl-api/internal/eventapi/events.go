// Package eventapi answers the routes of events and webhooks. The work is done in
// packages stream and webhooks.
package eventapi

import (
	"context"
	"io"
	"strconv"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/stream"
	"github.com/berth-dev/berth/services/ctl-api/internal/webhooks"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/httpserver"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store"
)

const (
	// keepAlive is how often a silent stream tells its position.
	keepAlive = 20 * time.Second
	// streamFor bounds a stream: rights are looked at when it begins, so one that
	// lost some keeps them no longer than this.
	streamFor = 5 * time.Minute
	// pageOfStream is one read of a stream.
	pageOfStream = 500
	defaultLimit = 50 // the contract's
)

// Handlers are the routes. Read and Write run a transaction of the caller's org;
// Write also records in the org's chain what fn says was done; "" for nothing.
type Handlers struct {
	Read     func(ctx context.Context, fn func(ctx context.Context, tx *database.Tx) error) error
	Write    func(ctx context.Context, fn func(ctx context.Context, tx *database.Tx) (what string, err error)) error
	Listener *store.Listener
	Webhooks *webhooks.Office
}

// ListEvents answers a page of the org's stream, or follows it.
func (h *Handlers) ListEvents(ctx context.Context, req apigen.ListEventsRequestObject) (apigen.ListEventsResponseObject, error) {
	p := req.Params
	kinds, err := stream.KindsOf(optional.Value(p.Kind))
	if err != nil {
		return nil, err
	}
	after := optional.Value(p.After)
	if last := optional.Value(p.LastEventID); last != "" {
		if after, err = strconv.ParseInt(last, 10, 64); err != nil {
			return nil, fault.Newf(fault.ErrInvalid, "Last-Event-ID is not the number of an event")
		}
	}
	q := stream.Query{Kinds: kinds, Principal: auth.PrincipalOf(ctx)}
	limit := defaultLimit
	if p.Limit != nil {
		limit = *p.Limit
	}
	var page stream.Page
	// Also of a stream: what cannot be read at all is a problem, not a stream that
	// breaks off.
	err = h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		if err := limitTo(ctx, tx, &q, p); err != nil {
			return err
		}
		if p.LastEventID == nil {
			if after, err = begin(ctx, tx, p, after); err != nil {
				return err
			}
		}
		page, err = stream.Read(ctx, tx, q, after, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	if !optional.Value(p.Follow) {
		out := apigen.ListEvents200JSONResponse{Items: []apigen.Event{}, Position: page.Position, More: page.More}
		for _, e := range page.Events {
			out.Items = append(out.Items, apigen.Event{
				Seq: e.Seq, After: e.After, ID: e.ID, At: e.At, Kind: string(e.Kind), Body: e.Body,
				CustomerID: optional.Of(e.CustomerID), AppID: optional.Of(e.AppID), InstallID: optional.Of(e.InstallID),
			})
		}
		return out, nil
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(h.follow(ctx, &stream.Writer{W: w, Position: after}, q)) }()
	// The writer ends when the reader is closed or the request is over.
	context.AfterFunc(ctx, func() { _ = r.CloseWithError(context.Cause(ctx)) })
	return apigen.ListEvents200TextEventStreamResponse{Body: r}, nil
}

// begin is the number that a request without Last-Event-ID begins after.
func begin(ctx context.Context, tx *database.Tx, p apigen.ListEventsParams, after int64) (int64, error) {
	switch {
	case optional.Value(p.FromNow):
		return tx.EventHead(ctx)
	case p.Since != nil:
		return stream.Since(ctx, tx, *p.Since)
	}
	return after, nil
}

// limitTo puts the filters of the query into q.
func limitTo(ctx context.Context, tx *database.Tx, q *stream.Query, p apigen.ListEventsParams) error {
	if ref := optional.Value(p.Install); ref != "" {
		row, err := installs.Find(ctx, tx, ref)
		if err != nil {
			return err
		}
		if !q.Principal.Scope(auth.InstallsRead).Includes(auth.Location{CustomerID: row.CustomerID, AppID: row.AppID, InstallID: row.ID}) {
			return fault.Newf(fault.ErrNotFound, "there is no install %q", ref)
		}
		q.InstallID = &row.ID
	}
	if ref := optional.Value(p.App); ref != "" {
		row, err := tx.FindApp(ctx, ref)
		if err != nil || !q.Principal.Scope(auth.AppsRead).Includes(auth.Location{AppID: row.ID}) {
			return fault.Newf(fault.ErrNotFound, "there is no app %q", ref)
		}
		q.AppID = &row.ID
	}
	return nil
}

// follow writes the stream until the client is gone, its token is revoked, the
// server ends or the stream has lasted long enough; the client comes back with
// Last-Event-ID.
func (h *Handlers) follow(ctx context.Context, w *stream.Writer, q stream.Query) error {
	more := h.Listener.Subscribe(model.ChannelEvents, q.Principal.OrgID)
	defer more.Close()
	token := h.Listener.Subscribe(model.ChannelRevoked, q.Principal.TokenID)
	defer token.Close()
	account := h.Listener.Subscribe(model.ChannelRevoked, q.Principal.AccountID)
	defer account.Close()
	over := time.NewTimer(streamFor)
	defer over.Stop()
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	// At once: so that the client knows that the stream is open, and where it begins.
	if err := w.Alive(); err != nil {
		return err
	}
	for {
		var page stream.Page
		err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) (err error) {
			page, err = stream.Read(ctx, tx, q, w.Position, pageOfStream)
			return err
		})
		if err != nil {
			return err
		}
		if err := w.Send(page); err != nil || page.More {
			if err != nil {
				return err
			}
			continue
		}
		select {
		case <-more.C:
		case <-alive.C:
			if err := w.Alive(); err != nil {
				return err
			}
		case <-token.C:
			return nil
		case <-account.C:
			return nil
		case <-over.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-httpserver.Draining(ctx):
			return nil
		}
	}
}
