// Package healthapi answers how healthy installs were.
package healthapi

import (
	"context"
	"slices"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/availability"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/fleetapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

const (
	pastDefault = 7 * 24 * time.Hour
	pastLongest = 400 * 24 * time.Hour
	pastParts   = 60
	fleetParts  = 7
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
	w, err := h.windowOf(req.Params.Since, req.Params.Until)
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
		rows, err := history(ctx, tx, w, install.ID)
		if err != nil {
			return err
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

// ListHealthHistory answers how healthy installs were over a time.
func (h *Health) ListHealthHistory(ctx context.Context, req apigen.ListHealthHistoryRequestObject) (apigen.ListHealthHistoryResponseObject, error) {
	p := req.Params
	w, err := h.windowOf(p.Since, p.Until)
	if err != nil {
		return nil, err
	}
	parts, limit := fleetParts, paging.Limit(p.Limit)
	if p.Parts != nil {
		parts = *p.Parts
	}
	out := apigen.ListHealthHistory200JSONResponse{Since: w.From, Until: w.To, Items: []apigen.InstallHealthPast{}}
	err = h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		labels, err := fleetapi.LabelsOf(optional.Value(p.Label))
		if err != nil {
			return err
		}
		chosen, err := fleetapi.Choose(ctx, tx, auth.InstallsRead, fleetapi.Filter{App: p.App, Labels: labels})
		if err != nil {
			return err
		}
		chosen.Ids, chosen.After, chosen.Most = optional.Value(p.Install), optional.Value(p.After), int32(limit+1)
		shown, err := tx.ShowInstalls(ctx, chosen)
		if err != nil {
			return err
		}
		shown, out.Next = paging.Page(shown, limit, func(r ctldb.ShowInstallsRow) string { return r.Install.Name })
		ids := make([]string, 0, len(shown))
		for _, r := range shown {
			ids = append(ids, r.Install.ID)
		}
		rows, err := history(ctx, tx, w, ids...)
		if err != nil {
			return err
		}
		of := availability.ByInstall(rows)
		for _, r := range shown {
			out.Items = append(out.Items, shareView(w, of[r.Install.ID], parts, apigen.Ref{ID: r.Install.ID, Name: r.Install.Name}))
		}
		return nil
	})
	return out, err
}

// history reads what installs were; too much of it is an error that says what to do.
func history(ctx context.Context, tx *database.Tx, w availability.Window, installIDs ...string) ([]ctldb.HealthHistoryRow, error) {
	rows, err := tx.HealthHistory(ctx, ctldb.HealthHistoryParams{InstallIds: installIDs, Since: w.From, Until: w.To, Most: availability.MaxRows + 1})
	switch {
	case err != nil:
		return nil, err
	case len(rows) <= availability.MaxRows:
		return rows, nil
	case len(installIDs) > 1:
		return nil, tooManyChanges("the health of these installs", "choose a shorter time or fewer installs")
	}
	return nil, tooManyChanges("its health", "choose a shorter time")
}

func tooManyChanges(what, remedy string) error {
	return fault.With(fault.Newf(fault.ErrInvalid, "%s changed more than %d times in this time", what, availability.MaxRows), fault.Code("too_many_changes"), fault.Remedy("%s", remedy))
}

// shareView is an install in the history of many.
func shareView(w availability.Window, rows []ctldb.HealthHistoryRow, parts int, install apigen.Ref) apigen.InstallHealthPast {
	past := pastOf(w, availability.Worst(w.Resources(rows)), parts)
	return apigen.InstallHealthPast{
		Install: install, Availability: past.Availability, Strip: past.Strip,
		HealthySeconds: past.HealthySeconds, UnhealthySeconds: past.UnhealthySeconds, UnknownSeconds: past.UnknownSeconds,
	}
}

func (h *Health) windowOf(since, until *time.Time) (w availability.Window, err error) {
	w.To = h.now()
	if until != nil && until.Before(w.To) {
		w.To = until.UTC()
	}
	w.From = w.To.Add(-pastDefault)
	if since != nil {
		w.From = since.UTC()
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
		Strip: []apigen.HealthPart{}, Episodes: []apigen.HealthEpisode{},
	}
	if share, known := sum.Availability(); known {
		past.Availability = &share
	}
	for _, part := range w.Strip(spans, parts) {
		verdict := apigen.HealthPartAbsent
		if v := part.Shown(); v != "" {
			verdict = apigen.HealthPart(v)
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
