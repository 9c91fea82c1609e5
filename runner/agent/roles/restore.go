package roles

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/customerrole"
)

// FromChain is what another machine's chain tells of roles, for the one that takes its
// place: those that were on are off there, since nobody switched them on for this
// machine. Their switches go on in the log, so that what comes of them is told.
func FromChain(records []chain.Record, now time.Time) Document {
	d := Document{}
	known := map[string]bool{}
	for _, r := range records {
		if r.Role != nil && !known[r.Role.ID] {
			known[r.Role.ID] = true
			d.Log = append(d.Log, Logged{Switch: *r.Role, Recorded: true})
		}
	}
	s := Store{Now: func() time.Time { return now }}
	for _, last := range d.lasts() {
		if last.On {
			s.append(&d, customerrole.Role{Written: last.Role, Name: last.Name}, customerrole.Switch{By: customerrole.ByRunner, Reason: "another machine took this install over"})
		}
	}
	return d
}

// Restore stores a document for a machine that has none yet. One that is there stays.
func (s Store) Restore(d Document) error {
	switch _, err := os.Stat(s.path()); {
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case len(d.Log) == 0:
		return nil
	}
	return s.change(func(to *Document) error { *to = d; return nil })
}
