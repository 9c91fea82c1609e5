package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// What an install was over a time is put together of what its resources were; the stack
// counts for nothing, and an objective says how much of it may be lost.
func TestHealthHistory(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.released("hello", hello())
	made, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, made, err, http.StatusCreated)
	install := made.JSON201.ID
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := d.db.Admin().Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	until := time.Now().UTC().Truncate(time.Second).Add(-time.Hour)
	since := until.Add(-100 * time.Minute)
	resource := func(kind, name string, rows map[int]string) {
		t.Helper()
		exec(`INSERT INTO resources (id, org_id, install_id, kind, name, type) SELECT $1, org_id, id, $3, $4, 'terraform_module' FROM installs WHERE id = $2
			ON CONFLICT (org_id, install_id, kind, name) DO NOTHING`, "res_"+kind+name, install, kind, name)
		var id string
		if err := d.db.Admin().QueryRow(t.Context(), `SELECT id FROM resources WHERE install_id = $1 AND kind = $2 AND name = $3`, install, kind, name).Scan(&id); err != nil {
			t.Fatal(err)
		}
		exec(`DELETE FROM resource_history WHERE resource_id = $1`, id)
		for minute, health := range rows {
			state := "live"
			if health == "" {
				state, health = "absent", "unknown"
			}
			exec(`INSERT INTO resource_history (org_id, resource_id, at, type, state, health, drift, live_change_id)
				SELECT org_id, $1, $2, 'terraform_module', $3, $4, 'none', 'chg_1' FROM resources WHERE id = $1`, id, since.Add(time.Duration(minute)*time.Minute), state, health)
		}
	}
	resource("sandbox", "sandbox", map[int]string{-500: "healthy"})
	resource("component", "web", map[int]string{-500: "unhealthy", -10: "healthy", 50: "unhealthy", 60: "healthy"})
	resource("component", "old", map[int]string{-500: "healthy", 20: ""})
	resource("stack", "stack", map[int]string{-500: "unhealthy"})

	history := func(parts int) ctlapi.HealthHistory {
		t.Helper()
		got, err := c.GetHealthHistoryWithResponse(t.Context(), "acme", &ctlapi.GetHealthHistoryParams{Since: &since, Until: &until, Parts: &parts})
		must(t, got, err, http.StatusOK)
		return *got.JSON200
	}
	got := history(10)
	share := 0.9
	from, to := since.Add(50*time.Minute), since.Add(60*time.Minute)
	up, down := ctlapi.HealthPartHealthy, ctlapi.HealthPartUnhealthy
	want := ctlapi.HealthPast{
		HealthySeconds: 90 * 60, UnhealthySeconds: 10 * 60, Availability: &share, Strip: []ctlapi.HealthPart{up, up, up, up, up, down, up, up, up, up},
		Episodes: []ctlapi.HealthEpisode{{From: from, To: &to}},
	}
	if diff := cmp.Diff(want, got.Install); diff != "" {
		t.Errorf("the install (-want +got):\n%s", diff)
	}
	if got.Budget != nil {
		t.Errorf("a budget without an objective: %+v", got.Budget)
	}
	if len(got.Resources) != 3 || got.Resources[0].Name != "sandbox" || got.Resources[1].Name != "old" || got.Resources[2].Name != "web" {
		t.Fatalf("resources: %+v", got.Resources)
	}
	if old := got.Resources[1].Past; old.HealthySeconds != 20*60 || old.Strip[5] != ctlapi.HealthPartAbsent {
		t.Errorf("what was taken away: %+v", old)
	}
	if e := got.Resources[2].Past.Episodes; len(e) != 1 || e[0].ChangeID == nil || *e[0].ChangeID != "chg_1" {
		t.Errorf("episodes of web: %+v", e)
	}

	// The same for many, without what is of one alone; those that do not fit are left out.
	fleet := func(p ctlapi.ListHealthHistoryParams) []ctlapi.InstallHealthPast {
		t.Helper()
		p.Since, p.Until = &since, &until
		got, err := c.ListHealthHistoryWithResponse(t.Context(), &p)
		must(t, got, err, http.StatusOK)
		return got.JSON200.Items
	}
	line := []ctlapi.InstallHealthPast{{
		Install: ctlapi.Ref{ID: install, Name: "acme"}, Availability: &share, HealthySeconds: 90 * 60, UnhealthySeconds: 10 * 60,
		Strip: []ctlapi.HealthPart{up, up, up, down, down, up, up},
	}}
	for name, p := range map[string]ctlapi.ListHealthHistoryParams{
		"all": {}, "by id": {Install: &[]string{install, "ins_gone"}}, "by app": {App: new("hello")},
	} {
		if diff := cmp.Diff(line, fleet(p)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, p := range map[string]ctlapi.ListHealthHistoryParams{"another one": {Install: &[]string{"ins_gone"}}, "a label that it has not": {Label: &[]string{"ring=canary"}}} {
		if got := fleet(p); len(got) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}

	set := func(percent float64, want int) {
		t.Helper()
		changed, err := c.UpdateInstallWithResponse(t.Context(), "acme", &ctlapi.UpdateInstallParams{}, ctlapi.InstallUpdate{HealthObjective: &percent})
		if err == nil && changed.StatusCode() != want || err != nil && want == http.StatusOK {
			t.Errorf("objective %g: %v, want %d", percent, err, want)
		}
	}
	set(95, http.StatusOK)
	if diff := cmp.Diff(&ctlapi.HealthBudget{Objective: 95, AllowedSeconds: 300, UsedSeconds: 600, LeftSeconds: -300}, history(1).Budget); diff != "" {
		t.Errorf("budget (-want +got):\n%s", diff)
	}
	set(100, http.StatusUnprocessableEntity)
	set(3, http.StatusUnprocessableEntity)
	kept, err := c.UpdateInstallWithResponse(t.Context(), "acme", &ctlapi.UpdateInstallParams{}, ctlapi.InstallUpdate{Labels: &ctlapi.Labels{"ring": "next"}})
	must(t, kept, err, http.StatusOK)
	if o := kept.JSON200.HealthObjective; o == nil || *o != 95 {
		t.Errorf("a change of labels leaves the objective %v, want 95", o)
	}
	set(0, http.StatusOK)
	if b := history(1).Budget; b != nil {
		t.Errorf("an objective that was taken away: %+v", b)
	}

	for name, p := range map[string]ctlapi.GetHealthHistoryParams{
		"backwards": {Since: &until, Until: &since}, "too long": {Since: new(until.AddDate(-3, 0, 0)), Until: &until}, "no part": {Parts: new(0)},
	} {
		answer, err := c.GetHealthHistoryWithResponse(context.WithoutCancel(t.Context()), "acme", &p)
		if err == nil && answer.StatusCode() == http.StatusOK {
			t.Errorf("%s: it answers %d", name, answer.StatusCode())
		}
	}
	if empty, err := c.GetHealthHistoryWithResponse(t.Context(), "acme", &ctlapi.GetHealthHistoryParams{Until: new(since.AddDate(-1, 0, 0))}); err != nil || empty.JSON200 == nil || empty.JSON200.Install.Availability != nil {
		t.Errorf("a time of which nothing is known: %+v, %v", empty, err)
	}
}

func TestHealthShowsCertificates(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	admin := d.org("initech")
	admin.released("hello", hello())
	admin.live("hello", "acme")
	d.sql(`insert into checks (org_id, install_id, name, verdict) select org_id, id, 'component/web', 'healthy' from installs`)
	d.sql(`insert into certificates (org_id, install_id, check_name, place, subject, fingerprint, not_before, not_after, seen_at)
	       select i.org_id, i.id, 'component/web', x.place, 'shop.example.com', 'f', now() - interval '80 days', now() + x.left_over, now() - x.unseen from installs i,
	       (values ('Secret shop/far', interval '20 days', interval '1 hour'), ('Secret shop/near', interval '6 days', interval '1 hour'), ('Secret shop/unseen', interval '6 days', interval '25 hours')) x (place, left_over, unseen)`)
	status, _, body := admin.raw("GET", "/installs/acme/health", "")
	var health ctlapi.Health
	if err := json.Unmarshal(body, &health); err != nil || status != http.StatusOK {
		t.Fatalf("answered %d: %s", status, body)
	}
	var got []string
	for _, check := range health.Checks {
		for _, c := range check.Certificates {
			got = append(got, fmt.Sprintf("%s %s %s %t", check.Name, c.Place, c.Subject, c.Soon))
		}
	}
	if diff := cmp.Diff([]string{"component/web Secret shop/far shop.example.com false", "component/web Secret shop/near shop.example.com true"}, got); diff != "" {
		t.Errorf("certificates (-want +got):\n%s", diff)
	}
}
