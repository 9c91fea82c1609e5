package alerts_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/verdict"
	"github.com/berth-dev/berth/services/ctl-api/internal/alerts"
	"github.com/berth-dev/berth/services/internal/model"
)

var update = flag.Bool("update", false, "rewrite the figures in the guide")

const (
	histories = 1000
	ticks     = 24 * 60 // a day of one run each minute
	guide     = "../../../../docs/guides/install-alerts.md"
)

// history is a day of a check: an outcome each minute, none where the runner was silent.
type history []byte

// newHistory switches at random between good, bad, flapping and silent times of random lengths.
func newHistory(seed uint64) history {
	r := rand.New(rand.NewPCG(seed, 15))
	var h history
	for len(h) < ticks {
		share, length := r.Float64(), 1+r.IntN(60)
		mood := r.IntN(6)
		for range length {
			switch {
			case mood < 3: // well, with a rare failure
				h = append(h, pick(r, 0.02))
			case mood == 3: // ill
				h = append(h, pick(r, 0.97))
			case mood == 4: // neither
				h = append(h, pick(r, share))
			default:
				h = append(h, ' ')
			}
		}
	}
	return h[:ticks]
}

func pick(r *rand.Rand, bad float64) byte {
	if r.Float64() < bad {
		return '-'
	}
	return '+'
}

// spell is a time with one verdict.
type spell struct {
	verdict  model.Verdict
	from, to time.Time
}

// replay judges the check as package health does, and steps its alert after each look, and
// when the alert says so.
func replay(h history, rules verdict.Rules) (spells []spell, opened []alerts.Alert) {
	present := model.Unknown
	var recent []verdict.Outcome
	var a alerts.Alert
	look := func(now time.Time) {
		verdict := verdict.Evaluate(present, recent, rules, now)
		if n := len(spells); n == 0 || verdict != present {
			spells = append(spells, spell{verdict: verdict, from: now})
			if n > 0 {
				spells[n-1].to = now
			}
		}
		present = verdict
		o := alerts.Observation{Kind: model.AlertUnhealthy, Subject: "answers", Seen: alerts.Unknown, Since: spells[len(spells)-1].from}
		switch verdict {
		case model.Healthy:
			o.Seen = alerts.Good
		case model.Unhealthy:
			o.Seen = alerts.Bad
		}
		before := a
		a = alerts.Step(a, o, alerts.Around{Now: now})
		if a.State == model.AlertClosed && o.Seen == alerts.Bad { // as package alertwatch does
			before, a = alerts.Alert{}, alerts.Step(alerts.Alert{}, o, alerts.Around{Now: now})
		}
		if a.Untold(now) {
			a = a.Told(now)
		}
		if before.State != model.AlertOpen && a.State == model.AlertOpen {
			opened = append(opened, a)
		}
		if a.State == model.AlertClosed {
			a = alerts.Alert{} // the row stays; the next episode is another one
		}
	}
	for i, outcome := range h {
		now := start.Add(time.Duration(i) * time.Minute)
		for !a.LookAt.IsZero() && a.LookAt.Before(now) {
			look(a.LookAt)
		}
		if outcome != ' ' {
			recent = append([]verdict.Outcome{{Good: outcome != '-', Unknown: outcome == '?', At: now}}, recent[:min(len(recent), 19)]...)
		}
		look(now)
	}
	if n := len(spells); n > 0 {
		spells[n-1].to = start.Add(ticks * time.Minute)
	}
	return spells, opened
}

// episodes are the times of trouble by their definition, and not by Step: from the first
// unhealthy spell on, as long as no healthy one lasts for the clear window.
func episodes(spells []spell, window time.Duration) (from []time.Time) {
	in := false
	for _, s := range spells {
		switch {
		case s.verdict == model.Unhealthy && !in:
			from, in = append(from, s.from), true
		case s.verdict == model.Healthy && s.to.Sub(s.from) >= window:
			in = false
		}
	}
	return from
}

// Of 1,000 random days each episode has one alert, which opens when the episode begins.
func TestFlapping(t *testing.T) {
	t.Parallel()
	rules := verdict.Rules{UnhealthyAfter: 3, HealthyAfter: 2, SilentAfter: 4 * time.Minute}
	window := alerts.RulesOf(model.AlertUnhealthy).ClearAfter
	var bad, spellsBad, all, flapping int
	for seed := range uint64(histories) {
		h := newHistory(seed)
		spells, opened := replay(h, rules)
		want := episodes(spells, window)
		if len(opened) != len(want) {
			t.Fatalf("history %d: %d alerts for %d episodes", seed, len(opened), len(want))
		}
		for i, a := range opened {
			if !a.OpenedAt.Equal(want[i]) {
				t.Errorf("history %d: alert %d opened at %s, its episode began at %s", seed, i, a.OpenedAt, want[i])
			}
		}
		n := 0
		for _, s := range spells {
			if s.verdict == model.Unhealthy {
				n++
			}
		}
		bad, spellsBad, all = bad+strings.Count(string(h), "-"), spellsBad+n, all+len(opened)
		if n > len(opened) {
			flapping++
		}
	}
	if all == 0 || flapping < histories/10 {
		t.Fatalf("only %d alerts, and %d histories that flap: the test proves nothing", all, flapping)
	}
	figures(t, fmt.Sprintf("| histories | failed runs | times unhealthy | episodes | alerts | missed | more than one for an episode |\n|---|---|---|---|---|---|---|\n| %d | %d | %d | %d | %d | 0 | 0 |\n",
		histories, bad, spellsBad, all, all))
}

// figures are published as the guide has them.
func figures(t *testing.T, table string) {
	t.Helper()
	raw, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	const from, to = "<!-- figures -->\n", "<!-- end of figures -->\n"
	head, rest, found := strings.Cut(string(raw), from)
	_, tail, ends := strings.Cut(rest, to)
	if !found || !ends {
		t.Fatalf("%s has no figures", guide)
	}
	if want := head + from + table + to + tail; *update {
		if err := os.WriteFile(guide, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(raw) {
		t.Errorf("%s has other figures: go test ./ctl-api/internal/alerts -run TestFlapping -update\n%s", guide, table)
	}
}
