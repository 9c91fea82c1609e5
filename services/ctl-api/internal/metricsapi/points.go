package metricsapi

import (
	"context"
	"strings"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// usualTime is how much is answered when nobody says since when.
const usualTime = 24 * time.Hour

// ListMetricPoints answers the points of a series.
func (h *Numbers) ListMetricPoints(ctx context.Context, req apigen.ListMetricPointsRequestObject) (apigen.ListMetricPointsResponseObject, error) {
	w, err := windowOf(h.now(), req.Params)
	if err != nil {
		return nil, err
	}
	limit := paging.Limit(req.Params.Limit)
	out := apigen.ListMetricPoints200JSONResponse{}
	err = h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		row, err := find(ctx, tx, req.Install, req.Metric)
		if err != nil {
			return err
		}
		read := points
		if w.step > 0 {
			read = steps
		}
		items, err := read(ctx, tx, row.Number, w, limit+1)
		out.Items, out.Next = paging.Page(items, limit, placeOf)
		return err
	})
	return out, err
}

// window is the time that is asked for.
type window struct {
	since, until time.Time
	step         time.Duration // 0 for the points themselves
	after        place         // where a page begins
}

// place is a point; or with a step when it begins. A step has no run, nor has a point that the
// runner wrote about itself.
type place struct {
	at  time.Time
	run string
}

func placeOf(p apigen.MetricPoint) string {
	return p.At.UTC().Format(time.RFC3339Nano) + "/" + optional.Value(p.RunID)
}

// windowOf fills in what was not asked for. Errors: ErrInvalid.
func windowOf(now time.Time, p apigen.ListMetricPointsParams) (w window, err error) {
	w.until, w.step = now, time.Duration(optional.Value(p.Step))*time.Second
	if p.Until != nil {
		w.until = p.Until.UTC()
	}
	w.since = w.until.Add(-usualTime)
	if p.Since != nil {
		w.since = p.Since.UTC()
	}
	if !w.since.Before(w.until) {
		return w, fault.With(fault.Newf(fault.ErrInvalid, "since is not before until"), fault.Remedy("without until, it is now"))
	}
	after := optional.Value(p.After)
	if after == "" {
		return w, nil
	}
	at, run, ok := strings.Cut(after, "/")
	w.after.run = run
	if w.after.at, err = time.Parse(time.RFC3339Nano, at); err != nil || !ok || run != "" && w.step > 0 {
		return w, fault.Newf(fault.ErrInvalid, "after is not the next of a page of these points")
	}
	return w, nil
}

func points(ctx context.Context, tx *database.Tx, series int64, w window, most int) ([]apigen.MetricPoint, error) {
	p := ctldb.ListPointsParams{Series: series, Since: w.since, Until: w.until, AfterRun: w.after.run, Most: int32(most)}
	if !w.after.at.IsZero() {
		p.AfterAt = &w.after.at
	}
	rows, err := tx.ListPoints(ctx, p)
	out := make([]apigen.MetricPoint, 0, len(rows))
	for _, r := range rows {
		out = append(out, apigen.MetricPoint{At: r.At, Value: r.Value, RunID: optional.Of(r.RunID)})
	}
	return out, err
}

func steps(ctx context.Context, tx *database.Tx, series int64, w window, most int) ([]apigen.MetricPoint, error) {
	p := ctldb.ListStepsParams{Series: series, Since: w.since, Until: w.until, Step: w.step.Seconds(), Most: int32(most)}
	if !w.after.at.IsZero() && w.after.at.Before(w.until) {
		p.Until = w.after.at
	}
	rows, err := tx.ListSteps(ctx, p)
	out := make([]apigen.MetricPoint, 0, len(rows))
	for _, r := range rows {
		count := int(r.Points)
		out = append(out, apigen.MetricPoint{At: r.At, Value: r.Last, Min: &r.Least, Max: &r.Greatest, Mean: &r.Mean, Count: &count})
	}
	return out, err
}
