package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/httpserver"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/apigen"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/gate"
	"github.com/berth-dev/berth/services/runner-api/internal/session"
)

// outagePause is how long a held claim waits before it asks a database again
// that was away: short compared with the 15 s of recovery, long compared with a
// look.
const outagePause = 500 * time.Millisecond

// ClaimJobs leases jobs, or holds the request until there is one. A disputed runner
// gets none, plans neither: they come with what is sealed to its key, and with
// state and outputs.
func (a *API) ClaimJobs(ctx context.Context, req apigen.ClaimJobsRequestObject) (apigen.ClaimJobsResponseObject, error) {
	s, err := gate.SessionOf(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.noteReported(ctx, s, req.Body); err != nil {
		return nil, err
	}
	defer a.presence.Hold(s.RunnerID)()
	a.metrics.waiting.Add(ctx, 1)
	defer a.metrics.waiting.Add(ctx, -1)

	// First enter, then look, then wait: a job that is queued at any moment
	// is either seen by the look or wakes the waiter.
	waiter := a.jobs.Enter(s.RunnerID)
	defer waiter.Leave()
	end := time.NewTimer(time.Duration(req.Body.WaitSeconds) * time.Second)
	defer end.Stop()
	wanted := takes(req.Body)
	for {
		var again <-chan time.Time
		if seen, needed := waiter.Look(0); needed && wanted.slots > 0 && !s.Disputed {
			jobs, err := a.claim(ctx, s, req.Body.ClaimID, wanted)
			switch {
			case errors.Is(err, fault.ErrUnavailable) && req.Body.WaitSeconds > 0:
				again = time.After(outagePause) // the runner need not know
			case err != nil:
				return nil, err
			case len(jobs) > 0:
				return claimed{Jobs: jobs}, nil
			default:
				waiter.Nothing(seen, 0)
			}
		}
		select {
		case <-waiter.C:
		case <-again:
		case <-s.Voided():
			// Its session may be over, or was only forgotten by the cache.
			if s, err = a.gate.Live(ctx, s.TokenHash); err != nil {
				return nil, err
			}
		case <-end.C:
			return claimed{Jobs: []assignment{}}, nil
		case <-httpserver.Draining(ctx):
			return claimed{Jobs: []assignment{}}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// wanted is what a claim would take.
type wanted struct {
	slots     int
	mayMutate bool
}

// takes applies the customer's switch. The runner holds to it by itself; this
// only keeps jobs from being leased that it would have to give back.
func takes(body *apigen.ClaimRequest) wanted {
	switch body.Switch {
	case apigen.SwitchRun:
		return wanted{slots: body.Slots, mayMutate: true}
	case apigen.SwitchReadOnly:
		return wanted{slots: body.Slots}
	default:
		return wanted{}
	}
}

// noteReported writes the switch and the problem when they are others than
// before. A look under the old switch says nothing about the new one.
func (a *API) noteReported(ctx context.Context, s *session.Session, body *apigen.ClaimRequest) error {
	now := session.Reported{Switch: string(body.Switch)}
	if body.SwitchReason != nil {
		now.Reason = *body.SwitchReason
	}
	if body.SwitchSince != nil {
		now.Since = *body.SwitchSince
	}
	if body.Problem != nil {
		now.Problem = *body.Problem
	}
	if !s.Note(now) {
		return nil
	}
	err := a.write(ctx, s, func(ctx context.Context, tx *database.Tx) error {
		return tx.RunnerReports(ctx, runnerdb.RunnerReportsParams{
			ID: s.RunnerID, Switch: now.Switch, SwitchReason: body.SwitchReason, SwitchSince: body.SwitchSince, Problem: now.Problem,
		})
	})
	if err != nil {
		s.ForgetReported()
		return err
	}
	a.jobs.Wake(s.RunnerID)
	return nil
}

// assignment is apigen.Assignment with the documents as they are in the rows:
// what was signed is passed on byte for byte, and never encoded again.
type assignment struct {
	spec, order    json.RawMessage // null without one
	JobID          string          `json:"job_id"`
	Attempt        int             `json:"attempt"`
	Operation      string          `json:"operation"`
	Fence          *int64          `json:"fence,omitempty"`
	LeaseExpiresAt time.Time       `json:"lease_expires_at"`
	StreamID       string          `json:"stream_id"`
	LogToken       string          `json:"log_token"`
	Trace          json.RawMessage `json:"trace"`
}

// claimed is the answer of ClaimJobs.
type claimed struct {
	Jobs []assignment `json:"jobs"`
}

// VisitClaimJobsResponse writes the answer.
func (c claimed) VisitClaimJobsResponse(w http.ResponseWriter) error {
	body := []byte(`{"jobs":[`)
	for i, job := range c.Jobs {
		rest, err := json.Marshal(job)
		if err != nil {
			return err
		}
		if i > 0 {
			body = append(body, ',')
		}
		// encoding/json would write the two with other spaces and escapes.
		body = append(append(append(body, `{"spec":`...), job.spec...), ',')
		if len(job.order) > 0 {
			body = append(append(append(body, `"order":`...), job.order...), ',')
		}
		body = append(body, rest[1:]...)
	}
	w.Header().Set("Content-Type", "application/json")
	_, err := w.Write(append(body, "]}\n"...))
	return err
}

// claim leases what is queued, or finds what this claim has leased before: one
// statement in addition to the lock of the runner's row.
func (a *API) claim(ctx context.Context, s *session.Session, claimID string, w wanted) ([]assignment, error) {
	params := runnerdb.RunnerClaimJobsParams{
		RunnerID: s.RunnerID, ClaimID: claimID, SessionID: s.ID, Slots: int32(w.slots), MayMutate: w.mayMutate,
		LeaseSeconds: a.Lease.Seconds(), TokenSeconds: logTokenLifetime.Seconds(),
	}
	tokens := make([]string, w.slots)
	for i := range tokens {
		token, hash := auth.NewSecret(auth.LogPrefix)
		tokens[i] = token
		params.TokenHashes = append(params.TokenHashes, hash)
		params.LeaseIds = append(params.LeaseIds, id.New(id.Lease))
		params.StreamIds = append(params.StreamIds, id.New(id.Stream))
	}
	var jobs []assignment
	err := a.write(ctx, s, func(ctx context.Context, tx *database.Tx) error {
		rows, err := tx.RunnerClaimJobs(ctx, params)
		if err != nil {
			return err
		}
		jobs = make([]assignment, len(rows))
		for i, row := range rows {
			jobs[i] = assignment{
				JobID: row.JobID, Attempt: int(row.Attempt), Operation: row.Operation, spec: row.Spec, order: row.SignedOrder,
				Fence: row.Fence, LeaseExpiresAt: row.ExpiresAt.UTC(), StreamID: row.StreamID, LogToken: tokens[row.N-1], Trace: row.Trace,
			}
		}
		tx.AfterCommit(func() { a.countClaimed(ctx, s, rows) })
		return nil
	})
	return jobs, err
}

func (a *API) countClaimed(ctx context.Context, s *session.Session, rows []runnerdb.RunnerClaimJobsRow) {
	for _, row := range rows {
		if row.Again {
			continue
		}
		a.metrics.granted.Add(ctx, 1)
		a.metrics.claimWait.Record(ctx, row.WaitedSeconds)
		a.log.InfoContext(ctx, "job leased", "org_id", s.OrgID, "runner_id", s.RunnerID, "job_id", row.JobID, "attempt", row.Attempt, "operation", row.Operation)
	}
}
