package alerts_test

import (
	"testing"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/alerts"
)

func TestSoon(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, tt := range []struct {
		name             string
		life, lead, want time.Duration // before the end
	}{
		{"a certificate of three months", 90 * day, alerts.LeadOfCertificate, 14 * day},
		{"of a year", 365 * day, alerts.LeadOfCertificate, 14 * day},
		{"of a month", 28 * day, alerts.LeadOfCertificate, 7 * day},
		{"of a day", day, alerts.LeadOfCertificate, 6 * time.Hour},
		{"of an hour", time.Hour, alerts.LeadOfCertificate, 15 * time.Minute},
		{"settings of a week", 7 * day, alerts.LeadOfDay, day},
		{"a role for an hour", time.Hour, alerts.LeadOfDay, 15 * time.Minute},
	} {
		starts := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		ends := starts.Add(tt.life)
		soon := alerts.Soon(starts, ends, tt.lead)
		if got := ends.Sub(soon); got != tt.want {
			t.Errorf("%s: people are told %s before, want %s", tt.name, got, tt.want)
		}
		// What cert-manager renews after two thirds of its life has a twelfth of it to do so.
		if renewed := starts.Add(tt.life * 2 / 3); soon.Sub(renewed) < tt.life/12 {
			t.Errorf("%s: people are told %s after it is renewed", tt.name, soon.Sub(renewed))
		}
	}
}

func TestObjective(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour // of 30 days, 99.9 % leave 43 min 12 s
	for _, tt := range []struct {
		name               string
		percent            float64
		unhealthy, unknown time.Duration
		want               alerts.Seen
	}{
		{"never unhealthy", 99.9, 0, 0, alerts.Good},
		{"most of it is left", 99.9, 10 * time.Minute, 0, alerts.Good},
		{"a tenth is left", 99.9, 38*time.Minute + 52*time.Second, 0, alerts.Good},
		{"less than a tenth is left", 99.9, 39 * time.Minute, 0, alerts.Unknown},
		{"nearly all of it is used", 99.9, 43*time.Minute + 11*time.Second, 0, alerts.Unknown},
		{"more than all", 99.9, 43*time.Minute + 13*time.Second, 0, alerts.Bad},
		{"half of the time is unknown, so half is allowed", 99.9, 22 * time.Minute, 15 * day, alerts.Bad},
		{"as long, with all of it known", 99.9, 22 * time.Minute, 0, alerts.Good},
		{"nothing is known", 99.9, 0, 30 * day, alerts.Unknown},
		{"a lower objective", 95, 30 * time.Hour, 0, alerts.Good},
		{"the highest", 99.999, 26 * time.Second, 0, alerts.Bad},
	} {
		if got := alerts.Objective(tt.percent, tt.unhealthy, tt.unknown); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}
