package past

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

func TestEnding(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	cert := func(place string, left time.Duration, soon bool) ctlapi.Certificate {
		return ctlapi.Certificate{Place: place, Subject: "shop.example.com\x1b[2J", Fingerprint: "f", NotAfter: now.Add(left), Soon: soon}
	}
	checks := []ctlapi.Check{
		{Name: "component/web", Certificates: []ctlapi.Certificate{cert("Secret shop/web-tls", 6*24*time.Hour, true), cert("Secret shop/later", 60*24*time.Hour, false), cert("Secret shop/old", -2*time.Hour, true)}},
		{Name: "component/api", Certificates: []ctlapi.Certificate{cert("Secret shop/web-tls", 6*24*time.Hour, true)}},
	}
	want := `
certificate for shop.example.com⟨U+001B⟩[2J (Secret shop/old) ended 2 h ago
certificate for shop.example.com⟨U+001B⟩[2J (Secret shop/web-tls) ends in 6 d`
	if diff := cmp.Diff(want, strings.Join(Ending(checks, now), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if lines := Ending(checks[:0], now); lines != nil {
		t.Errorf("without certificates: %q", lines)
	}
}
