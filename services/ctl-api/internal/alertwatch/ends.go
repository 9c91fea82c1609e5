package alertwatch

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/alerts"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// ends are the things with an end that the control plane knows of.
func ends(ctx context.Context, tx *database.Tx, s scene) (all []alerts.Observation, err error) {
	rows, err := tx.EndsToAlert(ctx, s.Install.ID)
	for _, row := range rows {
		if row.What == "settings" && (s.Runner == nil || s.Runner.State != model.RunnerActive) {
			continue // there is nobody to renew them for
		}
		all = append(all, ofEnd(row, s.Now))
	}
	return all, err
}

// ofEnd is about something in the last quarter of its life, at most the last day. When it
// is renewed it has another end, and the alert closes.
func ofEnd(row ctldb.EndsToAlertRow, now time.Time) alerts.Observation {
	o := expiring(strings.TrimSpace(row.What+" "+row.Name), alerts.Soon(row.Starts, row.Ends, alerts.LeadOfDay), now)
	at := row.Ends.UTC().Format(time.RFC3339)
	switch row.What {
	case "settings":
		o.Text = "the runner's signed settings end at " + at + ", and were not renewed"
	case "enrolment":
		o.Text = "no machine has enrolled, and the enrolment secret ends at " + at
	case "role":
		o.Text = "the role " + row.Name + " goes off at " + at
	case "consent":
		o.Text = "the customer's consent to " + row.Name + ", which is not carried out yet, ends at " + at
	case "override":
		o.Text = "the override of policies for " + row.Name + ", which is not carried out yet, ends at " + at
	case "statement":
		o.Text = "what the vendor signed of " + row.Name + " ends at " + at
	default:
		o.Text = fmt.Sprintf("%s ends at %s", o.Subject, at)
	}
	return o
}

// expiring is about something whose end is near from a time on.
func expiring(about string, soon, now time.Time) alerts.Observation {
	o := alerts.Observation{Kind: model.AlertExpiring, Subject: about, Seen: alerts.Good, Since: soon, Turns: soon}
	if !now.Before(soon) {
		o.Seen, o.Turns = alerts.Bad, time.Time{}
	}
	return o
}

// certificates are those that probes of a live install saw.
func certificates(ctx context.Context, tx *database.Tx, s scene) (all []alerts.Observation, err error) {
	if s.Install.State != model.InstallLive {
		return nil, nil
	}
	rows, err := tx.CertificatesOfInstall(ctx, ctldb.CertificatesOfInstallParams{InstallID: s.Install.ID, Since: s.Now.Add(-alerts.CertificateSeenFor)})
	for _, row := range rows {
		all = append(all, ofCertificate(row, s.Now))
	}
	return all, err
}

// ofCertificate is about a place: when another certificate is there, it has another end.
func ofCertificate(row ctldb.Certificate, now time.Time) alerts.Observation {
	o := expiring("certificate "+row.Place, alerts.Soon(row.NotBefore, row.NotAfter, alerts.LeadOfCertificate), now)
	ends := "ends"
	if !now.Before(row.NotAfter) {
		ends = "ended"
	}
	o.Text = fmt.Sprintf("the certificate for %s (%s) %s at %s", row.Subject, row.Place, ends, row.NotAfter.UTC().Format(time.RFC3339))
	return o
}

// flowName is what people call a kind of workflow.
func flowName(kind string) string { return strings.ReplaceAll(kind, "_", " ") }

// waited is for whom something waits.
func waited(reason model.WaitReason) string {
	switch reason {
	case model.WaitDecision:
		return "for a decision"
	case model.WaitStack:
		return "for the customer to apply the stack"
	case model.WaitRunner:
		return "for a machine to enrol"
	case model.WaitSecret:
		return "for the customer to set a secret"
	case model.WaitRelease:
		return "for the release to be accepted"
	case model.WaitRoleOff, model.WaitRoleUnknown:
		return "for the customer to switch on a role"
	case model.WaitConsent:
		return "for the customer's consent"
	}
	return "(" + string(reason) + ")"
}
