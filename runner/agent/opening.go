package agent

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// openings are on disk in every step, so that of all processes with this runner's
// key exactly one can name the session before its own: the one that goes on from
// the newest file. A crash at any point leaves what the control plane expects:
//
//	killed                               on disk               the next one asks
//	before the id is stored              opened A              for B, after A
//	stored, before it is asked for       opened A, asking B    for B, after A
//	asked for, before the answer         opened A, asking B    for B again: the same session
//	answered, before that is stored      opened A, asking B    for B again: the same session
//	stored, before the session is used   opened B              for C, after B
//
// Nothing of this file may be lost or put back: nobody can tell a runner that does
// not name its last session from a thief.
type openings struct {
	// Opened is the last session that was answered, "" for none.
	Opened string `json:"opened,omitempty"`
	// Asking is the one that is asked for.
	Asking string `json:"asking,omitempty"`
}

// askSession opens a session and works with it from then on. It may be repeated.
func (a *agent) askSession(ctx context.Context, request runnerapi.SessionRequest) (session runnerapi.Session, err error) {
	var o openings
	readSpare(ctx, a, a.dir.Session(), &o) // without it the runner is disputed
	for over := false; ; over = true {
		if o.Asking == "" {
			o.Asking = newOpening()
			if err := a.keepOpenings(o); err != nil {
				return session, err
			}
		}
		request.Opening, request.Before = &o.Asking, nil
		if o.Opened != "" {
			request.Before = &o.Opened
		}
		session, err = a.api.OpenSession(ctx, request)
		if !control.Is(err, "opening_over") || over {
			break
		}
		// Somebody else works in the session that is asked for here. The next one
		// names the last session that was answered here, which tells the control
		// plane so.
		o.Asking = ""
	}
	if err != nil {
		return session, err
	}
	if err := a.keepOpenings(openings{Opened: o.Asking}); err != nil {
		return session, err
	}
	a.api.Use(session)
	return session, nil
}

func (a *agent) keepOpenings(o openings) error {
	return a.disk.Insist(func() error { return datadir.WriteJSON(a.dir.Session(), o) })
}

// newOpening is a random id: nobody who has not read the file can name it.
func newOpening() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b[:])
}
