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
