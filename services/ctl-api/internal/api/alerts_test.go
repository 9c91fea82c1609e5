package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// alert writes a row as package alertwatch does.
func (d *door) alert(id, install, kind, state, incident string) {
	d.t.Helper()
	d.sql(`insert into alerts (id, org_id, install_id, kind, subject, state, text, since, hold, hold_until, look_at, opened_at, tell_at, told_at, closed_at, closed_because, incident_id)
		select $1, org_id, $2, $3, $1, $4, 'x is ' || $3, now(), case when $4 = 'held' then 'muted' end, case when $4 = 'held' then now() + interval '1 hour' end,
			case when $4 = 'held' then now() + interval '1 hour' end, case when $4 <> 'held' then now() end, case when $4 <> 'held' then now() end, case when $4 <> 'held' then now() end,
			case when $4 = 'closed' then now() end, case when $4 = 'closed' then 'gone' end, nullif($5, '') from installs where id = $2`, id, install, kind, state, incident)
}

// text is the one value of a query.
func (d *door) text(sql string) (out string) {
	d.t.Helper()
	if err := d.db.Admin().QueryRow(d.t.Context(), sql).Scan(&out); err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
	return out
}

// idsOf are the ids of a page.
func idsOf(t *testing.T, body []byte) (ids []string) {
	t.Helper()
	var page struct{ Items []struct{ ID string } }
	if err := json.Unmarshal(body, &page); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	for _, item := range page.Items {
		ids = append(ids, item.ID)
	}
	return ids
}

// Who may see an install sees its alerts, in the states and of the kinds that were asked for.
func TestAlertsAreListed(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	o, other := d.tenant("vendor"), d.org("other") // with an open alert alt_of_vendor, of an incident
	o.live("app-vendor", "globex")
	globex := d.text(`select id from installs where name = 'globex'`)
	d.alert("alt_2", o.Install, "runner_silent", "open", "")
	d.alert("alt_3", o.Install, "expiring", "open", "")
	d.alert("alt_4", o.Install, "unhealthy", "closed", "")
	d.alert("alt_5", globex, "unhealthy", "open", o.Incident)
	d.alert("alt_6", globex, "drift", "held", "")
	limited := o.member(ctlapi.MemberRequest{Name: "eve", Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleOperator, Install: new("globex")})
	list := func(c caller, query string) string {
		t.Helper()
		status, _, body := c.raw(http.MethodGet, "/alerts?"+query, "")
		if status != http.StatusOK {
			return fmt.Sprint(status)
		}
		return strings.Join(idsOf(t, body), " ")
	}
	for _, tt := range []struct {
		who         caller
		query, want string
	}{
		{o.caller, "", "alt_of_vendor alt_5 alt_3 alt_2"},
		{o.caller, "state=held&state=closed", "alt_6 alt_4"},
		{o.caller, "kind=unhealthy&kind=expiring", "alt_of_vendor alt_5 alt_3"},
		{o.caller, "severity=warning", "alt_3"},
		{o.caller, "severity=warning&kind=unhealthy", ""},
		{o.caller, "install=globex", "alt_5"},
		{o.caller, "limit=2", "alt_of_vendor alt_5"},
		{o.caller, "limit=2&after=alt_5", "alt_3 alt_2"},
		{o.caller, "kind=nonsense", "422"},
		{limited, "", "alt_5"},
		{limited, "install=install-vendor", "404"},
		{other, "state=held&state=open&state=closed", ""},
	} {
		if got := list(tt.who, tt.query); got != tt.want {
			t.Errorf("alerts?%s: %q, want %q", tt.query, got, tt.want)
		}
	}
	for who, want := range map[string]int{"alt_5": http.StatusOK, "alt_2": http.StatusNotFound} {
		if status, _, body := limited.raw(http.MethodGet, "/alerts/"+who, ""); status != want {
			t.Errorf("%s answered who is limited to globex %d: %s", who, status, body)
		}
	}
	// An incident is shown with what the caller may see of it.
	got, err := limited.GetIncidentWithResponse(t.Context(), o.Incident)
	must(t, got, err, http.StatusOK)
	if got.JSON200.Incident.Alerts != 1 || len(got.JSON200.Alerts) != 1 || got.JSON200.Alerts[0].ID != "alt_5" {
		t.Errorf("the incident as who is limited to globex sees it: %+v", got.JSON200)
	}
	all, err := o.GetIncidentWithResponse(t.Context(), o.Incident)
	must(t, all, err, http.StatusOK)
	if all.JSON200.Incident.OpenAlerts != 2 || len(all.JSON200.Alerts) != 2 {
		t.Errorf("the incident: %+v", all.JSON200)
	}
	// What is open is in the install and in why.
	install, err := o.GetInstallWithResponse(t.Context(), o.Install)
	must(t, install, err, http.StatusOK)
	if install.JSON200.OpenAlerts != 3 {
		t.Errorf("%d open alerts of the install, want 3", install.JSON200.OpenAlerts)
	}
	why, err := o.WhyInstallWithResponse(t.Context(), "globex")
	must(t, why, err, http.StatusOK)
	found := false
	for _, item := range why.JSON200.Items {
		found = found || item.What == "alert unhealthy" && *item.Unblock == "berth alerts ack alt_5 --note TEXT" && item.Code == "alert"
	}
	if !found {
		t.Errorf("why says nothing of it: %+v", why.JSON200.Items)
	}
}

