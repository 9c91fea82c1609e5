package api

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/apigen"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/gate"
	"github.com/berth-dev/berth/services/runner-api/internal/lease"
	"github.com/berth-dev/berth/services/runner-api/internal/session"
)

// RenewLeases keeps leases and says which jobs are to stop.
func (a *API) RenewLeases(ctx context.Context, req apigen.RenewLeasesRequestObject) (apigen.RenewLeasesResponseObject, error) {
	s, err := gate.SessionOf(ctx)
	if err != nil {
		return nil, err
	}
	answer := apigen.RenewLeases200JSONResponse{Leases: []apigen.RenewedLease{}}
	if len(req.Body.Leases) == 0 {
		return answer, nil
	}
	err = a.write(ctx, s, func(ctx context.Context, tx *database.Tx) error {
		var err error
		answer.Leases, err = a.renew(ctx, tx, s, req.Body)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("renew leases: %w", err)
	}
	return answer, nil
}

func (a *API) renew(ctx context.Context, tx *database.Tx, s *session.Session, req *apigen.RenewRequest) ([]apigen.RenewedLease, error) {
	named := req.Leases
	told, err := progressOf(req.Progress)
	if err != nil {
		return nil, err
	}
	jobs := make([]string, len(named))
	for i, n := range named {
		jobs[i] = n.JobID
	}
	rows, err := tx.RunnerLeasesToRenew(ctx, runnerdb.RunnerLeasesToRenewParams{RunnerID: s.RunnerID, JobIds: jobs})
	if err != nil {
		return nil, err
	}
	known := make(map[apigen.Attempt]runnerdb.RunnerLeasesToRenewRow, len(rows))
	for _, row := range rows {
		known[apigen.Attempt{JobID: row.JobID, Attempt: int(row.Attempt)}] = row
	}
	answers := make([]apigen.RenewedLease, len(named))
	var kept, progress []string
	for i, n := range named {
		row, ok := known[n]
		answer := lease.Renew(lease.Lease{
			Open:            ok,
			OwnSession:      row.SessionID == s.ID,
			Current:         row.JobState == model.JobLeased && row.JobAttempt == row.Attempt,
			CancelRequested: row.CancelRequested,
			Superseded:      row.Fence != nil && row.ResourceFence > *row.Fence,
		})
		answers[i] = apigen.RenewedLease{JobID: n.JobID, Attempt: n.Attempt, Answer: apigen.LeaseAnswer(answer)}
		if answer != lease.Lost {
			kept, progress = append(kept, row.ID), append(progress, told[n])
		}
	}
	if len(kept) == 0 {
		return answers, nil
	}
	expires, err := tx.RunnerExtendLeases(ctx, runnerdb.RunnerExtendLeasesParams{Ids: kept, Progress: progress, LeaseSeconds: a.Lease.Seconds()})
	if err != nil {
		return nil, err
	}
	for i := range answers {
		if answers[i].Answer != apigen.LeaseAnswerLost {
			answers[i].ExpiresAt = &expires
		}
	}
	return answers, nil
}

// progressOf is what is stored of the progress of each attempt, as JSON.
func progressOf(list []apigen.JobProgress) (map[apigen.Attempt]string, error) {
	told := make(map[apigen.Attempt]string, len(list))
	for _, p := range list {
		raw, err := json.Marshal(model.Progress{What: p.What, Doing: p.Doing, Seconds: p.Seconds, Done: p.Done, Total: p.Total})
		if err != nil {
			return nil, err
		}
		told[apigen.Attempt{JobID: p.JobID, Attempt: p.Attempt}] = string(raw)
	}
	return told, nil
}
