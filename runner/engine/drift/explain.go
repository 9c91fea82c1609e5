package drift

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/pkg/visible"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// Explain says how one object differs from what the release wants of it. It
// changes nothing that it is given, and may be called concurrently.
func Explain(o Object, secrets Secrets) Finding {
	f := Finding{Object: o.Ref}
	whole := func(d Difference) Finding {
		d.Path = WholeObject
		f.Differences = []Difference{d}
		return f
	}
	switch {
	case o.Unread != "":
		return whole(Difference{What: Unread, Class: Unknown, Why: "the object could not be read: " + string(o.Unread)})
	case o.Wanted == nil && o.Live == nil:
		return f
	case o.Live == nil:
		return whole(Difference{What: Gone, Class: Real, Want: there, Why: "the object is not there"})
	}
	m := read(o.Live)
	if o.Wanted == nil {
		if o.Keeps != "" || o.Live.GetDeletionTimestamp() != nil {
			return f // it stays on purpose, or just goes
		}
		d := Difference{What: Extra, Class: Real, Have: there, Why: "it was of the component, and is no longer wanted"}
		if other, ok := recreated(o, m); ok {
			d.Class, d.Manager, d.Time = Unknown, other.Manager, other.Time
			d.Why = "an object of that name was of the component; this one somebody else may have made"
		}
		return whole(d)
	}
	if o.Live.GroupVersionKind().GroupKind() != o.Ref.GVK().GroupKind() {
		return whole(Difference{What: Recreated, Class: Real, Why: "an object of another kind is in its place"})
	}
	if o.Live.GetDeletionTimestamp() != nil {
		return whole(Difference{What: Gone, Class: Real, Want: there, Have: "being deleted", Why: "the object is just being deleted"})
	}
	w := &walker{
		managed: m, ref: o.Ref, isTried: o.Tried != nil, secrets: secrets, hint: hint(m),
		releases: releases{releaseOf(o.Wanted), releaseOf(o.Live)},
	}
	if o.Untried != "" {
		w.untried = " (" + string(o.Untried) + ")"
	}
	m.shape(o.Tried)
	v := three{want: compared(o.Wanted), live: compared(o.Live)}
	if o.Tried != nil {
		v.tried = compared(o.Tried)
	}
	w.fields(field{n: &m.root}, v, 0)
	if d, ok := recreated(o, m); ok {
		d.Path = WholeObject
		f.Differences = append(f.Differences, d)
	}
	f.Differences = append(f.Differences, w.out...)
	if w.more > 0 {
		f.Differences = append(f.Differences, Difference{
			Path: WholeObject, What: Unbounded, Class: Unknown, Why: fmt.Sprintf("%d more differences are not listed", w.more),
		})
	}
	return f
}

// NeedsTry tells whether a dry run may say more of an object than what is known
// without one. One in which all that the release wants is as it is needs none.
func NeedsTry(o Object) bool {
	o.Tried = nil
	if o.Wanted == nil || o.Live == nil || o.Live.GetDeletionTimestamp() != nil {
		return false
	}
	return slices.ContainsFunc(Explain(o, Secrets{}).Differences, func(d Difference) bool {
		return d.What != Added && d.What != Recreated
	})
}

const there = "there"

// recreated tells an object that is not the one that Berth wrote to. Its uid says
// so, where that was recorded. Else it is one of which Berth has nothing, and that
// somebody else wrote to in the second in which it was made. That Berth has
// nothing is not enough: who changes all that Berth set leaves it nothing.
func recreated(o Object, m *managed) (Difference, bool) {
	made := o.Live.GetCreationTimestamp().UTC()
	d := Difference{What: Recreated, Class: Real, Why: "it was removed, and another object has its name: its uid is not the one that Berth wrote to"}
	if !made.IsZero() {
		d.Time = &made
	}
	first := slices.IndexFunc(m.entries, func(e entry) bool {
		return e.subresource == "" && e.time != nil && !e.time.After(made)
	})
	if first >= 0 {
		d.Manager = m.entries[first].manager
	}
	if o.UID != "" {
		return d, o.UID != string(o.Live.GetUID())
	}
	d.Class, d.Why = Unknown, "somebody else made this object: again, or before Berth came"
	return d, m.berth == 0 && first >= 0 && !ofHelm(o, m)
}

// ofHelm tells an object of a release that Helm itself deployed, and that Berth
// took over without a write.
func ofHelm(o Object, m *managed) bool {
	release := releaseOf(o.Live)
	return release != "" && o.Wanted != nil && release == releaseOf(o.Wanted) &&
		slices.ContainsFunc(m.entries, func(e entry) bool { return strings.EqualFold(e.manager, "helm") })
}

// releaseOf is the Helm release that an object names: "namespace/name".
func releaseOf(obj *unstructured.Unstructured) string {
	notes := obj.GetAnnotations()
	if release := notes["meta.helm.sh/release-name"]; release != "" {
		return visible.Line(cut(notes["meta.helm.sh/release-namespace"]+"/"+release, maxName))
	}
	return ""
}

// hint says who of the others wrote last, for what leaves no trace.
func hint(m *managed) string {
	var last entry
	for i, e := range m.entries {
		if m.berth&(1<<i) == 0 && e.subresource != "status" && later(e.time, last.time) {
			last = e
		}
	}
	if last.time == nil {
		return ""
	}
	return fmt.Sprintf("; of the others %s wrote last, at %s", last.manager, last.time.Format(time.RFC3339))
}

// serverMetadata are the fields of metadata that the API server keeps, or that
// name the object; plans do not compare them either.
var serverMetadata = []string{
	"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink",
	"deletionTimestamp", "deletionGracePeriodSeconds", "name", "namespace",
}

// compared is an object without what is not compared. stringData of a Secret is
// what the API server makes of it.
func compared(obj *unstructured.Unstructured) map[string]any {
	t := make(map[string]any, len(obj.Object))
	for key, value := range obj.Object {
		metadata, isTable := value.(map[string]any)
		switch {
		case key == "apiVersion" || key == "kind" || key == "status":
		case key == "metadata" && isTable:
			metadata = maps.Clone(metadata)
			for _, name := range serverMetadata {
				delete(metadata, name)
			}
			t[key] = metadata
		default:
			t[key] = value
		}
	}
	if plain, ok := t["stringData"].(map[string]any); ok && isSecret(kube.RefOf(obj)) {
		data, _ := t["data"].(map[string]any)
		data = maps.Clone(data)
		if data == nil {
			data = map[string]any{}
		}
		for key, value := range plain {
			if text, ok := value.(string); ok {
				data[key] = base64.StdEncoding.EncodeToString([]byte(text))
			}
		}
		delete(t, "stringData")
		t["data"] = data
	}
	return t
}

func isSecret(ref kube.Ref) bool { return ref.Group == "" && ref.Kind == "Secret" }
