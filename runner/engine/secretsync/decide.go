package secretsync

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

const (
	// labelCopies is on every copy.
	labelCopies = "berth.dev/secret-copies"
	// annotationSources says which value each key has: JSON of source by key.
	annotationSources = "berth.dev/secret-versions"
)

// object is the Secret that a target becomes.
func (t target) object(install string) *corev1.Secret {
	sources, err := json.Marshal(t.Keys)
	if err != nil {
		panic(err) // text and numbers only
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: t.Namespace, Name: t.Name,
			Labels:      map[string]string{kube.LabelManagedBy: kube.FieldManager, labelCopies: "true"},
			Annotations: map[string]string{kube.AnnotationInstall: install, annotationSources: string(sources)},
		},
		Type: corev1.SecretTypeOpaque, Data: t.data,
	}
}

// ours tells whether an install has made a Secret as a copy.
func ours(live *corev1.Secret, install string) bool {
	return live.Labels[kube.LabelManagedBy] == kube.FieldManager && live.Labels[labelCopies] != "" && live.Annotations[kube.AnnotationInstall] == install
}

// change says what has to be done so that live, nil when it is not there, becomes the
// target. It refuses a Secret that is not a copy of the install.
func (t target) change(live *corev1.Secret, install string) (kube.Change, *job.Failure) {
	if live == nil || live.DeletionTimestamp != nil && ours(live, install) {
		return kube.Created(t.shown()), nil
	}
	if !ours(live, install) {
		whose := "it was not made by Berth"
		if other := live.Annotations[kube.AnnotationInstall]; live.Labels[labelCopies] != "" && other != "" {
			whose = "it belongs to install " + other
		}
		return kube.Change{}, job.Wrongf("give the copy another name in the app folder, or remove that Secret if nothing uses it",
			"%s is there already and %s, so it is not overwritten", t.ref().Address(), whose)
	}
	change := kube.Updated(t.found(live), t.shown())
	if change.Action != kube.ActionNone && live.Immutable != nil && *live.Immutable {
		return kube.Change{}, job.Wrongf("remove it; the next sync makes it again", "%s has to change and somebody made it immutable", t.ref().Address())
	}
	return change, nil
}

// removal says what happens to a Secret that is no longer wanted. One that is not ours, or
// no longer, stays and is let go of.
func removal(ref kube.Ref, live *corev1.Secret, install string) kube.Change {
	if live == nil || !ours(live, install) {
		return kube.Change{Object: ref}
	}
	return kube.Deleted(ref, target{Namespace: ref.Namespace, Name: ref.Name}.found(live))
}

// shown is the target as a plan shows and compares it: secrets with versions and digests
// in the place of values.
func (t target) shown() *unstructured.Unstructured {
	keys := map[string]string{}
	for key, s := range t.Keys {
		keys[key] = s.String()
	}
	return shownSecret(t.ref(), keys)
}

// found is shown for what is there. Values are compared with those of the target; the rest
// is what the last apply wrote down.
func (t target) found(live *corev1.Secret) *unstructured.Unstructured {
	var sources map[string]source
	if json.Unmarshal([]byte(live.Annotations[annotationSources]), &sources) != nil {
		sources = nil
	}
	keys := map[string]string{}
	for key, value := range live.Data {
		was, known := sources[key]
		switch want, isWanted := t.Keys[key]; {
		case !known:
			keys[key] = "a value that Berth did not write"
		case isWanted && was == want && !bytes.Equal(value, t.data[key]):
			keys[key] = fmt.Sprintf("%s, then changed by somebody else", was)
		default:
			keys[key] = was.String()
		}
	}
	obj := shownSecret(secretRef(live.Namespace, live.Name), keys)
	obj.SetUID(live.UID)
	obj.SetResourceVersion(live.ResourceVersion)
	return obj
}

func shownSecret(ref kube.Ref, keys map[string]string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(ref.GVK())
	obj.SetNamespace(ref.Namespace)
	obj.SetName(ref.Name)
	list := map[string]any{}
	for key, text := range keys {
		list[key] = text
	}
	obj.Object["keys"] = list
	return obj
}
