package alerts_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/ctl-api/internal/alerts"
	"github.com/berth-dev/berth/services/internal/model"
)

var start = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func at(minutes float64) time.Time {
	return start.Add(time.Duration(minutes * float64(time.Minute)))
}

func TestStep(t *testing.T) {
	t.Parallel()
	unhealthy := alerts.Observation{Kind: model.AlertUnhealthy, Subject: "answers", Since: at(0)}
	grouped := unhealthy
	grouped.Cause = alerts.Cause{Of: "answers", ReleaseID: "rel_1"}
	silent := alerts.Observation{Kind: model.AlertRunnerSilent, Subject: "runner", Since: at(-3)}
	open := alerts.Alert{Kind: model.AlertUnhealthy, State: model.AlertOpen, Since: at(-9), OpenedAt: at(-9), TellAt: at(-9), ToldAt: at(-9)}
	with := func(a alerts.Alert, change func(*alerts.Alert)) alerts.Alert { change(&a); return a }
	for _, tt := range []struct {
		name   string
		a      alerts.Alert
		o      alerts.Observation
		seen   alerts.Seen
		around alerts.Around
		want   alerts.Alert
	}{
		{name: "good is nothing", o: unhealthy, seen: alerts.Good},
		{name: "unknown opens nothing", o: unhealthy, seen: alerts.Unknown},
		{name: "bad opens, and is told at once when nobody can share the cause", o: unhealthy, seen: alerts.Bad,
			want: alerts.Alert{Kind: model.AlertUnhealthy, State: model.AlertOpen, Since: at(0), OpenedAt: at(0), TellAt: at(0), LookAt: at(0)}},
		{name: "telling waits for the same cause elsewhere", o: grouped, seen: alerts.Bad,
			want: alerts.Alert{Kind: model.AlertUnhealthy, State: model.AlertOpen, Since: at(0), OpenedAt: at(0), TellAt: at(0.5), LookAt: at(0.5)}},
		{name: "a short silence may pass", o: silent, seen: alerts.Bad,
			want: alerts.Alert{Kind: model.AlertRunnerSilent, State: model.AlertHeld, Since: at(-3), Hold: model.HoldTooEarly, HoldUntil: at(7), LookAt: at(7)}},
		{name: "and passed", a: alerts.Alert{Kind: model.AlertRunnerSilent, State: model.AlertHeld, Since: at(-3), Hold: model.HoldTooEarly, HoldUntil: at(7), LookAt: at(7)}, o: silent, seen: alerts.Good},
		{name: "muted", o: unhealthy, seen: alerts.Bad, around: alerts.Around{Muted: at(60), Planned: at(90)},
			want: alerts.Alert{Kind: model.AlertUnhealthy, State: model.AlertHeld, Since: at(0), Hold: model.HoldMuted, HoldUntil: at(60), LookAt: at(60)}},
		{name: "planned work", o: unhealthy, seen: alerts.Bad, around: alerts.Around{Planned: at(10)},
			want: alerts.Alert{Kind: model.AlertUnhealthy, State: model.AlertHeld, Since: at(0), Hold: model.HoldPlannedWork, HoldUntil: at(10), LookAt: at(10)}},
		{name: "something heals it", o: func() alerts.Observation { o := unhealthy; o.Heals = at(3); return o }(), seen: alerts.Bad,
			want: alerts.Alert{Kind: model.AlertUnhealthy, State: model.AlertHeld, Since: at(0), Hold: model.HoldPlannedWork, HoldUntil: at(3), LookAt: at(3)}},
		{name: "planned work is no excuse for a silent runner", o: sinceThen(silent, at(-20)), seen: alerts.Bad, around: alerts.Around{Planned: at(10)},
			want: alerts.Alert{Kind: model.AlertRunnerSilent, State: model.AlertOpen, Since: at(-20), OpenedAt: at(0), TellAt: at(0), LookAt: at(0)}},
		{name: "still bad when the hold ends", o: unhealthy, seen: alerts.Bad, around: alerts.Around{Muted: at(0)},
			a:    alerts.Alert{Kind: model.AlertUnhealthy, State: model.AlertHeld, Since: at(0), Hold: model.HoldMuted, HoldUntil: at(0), LookAt: at(0)},
			want: alerts.Alert{Kind: model.AlertUnhealthy, State: model.AlertOpen, Since: at(0), OpenedAt: at(0), TellAt: at(0), LookAt: at(0)}},
		{name: "a held one is dropped when nobody knows any more", o: unhealthy, seen: alerts.Unknown,
			a: alerts.Alert{Kind: model.AlertUnhealthy, State: model.AlertHeld, Since: at(0), Hold: model.HoldMuted, HoldUntil: at(9), LookAt: at(9)}},
		{name: "what is open is not muted", a: open, o: unhealthy, seen: alerts.Bad, around: alerts.Around{Muted: at(60)}, want: open},
		{name: "good begins the clear window", a: open, o: unhealthy, seen: alerts.Good,
			want: with(open, func(a *alerts.Alert) { a.GoodSince, a.LookAt = at(0), at(5) })},
		{name: "a relapse is the same episode", o: sinceThen(unhealthy, at(0)), seen: alerts.Bad,
			a:    with(open, func(a *alerts.Alert) { a.GoodSince, a.LookAt = at(-4), at(1) }),
			want: with(open, func(a *alerts.Alert) { a.Relapses = 1 })},
		{name: "what is bad after the clear window is another episode, though nobody looked in time", o: sinceThen(unhealthy, at(-1)), seen: alerts.Bad,
			a: with(open, func(a *alerts.Alert) { a.GoodSince, a.LookAt = at(-6), at(-1) }),
			want: with(open, func(a *alerts.Alert) {
				a.GoodSince, a.State, a.ClosedAt, a.Because = at(-6), model.AlertClosed, at(0), model.ClosedRecovered
			})},
		{name: "unknown is not good", o: unhealthy, seen: alerts.Unknown,
			a: with(open, func(a *alerts.Alert) { a.GoodSince, a.LookAt = at(-4), at(1) }), want: open},
		{name: "good for the clear window closes", o: unhealthy, seen: alerts.Good,
			a: with(open, func(a *alerts.Alert) { a.GoodSince, a.LookAt = at(-5), at(0) }),
			want: with(open, func(a *alerts.Alert) {
				a.GoodSince, a.State, a.ClosedAt, a.Because = at(-5), model.AlertClosed, at(0), model.ClosedRecovered
			})},
		{name: "what is well before people are told is not told", o: unhealthy, seen: alerts.Good,
			a:    with(open, func(a *alerts.Alert) { a.TellAt, a.ToldAt, a.LookAt = at(0), time.Time{}, at(0) }),
			want: with(open, func(a *alerts.Alert) { a.TellAt, a.ToldAt, a.GoodSince, a.LookAt = at(0), time.Time{}, at(0), at(5) })},
		{name: "unless it relapses", o: sinceThen(unhealthy, at(0)), seen: alerts.Bad,
			a: with(open, func(a *alerts.Alert) {
				a.TellAt, a.ToldAt, a.GoodSince, a.LookAt = at(-2), time.Time{}, at(-3), at(2)
			}),
			want: with(open, func(a *alerts.Alert) { a.TellAt, a.ToldAt, a.LookAt, a.Relapses = at(-2), time.Time{}, at(-2), 1 })},
		{name: "and nothing is left of it", o: unhealthy, seen: alerts.Good,
			a: with(open, func(a *alerts.Alert) { a.ToldAt, a.GoodSince, a.LookAt = time.Time{}, at(-5), at(0) })},
		{name: "what is gone closes at once", a: open, o: unhealthy, seen: alerts.Gone,
			want: with(open, func(a *alerts.Alert) { a.State, a.ClosedAt, a.Because = model.AlertClosed, at(0), model.ClosedGone })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.o.Seen, tt.around.Now = tt.seen, at(0)
			if diff := cmp.Diff(tt.want, alerts.Step(tt.a, tt.o, tt.around)); diff != "" {
				t.Errorf("Step (-want +got):\n%s", diff)
			}
		})
	}
}

