package alertwatch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/ctl-api/internal/alerts"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// look is one look at an install.
type look struct {
	scene
	tx *database.Tx
	// mutes and work are read once something is wrong.
	mutes []ctldb.AlertMute
	work  []alerts.Work
	read  bool
}

// subject is what an install has at most one alert about at a time.
type subject struct {
	kind model.AlertKind
	of   string
}

// Look compares what is wrong with an install with its alerts, and writes what becomes of
// them. next is when it should be called again even if nothing happens; zero for never. The
// caller holds the row of the install.
func Look(ctx context.Context, tx *database.Tx, install ctldb.Install, now time.Time) (next time.Time, err error) {
	now = now.Truncate(time.Microsecond) // as rows have it
	l := &look{scene: scene{Install: install, Now: now}, tx: tx}
	seen, err := observe(ctx, tx, l.scene)
	if err != nil {
		return time.Time{}, err
	}
	rows, err := tx.AlertsToStep(ctx, install.ID)
	if err != nil {
		return time.Time{}, fmt.Errorf("read alerts: %w", err)
	}
	left := map[subject]ctldb.Alert{}
	for _, row := range rows {
		left[subject{row.Kind, row.Subject}] = row
	}
	var moves []move
	for _, o := range seen {
		key := subject{o.Kind, o.Subject}
		moves = append(moves, move{row: left[key], saw: o})
		delete(left, key)
	}
	for _, row := range left {
		moves = append(moves, move{row: row, saw: alerts.Observation{Kind: row.Kind, Subject: row.Subject, Seen: alerts.Gone}})
	}
	// In one order, for the locks of causes.
	slices.SortFunc(moves, func(a, b move) int { return strings.Compare(a.cause(), b.cause()) })
	for _, m := range moves {
		at, err := l.step(ctx, m)
		if err != nil {
			return time.Time{}, fmt.Errorf("alert %s about %q: %w", m.saw.Kind, m.saw.Subject, err)
		}
		next = alerts.Earlier(next, alerts.Earlier(at, m.saw.Turns))
	}
	return next, nil
}

// move is an alert, or none, and what was seen.
type move struct {
	row ctldb.Alert
	saw alerts.Observation
}

// cause is that with which the alert opened: what is wrong may have another one by now.
func (m move) cause() string {
	if m.row.State == model.AlertOpen {
		return m.row.Cause
	}
	return m.saw.Key()
}

// step writes what becomes of one alert.
func (l *look) step(ctx context.Context, m move) (next time.Time, err error) {
	before := episode(m.row)
	around, err := l.around(ctx, before, m.saw)
	if err != nil {
		return time.Time{}, err
	}
	after := alerts.Step(before, m.saw, around)
	row := m.row
	if after.State != "" && m.row.State != model.AlertOpen {
		row.Text, row.Cause = m.saw.Text, m.saw.Key()
		row.ReleaseID, row.RunnerVersion = optional.Of(m.saw.Cause.ReleaseID), optional.Of(m.saw.Cause.RunnerVersion)
	}
	if after.State == model.AlertOpen {
		if row.IncidentID, after, err = l.tell(ctx, row, after); err != nil {
			return time.Time{}, err
		}
	}
	switch {
	case after.State == "" && before.State == "":
		return time.Time{}, nil
	case after.State == "":
		err = l.tx.DropUntoldAlert(ctx, row.ID)
	case before.State == "":
		err = l.insert(ctx, row, m.saw, after)
	case after != before || row.IncidentID != m.row.IncidentID || row.Text != m.row.Text:
		err = l.write(ctx, row, after)
	}
	if err != nil {
		return time.Time{}, err
	}
	if before.State != model.AlertOpen || after.State == model.AlertOpen {
		return after.LookAt, nil
	}
	if row.Cause != "" {
		err = l.closeIncident(ctx, row.Cause)
	}
	if err == nil && m.saw.Seen == alerts.Bad {
		return l.step(ctx, move{saw: m.saw}) // the next episode
	}
	return time.Time{}, err
}

