// Package follow owns watching a workflow until it is finished or needs a
// person: the live tree on a terminal, plain lines elsewhere, and the decisions
// that are taken on the way.
//
// The event stream says that something moved, without gaps; everything shown or
// decided on is read again each time.
package follow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/changes"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

const (
	// redraw is how often times are brought up to date on a terminal.
	redraw = 500 * time.Millisecond
	// restPerLook is how long nothing is read again, in units of what the last
	// reading took, and at most until times are drawn again: a workflow of many
	// steps moves more often than it can be read, and what reads it takes from
	// what moves it on a small machine.
	restPerLook = 12
	// rereads is how often a workflow is read again in which nothing moves: what
	// holds its jobs up may, like the customer's switch.
	rereads = 5 * time.Second
	// waitRelease is what a step waits for that continues once the release of
	// its workflow is accepted.
	waitRelease = "release"
)

// Follower watches workflows.
type Follower struct {
	Client *api.Client
	Screen *Screen
	// Show shows a change to those whom Ask asks. Default: on the screen, without
	// what the tool itself says.
	Show func(ctlapi.Change) error
	// Ask decides on a change that was just shown.
	Ask func(context.Context, ctlapi.Change) (Answer, error)
	// Automatic says that Ask decides without a person; each decision is printed.
	Automatic bool
	Now       func() time.Time
	// held is what was last said to hold up the jobs.
	held   string
	teller Teller
}

// Run follows a workflow until it is finished, or until it continues only with
// a decision that Ask leaves open. It returns the workflow as it is then.
func (f *Follower) Run(ctx context.Context, id string) (*ctlapi.Workflow, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := make(chan api.Event, 64)
	ended := make(chan error, 1)
	go func() {
		ended <- f.Client.FollowWorkflow(ctx, id, 0, func(e api.Event) error {
			select {
			case events <- e:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}()
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	handled, told := map[string]bool{}, printed{}
	rest := time.NewTimer(0)
	defer rest.Stop()
	var read time.Time
	looked := func() (*ctlapi.Workflow, error) {
		began := time.Now()
		read = began
		w, err := f.look(ctx, id, handled)
		rest.Reset(min(restPerLook*time.Since(began), redraw)) // a person may have been asked
		return w, err
	}
	w, err := looked()
	moved := false // since it was read
	for err == nil {
		f.draw(w)
		if !f.Screen.Terminal {
			f.Screen.Print(told.due(*w, f.Now())...)
		}
		if OnlyDecisionsHelp(*w) {
			break
		}
		var rested <-chan time.Time
		if moved {
			rested = rest.C
		}
		select {
		case e := <-events:
			f.tell(e, events)
			moved = true
		case <-rested:
			moved = false
			w, err = looked()
		case end := <-ended:
			if end != nil {
				return w, end
			}
			f.tell(api.Event{}, events)
			w, err = f.look(ctx, id, handled)
			if err == nil {
				f.Screen.Clear()
				f.Screen.Fold(Tree(*w, f.Now(), f.Screen.Color)...)
			}
			return w, err
		case <-tick.C:
			moved = moved || time.Since(read) > rereads
		}
	}
	return w, err
}

// tell prints what moved, where there is no tree to see it in.
func (f *Follower) tell(first api.Event, more <-chan api.Event) {
	for e := first; ; {
		if line := f.teller.Line(e); line != "" && !f.Screen.Terminal {
			f.Screen.Print(line)
		}
		select {
		case e = <-more:
		default:
			return
		}
	}
}

func (f *Follower) tellHeld(w ctlapi.Workflow) {
	if line := HeldLine(w, f.held, f.Now()); line != "" && !f.Screen.Terminal {
		f.Screen.Print(line)
	}
	f.held = heldBy(w)
}

func (f *Follower) draw(w *ctlapi.Workflow) {
	f.Screen.Draw(Tree(*w, f.Now(), f.Screen.Color))
}

// look reads the workflow and asks for every open decision. After a
// decision it reads again, as others may be open then.
func (f *Follower) look(ctx context.Context, id string, handled map[string]bool) (*ctlapi.Workflow, error) {
	for {
		w, err := f.Client.Workflow(ctx, id)
		if err != nil {
			return nil, err
		}
		f.tellHeld(*w)
		acted := false
		for _, question := range Questions(*w) {
			var ids []string
			for _, open := range question {
				key := open.ID + " " + api.Value(open.EffectDigest)
				if !handled[key] {
					ids = append(ids, open.ID)
				}
				handled[key] = true
			}
			if len(ids) == 0 {
				continue
			}
			decided, err := f.propose(ctx, ids)
			if err != nil {
				return nil, err
			}
			acted = acted || decided
		}
		if !acted {
			return w, nil
		}
	}
}

// propose shows changes that are decided together, the first one last: it is what
// is asked about.
func (f *Follower) propose(ctx context.Context, ids []string) (decided bool, err error) {
	shown := make([]ctlapi.Change, len(ids))
	for i := len(ids) - 1; i >= 0; i-- {
		change, err := f.Client.Change(ctx, ids[i])
		if err != nil {
			return false, err
		}
		shown[i] = *change
		if err := f.show(*change); err != nil {
			return false, err
		}
	}
	answer, err := f.Ask(ctx, shown[0])
	if err != nil || answer == Later {
		return false, err
	}
	if err := Decide(ctx, f.Client, shown, Decision{Answer: answer}); err != nil {
		err = ignoreRaces(err)
		return err == nil, err // what moved is to be read again
	}
	if f.Automatic {
		for _, change := range shown {
			f.Screen.Fold(fmt.Sprintf("  approved %s, effect %s", change.ID, api.Value(change.EffectDigest)))
		}
	}
	return true, nil
}

func (f *Follower) show(change ctlapi.Change) error {
	if f.Show == nil {
		f.Screen.Print(changes.Lines(change, changes.Options{Color: f.Screen.Color})...)
		return nil
	}
	f.Screen.Clear()
	return f.Show(change)
}

// ignoreRaces: when the change moved while we looked at it, the next look shows
// what became of it.
func ignoreRaces(err error) error {
	var problem *api.Problem
	if errors.As(err, &problem) && (problem.Code == "effect_changed" || problem.Code == "not_proposed") {
		return nil
	}
	return err
}
