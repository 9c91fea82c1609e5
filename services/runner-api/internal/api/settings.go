package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/berth-dev/berth/services/internal/httpserver"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/apigen"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/gate"
	"github.com/berth-dev/berth/services/runner-api/internal/session"
)

// GetSettings answers settings that are newer than the runner's, or waits.
func (a *API) GetSettings(ctx context.Context, req apigen.GetSettingsRequestObject) (apigen.GetSettingsResponseObject, error) {
	s, err := gate.SessionOf(ctx)
	if err != nil {
		return nil, err
	}
	install, err := installOf(s)
	if err != nil {
		return nil, err
	}
	after, wait := int64(0), 0
	if req.Params.AfterVersion != nil {
		after = *req.Params.AfterVersion
	}
	if req.Params.WaitSeconds != nil {
		wait = *req.Params.WaitSeconds
	}
	defer a.presence.Hold(s.RunnerID)()
	waiter := a.settings.Enter(s.RunnerID)
	defer waiter.Leave()
	end := time.NewTimer(time.Duration(wait) * time.Second)
	defer end.Stop()
	for {
		if seen, needed := waiter.Look(after); needed {
			newer, err := a.newerSettings(ctx, s, install, after)
			if err != nil {
				return nil, err
			}
			if newer != nil {
				return settingsAnswer{Version: newer.Version, Envelope: newer.Envelope}, nil
			}
			waiter.Nothing(seen, after)
		}
		select {
		case <-waiter.C:
		case <-s.Voided():
			if s, err = a.gate.Live(ctx, s.TokenHash); err != nil {
				return nil, err
			}
		case <-end.C:
			return apigen.GetSettings204Response{}, nil
		case <-httpserver.Draining(ctx):
			return apigen.GetSettings204Response{}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (a *API) newerSettings(ctx context.Context, s *session.Session, install string, after int64) (newer *runnerdb.RunnerNewestSettingsRow, err error) {
	err = a.read(ctx, s, func(ctx context.Context, tx *database.Tx) error {
		newer, err = found(tx.RunnerNewestSettings(ctx, runnerdb.RunnerNewestSettingsParams{InstallID: install, AfterVersion: after}))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	return newer, nil
}

// settingsAnswer passes the envelope on as it is in the row.
type settingsAnswer struct {
	Version  int64           `json:"version"`
	Envelope json.RawMessage `json:"envelope"`
}

// VisitGetSettingsResponse writes the answer.
func (s settingsAnswer) VisitGetSettingsResponse(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(s)
}
