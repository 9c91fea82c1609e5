package kube

import "slices"

// Settle gives the changes of a plan that follows one of uncertain outcome
// (in/previous): an object that is as that plan found it, or as it wanted it,
// still counts as to be changed, if the same is wanted of it now. So a plan
// after a kill in the middle of an apply is the same plan again.
//
// now must have a change for each object of previous that is wanted now, or was
// to be deleted: Deleted(ref, nil) for one that is gone.
func Settle(previous, now []Change) []Change {
	before := index(previous)
	out := make([]Change, len(now))
	for i, c := range now {
		out[i] = c
		if p, ok := before[c.Object.key()]; ok && p.continuedBy(c) {
			p.Live, p.After = c.Live, c.After
			out[i] = p
		}
	}
	return out
}

func index(changes []Change) map[Ref]Change {
	byObject := make(map[Ref]Change, len(changes))
	for _, c := range changes {
		byObject[c.Object.key()] = c
	}
	return byObject
}

// continuedBy tells whether doing now what is left completes p and nothing else.
func (p Change) continuedBy(now Change) bool {
	exists := now.Live != nil
	switch p.Action {
	case ActionCreate:
		return exists && now.Action == ActionNone
	case ActionUpdate:
		return exists && p.UID == now.UID && p.updateContinuedBy(now)
	case ActionReplace:
		return now.Action == ActionCreate || exists && now.Action == ActionNone && p.UID != now.UID
	case ActionDelete:
		return !exists && now.Action == ActionNone
	case ActionNone, ActionKeep:
	}
	return false
}

func (p Change) updateContinuedBy(now Change) bool {
	if now.Action != ActionNone && now.Action != ActionUpdate {
		return false
	}
	for _, t := range now.Takes {
		if !slices.Contains(p.Takes, t) {
			return false
		}
	}
	live, planned := leaves(now.Live), fieldsByPath(p.Fields)
	left := fieldsByPath(now.Fields)
	for path, f := range left {
		if was, ok := planned[path]; !ok || f.After != was.After {
			return false
		}
	}
	for path, f := range planned {
		_, isLeft := left[path]
		if isLeft && live[path] != f.Before || !isLeft && live[path] != f.After {
			return false
		}
	}
	return true
}

func fieldsByPath(fields []Field) map[string]Field {
	byPath := make(map[string]Field, len(fields))
	for _, f := range fields {
		byPath[f.Path] = f
	}
	return byPath
}
