// Package metricsapi answers the routes about the numbers that runs of actions wrote:
// their series, and the points of one. It is mounted by package api. runner-api writes
// what is read here.
package metricsapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// lookBack is how old the last values of a series can be that a list shows with it.
const lookBack = 30 * 24 * time.Hour

// Numbers are the routes. Read is as in package eventapi.
type Numbers struct {
	Read func(ctx context.Context, fn func(ctx context.Context, tx *database.Tx) error) error
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

func (h *Numbers) now() time.Time {
	if h.Now != nil {
		return h.Now().UTC()
	}
	return time.Now().UTC()
}

// ListMetrics answers the series of an install.
func (h *Numbers) ListMetrics(ctx context.Context, req apigen.ListMetricsRequestObject) (apigen.ListMetricsResponseObject, error) {
	p := req.Params
	limit := paging.Limit(p.Limit)
	out := apigen.ListMetrics200JSONResponse{Items: []apigen.Metric{}}
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		install, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return err
		}
		rows, err := tx.ListMetrics(ctx, ctldb.ListMetricsParams{
			InstallID: install.ID, Name: optional.Value(p.Name), Action: optional.Value(p.Action), Source: string(optional.Value(p.Source)), After: optional.Value(p.After), Most: int32(limit + 1),
		})
		if err != nil {
			return err
		}
		rows, out.Next = paging.Page(rows, limit, func(r ctldb.MetricSeries) string { return r.ID })
		recent, err := h.recent(ctx, tx, rows, optional.Value(p.Recent))
		if err != nil {
			return err
		}
		for _, row := range rows {
			view, err := metricView(row)
			if err != nil {
				return err
			}
			if values := recent[row.Number]; len(values) > 0 {
				view.Recent = &values
			}
			out.Items = append(out.Items, view)
		}
		return nil
	})
	return out, err
}

// recent are the last values of series, newest first, by number.
func (h *Numbers) recent(ctx context.Context, tx *database.Tx, rows []ctldb.MetricSeries, most int) (map[int64][]float64, error) {
	if most == 0 || len(rows) == 0 {
		return nil, nil
	}
	p := ctldb.RecentPointsParams{Since: h.now().Add(-lookBack), Most: int32(most)}
	for _, row := range rows {
		p.Series = append(p.Series, row.Number)
	}
	points, err := tx.RecentPoints(ctx, p)
	if err != nil {
		return nil, err
	}
	of := map[int64][]float64{}
	for _, point := range points {
		of[point.Series] = append(of[point.Series], point.Value)
	}
	return of, nil
}

// GetMetric answers one series.
func (h *Numbers) GetMetric(ctx context.Context, req apigen.GetMetricRequestObject) (apigen.GetMetricResponseObject, error) {
	var out apigen.GetMetric200JSONResponse
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		row, err := find(ctx, tx, req.Install, req.Metric)
		if err != nil {
			return err
		}
		view, err := metricView(row)
		out = apigen.GetMetric200JSONResponse(view)
		return err
	})
	return out, err
}

// find is a series of an install. Errors: ErrNotFound.
func find(ctx context.Context, tx *database.Tx, installRef, id string) (ctldb.MetricSeries, error) {
	install, err := installs.Find(ctx, tx, installRef)
	if err != nil {
		return ctldb.MetricSeries{}, err
	}
	row, err := tx.GetMetric(ctx, ctldb.GetMetricParams{ID: id, InstallID: install.ID})
	if errors.Is(err, fault.ErrNotFound) {
		return row, fault.With(fault.Newf(fault.ErrNotFound, "install %s has no series %q", install.Name, id), fault.Remedy("see what it has: `berth metrics %s`", install.Name))
	}
	return row, err
}

// OfRun are the numbers that a run wrote; nil when it wrote none.
func OfRun(ctx context.Context, tx *database.Tx, run ctldb.ActionRun) (*[]apigen.RunMetric, error) {
	if run.MetricsAt == nil {
		return nil, nil
	}
	rows, err := tx.MetricsOfRun(ctx, ctldb.MetricsOfRunParams{InstallID: run.InstallID, Action: run.Action, RunID: run.ID, At: *run.MetricsAt})
	if err != nil {
		return nil, err
	}
	out := []apigen.RunMetric{}
	for _, row := range rows {
		view, err := metricView(row.MetricSeries)
		if err != nil {
			return nil, err
		}
		out = append(out, apigen.RunMetric{ID: view.ID, Series: view.Series, Kind: apigen.RunMetricKind(view.Kind), Help: view.Help, Value: row.Value})
	}
	return &out, nil
}

func metricView(r ctldb.MetricSeries) (apigen.Metric, error) {
	v := apigen.Metric{
		ID: r.ID, Name: r.Name, Source: apigen.MetricSourceAction, Action: r.Action, Kind: apigen.MetricKind(r.Kind), Help: optional.Of(r.Help), Value: r.LastValue, At: r.LastAt, RunID: r.LastRun,
	}
	if err := json.Unmarshal(r.Labels, &v.Labels); err != nil {
		return v, fmt.Errorf("labels of series %s: %w", r.ID, err)
	}
	if v.Action == "" {
		v.Source = apigen.MetricSourceRunner
	}
	v.Series = jobspec.SeriesName(v.Name, v.Labels)
	return v, nil
}
