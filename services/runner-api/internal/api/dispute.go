package api

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/apigen"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/session"
)

// opening is what became of a request for a session.
type opening struct {
	runner  runnerdb.RunnerLockRow
	request *apigen.SessionRequest
	// sameAs is the session that is answered once more; "" for a new one.
	sameAs string
	// disputed is set while another process holds the runner's key.
	disputed *apigen.Dispute
}

// judgeOpening decides whether a request for a session comes from the one agent of
// its runner, whose row is locked. One that does not is on record from then on:
// the session still opens, so that the runner can say how it is.
func (a *API) judgeOpening(ctx context.Context, tx *database.Tx, runner runnerdb.RunnerLockRow, body *apigen.SessionRequest) (found opening, _ error) {
	found.runner, found.request = runner, body
	asked := session.Opening{ID: textOf(body.Opening), Before: textOf(body.Before)}
	last, sessionID, err := lastSession(ctx, tx, runner, asked.ID)
	if err != nil {
		return found, err
	}
	verdict := session.Judge(last, asked)
	switch verdict {
	case session.Over:
		return found, fault.With(fault.Newf(fault.ErrConflict, "the requested session is over, or in use"),
			fault.Code("opening_over"), fault.Remedy("ask for another one"))
	case session.Same:
		found.sameAs = sessionID
	}
	if verdict != session.Disputed {
		if runner.DisputedSince != nil {
			found.disputed = &apigen.Dispute{Since: runner.DisputedSince.UTC(), Reason: textOf(runner.DisputedReason)}
		}
		return found, nil
	}
	row, err := tx.RunnerDisputed(ctx, runnerdb.RunnerDisputedParams{ID: runner.ID, Reason: asked.Why()})
	if err != nil {
		return found, err
	}
	found.disputed = &apigen.Dispute{Since: row.Since.UTC(), Reason: row.Reason}
	if runner.DisputedSince != nil {
		return found, nil
	}
	tx.AfterCommit(func() {
		a.metrics.disputes.Add(ctx, 1)
		a.log.ErrorContext(ctx, "two processes hold the key of a runner", "org_id", tx.OrgID(), "runner_id", runner.ID, "reason", row.Reason, "version", body.Version)
	})
	return found, raise(ctx, tx, alarm{
		runnerID: runner.ID, installID: runner.InstallID,
		kind: alarmDisputed, subject: fmt.Sprintf("session %d", runner.Epoch+1), detail: map[string]any{"reason": row.Reason},
	})
}

// lastSession reads what is known of the runner's sessions, and which one has this
// opening.
func lastSession(ctx context.Context, tx *database.Tx, runner runnerdb.RunnerLockRow, asked string) (last session.Last, sessionID string, _ error) {
	last.Opening = textOf(runner.SessionOpening)
	if asked == "" {
		return last, "", nil
	}
	row, err := found(tx.RunnerSessionOfOpening(ctx, runnerdb.RunnerSessionOfOpeningParams{RunnerID: runner.ID, Opening: asked}))
	if err != nil || row == nil {
		return last, "", err
	}
	if asked == last.Opening {
		last.Used = row.Used
		return last, row.ID, nil
	}
	last.Known = true
	return last, "", nil
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
