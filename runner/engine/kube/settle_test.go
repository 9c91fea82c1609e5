package kube_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// deployment is Deployment/web in a state.
func deployment(replicas, image string) string {
	return strings.NewReplacer("REPLICAS", replicas, "IMAGE", image).Replace(web)
}

// update is the change from one state to another.
func update(t *testing.T, from, to string) kube.Change {
	t.Helper()
	return kube.Updated(object(t, from), object(t, to))
}

func create(t *testing.T, to string) kube.Change {
	t.Helper()
	return kube.Created(object(t, to))
}

// remove is the deletion of what is there; "" for what is gone.
func remove(t *testing.T, from string) kube.Change {
	t.Helper()
	return kube.Deleted(kube.RefOf(object(t, deployment("1", "a"))), object(t, from))
}

// replace is the change of an object that is deleted and made again.
func replace(t *testing.T, from, to string) kube.Change {
	t.Helper()
	c := update(t, from, to)
	c.Action, c.Reason = kube.ActionReplace, "selector is immutable"
	return c
}

func swapped(state string) string { return strings.Replace(state, "uid: u-1", "uid: u-2", 1) }

// A plan that is made after a kill at any point of an apply is the plan that was
// being applied, and nothing else is.
func TestSettle(t *testing.T) {
	t.Parallel()
	old, target := deployment("1", "a"), deployment("2", "b")
	for _, tc := range []struct {
		name          string
		previous, now kube.Change
		samePlan      bool
	}{
		{name: "create, not yet made", previous: create(t, target), now: create(t, target), samePlan: true},
		{name: "create, made", previous: create(t, target), now: update(t, target, target), samePlan: true},
		{name: "create, made and edited by somebody", previous: create(t, target), now: update(t, deployment("9", "b"), target)},
		{name: "update, not yet written", previous: update(t, old, target), now: update(t, old, target), samePlan: true},
		{name: "update, written", previous: update(t, old, target), now: update(t, target, target), samePlan: true},
		{name: "update, half of it is there", previous: update(t, old, target), now: update(t, deployment("2", "a"), target), samePlan: true},
		{name: "update, and somebody edits one of its fields", previous: update(t, old, target), now: update(t, deployment("9", "a"), target)},
		{name: "update, and somebody edits another field", previous: update(t, old, target), now: update(t, old+"  paused: true\n", target)},
		{name: "update, and another one is wanted now", previous: update(t, old, target), now: update(t, target, deployment("2", "c"))},
		{name: "update, and it was made again", previous: update(t, old, target), now: update(t, swapped(target), swapped(target))},
		{name: "delete, not yet done", previous: remove(t, old), now: remove(t, old), samePlan: true},
		{name: "delete, done", previous: remove(t, old), now: remove(t, ""), samePlan: true},
		{name: "replace, not yet done", previous: replace(t, old, target), now: replace(t, old, target), samePlan: true},
		{name: "replace, deleted", previous: replace(t, old, target), now: create(t, target), samePlan: true},
		{name: "replace, done", previous: replace(t, old, target), now: update(t, swapped(target), target), samePlan: true},
		{name: "replace, and somebody makes another one", previous: replace(t, old, target), now: replace(t, swapped(deployment("9", "a")), target)},
		{name: "unchanged, and edited", previous: update(t, old, old), now: update(t, deployment("9", "a"), old)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			previous := []kube.Change{tc.previous}
			settled := kube.Settle(previous, []kube.Change{tc.now})
			same := string(canonical(t, settled)) == string(canonical(t, previous))
			if same != tc.samePlan {
				t.Errorf("the same plan: %v, want %v\nprevious %s\nsettled  %s", same, tc.samePlan, canonical(t, previous), canonical(t, settled))
			}
			// What is settled is a plan that can be applied to what is there.
			if differs := kube.Compare(settled, []kube.Change{tc.now}); len(differs) > 0 {
				t.Errorf("the settled plan is stale at once: %+v", differs)
			}
		})
	}
}

