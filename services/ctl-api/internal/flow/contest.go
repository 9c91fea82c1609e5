package flow

import (
	"time"

	"github.com/berth-dev/berth/services/internal/model"
)

// Rival is a change of another workflow to what a change is about.
type Rival struct {
	ChangeID    string
	State       model.ChangeState
	RequestedAt time.Time // when a person asked for its workflow
}

// Contest is a change whose plan has come, and its rivals.
type Contest struct {
	RequestedAt time.Time
	// NoChange: the plan is empty, so nobody will be asked about it.
	NoChange bool
	Rivals   []Rival
}

// Settle says which change gives way: the one whose workflow was asked for
// earlier, whenever its plan came. by is the index of the rival that replaces the
// change, -1 for none; yield are the rivals that the change replaces. What was
// decided already stands. An empty plan replaces too: who asked for it wants what is
// there, and what an older request proposed would take that away.
func (c Contest) Settle() (by int, yield []int) {
	by = -1
	for i, r := range c.Rivals {
		open := r.State == model.ChangeProposed
		switch {
		case !r.RequestedAt.After(c.RequestedAt):
			if open {
				yield = append(yield, i)
			}
		case open && c.NoChange: // nothing is in its way
		case by < 0 || r.RequestedAt.After(c.Rivals[by].RequestedAt):
			by = i
		}
	}
	if by >= 0 {
		return by, nil
	}
	return by, yield
}
