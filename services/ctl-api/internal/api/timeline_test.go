package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// seed writes entries into the timeline of an install, and one of its app, as the
// sequencer does, with numbers from base on.
func (d *door) seed(install string, base, entries int) {
	d.sql(`insert into timeline (org_id, seq, at, kind, app_id, install_id, body)
	       select i.org_id, $3::int + n, now() + make_interval(secs => n), case when n % 500 = 0 then 'inputs.changed' else 'change.applied' end, i.app_id, i.id,
	              jsonb_build_object('resource', 'api', 'resource_kind', 'component', 'change_kind', 'deploy', 'actor', 'ada', 'version', n, 'changed', jsonb_build_array('greeting'))
	       from installs i, generate_series(1, $2::int) n where i.name = $1`, install, entries, base)
	d.sql(`insert into timeline (org_id, seq, at, kind, app_id, body)
	       select org_id, $2::int, now(), 'release.created', app_id, '{"number": 7}' from installs where name = $1`, install, base)
}

// Thousands of entries are read page by page in both directions, each once, by
// indexes; filters find the few among them.
func TestTimelineOfThousands(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.sync("hello", hello())
	made, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, made, err, http.StatusCreated)
	const entries = 6000
	d.seed("acme", 1_000_000, entries)
	d.sql(`analyze timeline`)
	for _, order := range []ctlapi.ListTimelineParamsOrder{ctlapi.ListTimelineParamsOrderNewest, ctlapi.ListTimelineParamsOrderOldest} {
		seen := map[int64]bool{}
		var last time.Time
		params := ctlapi.ListTimelineParams{Order: &order, Limit: new(500)}
		for {
			page, err := c.ListTimelineWithResponse(t.Context(), "acme", &params)
			must(t, page, err, http.StatusOK)
			for _, e := range page.JSON200.Items {
				if seen[e.Seq] {
					t.Fatalf("%s first: entry %d comes twice", order, e.Seq)
				}
				seen[e.Seq] = true
				if !last.IsZero() && (order == ctlapi.ListTimelineParamsOrderNewest) == e.At.After(last) && !e.At.Equal(last) {
					t.Fatalf("%s first: %s comes behind %s", order, e.At, last)
				}
				last = e.At
			}
			if page.JSON200.Next == "" {
				break
			}
			params.After = &page.JSON200.Next
		}
		if len(seen) != entries+1 { // and the release of the app
			t.Errorf("%s first: %d entries, want %d", order, len(seen), entries+1)
		}
	}
	few, err := c.ListTimelineWithResponse(t.Context(), "acme", &ctlapi.ListTimelineParams{Kind: &ctlapi.EventKinds{"inputs.*"}, Limit: new(500)})
	must(t, few, err, http.StatusOK)
	if n := len(few.JSON200.Items); n != entries/500 || few.JSON200.Items[0].Text != "inputs set, version 6000: greeting" {
		t.Errorf("%d entries of inputs, the first %+v", n, few.JSON200.Items[0])
	}
	none, err := c.ListTimelineWithResponse(t.Context(), "acme", &ctlapi.ListTimelineParams{Actor: new("nobody")})
	must(t, none, err, http.StatusOK)
	if len(none.JSON200.Items) != 0 {
		t.Errorf("nobody did %+v", none.JSON200.Items)
	}
	for kind, after := range map[string]string{"no.such": "", "inputs.*": "x"} {
		params := ctlapi.ListTimelineParams{Kind: &ctlapi.EventKinds{kind}}
		if after != "" {
			params.After = &after
		}
		if bad, err := c.ListTimelineWithResponse(t.Context(), "acme", &params); err == nil && bad.StatusCode() != http.StatusUnprocessableEntity && bad.StatusCode() != http.StatusBadRequest {
			t.Errorf("kind %s after %q: %d", kind, after, bad.StatusCode())
		}
	}
	// A page of the newest reads no more than the page, whatever there is.
	var plan string
	rows, err := d.db.Admin().Query(t.Context(), `explain select * from timeline x where x.org_id = (select org_id from installs where name = 'acme')
	    and x.install_id = (select id from installs where name = 'acme') and (x.at, x.seq) > ('0001-01-01', 0) and (x.at, x.seq) < ('9999-01-01', 0) order by x.at desc, x.seq desc limit 50`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan += line + "\n"
	}
	if !strings.Contains(plan, "timeline_of_install") || strings.Contains(plan, "Seq Scan on timeline") || strings.Contains(plan, "Sort") {
		t.Errorf("the newest are not read by the index:\n%s", plan)
	}
}