// The first to acknowledge is named; it is on record once.
func TestAlertIsAcknowledged(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	o := d.tenant("vendor")
	d.alert("alt_closed", o.Install, "expiring", "closed", "")
	d.alert("alt_held", o.Install, "drift", "held", "")
	bob := o.member(ctlapi.MemberRequest{Name: "bob", Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleOperator})
	limited := o.member(ctlapi.MemberRequest{Name: "vic", Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleViewer, Install: new("install-vendor")})
	ack := func(c caller, alert, note string) (int, string) {
		status, _, body := c.raw(http.MethodPost, "/alerts/"+alert+"/acknowledge", `{"note":"`+note+`"}`, "Content-Type", "application/json")
		return status, string(body)
	}
	for _, tt := range []struct {
		who         caller
		alert, note string
		want        int
		says        string
	}{
		{limited, o.Alert, "x", http.StatusForbidden, ""},
		{bob, o.Alert, " ", http.StatusUnprocessableEntity, "/note"},
		{bob, "alt_closed", "x", http.StatusConflict, "alert_not_open"},
		{bob, "alt_held", "x", http.StatusConflict, "alert_not_open"},
		{bob, "alt_none", "x", http.StatusNotFound, ""},
		{bob, o.Alert, "at it", http.StatusOK, `"acknowledged_by":"bob"`},
		{o.caller, o.Alert, "so am I", http.StatusOK, `"note":"at it"`},
	} {
		if status, body := ack(tt.who, tt.alert, tt.note); status != tt.want || !strings.Contains(body, tt.says) {
			t.Errorf("acknowledge %s with %q: %d %s, want %d and %s", tt.alert, tt.note, status, body, tt.want, tt.says)
		}
	}
	if n := d.count(`select count(*) from chain_records where convert_from(body, 'UTF8') like '%acknowledge alert%'`); n != 1 {
		t.Errorf("%d records of it in the org's chain", n)
	}
}

// A mute ends, reaches no further than who made it, and has what it held back looked at.
func TestMutes(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	o := d.tenant("vendor")
	o.live("app-vendor", "globex")
	d.alert("alt_held", o.Install, "drift", "held", "")
	limited := o.member(ctlapi.MemberRequest{Name: "eve", Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleOperator, Install: new("globex")})
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	mute := func(c caller, fields, until string) (int, string) {
		status, _, body := c.raw(http.MethodPost, "/alert-mutes", `{"reason":"moving","until":"`+until+`"`+fields+`}`, "Content-Type", "application/json")
		return status, string(body)
	}
	for _, tt := range []struct {
		who           caller
		fields, until string
		want          int
		says          string
	}{
		{o.caller, `,"install":"globex"`, in(-time.Minute), http.StatusUnprocessableEntity, "/until"},
		{o.caller, `,"install":"globex"`, in(31 * 24 * time.Hour), http.StatusUnprocessableEntity, "30 days"},
		{o.caller, ``, in(time.Hour), http.StatusUnprocessableEntity, "name what to mute"},
		{o.caller, `,"alert":"` + o.Alert + `","install":"globex"`, in(time.Hour), http.StatusUnprocessableEntity, "/alert"},
		{o.caller, `,"alert":"alt_none"`, in(time.Hour), http.StatusNotFound, ""},
		{limited, `,"kind":"unhealthy"`, in(time.Hour), http.StatusForbidden, "name the install"},
		{limited, `,"install":"install-vendor"`, in(time.Hour), http.StatusNotFound, ""},
		{limited, `,"alert":"` + o.Alert + `"`, in(time.Hour), http.StatusNotFound, ""},
		{limited, `,"install":"globex","kind":"unhealthy"`, in(time.Hour), http.StatusCreated, `"created_by":"eve"`},
		{o.caller, `,"alert":"alt_held"`, in(time.Hour), http.StatusCreated, `"subject":"alt_held"`},
		{o.caller, `,"kind":"expiring"`, in(30*24*time.Hour - time.Minute), http.StatusCreated, `"kind":"expiring"`},
	} {
		if status, body := mute(tt.who, tt.fields, tt.until); status != tt.want || !strings.Contains(body, tt.says) {
			t.Errorf("mute %s until %s: %d %s, want %d and %s", tt.fields, tt.until, status, body, tt.want, tt.says)
		}
	}
	mutes := func(c caller, query string) int {
		_, _, body := c.raw(http.MethodGet, "/alert-mutes"+query, "")
		return len(idsOf(t, body))
	}
	if all, some := mutes(o.caller, ""), mutes(limited, ""); all != 4 || some != 1 { // one is of the tenant
		t.Errorf("%d mutes, and %d of globex; want 4 and 1", all, some)
	}
	id := d.text(`select id from alert_mutes where subject = 'alt_held'`)
	if status, _, _ := limited.raw(http.MethodDelete, "/alert-mutes/"+id, ""); status != http.StatusNotFound {
		t.Errorf("who is limited to globex ends another's mute: %d", status)
	}
	d.sql(`delete from river_ctl.river_job`)
	for range 2 {
		if status, _, body := o.raw(http.MethodDelete, "/alert-mutes/"+id, ""); status != http.StatusNoContent {
			t.Errorf("end the mute: %d %s", status, body)
		}
	}
	if n := d.count(`select count(*) from river_ctl.river_job where kind = 'install_advance' and args->>'install_id' = $1`, o.Install); n != 1 {
		t.Errorf("%d wake-ups of the install whose alert was held", n)
	}
	if past := mutes(o.caller, "?past=true"); past != 4 {
		t.Errorf("%d mutes with those that are over, want 4", past)
	}
}
