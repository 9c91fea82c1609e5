package past

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func TestHealthLines(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	until := since.Add(7 * 24 * time.Hour)
	up, down, dark, away := ctlapi.HealthPartHealthy, ctlapi.HealthPartUnhealthy, ctlapi.HealthPartUnknown, ctlapi.HealthPartAbsent
	share := 0.99999
	end := since.Add(90 * time.Minute)
	change := "chg_1"
	h := ctlapi.HealthHistory{
		Since: since, Until: until,
		Install: ctlapi.HealthPast{Availability: &share, UnhealthySeconds: 90, Strip: []ctlapi.HealthPart{up, up, down, dark}},
		Budget:  &ctlapi.HealthBudget{Objective: 99.9, AllowedSeconds: 604, UsedSeconds: 90, LeftSeconds: 514},
		Resources: []ctlapi.ResourceHealthPast{
			{Name: "web", Past: ctlapi.HealthPast{
				Availability: &share, UnhealthySeconds: 90, Strip: []ctlapi.HealthPart{up, up, down, up},
				Episodes: []ctlapi.HealthEpisode{{From: since.Add(2 * time.Hour)}, {From: since.Add(time.Hour), To: &end, ChangeID: &change}},
			}},
			{Name: "a\x1b[31m", Past: ctlapi.HealthPast{Strip: []ctlapi.HealthPart{away, away, away, dark}}},
		},
	}
	want := `               AVAILABLE  UNHEALTHY  2026-11-20 10:00 UTC, 42 h each
all of it      99.99 %    90 s       ▇▇▁░
web            99.99 %    90 s       ▇▇▁▇
a⟨U+001B⟩[31m  unknown    0 s        ···░

▇ healthy  ▁ unhealthy  ░ unknown  · not there
objective 99.9 %: 10 min allowed, 90 s used, 8 min left

2026-11-20 12:00:00 UTC  web was unhealthy since then
2026-11-20 11:00:00 UTC  web was unhealthy for 30 min, on change chg_1`
	got := strings.Join(healthLines(h, 4, false), "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, got)
	}
	if colored := healthLines(h, 4, true)[1]; !strings.Contains(colored, "[31m") {
		t.Errorf("without colours: %q", colored)
	}
}

func TestInstallsOverTime(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	share := 0.5
	var b strings.Builder
	items := []ctlapi.InstallHealthPast{
		{Install: ctlapi.Ref{Name: "acme"}, Availability: &share, UnhealthySeconds: 3600, Strip: []ctlapi.HealthPart{ctlapi.HealthPartHealthy, ctlapi.HealthPartUnhealthy}},
		{Install: ctlapi.Ref{Name: "globex"}, Strip: []ctlapi.HealthPart{ctlapi.HealthPartAbsent, ctlapi.HealthPartUnknown}},
	}
	if err := output.List(&b, output.Options{Format: output.Table}, items, installView(since, since.Add(2*time.Hour), 2)); err != nil {
		t.Fatal(err)
	}
	want := `INSTALL   AVAILABLE   UNHEALTHY   2026-11-20 10:00 UTC, 60 min each
acme      50.00 %     60 min      ▇▁
globex    unknown     0 s         ·░
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
