// Package freeze knows when a freeze window is in force: a time in which no change
// of an install is carried out, once or every week. It only computes; rows and
// people are elsewhere.
package freeze

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // the zones do not depend on the machine

	"github.com/berth-dev/berth/services/internal/fault"
)

// horizon bounds how far ahead the end of a freeze is looked for. Weekly windows may
// leave no gap at all.
const horizon = 62 * 24 * time.Hour

// maxLength bounds a window that is given once: two years.
const maxLength = 2 * 366 * 24 * time.Hour

// Window is one freeze: once, from Starts to Ends, or weekly.
type Window struct {
	ID     string
	Reason string
	Starts time.Time
	Ends   time.Time
	Weekly *Weekly
}

// Weekly is a time of day on some days of the week. Its JSON is stored.
type Weekly struct {
	Days []string `json:"days"` // mon … sun: those on which it begins
	From string   `json:"from"` // 22:00
	// To may be on the day after: at or before From.
	To   string `json:"to"`
	Zone string `json:"zone"` // IANA, such as Europe/Berlin
}

// Days are the names of the days of the week, Sunday first as in package time.
var Days = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// Valid refuses a window that says nothing or too much. Errors: ErrInvalid.
func (w Window) Valid() error {
	if w.Weekly == nil {
		switch {
		case w.Starts.IsZero() || w.Ends.IsZero():
			return fault.Newf(fault.ErrInvalid, "a freeze has a start and an end, or is weekly")
		case !w.Starts.Before(w.Ends):
			return fault.Newf(fault.ErrInvalid, "the freeze ends before it starts")
		case w.Ends.Sub(w.Starts) > maxLength:
			return fault.With(fault.Newf(fault.ErrInvalid, "the freeze is longer than two years"), fault.Remedy("to stop all changes for good, pause the installs"))
		}
		return nil
	}
	if !w.Starts.IsZero() || !w.Ends.IsZero() {
		return fault.Newf(fault.ErrInvalid, "a freeze is given once or weekly, not both")
	}
	if len(w.Weekly.Days) == 0 {
		return fault.Newf(fault.ErrInvalid, "a weekly freeze names the days on which it begins")
	}
	_, err := w.Weekly.parse()
	return err
}

// parsed is a weekly window as it is computed with.
type parsed struct {
	days     [7]bool
	from, to time.Duration // of the day
	zone     *time.Location
}

func (w Weekly) parse() (p parsed, err error) {
	for _, day := range w.Days {
		i := slices.Index(Days, day)
		if i < 0 {
			return p, fault.Newf(fault.ErrInvalid, "%q is no day of the week: take %s", day, strings.Join(Days, ", "))
		}
		p.days[i] = true
	}
	if p.from, err = timeOfDay(w.From); err != nil {
		return p, err
	}
	if p.to, err = timeOfDay(w.To); err != nil {
		return p, err
	}
	if w.Zone == "" || w.Zone == "Local" {
		return p, fault.Newf(fault.ErrInvalid, "a weekly freeze needs a time zone, such as Europe/Berlin or UTC")
	}
	if p.zone, err = zoneOf(w.Zone); err != nil {
		return p, fault.Newf(fault.ErrInvalid, "there is no time zone %q: take a name such as Europe/Berlin", w.Zone)
	}
	return p, nil
}

// zones are those that were looked up before: there are some hundred.
var zones sync.Map

func zoneOf(name string) (*time.Location, error) {
	if known, ok := zones.Load(name); ok {
		return known.(*time.Location), nil //nolint:forcetypeassert // nothing else is stored
	}
	zone, err := time.LoadLocation(name)
	if err == nil {
		zones.Store(name, zone)
	}
	return zone, err
}

func timeOfDay(text string) (time.Duration, error) {
	t, err := time.Parse("15:04", text)
	if err != nil {
		return 0, fault.Newf(fault.ErrInvalid, "%q is no time of day: write it as 22:00", text)
	}
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, nil
}

