package rehearse

import (
	"context"
	"slices"
	"strings"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/rehearse/stage"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// learn judges the steps that ended, and gives stand-ins to those that failed. again
// is true when the app is to be tried once more.
func (r *run) learn(ctx context.Context, w ctlapi.Workflow) (again bool, _ error) {
	madeUp, err := r.madeUp(ctx)
	if err != nil {
		return false, err
	}
	succeededFirst := slices.SortedStableFunc(slices.Values(w.Steps), func(a, b ctlapi.Step) int {
		return failedLast(a) - failedLast(b)
	})
	for _, step := range succeededFirst {
		part, ok := partOf(step)
		if !ok {
			continue
		}
		switch step.State {
		case ctlapi.StepStateSucceeded:
			if _, judged := r.judged[part]; judged {
				continue // of its stand-in, or of a deploy that changes nothing
			}
			var change *ctlapi.Change
			if step.Change != nil {
				if change, err = r.client.Change(ctx, step.Change.ID); err != nil {
					return false, err
				}
			}
			l := judge(step, change)
			if r.changes.StandIns[part] != "" {
				l.Verdict, l.Why = NotPlanned, r.changes.StandIns[part]
			}
			r.judged[part] = l
		case ctlapi.StepStateFailed:
			if r.changes.StandIns[part] != "" {
				return false, nil // its stand-in fails: the rest is beyond help
			}
			l := judge(step, nil)
			l.Verdict, l.Why = judgeFailure(failure{
				Part: part, Error: api.Value(step.Error), Reads: stage.Reads(r.app, part, madeUp), OnCluster: r.onCluster(part),
			})
			r.leftovers = r.leftovers || r.onCluster(part) && r.stack == string(ctlapi.StackKindLocal)
			r.leaveOut(part, l)
			again = true
		}
	}
	return again, nil
}

func failedLast(s ctlapi.Step) int {
	if s.State == ctlapi.StepStateFailed {
		return 1
	}
	return 0
}

// madeUp tells which paths of the state tree are made up, or of a stand-in.
func (r *run) madeUp(ctx context.Context) (func(string) bool, error) {
	install, err := r.client.Install(ctx, r.install.ID)
	if err != nil {
		return nil, err
	}
	var paths []string
	if install.Rehearsal != nil {
		for _, o := range install.Rehearsal.Outputs {
			if o.Source == ctlapi.RehearsalOutputSourceMadeUp && !r.isReal(o.Path) {
				paths = append(paths, o.Path)
			}
		}
	}
	for in := range madeUpInputs(r.app) {
		if _, given := r.inputs[in]; !given {
			paths = append(paths, "inputs.inputs."+in)
		}
	}
	for part := range r.changes.StandIns {
		kind, name, _ := strings.Cut(string(part), "/")
		if kind == appconfig.BlockAction {
			paths = append(paths, "actions.workflows."+name)
		}
	}
	return func(path string) bool {
		return strings.HasPrefix(path, "secrets.") || slices.ContainsFunc(paths, func(p string) bool {
			return p == path || strings.HasPrefix(path, p+".") || strings.HasPrefix(p, path+".")
		})
	}, nil
}

// isReal tells whether a path is an output of a part that was really deployed.
func (r *run) isReal(path string) bool {
	part := stage.Sandbox
	if rest, ok := strings.CutPrefix(path, "components."); ok {
		name, _, _ := strings.Cut(rest, ".")
		part = stage.Component(name)
	} else if !strings.HasPrefix(path, "sandbox.") {
		return false
	}
	l, judged := r.judged[part]
	return judged && l.Verdict == Real
}

// partOf is the part that a step is about; false for one that only waits.
func partOf(step ctlapi.Step) (stage.Part, bool) {
	switch {
	case step.Action != nil && *step.Action != "":
		return stage.Action(*step.Action), true
	case step.Resource != nil && step.Resource.Kind == appconfig.BlockSandbox:
		return stage.Sandbox, true
	case step.Resource != nil && step.Resource.Kind == appconfig.BlockComponent:
		return stage.Component(step.Resource.Name), true
	}
	return "", false
}
