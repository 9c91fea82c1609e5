package kube

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Action is what a plan does with an object.
type Action string

// The actions.
const (
	ActionNone    Action = ""        // it is as it should be, or already gone
	ActionCreate  Action = "create"  // it is not there
	ActionUpdate  Action = "update"  // fields differ
	ActionReplace Action = "replace" // it is deleted and made again
	ActionDelete  Action = "delete"
	ActionKeep    Action = "keep" // it would be deleted, but is protected
)

// Field is one field that changes. Before and After are JSON, in clear, "" when
// the field is absent.
type Field struct {
	Path   string `json:"path"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// Taken is a field that another field manager set, and that an apply therefore
// has to force. Path is as the API server writes it.
type Taken struct {
	Path  string `json:"path"`
	Owner string `json:"owner"`
}

// Change is what happens to one object. It goes into the canonical plan as it
// is, and into what is pinned by Pin.
type Change struct {
	Object Ref     `json:"object"`
	Action Action  `json:"action"`
	Fields []Field `json:"fields,omitempty"`
	// Takes are the fields that are taken from other field managers.
	Takes  []Taken `json:"takes,omitempty"`
	Reason string  `json:"reason,omitempty"`

	// Live is the object as it was found, nil when it was not there. It is not
	// part of the canonical plan: it has more in it than what we change.
	Live *unstructured.Unstructured `json:"-"`
	// After is the object as it will be, nil for one that goes, or that stays as it is.
	// It is for the rules that the plan is held against, see Documents.
	After *unstructured.Unstructured `json:"-"`
	// UID is of Live. It is pinned next to the change, see Pin.
	UID string `json:"-"`
}

// Created is the change of an object that is not there yet: each field of the
// target is new.
func Created(target *unstructured.Unstructured) Change {
	return Change{Object: RefOf(target), Action: ActionCreate, Fields: Fields(nil, target), After: target}
}

// Updated is the change of an object that is there: what differs between it and
// what a dry run gave. ActionNone when that is nothing.
func Updated(live, after *unstructured.Unstructured) Change {
	c := Change{Object: RefOf(live), Live: live, UID: string(live.GetUID()), Fields: Fields(live, after)}
	if len(c.Fields) > 0 {
		c.Action, c.After = ActionUpdate, after
	}
	return c
}

// Deleted is the change of an object that is to go; live is nil when it is gone
// already, which makes it ActionNone.
func Deleted(ref Ref, live *unstructured.Unstructured) Change {
	if live == nil {
		return Change{Object: ref}
	}
	return Change{Object: ref, Action: ActionDelete, Live: live, UID: string(live.GetUID())}
}

// Pinned is a change as an apply needs it: with the identity of the object.
type Pinned struct {
	Change
	UID string `json:"uid,omitempty"`
}

// Pin prepares changes for out/pinned.
func Pin(changes []Change) []Pinned {
	out := make([]Pinned, len(changes))
	for i, c := range changes {
		out[i] = Pinned{Change: c, UID: c.UID}
	}
	return out
}

// Unpin reads them back.
func Unpin(pinned []Pinned) []Change {
	out := make([]Change, len(pinned))
	for i, p := range pinned {
		out[i] = p.Change
		out[i].UID = p.UID
	}
	return out
}
