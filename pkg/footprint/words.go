package footprint

import (
	"fmt"
	"strings"

	"github.com/berth-dev/berth/pkg/visible"
)

// Lines are the footprint for people: a heading, and what there is below it, indented. There
// are none when nothing is new. Each line is safe to show on a terminal.
func (f Footprint) Lines() []string {
	var lines []string
	section := func(title string, list []string) {
		if len(list) == 0 {
			return
		}
		lines = append(lines, title+":")
		for _, line := range list {
			lines = append(lines, "  "+visible.Line(line))
		}
	}
	var lacking, needed []string
	for _, r := range f.Rights {
		switch r.Access {
		case AccessLacks:
			lacking = append(lacking, r.String())
		case AccessUnknown:
			needed = append(needed, r.String()+" (whether the runner has it could not be found out)")
		case AccessHas:
			needed = append(needed, r.String())
		default: // the planned footprint says nothing of it
			needed = append(needed, r.String())
		}
	}
	for _, c := range f.CloudActions {
		needed = append(needed, fmt.Sprintf("%s for %s (%s)", strings.Join(c.Actions, ", "), c.Type, c.By))
	}
	section("the runner lacks these rights, so the apply would fail", lacking)
	section("newly needs", needed)
	section("newly needs, nobody can tell", each(f.Unknown, func(u Unknown) string { return withBy(u.What, u.By) }))
	section("newly gives", each(f.Grants, Grant.String))
	section("newly exposes", each(f.Exposed, Exposure.String))
	section("new images", each(f.Images, func(i Image) string {
		if !i.KnownRepository {
			return fmt.Sprintf("%s (%s; from a repository that is new here)", i.Image, i.By)
		}
		return withBy(i.Image, i.By)
	}))
	section("newly speaks to, as far as can be known", each(f.Hosts, func(h Host) string { return withBy(h.Host, h.By) }))
	if f.LeftOut > 0 {
		lines = append(lines, fmt.Sprintf("and %d more of all this, which there was no room for", f.LeftOut))
	}
	return lines
}

func each[T any](list []T, say func(T) string) []string {
	var lines []string
	for _, v := range list {
		lines = append(lines, say(v))
	}
	return lines
}

func withBy(what, by string) string {
	if by == "" || strings.Contains(what, by) {
		return what
	}
	return what + " (" + by + ")"
}

// String is a right in words: "create, get ingresses.networking.k8s.io in shop".
func (r Right) String() string {
	at := "in the whole cluster"
	if r.Namespace != "" {
		at = "in " + r.Namespace
	}
	return fmt.Sprintf("%s %s %s", strings.Join(r.Verbs, ", "), resourceOf(r.Resource, r.Group), at)
}

// String is a grant in words.
func (g Grant) String() string {
	text := g.What
	if len(g.Actions) > 0 {
		text = strings.Join(g.Actions, ", ") + " on " + g.What
	}
	switch {
	case g.Scope == wholeCluster:
		text += " in the whole cluster"
	case g.Scope != "":
		text += " in " + g.Scope
	}
	if len(g.To) > 0 {
		text += " to " + strings.Join(g.To, ", ")
	}
	return withBy(text, g.By)
}

var exposureWords = map[ExposureKind]string{
	LoadBalancer: "a load balancer", NodePort: "a port of every node", ExternalIP: "an external address", HostPort: "a port of its node",
	IngressHost: "an ingress", Gateway: "a gateway", Route: "a route", OpenFirewall: "open to the internet", PublicAddress: "a public address",
	PublicService: "a public service", PublicData: "public data",
}

// String is an exposure in words.
func (e Exposure) String() string {
	words, known := exposureWords[e.Kind]
	if !known {
		words = string(e.Kind)
	}
	if e.At != "" {
		words += ", " + e.At
	}
	return words + " (" + e.By + ")"
}
