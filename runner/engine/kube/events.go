package kube

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// eventsEvery is how often the events of a namespace are asked for.
	eventsEvery = 3 * time.Second
	// eventsAge is how old an event may be to say why something waits now.
	eventsAge = 10 * time.Minute
	// maxEvents is how many events a reason names; askedEvents is how many warnings
	// of a namespace are read.
	maxEvents, askedEvents = 2, 500
)

// events keeps the warnings of namespaces for a moment: a wait asks for each
// object that is not ready, again and again.
type events struct {
	mu    sync.Mutex
	found map[string]warnings // by namespace
}

type warnings struct {
	at   time.Time
	list []corev1.Event
}

func (e *events) of(ctx context.Context, c *Cluster, namespace string) []corev1.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	if known, ok := e.found[namespace]; ok && time.Since(known.at) < eventsEvery {
		return known.list
	}
	list, err := c.Client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=Warning", Limit: askedEvents})
	if err != nil {
		list = &corev1.EventList{} // they are a help: a runner may have no right to them
	}
	if e.found == nil {
		e.found = map[string]warnings{}
	}
	e.found[namespace] = warnings{at: time.Now(), list: list.Items}
	return list.Items
}

// eventReasons is what the newest warnings about an object and its pods say that
// reason does not say already; "" for nothing.
func (c *Cluster) eventReasons(ctx context.Context, obj *unstructured.Unstructured, pods []corev1.Pod, reason string) string {
	about, claims := map[types.UID]bool{obj.GetUID(): true}, map[string]bool{}
	for _, pod := range pods {
		about[pod.UID] = true
		if pod.Spec.NodeName != "" {
			continue // it has its volumes, or says itself what it lacks
		}
		for _, volume := range pod.Spec.Volumes {
			if volume.PersistentVolumeClaim != nil {
				claims[volume.PersistentVolumeClaim.ClaimName] = true
			}
		}
	}
	namespace := cmp.Or(obj.GetNamespace(), metav1.NamespaceDefault) // where those of objects without a namespace are
	return newestWarnings(c.events.of(ctx, c, namespace), warnedOf{about: about, claims: claims, replicaSets: replicaSetsOf(obj), since: time.Now().Add(-eventsAge)}, reason)
}

const claimKind = "PersistentVolumeClaim"

// pullAgain is an event that says only what the pod says of itself.
var pullAgain = regexp.MustCompile(`^Error: (?:ErrImagePull|ImagePullBackOff)$`)

// warnedOf says which events count.
type warnedOf struct {
	about       map[types.UID]bool
	claims      map[string]bool // names of those that pods without a node wait for
	replicaSets *regexp.Regexp  // their names; nil for none
	since       time.Time
}

func (w warnedOf) has(e corev1.Event) bool {
	replicaSet := w.replicaSets != nil && e.InvolvedObject.Kind == "ReplicaSet" && w.replicaSets.MatchString(e.InvolvedObject.Name)
	claim := e.InvolvedObject.Kind == claimKind && w.claims[e.InvolvedObject.Name]
	return (w.about[e.InvolvedObject.UID] || replicaSet || claim) && happened(e).After(w.since)
}

// replicaSetsOf are the names of the ReplicaSets of a Deployment: they say why
// there are no pods at all.
func replicaSetsOf(obj *unstructured.Unstructured) *regexp.Regexp {
	if obj.GroupVersionKind().GroupKind().String() != "Deployment.apps" {
		return nil
	}
	return regexp.MustCompile("^" + regexp.QuoteMeta(obj.GetName()) + "-[a-z0-9]+$")
}

// newestWarnings joins the newest events that say something new, the newest first.
func newestWarnings(list []corev1.Event, of warnedOf, reason string) string {
	var counted []corev1.Event
	for _, e := range list {
		if of.has(e) {
			counted = append(counted, e)
		}
	}
	slices.SortStableFunc(counted, func(a, b corev1.Event) int { return happened(b).Compare(happened(a)) })
	var texts []string
	for _, e := range counted {
		text := said(e.Reason, e.Message)
		if of.claims[e.InvolvedObject.Name] && e.InvolvedObject.Kind == claimKind && !of.about[e.InvolvedObject.UID] {
			text = "of " + claimKind + "/" + e.InvolvedObject.Name + ": " + text
		}
		repeats := func(other string) bool { return strings.Contains(other, said("", e.Message)) }
		if text == "" || repeats(reason) || slices.ContainsFunc(texts, repeats) || pullAgain.MatchString(e.Message) && strings.Contains(reason, "ImagePull") {
			continue
		}
		if texts = append(texts, text); len(texts) == maxEvents {
			break
		}
	}
	return strings.Join(texts, "; ")
}

// happened is when an event was seen last, by whichever of its times is set.
func happened(e corev1.Event) time.Time {
	last := e.CreationTimestamp.Time
	for _, t := range []time.Time{e.LastTimestamp.Time, e.EventTime.Time} {
		if t.After(last) {
			last = t
		}
	}
	if e.Series != nil && e.Series.LastObservedTime.After(last) {
		last = e.Series.LastObservedTime.Time
	}
	return last
}