// Somebody whose grant is for one install sees its past, nothing of the app's, and no
// other install.
func TestAttackTimelineOutsideOnesRights(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.sync("hello", hello())
	for i, name := range []string{"acme", "globex"} {
		made, err := c.CreateInstallWithResponse(t.Context(), nil, ctlapi.InstallRequest{Name: name, App: "hello", Customer: name, CreateCustomer: true, Inputs: acme().Inputs})
		must(t, made, err, http.StatusCreated)
		d.seed(name, (i+1)*1_000_000, 3)
	}
	narrow := c.member(ctlapi.MemberRequest{Name: "narrow", Kind: "user", Role: "viewer", Install: new("acme")})
	page, err := narrow.ListTimelineWithResponse(t.Context(), "acme", &ctlapi.ListTimelineParams{})
	must(t, page, err, http.StatusOK)
	if len(page.JSON200.Items) != 3 {
		t.Errorf("a member of one install sees %d entries, want its 3", len(page.JSON200.Items))
	}
	for _, e := range page.JSON200.Items {
		if e.OfApp {
			t.Errorf("a member of one install sees what happened to the app: %+v", e)
		}
	}
	for _, path := range []string{
		"timeline", "timeline/before-failure", "snapshot", "snapshot/diff?from=2100-01-01T00:00:00Z", "state/versions", "state/diff?from=1", "state?at=1",
	} {
		if status, _, body := narrow.raw(http.MethodGet, "/installs/globex/"+path, ""); status != http.StatusNotFound {
			t.Errorf("another install's %s answers %d: %s", path, status, body)
		}
	}
}

// What is set, and by whom, can be asked for any time since the install was made.
func TestSnapshotThroughTime(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.sync("hello", hello())
	made, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, made, err, http.StatusCreated)
	var first time.Time
	if err := d.db.Admin().QueryRow(t.Context(), `select greatest((select max(at) from install_history), (select max(at) from resource_history), (select max(at) from runner_history))`).Scan(&first); err != nil {
		t.Fatal(err)
	}
	changed, err := c.UpdateInstallWithResponse(t.Context(), "acme", &ctlapi.UpdateInstallParams{}, ctlapi.InstallUpdate{Labels: &ctlapi.Labels{"ring": "canary"}})
	must(t, changed, err, http.StatusOK)
	then, err := c.GetSnapshotWithResponse(t.Context(), "acme", &ctlapi.GetSnapshotParams{At: &first})
	must(t, then, err, http.StatusOK)
	now, err := c.GetSnapshotWithResponse(t.Context(), "acme", &ctlapi.GetSnapshotParams{})
	must(t, now, err, http.StatusOK)
	if len(then.JSON200.Install.Labels) != 0 || now.JSON200.Install.Labels["ring"] != "canary" {
		t.Errorf("labels then %v, now %v", then.JSON200.Install.Labels, now.JSON200.Install.Labels)
	}
	diff, err := c.DiffSnapshotsWithResponse(t.Context(), "acme", &ctlapi.DiffSnapshotsParams{From: first})
	must(t, diff, err, http.StatusOK)
	if len(diff.JSON200.Changes) != 1 || diff.JSON200.Changes[0].Path != "labels.ring" || string(*diff.JSON200.Changes[0].New) != `"canary"` {
		t.Errorf("what differs: %+v", diff.JSON200.Changes)
	}
	early, err := c.GetSnapshotWithResponse(t.Context(), "acme", &ctlapi.GetSnapshotParams{At: new(first.Add(-time.Hour))})
	problemOf(t, early, err, http.StatusConflict, "history_begins")
	backward, err := c.DiffSnapshotsWithResponse(t.Context(), "acme", &ctlapi.DiffSnapshotsParams{From: time.Now(), To: &first})
	problemOf(t, backward, err, http.StatusUnprocessableEntity, "invalid")
	var actor string
	if err := d.db.Admin().QueryRow(t.Context(), `select actor from install_history order by at desc, n desc limit 1`).Scan(&actor); err != nil || actor == "" {
		t.Errorf("who changed the labels is %q, %v", actor, err)
	}
}