func canonical(t *testing.T, changes []kube.Change) []byte {
	t.Helper()
	data, err := job.Marshal(changes)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestCompare(t *testing.T) {
	t.Parallel()
	old, target := deployment("1", "a"), deployment("2", "b")
	is := func(field, want, got string) jobspec.Difference {
		return jobspec.Difference{Field: field, Want: want, Got: got}
	}
	for _, tc := range []struct {
		name         string
		planned, now kube.Change
		want         []jobspec.Difference
	}{
		{name: "as planned", planned: update(t, old, target), now: update(t, old, target)},
		{name: "done already", planned: update(t, old, target), now: update(t, target, target)},
		{
			name: "a field that is to change was edited", planned: update(t, old, target), now: update(t, deployment("9", "a"), target),
			want: []jobspec.Difference{is("Deployment/web: spec.replicas", "1", "9")},
		},
		{
			name: "a field that was as it should be was edited", planned: update(t, deployment("2", "a"), target), now: update(t, deployment("9", "a"), target),
			want: []jobspec.Difference{is("Deployment/web: spec.replicas", "2", "9")},
		},
		{
			name: "an unchanged object was edited", planned: update(t, old, old), now: update(t, deployment("9", "a"), old),
			want: []jobspec.Difference{is("Deployment/web: spec.replicas", "1", "9")},
		},
		{
			name: "writing gives something else than was approved", planned: update(t, old, target), now: update(t, old, deployment("2", "c")),
			want: []jobspec.Difference{is("Deployment/web: spec.template.spec.containers[web].image", `"b"`, `"c"`)},
		},
		{
			name: "a new object was made by somebody", planned: create(t, target), now: update(t, deployment("9", "b"), target),
			want: []jobspec.Difference{is("Deployment/web", "not there", "there"), is("Deployment/web: spec.replicas", "2", "9")},
		},
		{
			name: "an object was removed", planned: update(t, old, target), now: create(t, target),
			want: []jobspec.Difference{is("Deployment/web", "there", "not there")},
		},
		{
			name: "an object was made again", planned: update(t, old, target), now: update(t, swapped(old), swapped(target)),
			want: []jobspec.Difference{is("Deployment/web: metadata.uid", "u-1", "u-2")},
		},
		{name: "to be replaced", planned: replace(t, old, target), now: replace(t, old, target)},
		{name: "to be replaced, and deleted already", planned: replace(t, old, target), now: create(t, target)},
		{
			name: "what is to be replaced was made by somebody else", planned: replace(t, old, target), now: replace(t, swapped(old), target),
			want: []jobspec.Difference{is("Deployment/web: metadata.uid", "u-1", "u-2")},
		},
		{
			name: "an update would have to replace now", planned: update(t, old, target), now: replace(t, old, target),
			want: []jobspec.Difference{is("Deployment/web", "update", "replace")},
		},
		{
			name: "a new object is there and would have to be replaced", planned: create(t, target), now: replace(t, old, target),
			want: []jobspec.Difference{is("Deployment/web", "create", "replace")},
		},
		{
			name: "an unchanged object would have to be replaced", planned: update(t, old, old), now: replace(t, old, target),
			want: []jobspec.Difference{is("Deployment/web", "no change", "replace")},
		},
		{name: "deleted already", planned: remove(t, old), now: remove(t, "")},
		{
			name: "what is to be deleted was made again", planned: remove(t, old), now: remove(t, swapped(old)),
			want: []jobspec.Difference{is("Deployment/web: metadata.uid", "u-1", "u-2")},
		},
		{
			name: "what is to be deleted was protected", planned: remove(t, old),
			now:  kube.Change{Object: remove(t, old).Object, Action: kube.ActionKeep, Live: object(t, old), UID: "u-1"},
			want: []jobspec.Difference{is("Deployment/web", "delete", "protected")},
		},
		{
			name: "a field belongs to somebody else now", planned: update(t, old, target),
			now: func() kube.Change {
				c := update(t, old, target)
				c.Takes = []kube.Taken{{Path: "spec.replicas", Owner: "hpa"}}
				return c
			}(),
			want: []jobspec.Difference{is("Deployment/web: spec.replicas", "owned by berth", "owned by hpa")},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := kube.Compare([]kube.Change{tc.planned}, []kube.Change{tc.now})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCompareHidesSecrets(t *testing.T) {
	t.Parallel()
	secret := func(value string) string {
		return "{apiVersion: v1, kind: Secret, metadata: {name: db, namespace: shop}, data: {password: " + value + "}}"
	}
	got := kube.Compare([]kube.Change{update(t, secret("b25l"), secret("dHdv"))}, []kube.Change{update(t, secret("dGhyZWU="), secret("dHdv"))})
	want := []jobspec.Difference{{Field: "Secret/db: data.password", Want: "(sensitive)", Got: "(sensitive, another value)"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}
