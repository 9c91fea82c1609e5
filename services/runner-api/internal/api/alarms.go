package api

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
)

// Kinds of alarms: what the org must be able to prove later.
const (
	alarmLateResult = "late_result" // a report of an attempt that is over
	alarmEnrolment  = "enrolment"   // a secret, or a runner, and another key
	alarmChainFork  = "chain_fork"  // a second history of an install
	// alarmChainBehind: a runner came with less of its chain than the copy has.
	alarmChainBehind = "chain_behind"
	// alarmHandover: a machine would have taken another's place, and the customer's
	// recovery key had not signed that.
	alarmHandover = "handover_refused"
	// alarmNoRecovery: a machine took another's place in an install that has no
	// recovery key. Nothing of before opens there.
	alarmNoRecovery = "replaced_without_recovery"
	// alarmDisputed: two processes hold the key of a runner.
	alarmDisputed = "runner_disputed"
)

// alarm is one of these. It is for the org's chain, which is shown to others:
// ids, numbers and digests only.
type alarm struct {
	runnerID  string
	installID *string // nil for a Build Runner
	kind      string
	// subject is what it is about; there is one alarm of a kind about it.
	subject string
	detail  map[string]any
}

// raise leaves an alarm for ctl-api, which records it in the org's chain, and
// wakes it: only ctl-api can sign.
func raise(ctx context.Context, tx *database.Tx, a alarm) error {
	detail, err := json.Marshal(a.detail)
	if err != nil {
		return fmt.Errorf("encode alarm: %w", err)
	}
	fresh, err := tx.RaiseAlarm(ctx, runnerdb.RaiseAlarmParams{ID: id.New("alm"), RunnerID: a.runnerID, Kind: a.kind, Subject: a.subject, Detail: detail})
	if err != nil || fresh == 0 {
		return err
	}
	if a.installID == nil {
		return tx.WakeOrg(ctx, tx.OrgID())
	}
	return tx.WakeInstall(ctx, *a.installID)
}
