package flow

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/services/internal/model"
)

const (
	// gateName is what the step is called that waits until health holds.
	gateName = "health"
	// GateGrace is how much longer than the health has to hold a gate waits for it: for the
	// first looks at what was deployed, and for what starts slowly.
	GateGrace = 15 * time.Minute
	// MaxHold is the longest that health may have to hold.
	MaxHold = 24 * time.Hour
	// maxNamed is how many checks a wait or an error names.
	maxNamed = 3
)

// GateSpec is what a gate looks at, as its step's row keeps it.
type GateSpec struct {
	// HoldSeconds is how long all of it has to be healthy; 0 for once.
	HoldSeconds int `json:"hold_seconds"`
	// Components are looked at by their probes, Checks are actions.
	Components []string `json:"components,omitempty"`
	Checks     []string `json:"checks,omitempty"`
	// Holds are the components whose deploy is not done before; some have no probe.
	Holds []string `json:"holds,omitempty"`
}

// Gate is what a step of kind StepGate looks at now.
type Gate struct {
	Hold    time.Duration
	Began   time.Time
	Sources []GateSource
}

// GateSource is a check, or a component that is probed.
type GateSource struct {
	Name    string // for people
	Verdict model.Verdict
	Since   time.Time // of the verdict
	// Last is when the newest outcome came, long ago without any; Good is how it was, and Why
	// what it said.
	Last time.Time
	Good bool
	Why  string
}

// holds tells whether a source was healthy for as long as it has to be, seen by an outcome
// at the end of that time or after it.
func (g Gate) holds(s GateSource) bool {
	from := g.Began
	if s.Since.After(from) {
		from = s.Since
	}
	return s.Verdict == model.Healthy && s.Good && !s.Last.Before(from.Add(g.Hold)) && s.Last.After(g.Began)
}

// broke tells whether a source became unhealthy behind the gate. One that was unhealthy
// before has the time of the gate to become healthy: the deploy may be what heals it.
func (g Gate) broke(s GateSource) bool {
	return s.Verdict == model.Unhealthy && s.Since.After(g.Began)
}

// nextOfGate holds a workflow back until what it deployed was healthy for as long as it has
// to be.
func nextOfGate(s State, step Step) (Decision, bool) {
	g := step.Gate
	if g == nil || len(g.Sources) == 0 {
		return Decision{Do: DoSkipStep, Error: "nothing of what was deployed has a probe, and there is no check"}, true
	}
	const remedy = "berth rollback, or fix the cause and retry the step; berth installs health shows the checks"
	var names, says []string
	for _, source := range g.Sources {
		if g.broke(source) {
			return Decision{Do: DoFailStep, Error: source.Name + " became unhealthy after the deploy" + said(source), Remedy: remedy}, true
		}
		if !g.holds(source) {
			names = append(names, source.Name)
			says = append(says, fmt.Sprintf("%s is %s%s", source.Name, source.Verdict, said(source)))
		}
	}
	deadline := g.Began.Add(g.Hold + GateGrace)
	on := few(names, ", ")
	switch {
	case len(names) == 0:
		return Decision{Do: DoSucceedStep}, true
	case !s.Now.Before(deadline):
		return Decision{Do: DoFailStep, Error: fmt.Sprintf("it was not healthy for %s within %s: %s", g.Hold, g.Hold+GateGrace, few(says, "; ")), Remedy: remedy}, true
	case step.State != model.StepWaiting || step.WaitReason != model.WaitHealth || step.WaitOn != on:
		return Decision{Do: DoWaitStep, Wait: Wait{Reason: model.WaitHealth, On: on, Deadline: deadline}}, true
	}
	return Decision{}, false
}

func said(s GateSource) string {
	if s.Why == "" || s.Good {
		return ""
	}
	return ": " + s.Why
}

// few joins the first of a list, and says how many more there are.
func few(list []string, sep string) string {
	if len(list) <= maxNamed {
		return strings.Join(list, sep)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:maxNamed], sep), len(list)-maxNamed)
}

// gate appends the step that waits until what was deployed is healthy, where somebody asks
// for that: the person who deploys, for all of it, or the app, for components of its own.
func (p *planner) gate() {
	spec := GateSpec{HoldSeconds: int(p.in.Hold / time.Second)}
	wanted := p.in.Hold > 0
	if wanted {
		spec.Checks = slices.Clone(p.in.Checks)
	}
	deployed := false
	for _, c := range inOrder(p.in.Components) {
		if !slices.ContainsFunc(p.steps, func(s PlannedStep) bool {
			return s.Kind == StepDeploy && s.Resource == c.Name && !s.Sandbox && !s.Copies
		}) {
			continue
		}
		deployed = true
		if c.Gate {
			wanted = true
			spec.HoldSeconds = max(spec.HoldSeconds, int(c.Hold/time.Second))
			for _, name := range c.GateChecks {
				if slices.Contains(p.in.Checks, name) {
					spec.Checks = append(spec.Checks, name)
				}
			}
		}
		if c.Gate || p.in.Hold > 0 {
			spec.Holds = append(spec.Holds, c.Name)
			spec.Checks = append(spec.Checks, c.Looks...)
		}
		if c.Probed && (c.Gate || p.in.Hold > 0) {
			spec.Components = append(spec.Components, c.Name)
		}
	}
	if !wanted || !deployed {
		return
	}
	slices.Sort(spec.Checks)
	spec.Checks = slices.Compact(spec.Checks)
	reason := "the deploy is done when it is healthy"
	if spec.HoldSeconds > 0 {
		reason = fmt.Sprintf("the deploy is done when it was healthy for %s", time.Duration(spec.HoldSeconds)*time.Second)
	}
	p.add(PlannedStep{Name: gateName, Kind: StepGate, Gate: &spec, Reason: reason})
}
