package appconfig

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// Types of the probes that an app gives a component.
const (
	ProbeHTTP = "http" // a GET of target, or what method says, answers with status
	ProbeTCP  = "tcp"  // target takes a connection
	ProbeExec = "exec" // command ends with exit code 0 in a container of target
)

const (
	// What a probe gets that does not say it.
	defaultProbeStatus  = "200-399"
	defaultProbeTimeout = 5 * time.Second
	// maxProbeTimeout leaves time before the next look.
	maxProbeTimeout = 30 * time.Second
	// execOverhead is for the way to the pod, and to end a command that gave no answer.
	execOverhead = 25 * time.Second
	probeCron    = "* * * * *"
	// maxProbeAction is the longest name of an action, in bytes.
	maxProbeAction = 128
)

// probeKeys are the keys of a probe, by its type.
var probeKeys = map[string][]string{
	ProbeHTTP: {"type", "name", "target", "method", "status", "timeout"},
	ProbeTCP:  {"type", "name", "target", "timeout"},
	ProbeExec: {"type", "name", "target", "selector", "namespace", "container", "command", "timeout"},
}

// probeStatus is a status, or a range of them.
var probeStatus = regexp.MustCompile(`^[1-5]\d\d(-[1-5]\d\d)?$`)

// ProbeName is what the probe with a number, from 0, is called: its name, or its type and
// number.
func (h *ComponentHealth) ProbeName(i int) string {
	p := h.Probes[i]
	return cmp.Or(p["name"], p["type"]+"-"+strconv.Itoa(i+1))
}

// ProbeAction is the action that a probe of a component is made into.
func ProbeAction(component, probe string) string {
	return jobspec.AppProbePrefix + component + "." + probe
}

// IsProbe tells whether an action is made of a probe of a component.
func (a *Action) IsProbe() bool { return strings.HasPrefix(a.Name, jobspec.AppProbePrefix) }

// ProbeActions are the probes of a component as health checks: actions that look each minute,
// by the runner's own program. They are accepted, scheduled and judged as every check is.
func (c *Component) ProbeActions() (list []Action) {
	if c.Health == nil {
		return nil
	}
	for i, p := range c.Health.Probes {
		if _, problem := c.probeProblem(i); probeKeys[p["type"]] == nil || problem != "" {
			continue // a sync says so
		}
		name := c.Health.ProbeName(i)
		text := place.Text{Contents: "exec \"$BERTH_PROBE\" probe " + p["type"] + "\n"}
		env := map[string]string{"PROBE_TARGET": p["target"], "PROBE_TIMEOUT": cmp.Or(p["timeout"], defaultProbeTimeout.String())}
		switch p["type"] {
		case ProbeHTTP:
			env["PROBE_METHOD"], env["PROBE_STATUS"] = cmp.Or(p["method"], http.MethodGet), cmp.Or(p["status"], defaultProbeStatus)
		case ProbeExec:
			env["PROBE_COMMAND"], env["PROBE_SELECTOR"], env["PROBE_CONTAINER"] = p["command"], p["selector"], p["container"]
			env["PROBE_NAMESPACE"] = cmp.Or(p["namespace"], c.clusterNamespace())
		}
		a := Action{
			Name: ProbeAction(c.Name, name), Description: fmt.Sprintf("Probe %s of component %s.", name, c.Name), Dependencies: []string{c.Name},
			Timeout: place.Duration(maxProbeTimeout + 10*time.Second), Berth: &ActionExtension{HealthCheck: &HealthCheck{UnhealthyAfter: DefaultProbeUnhealthyAfter, HealthyAfter: DefaultProbeHealthyAfter}},
			Triggers: []Trigger{{Type: TriggerCron, CronSchedule: probeCron}}, Steps: []Step{{Name: name, InlineContents: &text, EnvVars: env}},
			At: c.At.Below("health.probes").Item(i),
		}
		if p["type"] == ProbeExec {
			a.KubernetesContext, a.EnableKubeConfig = c.KubernetesContext, true
			a.Timeout = place.Duration(maxProbeTimeout + execOverhead)
		}
		list = append(list, a)
	}
	return list
}

// HasOtherProbes tells whether there are probes of a type that nothing looks at.
func (h *ComponentHealth) HasOtherProbes() bool {
	return h != nil && slices.ContainsFunc(h.Probes, func(p map[string]string) bool { return probeKeys[p["type"]] == nil })
}

// inCluster tells whether the component has pods to run a command in.
func (c *Component) inCluster() bool { return c.HelmChart != nil || c.KubernetesManifest != nil }

// clusterNamespace is where the component's objects are as the app writes it, "" for the
// install's own.
func (c *Component) clusterNamespace() string {
	switch {
	case c.HelmChart != nil:
		return c.HelmChart.Namespace
	case c.KubernetesManifest != nil:
		return c.KubernetesManifest.Namespace
	}
	return ""
}

