package roles

import (
	"context"
	"time"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/customerrole"
	"github.com/berth-dev/berth/runner/agent/dirwatch"
)

const (
	// maxSleep is the longest time between two looks at the clock: it may be set, or the
	// machine may have slept.
	maxSleep = time.Minute
	// againAfter is when a record that could not be written is tried again.
	againAfter = 5 * time.Second
)

// Record writes a switch into the chain.
type Record func(context.Context, chain.Record) error

// Keep switches roles off when their time is over, and writes each switch into the chain,
// until ctx ends. A crash between chain and file records a switch twice, with the same
// id; none is lost.
func (s Store) Keep(ctx context.Context, record Record, failed func(error)) error {
	if err := s.make(); err != nil {
		return err
	}
	changed, end, err := dirwatch.Watch(s.Dir)
	if err != nil {
		return err
	}
	defer end()
	for {
		wait := maxSleep
		next, err := s.settle(ctx, record)
		if err != nil {
			failed(err)
			wait = againAfter
		}
		if !next.IsZero() {
			wait = min(wait, max(0, next.Sub(s.Now())))
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// settle does what is due now.
func (s Store) settle(ctx context.Context, record Record) (next time.Time, err error) {
	if next, err = s.Expire(); err != nil {
		return next, err
	}
	d, _, err := s.Read()
	if err != nil {
		return next, err
	}
	for _, l := range d.Log {
		if l.Recorded {
			continue
		}
		if err := record(ctx, recordOf(l.Switch)); err != nil {
			return next, err
		}
		if err := s.Recorded(l.ID); err != nil {
			return next, err
		}
	}
	return next, nil
}

// recordOf is what the chain says of a switch.
func recordOf(s customerrole.Switch) chain.Record {
	r := chain.Record{Actor: "customer", Kind: chain.Event, What: "role " + s.Name + " switched off", Detail: "by " + s.By, Role: &s}
	if s.By == customerrole.ByRunner {
		r.Actor = "runner"
	}
	if s.On {
		r.What = "role " + s.Name + " switched on"
		if !s.Until.IsZero() {
			r.Detail += " until " + s.Until.Format(time.RFC3339)
		}
	}
	if s.Reason != "" {
		r.Detail += ": " + s.Reason
	}
	return r
}

// Report is what the control plane is told: facts, by which nothing is decided here.
type Report struct {
	Roles []Stand
	// Switches are those that are remembered, the oldest first.
	Switches []customerrole.Switch
}

// Stand is a role, and the switch by which it is on; nil while it is off.
type Stand struct {
	customerrole.Role
	On *customerrole.Switch
}

// Report is what is told of the roles now. What the chain does not have yet is not told.
func (d Document) Report(now time.Time) Report {
	r := Report{Roles: []Stand{}, Switches: []customerrole.Switch{}}
	for _, role := range d.Declared {
		stand := Stand{Role: role}
		if last := d.last(role.Written); d.On(role.Written, now) {
			stand.On = &last.Switch
		}
		r.Roles = append(r.Roles, stand)
	}
	for _, l := range d.Log {
		if l.Recorded {
			r.Switches = append(r.Switches, l.Switch)
		}
	}
	return r
}

// Tell reports the roles, at once and each time that they change, until ctx ends. put
// tries until the report has arrived. An install that never had a role says nothing.
func (s Store) Tell(ctx context.Context, put func(context.Context, Report) error, failed func(error)) error {
	if err := s.make(); err != nil {
		return err
	}
	return dirwatch.Teller[Report]{
		Dir: s.Dir,
		Read: func() (Report, bool, error) {
			d, found, err := s.Read()
			return d.Report(s.Now()), found, err
		},
		Put: put, Failed: failed,
	}.Tell(ctx)
}