// until says when the window that is in force at t ends; zero for none.
func (w Window) until(t time.Time) time.Time {
	if w.Weekly == nil {
		if !t.Before(w.Starts) && t.Before(w.Ends) {
			return w.Ends
		}
		return time.Time{}
	}
	p, err := w.Weekly.parse()
	if err != nil { // it was checked when it was stored; a zone that is gone freezes
		return t.Add(24 * time.Hour)
	}
	local := t.In(p.zone)
	var last time.Time
	for _, back := range []int{-2, -1, 0} { // one that began before may go on
		day := time.Date(local.Year(), local.Month(), local.Day()+back, 12, 0, 0, 0, time.UTC)
		if !p.days[day.Weekday()] {
			continue
		}
		end := day
		if p.to <= p.from {
			end = day.AddDate(0, 0, 1)
		}
		starts, ends := first(day, p.from, p.zone), latest(end, p.to, p.zone)
		if !t.Before(starts) && t.Before(ends) && ends.After(last) {
			last = ends
		}
	}
	return last
}

// first and latest are the first and the last moment at which clocks in a zone show
// a time of a day. One that they skip is the moment at which they jump; one that
// they show twice is two: so a freeze never gets shorter by a change of clocks.
func first(day time.Time, of time.Duration, zone *time.Location) time.Time {
	early, _ := moments(day, of, zone)
	return early
}

func latest(day time.Time, of time.Duration, zone *time.Location) time.Time {
	_, late := moments(day, of, zone)
	return late
}

func moments(day time.Time, of time.Duration, zone *time.Location) (early, late time.Time) {
	wall := time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, time.UTC).Add(of)
	shows := func(t time.Time) bool {
		l := t.In(zone)
		return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), 0, time.UTC).Equal(wall)
	}
	at := func(near time.Time) time.Time {
		_, offset := near.In(zone).Zone()
		return wall.Add(-time.Duration(offset) * time.Second)
	}
	before, after := at(wall.Add(-26*time.Hour)), at(wall.Add(26*time.Hour))
	if after.Before(before) {
		before, after = after, before
	}
	switch {
	case shows(before) && shows(after):
		return before, after
	case shows(before):
		return before, before
	case shows(after):
		return after, after
	}
	jump, _ := after.In(zone).ZoneBounds()
	return jump, jump
}

// At says which of the windows is in force at t, the first of them, and when no
// window is for the first time after t: windows that overlap or follow each other
// are one. ok is false when none is in force. It looks two months ahead at the most.
func At(windows []Window, t time.Time) (in Window, until time.Time, ok bool) {
	t = t.UTC()
	until = t
	for until.Sub(t) < horizon {
		moved := false
		for _, w := range windows {
			end := w.until(until)
			if !end.After(until) {
				continue
			}
			if !ok {
				in = w
			}
			until, ok, moved = end.UTC(), true, true
		}
		if !moved {
			break
		}
	}
	return in, until, ok
}

// In are the windows in force at t.
func In(windows []Window, t time.Time) []Window {
	return slices.DeleteFunc(slices.Clone(windows), func(w Window) bool { return w.until(t).IsZero() })
}

// EndsAfter is when a window that is in force at t ends, whatever others do.
func (w Window) EndsAfter(t time.Time) time.Time { return w.until(t).UTC() }

// When says for people when it is in force.
func (w Window) When() string {
	if w.Weekly == nil {
		return fmt.Sprintf("%s to %s", w.Starts.UTC().Format(time.RFC3339), w.Ends.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s %s-%s %s", strings.Join(w.Weekly.Days, ","), w.Weekly.From, w.Weekly.To, w.Weekly.Zone)
}

// Read makes the weekly part of a row; nil for none.
func Read(raw json.RawMessage) (*Weekly, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var w Weekly
	if err := json.Unmarshal(raw, &w); err != nil {
		return nil, fmt.Errorf("read weekly freeze: %w", err)
	}
	return &w, nil
}