// ExecNamespaces are the namespaces, as the app writes them, in which probes of the component
// run commands in pods; "" is the component's own.
func (c *Component) ExecNamespaces() (list []string) {
	if c.Health == nil {
		return nil
	}
	for i, p := range c.Health.Probes {
		if _, problem := c.probeProblem(i); p["type"] == ProbeExec && problem == "" {
			list = append(list, p["namespace"])
		}
	}
	return list
}

// AddProbes adds the probes of all components to the actions of an app that was read from a
// release.
func (a *App) AddProbes() {
	for i := range a.Components {
		a.Actions = append(a.Actions, a.Components[i].ProbeActions()...)
	}
}

// checkProbes warns of probes that have no effect. Their tables have free keys, and other
// programs read other ones: so none of it is an error.
func (c *Component) checkProbes(ch *checker) {
	h, at := c.Health, c.At.Below("health")
	for i, p := range h.Probes {
		at := at.Below("probes").Item(i)
		keys := probeKeys[p["type"]]
		if keys == nil {
			continue // not_yet says so
		}
		if key, problem := c.probeProblem(i); problem != "" {
			ch.Add(place.Warning, place.CodeValue, at.Below(key), "probe %q has no effect: %s", h.ProbeName(i), problem)
			continue
		}
		for key := range p {
			if !slices.Contains(keys, key) {
				ch.Add(place.Warning, place.CodeUnsupported, at.Below(key), "key %q of a probe of type %s has no effect; it has %s", key, p["type"], strings.Join(keys, ", "))
			}
		}
	}
}

// probeProblem says why nothing looks at what a probe of a known type says, and because of which
// key; "" when the runner looks.
func (c *Component) probeProblem(i int) (key, problem string) {
	h := c.Health
	p := h.Probes[i]
	name := h.ProbeName(i)
	for other := range i {
		if h.ProbeName(other) == name {
			return "name", "there is another one of this name"
		}
	}
	if action := ProbeAction(c.Name, name); len(action) > maxProbeAction {
		return "name", fmt.Sprintf("%q is longer than %d characters", action, maxProbeAction)
	}
	if !IsName(name) {
		return "name", "a name may have letters, digits, \"_\", \"-\" and \".\", and must begin and end with a letter or digit (at most 128)"
	}
	if p["type"] == ProbeExec {
		key, problem = c.execProblem(p)
	} else if problem = targetProblem(p["type"], p["target"]); problem != "" {
		key, problem = "target", "its target "+problem
	}
	if problem != "" {
		return key, problem
	}
	if t, err := time.ParseDuration(cmp.Or(p["timeout"], "5s")); err != nil || t <= 0 || t > maxProbeTimeout {
		return "timeout", fmt.Sprintf("timeout is a time up to %s, such as 5s, not %q", maxProbeTimeout, p["timeout"])
	}
	if p["type"] != ProbeHTTP {
		return "", ""
	}
	if status := p["status"]; status != "" && !probeStatus.MatchString(status) {
		return "status", fmt.Sprintf("status is one such as 200, or a range such as 200-399, not %q", status)
	}
	if m := p["method"]; m != "" && m != http.MethodGet && m != http.MethodHead {
		return "method", fmt.Sprintf("method is GET or HEAD, which change nothing, not %q", m)
	}
	return "", ""
}

// workload is what a probe of type exec may have as its target.
var workload = regexp.MustCompile(`^(?i:deployment|statefulset|daemonset|pod)/[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)

func (c *Component) execProblem(p map[string]string) (key, problem string) {
	switch target := p["target"]; {
	case !c.inCluster():
		return "type", fmt.Sprintf("component %s has no pods to run a command in. Write an action with is_health_check = true and the command as its step: it runs on the runner", c.Name)
	case strings.TrimSpace(p["command"]) == "":
		return "command", "its command is missing"
	case target == "" && p["selector"] == "":
		return "target", "it needs a target, such as deployment/web, or a selector, such as app=web"
	case target != "" && p["selector"] != "":
		return "selector", "it has a target already"
	case target != "" && !interpolate.IsTemplate(target) && !workload.MatchString(target):
		return "target", "its target is deployment/NAME, statefulset/NAME, daemonset/NAME or pod/NAME"
	}
	return "", ""
}

func targetProblem(kind, target string) string {
	switch {
	case target == "":
		return "is missing"
	case interpolate.IsTemplate(target):
		return "" // known when it is rendered
	case kind == ProbeHTTP && !strings.HasPrefix(target, "http://") && !strings.HasPrefix(target, "https://"):
		return "begins with http:// or https://"
	case kind == ProbeTCP:
		if _, _, err := net.SplitHostPort(target); err != nil {
			return "is HOST:PORT"
		}
	}
	return ""
}
