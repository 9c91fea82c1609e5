package stream

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/pkg/event"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// reached are the stored kinds that tell an incident in each install that it reaches, by
// how readers know them. Readers of the whole org get the event of the incident itself;
// the others get the one of the first install that they cover, so that each is told once
// and learns of no install but theirs.
var reached = map[event.Kind]event.Kind{
	"incident.opened": "incident_of_install.opened",
	"incident.closed": "incident_of_install.closed",
}

// kindOf is the kind that readers know.
func kindOf(stored string) event.Kind {
	for known, kind := range reached {
		if string(kind) == stored {
			return known
		}
	}
	return event.Kind(stored)
}

// storedKinds are all under which kinds are stored.
func storedKinds(kinds []event.Kind) []event.Kind {
	for _, k := range kinds[:len(kinds):len(kinds)] {
		if kind, ok := reached[k]; ok {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// incidentOf is the incident that an event tells in an install; "" for all others.
func incidentOf(e Event) string {
	if _, ok := reached[e.Kind]; !ok || e.InstallID == "" {
		return ""
	}
	var body struct {
		IncidentID string `json:"incident_id"`
	}
	_ = json.Unmarshal(e.Body, &body) // a trigger wrote it
	return body.IncidentID
}

// tellOnce leaves out what tells an incident again: all that is told in installs for a
// reader of the whole org, and all but the first of those that any other reader covers.
// earlier are events that the reader covers, in order, those of the page among them.
func tellOnce(events []Event, whole bool, earlier []Event) (told []Event) {
	first := map[string]int64{}
	for _, e := range earlier {
		key := string(e.Kind) + " " + incidentOf(e)
		if seq, known := first[key]; !known || e.Seq < seq {
			first[key] = e.Seq
		}
	}
	for _, e := range events {
		incident := incidentOf(e)
		if incident == "" || (!whole && first[string(e.Kind)+" "+incident] == e.Seq) {
			told = append(told, e)
		}
	}
	return told
}

// onceOfIncidents is a page with each incident told once.
func onceOfIncidents(ctx context.Context, tx *database.Tx, q Query, events []Event) ([]Event, error) {
	if q.whole() {
		return tellOnce(events, true, nil), nil
	}
	var incidents []string
	for _, e := range events {
		if incident := incidentOf(e); incident != "" {
			incidents = append(incidents, incident)
		}
	}
	if len(incidents) == 0 {
		return events, nil
	}
	rows, err := tx.EventsOfIncidents(ctx, incidents)
	if err != nil {
		return nil, fmt.Errorf("read events of incidents: %w", err)
	}
	var earlier []Event
	for _, row := range rows {
		earlier = append(earlier, eventOf(ctldb.EventsBetweenRow(row)))
	}
	if earlier, err = q.covered(ctx, earlier); err != nil {
		return nil, err
	}
	return tellOnce(events, false, earlier), nil
}