func sinceThen(o alerts.Observation, since time.Time) alerts.Observation { o.Since = since; return o }

func TestPlannedUntil(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		subject string
		work    alerts.Work
		want    time.Time
	}{
		{"its own component, at work", "component/web", alerts.Work{Kind: model.KindComponent, Name: "web", StartedAt: at(-1)}, at(10)},
		{"one of several probes of it", "component/web/port", alerts.Work{Kind: model.KindComponent, Name: "web", StartedAt: at(-1)}, at(10)},
		{"one with a longer name", "component/web2", alerts.Work{Kind: model.KindComponent, Name: "web", StartedAt: at(-1)}, time.Time{}},
		{"another component", "component/web", alerts.Work{Kind: model.KindComponent, Name: "db", StartedAt: at(-1)}, time.Time{}},
		{"what is under it", "component/web", alerts.Work{Kind: model.KindSandbox, StartedAt: at(-1)}, at(10)},
		{"a check speaks of all", "answers", alerts.Work{Kind: model.KindComponent, Name: "db", StartedAt: at(-1)}, at(10)},
		{"for a while after its end", "component/web", alerts.Work{Kind: model.KindComponent, Name: "web", StartedAt: at(-9), EndedAt: at(-4)}, at(6)},
		{"and no longer", "component/web", alerts.Work{Kind: model.KindComponent, Name: "web", StartedAt: at(-19), EndedAt: at(-10)}, time.Time{}},
		{"a change that does not end", "component/web", alerts.Work{Kind: model.KindComponent, Name: "web", StartedAt: at(-115)}, at(5)},
		{"for ever", "component/web", alerts.Work{Kind: model.KindComponent, Name: "web", StartedAt: at(-120)}, time.Time{}},
	} {
		if got := alerts.PlannedUntil(tt.subject, []alerts.Work{tt.work}, at(0)); !got.Equal(tt.want) {
			t.Errorf("%s: until %s, want %s", tt.name, got, tt.want)
		}
	}
}

// Each kind has a severity; a filter by severity finds each in one of them.
func TestEachKindHasRules(t *testing.T) {
	t.Parallel()
	if n := len(alerts.Kinds(alerts.Critical)) + len(alerts.Kinds(alerts.Warning)); n != len(model.AlertKinds) || len(alerts.Kinds("")) != n {
		t.Errorf("%d kinds have a severity, of %d", n, len(model.AlertKinds))
	}
}
