package roles

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/customerrole"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// Why a role cannot be switched, for errors.Is.
var (
	ErrNoRole  = errors.New("no such role")
	ErrUnnamed = errors.New("the role has no name yet")
	ErrAlready = errors.New("the role is so already")
)

const (
	documentFile = "roles.json"
	lockFile     = "lock"
	// keptSwitches is how many switches are remembered and told; the last one of each
	// role is kept whatever their number.
	keptSwitches = 200
	// MaxReason is how long a reason may be, in bytes.
	MaxReason = 500
	// MaxTime is the longest time that a role can be switched on for.
	MaxTime = 30 * 24 * time.Hour
	// clockSlack is how far the clock may stand before the time of a switch. When it was
	// set back further, nobody can say whether a time is over, so it is.
	clockSlack = 5 * time.Minute
)

// Store is the directory of an install's roles. The agent and the customer's command
// write to it at the same time, so every change is made under a lock of files.
type Store struct {
	Dir string
	Now func() time.Time
}

// Logged is a switch, and whether the chain has it.
type Logged struct {
	customerrole.Switch
	Recorded bool `json:"recorded,omitempty"`
}

// Document is the file: a crash leaves the old one or the new one.
type Document struct {
	// Declared are the roles of the release that was accepted last.
	Declared []customerrole.Role `json:"declared"`
	Log      []Logged            `json:"log,omitempty"` // oldest first
}

// Read is what stands on disk; found is false where no release ever declared a role.
func (s Store) Read() (d Document, found bool, err error) {
	found, err = datadir.ReadJSON(s.path(), &d)
	return d, found, err
}

// Declare makes the roles of an accepted release the ones that can be switched. One that
// is on and not among them goes off.
func (s Store) Declare(list []customerrole.Role) error {
	if _, found, err := s.Read(); err != nil || !found && len(list) == 0 {
		return err
	}
	return s.change(func(d *Document) error {
		for _, was := range d.Declared {
			gone := !slices.ContainsFunc(list, func(r customerrole.Role) bool { return r.Written == was.Written })
			if last := d.last(was.Written); gone && last.On {
				s.append(d, was, customerrole.Switch{By: customerrole.ByRunner, Reason: "the release does not have it any more"})
			}
		}
		d.Declared = slices.Clone(list)
		return nil
	})
}

// Ask is a wish of the customer.
type Ask struct {
	Name   string // or the name as the app writes it
	On     bool
	For    time.Duration // 0 for no end; only with On
	By     string
	Reason string
}

// Switch does what the customer wants, durably.
//
// Errors: ErrNoRole, ErrUnnamed, and ErrAlready, with which the present switch comes.
func (s Store) Switch(ask Ask) (done customerrole.Switch, err error) {
	err = s.change(func(d *Document) error {
		role, err := d.named(ask.Name)
		if err != nil {
			return err
		}
		if ask.On && !role.Known {
			return fmt.Errorf("%w: %s is rendered from what the install does not have yet; it gets a name with the next deploy", ErrUnnamed, role.Name)
		}
		s.expire(d)
		last := d.last(role.Written)
		if d.SwitchedOn(role.Written, s.Now()) == ask.On {
			done = last.Switch
			return ErrAlready
		}
		next := customerrole.Switch{On: ask.On, By: ask.By, Reason: ask.Reason}
		if ask.For > 0 {
			next.Until = s.Now().UTC().Add(ask.For)
		}
		done = s.append(d, role, next)
		return nil
	})
	return done, err
}

// Expire switches off what has been on for its time, and says when the next look is
// due; zero for never.
func (s Store) Expire() (next time.Time, err error) {
	d, _, err := s.Read()
	if err != nil {
		return next, err
	}
	if len(d.over(s.Now())) > 0 {
		err = s.change(func(d *Document) error { s.expire(d); return nil })
	}
	for _, last := range d.lasts() {
		if last.On && !last.Until.IsZero() && last.Until.After(s.Now()) && (next.IsZero() || last.Until.Before(next)) {
			next = last.Until
		}
	}
	return next, err
}

// expire writes of each role whose time is over that it went off.
func (s Store) expire(d *Document) {
	for _, last := range d.over(s.Now()) {
		s.append(d, customerrole.Role{Written: last.Role, Name: last.Name}, customerrole.Switch{By: customerrole.ByRunner, Reason: "its time was over"})
	}
}

