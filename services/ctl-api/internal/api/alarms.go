package api

import (
	"context"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/services/ctl-api/internal/alarms"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/ctl-api/internal/why"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// mostAlarms is how many alarms the reasons of an install name.
const mostAlarms = 20

// ListAlarms answers open alarms, newest first.
func (s *Server) ListAlarms(ctx context.Context, req apigen.ListAlarmsRequestObject) (apigen.ListAlarmsResponseObject, error) {
	limit := paging.Limit(req.Params.Limit)
	var out apigen.ListAlarms200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		installID, err := installFilter(ctx, tx, req.Params.Install)
		if err != nil {
			return err
		}
		rows, err := tx.ShowAlarms(ctx, ctldb.ShowAlarmsParams{
			InstallID: installID, Settled: optional.Value(req.Params.Acknowledged), After: optional.Of(optional.Value(req.Params.After)), Most: int32(limit + 1),
		})
		rows, out.Next = paging.Page(rows, limit, func(r ctldb.ShowAlarmsRow) string { return r.ID })
		out.Items = convert(rows, alarmView)
		return err
	})
	return out, err
}

// AcknowledgeAlarm settles an alarm. Who did it first, and why, stays.
func (s *Server) AcknowledgeAlarm(ctx context.Context, req apigen.AcknowledgeAlarmRequestObject) (apigen.AcknowledgeAlarmResponseObject, error) {
	reason := strings.TrimSpace(req.Body.Reason)
	if reason == "" {
		return nil, fault.With(fault.Newf(fault.ErrInvalid, "settling an alarm needs a reason"),
			fault.Fields(fault.FieldError{Pointer: "/reason", Detail: "it is empty"}))
	}
	var out apigen.Alarm
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (what string, err error) {
		settled, err := tx.AcknowledgeAlarm(ctx, ctldb.AcknowledgeAlarmParams{
			ID: req.Alarm, AcknowledgedBy: auth.PrincipalOf(ctx).AccountName, Acknowledgement: reason,
		})
		if err != nil {
			return "", err
		}
		rows, err := tx.ShowAlarms(ctx, ctldb.ShowAlarmsParams{ID: &req.Alarm, Settled: true, Most: 1})
		if err != nil {
			return "", err
		}
		if len(rows) == 0 {
			return "", fault.Newf(fault.ErrNotFound, "there is no alarm %q", req.Alarm)
		}
		out = alarmView(rows[0])
		if settled == 0 {
			return "", nil
		}
		return fmt.Sprintf("acknowledge alarm %s (%s about %s): %s", out.ID, out.Kind, out.About, reason), nil
	})
	return apigen.AcknowledgeAlarm200JSONResponse(out), err
}

func alarmView(r ctldb.ShowAlarmsRow) apigen.Alarm {
	text := alarms.Of(r.Kind)
	out := apigen.Alarm{
		ID: r.ID, Kind: r.Kind, About: r.Subject, Cause: text.Cause, Remedy: text.Remedy, RunnerID: r.RunnerID, Detail: r.Detail,
		CreatedAt: r.CreatedAt, AcknowledgedAt: r.AcknowledgedAt, AcknowledgedBy: r.AcknowledgedBy, Reason: r.Acknowledgement,
	}
	if r.InstallID != nil {
		install := ref(*r.InstallID, r.InstallName)
		out.Install = &install
	}
	return out
}

// whyAlarms are the open alarms of an install, as what somebody has to look at.
func whyAlarms(ctx context.Context, tx *database.Tx, install string) ([]why.Reason, error) {
	rows, err := tx.ShowAlarms(ctx, ctldb.ShowAlarmsParams{InstallID: &install, Most: mostAlarms})
	var reasons []why.Reason
	for _, r := range rows {
		text := alarms.Of(r.Kind)
		reasons = append(reasons, why.Reason{
			What: "alarm " + r.Kind, ID: r.ID, Code: why.CodeAlarm, Who: why.Operator, WokenBy: why.WakeRequest, Reason: fmt.Sprintf("%s (%s). %s", text.Cause, r.Subject, text.Remedy), On: "somebody who looks into it",
			Unblock: "berth alarms acknowledge " + r.ID + " --reason TEXT",
		})
	}
	return reasons, err
}