// around is what may hold an alert back that is not open yet.
func (l *look) around(ctx context.Context, before alerts.Alert, o alerts.Observation) (alerts.Around, error) {
	around := alerts.Around{Now: l.Now}
	if o.Seen != alerts.Bad || before.State == model.AlertOpen {
		return around, nil
	}
	if !l.read {
		var err error
		if l.mutes, err = l.tx.MutesInForce(ctx, ctldb.MutesInForceParams{Now: l.Now, InstallID: l.Install.ID}); err != nil {
			return around, fmt.Errorf("read mutes: %w", err)
		}
		rows, err := l.tx.PlannedWork(ctx, ctldb.PlannedWorkParams{InstallID: l.Install.ID, Since: l.Now.Add(-alerts.Grace)})
		if err != nil {
			return around, fmt.Errorf("read planned work: %w", err)
		}
		for _, row := range rows {
			l.work = append(l.work, alerts.Work{
				Kind: model.ResourceKind(row.Kind), Name: row.Name, StartedAt: row.StartedAt, EndedAt: optional.Value(row.FinishedAt),
			})
		}
		l.read = true
	}
	for _, m := range l.mutes {
		if (m.Kind == nil || *m.Kind == string(o.Kind)) && (m.Subject == nil || *m.Subject == o.Subject) && m.Until.After(around.Muted) {
			around.Muted = m.Until
		}
	}
	around.Planned = alerts.PlannedUntil(o.Subject, l.work, l.Now)
	return around, nil
}

// tell decides how people are told of an open alert, or that it joins an incident.
func (l *look) tell(ctx context.Context, row ctldb.Alert, a alerts.Alert) (incident *string, _ alerts.Alert, err error) {
	if row.Cause == "" {
		if a.Untold(l.Now) {
			a = a.Told(l.Now)
		}
		return nil, a, nil
	}
	if row.IncidentID != nil {
		return row.IncidentID, a, nil
	}
	told := !a.ToldAt.IsZero()
	if !told && !a.Untold(l.Now) {
		return nil, a, nil // it gathers
	}
	if !told {
		if err := l.tx.LockCause(ctx, row.Cause); err != nil {
			return nil, a, fmt.Errorf("lock cause: %w", err)
		}
	}
	open, err := l.tx.OpenIncidents(ctx, row.Cause)
	if err != nil {
		return nil, a, fmt.Errorf("read incidents: %w", err)
	}
	if told { // people know it, alone
		if len(open) > 0 {
			return &open[0].ID, a, nil
		}
		return nil, a, nil
	}
	rows, err := l.tx.PeersOfAlert(ctx, ctldb.PeersOfAlertParams{Cause: row.Cause, InstallID: l.Install.ID})
	if err != nil {
		return nil, a, fmt.Errorf("read alerts of the cause: %w", err)
	}
	var peers []alerts.Peer
	for _, p := range rows {
		peers = append(peers, alerts.Peer{Install: p.InstallID, OpenedAt: p.OpenedAt})
	}
	opened := a.OpenedAt
	a = a.Told(l.Now)
	switch alerts.Tell(opened, peers, len(open) > 0) {
	case alerts.TellNobody:
		return &open[0].ID, a, nil
	case alerts.TellIncident:
		made, err := l.openIncident(ctx, row, alerts.Together(opened, peers))
		return &made, a, err
	}
	return nil, a, nil
}

// openIncident makes the incident of an alert and of those in other installs, which join
// it when they are looked at.
func (l *look) openIncident(ctx context.Context, row ctldb.Alert, others []string) (string, error) {
	incident := id.New(id.Incident)
	err := l.tx.InsertIncident(ctx, ctldb.InsertIncidentParams{
		ID: incident, Kind: string(row.Kind), Cause: row.Cause, About: alerts.AboutOf(row.Cause), ReleaseID: row.ReleaseID, RunnerVersion: row.RunnerVersion, Installs: int32(len(others) + 1),
	})
	if err != nil {
		return "", fmt.Errorf("open incident: %w", err)
	}
	for _, other := range others {
		if err := l.tx.WakeInstall(ctx, other); err != nil {
			return "", err
		}
	}
	return incident, nil
}

// closeIncident closes the incident of a cause, if that was its last open alert.
func (l *look) closeIncident(ctx context.Context, cause string) error {
	if err := l.tx.LockCause(ctx, cause); err != nil {
		return fmt.Errorf("lock cause: %w", err)
	}
	if _, err := l.tx.CloseIncident(ctx, ctldb.CloseIncidentParams{Cause: cause, Now: l.Now}); err != nil {
		return fmt.Errorf("close incident: %w", err)
	}
	return nil
}
