// Package healthapi answers how healthy installs were.
package healthapi

import (
	"context"
	"slices"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/availability"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

const (
	pastDefault = 7 * 24 * time.Hour
	pastLongest = 400 * 24 * time.Hour
	pastParts   = 60
	// maxEpisodes bounds the episodes of one resource that an answer lists.
	maxEpisodes = 100
)

// Health are the routes. Read is as in package eventapi.
type Health struct {
	Read func(ctx context.Context, fn func(ctx context.Context, tx *database.Tx) error) error
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

func (h *Health) now() time.Time {
	if h.Now != nil {
		return h.Now().UTC()
	}
	return time.Now().UTC()
}

// GetHealthHistory answers how healthy an install was over a time.
func (h *Health) GetHealthHistory(ctx context.Context, req apigen.GetHealthHistoryRequestObject) (apigen.GetHealthHistoryResponseObject, error) {
	w, err := h.windowOf(req.Params)
	if err != nil {
		return nil, err
	}
	parts := pastParts
	if req.Params.Parts != nil {
		parts = *req.Params.Parts
	}
	var out apigen.HealthHistory
	err = h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		install, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return err
		}
		rows, err := tx.HealthHistory(ctx, ctldb.HealthHistoryParams{InstallID: install.ID, Since: w.From, Until: w.To, Most: availability.MaxRows + 1})
		if err != nil {
			return err
		}
		if len(rows) > availability.MaxRows {
			return fault.With(fault.Newf(fault.ErrInvalid, "its health changed more than %d times in this time", availability.MaxRows), fault.Code("too_many_changes"), fault.Remedy("choose a shorter time"))
		}
		var sum availability.Sum
		out, sum = pastView(w, rows, parts)
		if o := install.HealthObjective; o != nil {
			b := sum.Budget(*o)
			out.Budget = &apigen.HealthBudget{Objective: *o, AllowedSeconds: inSeconds(b.Allowed), UsedSeconds: inSeconds(b.Used), LeftSeconds: inSeconds(b.Left())}
		}
		return nil
	})
	return apigen.GetHealthHistory200JSONResponse(out), err
}

func (h *Health) windowOf(p apigen.GetHealthHistoryParams) (w availability.Window, err error) {
	w.To = h.now()
	if p.Until != nil && p.Until.Before(w.To) {
		w.To = p.Until.UTC()
	}
	w.From = w.To.Add(-pastDefault)
	if p.Since != nil {
		w.From = p.Since.UTC()
	}
	switch {
	case !w.From.Before(w.To):
		return w, fault.Newf(fault.ErrInvalid, "since is not before until")
	case w.To.Sub(w.From) > pastLongest:
		return w, fault.Newf(fault.ErrInvalid, "at most %d days are shown", int(pastLongest.Hours()/24))
	}
	return w, nil
}

// pastView puts the rows of the resources together, which come one resource after the other;
// sum is of the install.
func pastView(w availability.Window, rows []ctldb.HealthHistoryRow, parts int) (out apigen.HealthHistory, sum availability.Sum) {
	out = apigen.HealthHistory{Since: w.From, Until: w.To, Resources: []apigen.ResourceHealthPast{}}
	var all [][]availability.Span
	for _, of := range availability.ByResource(rows) {
		spans := w.SpansOf(of)
		all = append(all, spans)
		past := pastOf(w, spans, parts)
		for i := range past.Episodes {
			past.Episodes[i].ChangeID = optional.Of(changeAt(of, past.Episodes[i].From))
		}
		out.Resources = append(out.Resources, apigen.ResourceHealthPast{ID: of[0].ID, Kind: apigen.ResourceHealthPastKind(of[0].Kind), Name: of[0].Name, Past: past})
	}
	worst := availability.Worst(all)
	out.Install = pastOf(w, worst, parts)
	return out, w.Sum(worst)
}

// changeAt is the change that was live at a time.
func changeAt(rows []ctldb.HealthHistoryRow, at time.Time) (id string) {
	for _, row := range rows {
		if row.At.After(at) {
			break
		}
		id = row.ChangeID
	}
	return id
}

func pastOf(w availability.Window, spans []availability.Span, parts int) apigen.HealthPast {
	sum := w.Sum(spans)
	past := apigen.HealthPast{
		HealthySeconds: inSeconds(sum.Healthy), UnhealthySeconds: inSeconds(sum.Unhealthy), UnknownSeconds: inSeconds(sum.Unknown),
		Strip: []apigen.HealthPastStrip{}, Episodes: []apigen.HealthEpisode{},
	}
	if share, known := sum.Availability(); known {
		past.Availability = &share
	}
	for _, part := range w.Strip(spans, parts) {
		verdict := apigen.HealthPastStripAbsent
		if v := part.Worst(); v != "" {
			verdict = apigen.HealthPastStrip(v)
		}
		past.Strip = append(past.Strip, verdict)
	}
	for _, span := range slices.Backward(spans) {
		switch {
		case span.Verdict != model.Unhealthy:
		case len(past.Episodes) == maxEpisodes:
			past.EpisodesLeft++
		default:
			e := apigen.HealthEpisode{From: span.From}
			if span.To.Before(w.To) {
				e.To = &span.To
			}
			past.Episodes = append(past.Episodes, e)
		}
	}
	return past
}

func inSeconds(d time.Duration) int64 { return int64(d.Round(time.Second) / time.Second) }
