package drift

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/runner/engine/kube"
)

// Class says why a difference is there.
type Class string

// The classes, the worst first.
const (
	Real       Class = "real"       // nobody explains it
	Unknown    Class = "unknown"    // it cannot be told
	HumanEdit  Class = "human_edit" // a person, or a tool that one starts
	Controller Class = "controller" // another controller owns it
	Defaulted  Class = "defaulted"  // a default, or another form of the same
)

// classes are in the order of how bad they are.
var classes = []Class{Real, Unknown, HumanEdit, Controller, Defaulted}

// What happened to a field, or to the whole object.
type What string

// The kinds of difference. Those from Gone on are about the whole object.
const (
	Changed   What = "changed"   // it has another value
	Added     What = "added"     // the release does not set it
	Removed   What = "removed"   // it is missing
	Left      What = "left"      // Berth applied it, and the release no longer has it
	Rewritten What = "rewritten" // the cluster makes this of what the release sets
	Gone      What = "gone"      // the object is not there
	Extra     What = "extra"     // the object was of the component, and is no longer
	Recreated What = "recreated" // another object has its name
	Unread    What = "unread"    // the object could not be read
	Unbounded What = "unbounded" // it has more differences than are listed
)

// Difference is one difference. Its text is safe to show: values of secrets are
// digests, and hidden characters are written out.
type Difference struct {
	// Path is as the API server writes it, without the first dot:
	// spec.template.spec.containers[name="web"].image. WholeObject for all of it.
	Path string `json:"path"`
	What What   `json:"what"`
	// Want and Have are JSON, cut when long; "" when absent.
	Want  string `json:"want,omitempty"`
	Have  string `json:"have,omitempty"`
	Class Class  `json:"class"`
	// Manager is who did it, "" when nobody is known; Time is the last time that
	// it wrote, nil when the API server did not note it.
	Manager string     `json:"manager,omitempty"`
	Time    *time.Time `json:"time,omitempty"`
	Why     string     `json:"why"`
	// Accepted is the rule that takes it out of what alerts, Lapsed one that did
	// until it expired.
	Accepted *Rule `json:"accepted,omitempty"`
	Lapsed   *Rule `json:"lapsed,omitempty"`
}

// WholeObject is the path of a difference that is about the whole object.
const WholeObject = "."

// Alerts tells whether somebody has to hear of the difference.
func (d Difference) Alerts() bool {
	return d.Accepted == nil && d.Class != Defaulted && d.Class != Controller
}

// Drifts tells whether the difference is drift: somebody changed what was deployed. One
// that cannot be told is shown, and is none.
func (d Difference) Drifts() bool {
	return d.Alerts() && (d.Class == Real || d.Class == HumanEdit)
}

// Object is what is known of one object.
type Object struct {
	Ref kube.Ref
	// Wanted is as the release rendered it, with the marks that Berth adds; nil
	// for an object that was of the component and is no longer.
	Wanted *unstructured.Unstructured
	// Live is with managedFields; nil when it is not there. Unread says why it
	// could not be read.
	Live   *unstructured.Unstructured
	Unread Failure
	// Tried is the answer to a forced dry run by server-side apply; nil without
	// one. Untried says why there is none.
	Tried   *unstructured.Unstructured
	Untried Failure
	// UID is that of the object which Berth wrote to; "" when nobody recorded it.
	UID string
	// Keeps says why an object that is no longer wanted may stay, "" for none.
	Keeps string
}

// Failure is a kind of error of the API server.
type Failure string

// The failures.
const (
	Forbidden   Failure = "forbidden"    // the runner's account lacks the right
	Invalid     Failure = "invalid"      // the API server does not take the object
	Busy        Failure = "busy"         // somebody writes to it all the time
	UnknownKind Failure = "unknown_kind" // the cluster does not have the kind
	Failed      Failure = "failed"       // any other error
)

// Finding is what Explain says of one object.
type Finding struct {
	Object kube.Ref `json:"object"`
	// Named is the address of what is no object of a cluster, such as a resource of
	// Terraform; "" for that of Object.
	Named       string       `json:"named,omitempty"`
	Differences []Difference `json:"differences,omitempty"`
}

// Address names the object for people.
func (f Finding) Address() string { return cmp.Or(f.Named, f.Object.Address()) }

// Worst is the worst class of what alerts, "" when nothing does.
func (f Finding) Worst() Class {
	for _, class := range classes {
		for _, d := range f.Differences {
			if d.Class == class && d.Alerts() {
				return class
			}
		}
	}
	return ""
}