// Recorded notes that the chain has a switch.
func (s Store) Recorded(switchID string) error {
	return s.change(func(d *Document) error {
		for i := range d.Log {
			if d.Log[i].ID == switchID {
				d.Log[i].Recorded = true
			}
		}
		return nil
	})
}

// On says whether a role is on: the chain has it, and its time is not over.
func (d Document) On(written string, now time.Time) bool {
	return d.last(written).Recorded && d.SwitchedOn(written, now)
}

// SwitchedOn says whether the customer has a role switched on; it is on once the chain
// has that too.
func (d Document) SwitchedOn(written string, now time.Time) bool {
	last := d.last(written)
	return last.On && inTime(last.Switch, now)
}

// Last is the last switch of a role; zero for one that was never switched.
func (d Document) Last(written string) customerrole.Switch { return d.last(written).Switch }

// wentOff says whether a role was switched off by a switch of that id.
func (d Document) wentOff(written, switchID string) bool {
	return slices.ContainsFunc(d.Log, func(l Logged) bool { return l.ID == switchID && l.Role == written && !l.On && l.Recorded })
}

func (d Document) last(written string) (last Logged) {
	for _, l := range d.Log {
		if l.Role == written {
			last = l
		}
	}
	return last
}

// lasts are the last switches of all roles.
func (d Document) lasts() (list []Logged) {
	for i, l := range d.Log {
		if !slices.ContainsFunc(d.Log[i+1:], func(later Logged) bool { return later.Role == l.Role }) {
			list = append(list, l)
		}
	}
	return list
}

// over are those of them by which a role is on whose time is over.
func (d Document) over(now time.Time) []Logged {
	return slices.DeleteFunc(d.lasts(), func(l Logged) bool { return !l.On || inTime(l.Switch, now) })
}

func inTime(s customerrole.Switch, now time.Time) bool {
	return s.Until.IsZero() || now.Before(s.Until) && !now.Add(clockSlack).Before(s.At)
}

// named finds the one role that a customer names.
func (d Document) named(name string) (customerrole.Role, error) {
	var names []string
	for _, r := range d.Declared {
		names = append(names, r.Name)
	}
	role, ok := customerrole.Find(d.Declared, name)
	if ok {
		return role, nil
	}
	called := func(r customerrole.Role) bool { return r.Name == name }
	if i := slices.IndexFunc(d.Declared, called); i >= 0 {
		if slices.ContainsFunc(d.Declared[i+1:], called) {
			return role, fmt.Errorf("%w: more than one is called %q; give its name as the app writes it, as `berth-runner roles list` shows it", ErrNoRole, name)
		}
		return d.Declared[i], nil
	}
	if len(names) == 0 {
		return role, fmt.Errorf("%w: the accepted release declares none that you can switch", ErrNoRole)
	}
	return role, fmt.Errorf("%w: %q%s", ErrNoRole, name, place.Meant(name, names))
}

// append writes a switch into the log.
func (s Store) append(d *Document, role customerrole.Role, next customerrole.Switch) customerrole.Switch {
	next.ID, next.Role, next.Name, next.At = id.New(id.RoleSwitch), role.Written, role.Name, s.Now().UTC()
	d.Log = append(d.Log, Logged{Switch: next})
	for i := 0; i < len(d.Log) && len(d.Log) > keptSwitches; {
		if d.Log[i].Recorded && d.last(d.Log[i].Role).ID != d.Log[i].ID {
			d.Log = slices.Delete(d.Log, i, i+1)
		} else {
			i++
		}
	}
	return next
}

// change changes the file while nobody else does; nothing is written after an error.
func (s Store) change(do func(*Document) error) error {
	if err := s.make(); err != nil {
		return err
	}
	f, err := datadir.AwaitFlock(filepath.Join(s.Dir, lockFile))
	if err != nil {
		return err
	}
	defer f.Close()
	d, _, err := s.Read()
	if err != nil {
		return err
	}
	if err := do(&d); err != nil {
		return err
	}
	return datadir.WriteJSON(s.path(), d)
}

func (s Store) make() error { return os.MkdirAll(s.Dir, 0o700) }

func (s Store) path() string { return filepath.Join(s.Dir, documentFile) }
