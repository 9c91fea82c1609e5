package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// A rehearsal stays one, is never live, and lists show it as one.
func TestRehearsal(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.released("hello", hello())
	live, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, live, err, http.StatusCreated)
	if live.JSON201.Rehearsal != nil {
		t.Error("a real install says that it is a rehearsal")
	}

	request := acme()
	request.Name = "trial"
	request.Rehearsal = &ctlapi.RehearsalRequest{Given: &ctlapi.RehearsalOutputs{Components: map[string]map[string]any{"nosuch": {}}}}
	bad, err := c.CreateInstallWithResponse(t.Context(), nil, request)
	if p := problemOf(t, bad, err, http.StatusUnprocessableEntity, "rehearsal_invalid"); !strings.Contains(*p.Detail, `no component "nosuch"`) {
		t.Errorf("refused with: %s", *p.Detail)
	}
	request.Rehearsal = &ctlapi.RehearsalRequest{Platform: new(ctlapi.RehearsalPlatformAws), Given: &ctlapi.RehearsalOutputs{Stack: map[string]any{"vpc_id": "vpc-1"}}}
	made, err := c.CreateInstallWithResponse(t.Context(), nil, request)
	must(t, made, err, http.StatusCreated)
	if r := made.JSON201.Rehearsal; r == nil || r.Platform != ctlapi.RehearsalPlatformAws {
		t.Errorf("the rehearsal is shown as %+v", r)
	}

	exec := func(sql string, args ...any) error {
		t.Helper()
		_, err := d.db.Admin().Exec(t.Context(), sql, args...)
		return err
	}
	for _, sql := range []string{`update installs set rehearsal = null where name = 'trial'`, `update installs set rehearsal = '{}' where name = 'acme'`} {
		if err := exec(sql); err == nil || !strings.Contains(err.Error(), "decided when it is made") {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if err := exec(`update installs set state = 'live'`); err != nil {
		t.Fatal(err)
	}
	for state, want := range map[ctlapi.InstallState]string{ctlapi.InstallStateLive: "acme", ctlapi.InstallStateRehearsed: "trial"} {
		list, err := c.ListInstallsWithResponse(t.Context(), &ctlapi.ListInstallsParams{State: &state})
		must(t, list, err, http.StatusOK)
		if items := list.JSON200.Items; len(items) != 1 || items[0].Name != want || items[0].State != state {
			t.Errorf("of state %s: %+v", state, items)
		}
	}
	status, err := c.GetInstallStatusWithResponse(t.Context(), "trial")
	must(t, status, err, http.StatusOK)
	if got := status.JSON200.Standing; got != ctlapi.InstallStatusStandingRehearsed {
		t.Errorf("its standing is %s", got)
	}
}
