package alertwatch

import (
	"context"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/ctl-api/internal/alerts"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// episode is a row as package alerts takes it; the zero row is none.
func episode(r ctldb.Alert) alerts.Alert {
	if r.State == "" {
		return alerts.Alert{}
	}
	return alerts.Alert{
		Kind: r.Kind, State: r.State, Since: r.Since, Hold: optional.Value(r.Hold), HoldUntil: optional.Value(r.HoldUntil),
		OpenedAt: optional.Value(r.OpenedAt), TellAt: optional.Value(r.TellAt), ToldAt: optional.Value(r.ToldAt),
		GoodSince: optional.Value(r.GoodSince), Relapses: int(r.Relapses), LookAt: optional.Value(r.LookAt),
	}
}

func (l *look) insert(ctx context.Context, row ctldb.Alert, o alerts.Observation, a alerts.Alert) error {
	return l.tx.InsertAlert(ctx, ctldb.InsertAlertParams{
		ID: id.New(id.Alert), InstallID: l.Install.ID, Kind: o.Kind, Subject: o.Subject, State: a.State, Text: row.Text, Since: a.Since,
		Cause: row.Cause, ReleaseID: row.ReleaseID, RunnerVersion: row.RunnerVersion, Hold: optional.Of(a.Hold), HoldUntil: optional.Of(a.HoldUntil),
		OpenedAt: optional.Of(a.OpenedAt), TellAt: optional.Of(a.TellAt), ToldAt: optional.Of(a.ToldAt), GoodSince: optional.Of(a.GoodSince),
		Relapses: int32(a.Relapses), LookAt: optional.Of(a.LookAt), IncidentID: row.IncidentID,
	})
}

func (l *look) write(ctx context.Context, row ctldb.Alert, a alerts.Alert) error {
	return l.tx.MoveAlert(ctx, ctldb.MoveAlertParams{
		ID: row.ID, State: a.State, Text: row.Text, Since: a.Since, Cause: row.Cause, ReleaseID: row.ReleaseID, RunnerVersion: row.RunnerVersion,
		Hold: optional.Of(a.Hold), HoldUntil: optional.Of(a.HoldUntil), OpenedAt: optional.Of(a.OpenedAt), TellAt: optional.Of(a.TellAt),
		ToldAt: optional.Of(a.ToldAt), GoodSince: optional.Of(a.GoodSince), Relapses: int32(a.Relapses), LookAt: optional.Of(a.LookAt),
		IncidentID: row.IncidentID, ClosedAt: optional.Of(a.ClosedAt), ClosedBecause: optional.Of(a.Because),
	})
}
