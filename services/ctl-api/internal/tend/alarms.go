package tend

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/recipient"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// alarmBatch is how many alarms one transaction records: it holds the head of
// the org's chain, for which everybody else waits.
const alarmBatch = 50

// recordAlarms records in the org's chain what runner-api saw and could not
// sign: the alarms of an install, or of the org's Build Runners when install is
// nil. A recorded alarm is not recorded again, even if another worker is at it.
func (t *Tender) recordAlarms(ctx context.Context, org string, install *string) error {
	for {
		found := 0
		err := t.Store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) error {
			alarms, err := tx.UnrecordedAlarms(ctx, ctldb.UnrecordedAlarmsParams{InstallID: install, Most: alarmBatch})
			if err != nil {
				return err
			}
			if found = len(alarms); found == 0 {
				return nil
			}
			ids := make([]string, found)
			for i, alarm := range alarms {
				ids[i] = alarm.ID
				if err := t.Publisher.Keys.Audit(ctx, tx, alarm.RunnerID, describe(alarm)); err != nil {
					return err
				}
			}
			return tx.MarkAlarmsRecorded(ctx, ids)
		})
		if err != nil {
			return fmt.Errorf("record alarms: %w", err)
		}
		if found < alarmBatch {
			return nil
		}
	}
}

// describe is what the chain says of an alarm.
func describe(a ctldb.UnrecordedAlarmsRow) string {
	if a.Kind == recipient.Trusted { // no alarm: whom secrets are sealed to from now on
		return fmt.Sprintf("seals to %s since %s: %s", a.Subject, a.CreatedAt.UTC().Format(time.RFC3339), a.Detail)
	}
	return fmt.Sprintf("alarm %s about %s at %s: %s", a.Kind, a.Subject, a.CreatedAt.UTC().Format(time.RFC3339), a.Detail)
}
