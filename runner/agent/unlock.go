package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/pause"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/stateproxy"
	"github.com/berth-dev/berth/runner/agent/unlock"
)

// followUnlock looks at locks of states, and frees them, when the customer asks for it.
func (a *agent) followUnlock(ctx context.Context) error {
	u := unlock.Unlocker{
		Locks: a.api,
		Here:  func(at runnerapi.Attempt) bool { return slices.Contains(a.jobs.Held(), at) },
		Fence: func(at runnerapi.Attempt) error {
			// The names are the control plane's: they lead to no other directory.
			name := filepath.Base(at.JobID + "." + strconv.Itoa(at.Attempt))
			return stateproxy.Fence(filepath.Join(a.dir.Jobs(), name), "berth-runner state unlock")
		},
		Record: func(ctx context.Context, h unlock.Held, forced bool) error {
			what := "lock of a Terraform state freed"
			if forced {
				what = "lock of a Terraform state freed by force"
			}
			_, err := a.chain.Append(ctx, chain.Record{
				Actor: "customer", Kind: chain.Event, What: what, Job: h.JobID,
				Detail: fmt.Sprintf("attempt %d, %s since %s", h.Attempt, h.JobState, h.LockedAt.UTC().Format("2006-01-02 15:04:05")),
			})
			return err
		},
	}
	for {
		var wish unlock.Request
		found, err := datadir.ReadJSON(a.dir.Unlock(), &wish)
		if err != nil {
			a.cfg.Log.WarnContext(ctx, "the wish to free a lock is not readable", "err", err)
		}
		// The command that asked has given up by then: it must not happen unseen.
		if err == nil && found && wish.DoneAt.IsZero() && a.cfg.Now().Sub(wish.AskedAt) < unlock.Patience {
			done := u.Do(ctx, wish)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			done.DoneAt = a.cfg.Now().UTC()
			if err := datadir.WriteJSON(a.dir.Unlock(), done); err != nil {
				a.cfg.Log.ErrorContext(ctx, "the answer to the wish to free a lock cannot be written", "err", err)
			}
		}
		if err := pause.For(ctx, resealEvery); err != nil {
			return err
		}
	}
}
