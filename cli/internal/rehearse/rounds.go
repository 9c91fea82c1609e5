package rehearse

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-dev/berth/cli/internal/rehearse/stage"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// mostRounds bounds how often the app is tried, each time without what failed before.
const mostRounds = 40

// suffix ends the names of apps that are only for rehearsals.
const suffix = "-rehearsal"

// rounds tries the app until all of it came to an end: each round leaves out what
// failed in the one before. It returns the last workflow, nil when nothing could be
// built.
func (r *run) rounds(ctx context.Context) (*ctlapi.Workflow, error) {
	var last *ctlapi.Workflow
	for round := range mostRounds {
		released, again, err := r.release(ctx, round)
		if err != nil {
			return last, err
		}
		if again {
			continue
		}
		began := r.Now()
		w, err := r.provision(ctx, released)
		if err != nil {
			return last, err
		}
		r.spent("deploy", began)
		last = w
		again, err = r.learn(ctx, *w)
		if err != nil || !again {
			return last, err
		}
		if r.leftovers {
			if err := r.startOver(ctx, round); err != nil {
				return last, err
			}
		}
	}
	return last, nil
}

// spent notes how long a part of the rehearsal took.
func (r *run) spent(what string, began time.Time) {
	seconds := r.Now().Sub(began).Seconds()
	for i := range r.parts {
		if r.parts[i].Name == what {
			r.parts[i].Seconds += seconds
			return
		}
	}
	r.parts = append(r.parts, Span{what, seconds})
}

// leaveOut gives a part a stand-in from now on.
func (r *run) leaveOut(part stage.Part, l Line) {
	r.changes.Add(r.app, part, l.Why)
	r.judged[part] = l
	r.screen.Print(fmt.Sprintf("%s  %s: %s: %s", r.Now().Format(time.TimeOnly), part, l.Verdict, l.Why))
}
