package policies

import (
	"fmt"
	"net/netip"
	"strings"

	networking "k8s.io/api/networking/v1"
)

// table is the one that is ours in the kernel, of the family ip.
const table = "berth-policies"

// ruleset is the state as input of `nft -f`, which replaces the table as a
// whole or not at all.
//
// Traffic between pods and from the node's outside passes the hook forward,
// with the addresses of pods and not of services: those are translated before.
// What a pod sends to the node itself passes the hook input. What the node
// sends, as the kubelet's probes, is not looked at.
func (s state) ruleset() string {
	egress, ingress := s.walls(networking.PolicyTypeEgress), s.walls(networking.PolicyTypeIngress)
	var b strings.Builder
	fmt.Fprintf(&b, "table ip %s\ndelete table ip %s\ntable ip %s {\n", table, table, table)
	for _, w := range egress {
		writeWall(&b, "egress", "daddr", w)
	}
	for _, w := range ingress {
		writeWall(&b, "ingress", "saddr", w)
	}
	for _, hook := range []string{"forward", "input"} {
		fmt.Fprintf(&b, "chain %s {\ntype filter hook %s priority 0\nct state established,related accept\n", hook, hook)
		writeJumps(&b, "egress", "saddr", egress)
		if hook == "forward" {
			writeJumps(&b, "ingress", "daddr", ingress)
		}
		b.WriteString("}\n")
	}
	b.WriteString("}\n")
	return b.String()
}

// writeJumps sends the traffic of each pod to its wall, and lets it come back.
func writeJumps(b *strings.Builder, direction, side string, walls []wall) {
	if len(walls) == 0 {
		return
	}
	jumps := make([]string, len(walls))
	for i, w := range walls {
		jumps[i] = fmt.Sprintf("%s : jump %s-%s", w.pod, direction, w.pod)
	}
	fmt.Fprintf(b, "ip %s vmap { %s }\n", side, strings.Join(jumps, ", "))
}

func writeWall(b *strings.Builder, direction, side string, w wall) {
	fmt.Fprintf(b, "chain %s-%s {\n", direction, w.pod)
	fmt.Fprintf(b, "ip %s %s return\n", side, w.pod) // nothing keeps a pod from itself
	for _, r := range w.allowed {
		from := r.match(side)
		if len(r.ports) == 0 {
			fmt.Fprintf(b, "%sreturn\n", from)
		}
		for _, p := range r.ports {
			fmt.Fprintf(b, "%s%sreturn\n", from, p.match())
		}
	}
	b.WriteString("drop\n}\n")
}

func (r rule) match(side string) string {
	switch {
	case r.block != nil && len(r.block.Except) > 0:
		return fmt.Sprintf("ip %s %s ip %s != { %s } ", side, r.block.CIDR, side, strings.Join(r.block.Except, ", "))
	case r.block != nil:
		return fmt.Sprintf("ip %s %s ", side, r.block.CIDR)
	case len(r.pods) > 0:
		return fmt.Sprintf("ip %s { %s } ", side, join(r.pods))
	}
	return ""
}

func join(addresses []netip.Addr) string {
	texts := make([]string, len(addresses))
	for i, a := range addresses {
		texts[i] = a.String()
	}
	return strings.Join(texts, ", ")
}

func (p ports) match() string {
	name := strings.ToLower(string(p.protocol))
	switch {
	case p.first == 0:
		return "ip protocol " + name + " "
	case p.first == p.last:
		return fmt.Sprintf("%s dport %d ", name, p.first)
	}
	return fmt.Sprintf("%s dport %d-%d ", name, p.first, p.last)
}
