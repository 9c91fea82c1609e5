package alerts

import "time"

// together is how far apart alerts of one cause may open and still be one incident.
const together = time.Hour

// Peer is an open alert of the same cause in another install.
type Peer struct {
	Install  string
	OpenedAt time.Time
}

// Telling is how people are told of an alert.
type Telling string

// The ways to tell.
const (
	TellAlone    Telling = "alone"    // as an alert
	TellIncident Telling = "incident" // as the incident that it and its peers are from now on
	TellNobody   Telling = "nobody"   // it joins an incident that people know
)

// Tell decides how people are told of an alert that opened at a time. others are the
// open alerts of its cause in other installs, incident is that one of the cause is
// open. Whatever the order in which installs are looked at, people are told once of a
// cause that several share at the time.
func Tell(opened time.Time, others []Peer, incident bool) Telling {
	if incident {
		return TellNobody
	}
	if len(Together(opened, others)) > 0 {
		return TellIncident
	}
	return TellAlone
}

// Together are the installs whose alerts make one incident with one that opened at a
// time.
func Together(opened time.Time, others []Peer) (installs []string) {
	for _, o := range others {
		if o.OpenedAt.Sub(opened).Abs() <= together {
			installs = append(installs, o.Install)
		}
	}
	return installs
}
