package alertapi

import (
	"context"
	"slices"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/why"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// mostWhy is how many alerts the reasons of an install name.
const mostWhy = 20

// ownReasons are the kinds that speak of workflows, which have reasons of their own.
var ownReasons = []model.AlertKind{model.AlertWaitingTooLong, model.AlertWorkflowFailed}

// Why are the open alerts of an install that its other reasons do not tell.
func Why(ctx context.Context, tx *database.Tx, install string) (reasons []why.Reason, err error) {
	kinds := []string{}
	for _, k := range model.AlertKinds {
		if !slices.Contains(ownReasons, k) {
			kinds = append(kinds, string(k))
		}
	}
	rows, err := tx.ShowAlerts(ctx, ctldb.ShowAlertsParams{Everywhere: true, InstallID: &install, States: []string{string(model.AlertOpen)}, Kinds: kinds, Most: mostWhy})
	for _, r := range rows {
		reason := why.Reason{
			What: "alert " + string(r.Alert.Kind), ID: r.Alert.ID, Code: why.CodeAlert, Who: why.Operator, WokenBy: why.WakeRunner, Reason: r.Alert.Text,
			On: "operator", Unblock: "berth alerts ack " + r.Alert.ID + " --note TEXT",
		}
		if r.Alert.AcknowledgedBy != nil {
			reason.Reason += "; " + *r.Alert.AcknowledgedBy + " is at it: " + optional.Value(r.Alert.Note)
			reason.Unblock = ""
		}
		reasons = append(reasons, reason)
	}
	return reasons, err
}
