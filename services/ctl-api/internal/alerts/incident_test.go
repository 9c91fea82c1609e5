package alerts_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/alerts"
	"github.com/berth-dev/berth/services/internal/model"
)

// opening is an alert that opens in an install at a time.
type opening struct {
	install string
	o       alerts.Observation
	at      time.Time
}

// told counts what people were told, as rows would: installs are looked at in any order.
type told struct{ alerts, incidents, joined int }

func tellAll(openings []opening, order []int) (got told) {
	incidents := map[string]bool{}
	for _, i := range order {
		me := openings[i]
		var peers []alerts.Peer
		for _, other := range openings {
			if other.install != me.install && other.o.Key() == me.o.Key() {
				peers = append(peers, alerts.Peer{Install: other.install, OpenedAt: other.at})
			}
		}
		switch alerts.Tell(me.at, peers, incidents[me.o.Key()]) {
		case alerts.TellAlone:
			got.alerts++
		case alerts.TellIncident:
			got.incidents++
			incidents[me.o.Key()] = true
		case alerts.TellNobody:
			got.joined++
		}
	}
	return got
}

func TestTheSameCauseIsToldOnce(t *testing.T) {
	t.Parallel()
	bad := func(of, release string) alerts.Observation {
		return alerts.Observation{Kind: model.AlertUnhealthy, Subject: of, Seen: alerts.Bad, Cause: alerts.Cause{Of: of, ReleaseID: release}}
	}
	silent := alerts.Observation{Kind: model.AlertRunnerSilent, Subject: "runner", Seen: alerts.Bad, Cause: alerts.Cause{Of: "runner", RunnerVersion: "v1.2.3"}}
	fleet := func(n int, apart time.Duration, of ...alerts.Observation) (all []opening) {
		for i := range n {
			for _, o := range of {
				all = append(all, opening{install: fmt.Sprintf("ins%d", i), o: o, at: start.Add(time.Duration(i) * apart)})
			}
		}
		return all
	}
	for _, tt := range []struct {
		name     string
		openings []opening
		want     told
	}{
		{"one install alone", fleet(1, 0, bad("component/web", "rel_1")), told{alerts: 1}},
		{"200 installs with the same release and component", fleet(200, time.Second, bad("component/web", "rel_1")), told{incidents: 1, joined: 199}},
		{"two components of 200 installs", fleet(200, time.Second, bad("component/web", "rel_1"), bad("component/db", "rel_1")), told{incidents: 2, joined: 398}},
		{"the same component with two releases", append(fleet(100, 0, bad("component/web", "rel_1")), fleet(100, 0, bad("component/web", "rel_2"))...), told{incidents: 2, joined: 198}},
		{"the same version of the runner", fleet(50, time.Second, silent), told{incidents: 1, joined: 49}},
		{"weeks apart", fleet(5, 200*time.Hour, bad("component/web", "rel_1")), told{alerts: 5}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(20) {
				order := rand.New(rand.NewPCG(seed, 1)).Perm(len(tt.openings))
				if got := tellAll(tt.openings, order); got != tt.want {
					t.Fatalf("order %d: told %+v, want %+v", seed, got, tt.want)
				}
			}
		})
	}
}
