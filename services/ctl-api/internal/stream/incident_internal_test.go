package stream

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/event"
)

func TestTellOnce(t *testing.T) {
	t.Parallel()
	of := func(seq int64, kind event.Kind, install, incident string) Event {
		return Event{Seq: seq, Kind: kind, InstallID: install, Body: json.RawMessage(`{"incident_id":"` + incident + `"}`)}
	}
	org, acme, joined := of(1, "incident.opened", "", "inc_1"), of(2, "incident.opened", "acme", "inc_1"), of(3, "alert.joined", "acme", "inc_1")
	globex, closed, closedTo := of(4, "incident.opened", "globex", "inc_1"), of(5, "incident.closed", "acme", "inc_1"), of(6, "incident.closed", "globex", "inc_1")
	other := of(7, "incident.opened", "globex", "inc_2")
	for name, tt := range map[string]struct {
		events, earlier []Event
		whole           bool
		want            []int64
	}{
		"the whole org gets the incident's own":         {events: []Event{org, acme, joined, globex, closed}, whole: true, want: []int64{1, 3}},
		"two installs are told once":                    {events: []Event{acme, joined, globex, closed, closedTo}, earlier: []Event{acme, globex, closed, closedTo}, want: []int64{2, 3, 5}},
		"the page before had it":                        {events: []Event{globex}, earlier: []Event{acme, globex}},
		"the first is not covered":                      {events: []Event{globex, closedTo}, earlier: []Event{globex, closedTo}, want: []int64{4, 6}},
		"another incident of the same install":          {events: []Event{globex, other}, earlier: []Event{acme, globex, other}, want: []int64{7}},
		"one that came after the page does not hold it": {events: []Event{acme}, earlier: []Event{acme, globex}, want: []int64{2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []int64
			for _, e := range tellOnce(tt.events, tt.whole, tt.earlier) {
				got = append(got, e.Seq)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStoredKinds(t *testing.T) {
	t.Parallel()
	asked := []event.Kind{"alert.opened", "incident.opened"}
	if got, want := storedKinds(asked), []event.Kind{"alert.opened", "incident.opened", "incident_of_install.opened"}; !slices.Equal(got, want) {
		t.Errorf("%v are stored as %v", asked, got)
	}
	if got := storedKinds(nil); len(got) != 0 {
		t.Errorf("a reader of all kinds asks for %v", got)
	}
	for _, d := range event.All {
		if kindOf(string(d.Kind)) != d.Kind {
			t.Errorf("%s is given out as %s", d.Kind, kindOf(string(d.Kind)))
		}
	}
	if got := kindOf("incident_of_install.closed"); got != "incident.closed" {
		t.Errorf("the end in an install is given out as %s", got)
	}
}
