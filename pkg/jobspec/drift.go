package jobspec

import (
	"errors"
	"strings"
	"time"
)

// DriftPrefix begins the names under which looks for drift are reported. No action can
// have such a name.
const DriftPrefix = "drift/"

// ResourceSandbox is the Kind of a Resource that is the sandbox.
const ResourceSandbox = "sandbox"

// DriftName is what looks at a resource are reported under. The sandbox has its own place:
// a component may have its name, and none has a slash in it.
func DriftName(r Resource) string {
	if r.Kind == ResourceSandbox {
		return DriftPrefix + ResourceSandbox + "/" + r.Name
	}
	return DriftPrefix + r.Name
}

// DriftNamed is the resource that a DriftName is about; ok is false for another name.
func DriftNamed(name string) (r Resource, ok bool) {
	rest, ok := strings.CutPrefix(name, DriftPrefix)
	if !ok {
		return r, false
	}
	if sandbox, is := strings.CutPrefix(rest, ResourceSandbox+"/"); is {
		return Resource{Kind: ResourceSandbox, Name: sandbox}, true
	}
	return Resource{Kind: "component", Name: rest}, true
}

// MaxDrift bounds a Drift as JSON, in bytes.
const MaxDrift = 256 << 10

// DriftLook is what a look for drift works from.
type DriftLook struct {
	// Change is the one that made what is live: that plan says what is wanted.
	Change string `json:"change"`
	// State is the Terraform state that is live, for a resource that has one.
	State *StateMark `json:"state,omitempty"`
	// At are turns besides those of the schedule: soon after the change, and when
	// somebody asked.
	At []time.Time `json:"at,omitempty"`
	// Accept are differences that are fine for a time. The runner adds those of the
	// customer.
	Accept []DriftRule `json:"accept,omitempty"`
	// NoValues leaves values out of what is found. The agent sets it in job.json where
	// it does not know which of them are secret.
	NoValues bool `json:"no_values,omitempty"`
}

// StateMark tells a state from all others without telling what is in it.
type StateMark struct {
	Lineage string `json:"lineage"`
	Serial  int64  `json:"serial"`
	Digest  string `json:"digest"` // salted by the runner that wrote it
}

// DriftRule accepts differences until it expires. In patterns * stands for any
// characters, also none; an empty one of Namespace, Name and Manager matches everything.
type DriftRule struct {
	// Kind is that of the object, with or without its group: Deployment,
	// Deployment.apps; or the type of a Terraform resource, whose Name is also its address.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Path is that of a difference, which the rule takes with all that is below it; or
	// ".", for an object that is gone, left over or made again, which no pattern matches.
	Path    string `json:"path"`
	Manager string `json:"manager,omitempty"`
	// Reason and By are why, and who says so.
	Reason string    `json:"reason"`
	By     string    `json:"by"`
	Until  time.Time `json:"until"`
}

// Check says what is wrong with a rule. One that is wrong accepts nothing.
func (r DriftRule) Check() error {
	switch {
	case r.Kind == "":
		return errors.New(`kind is missing: name one, or write "*" for all`)
	case r.Path == "":
		return errors.New(`path is missing: name a field, "*" for all, or "." for whole objects`)
	case strings.TrimSpace(r.Reason) == "":
		return errors.New("reason is missing: say why the difference is fine")
	case strings.TrimSpace(r.By) == "":
		return errors.New("by is missing: say who accepts the difference")
	case r.Until.IsZero():
		return errors.New("until is missing: no difference is accepted for ever")
	}
	return nil
}

// Drift is how what is live differs from what was deployed. It is safe to show: values of
// secrets are left out.
type Drift struct {
	// Change is that of the DriftLook.
	Change string `json:"change"`
	// Looked is how many objects were looked at.
	Looked int `json:"looked"`
	// Digest is the same for as long as the same managers differ in the same fields; ""
	// without drift.
	Digest string `json:"digest,omitempty"`
	// Class is the worst one of the drift, "" without any.
	Class string `json:"class,omitempty"`
	// AtOnce: an object is gone, left over or made again. No second look is needed.
	AtOnce bool `json:"at_once,omitempty"`
	// Counts are the differences of each class; those that a rule accepts count as
	// DriftAccepted.
	Counts map[string]int `json:"counts,omitempty"`
	// Objects are those with differences, the worst first.
	Objects []DriftObject `json:"objects,omitempty"`
	// More is how many differences are not listed.
	More int `json:"more,omitempty"`
}

// DriftAccepted is how Drift.Counts calls differences that rules accept.
const DriftAccepted = "accepted"

// DriftObject is an object that differs.
type DriftObject struct {
	Address string `json:"address"`
	// Drifted: at least one of its differences is drift.
	Drifted     bool              `json:"drifted,omitempty"`
	Differences []DriftDifference `json:"differences"`
}

// DriftDifference is one difference of an object, as package runner/engine/drift says it.
type DriftDifference struct {
	Path     string     `json:"path"` // "." for the whole object
	What     string     `json:"what"`
	Want     string     `json:"want,omitempty"`
	Have     string     `json:"have,omitempty"`
	Class    string     `json:"class"`
	Manager  string     `json:"manager,omitempty"`
	Time     *time.Time `json:"time,omitempty"`
	Why      string     `json:"why"`
	Accepted *DriftRule `json:"accepted,omitempty"`
	Lapsed   *DriftRule `json:"lapsed,omitempty"`
}
