package policies

import (
	"cmp"
	"net/netip"
	"slices"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A state is what the cluster says of policies, and of whom they are about.
type state struct {
	policies   []*networking.NetworkPolicy
	pods       []*core.Pod
	namespaces []*core.Namespace
}

// A wall is around one pod in one direction: what no rule allows is dropped.
type wall struct {
	pod     netip.Addr
	allowed []rule
}

// A rule allows traffic with the other side, whichever it is: where it comes
// from at a wall against ingress, where it goes to at one against egress.
type rule struct {
	// pods are the other side; with neither pods nor block it is everybody.
	pods  []netip.Addr
	block *networking.IPBlock
	// ports are the destination's; none are all, of every protocol.
	ports []ports
}

// ports of a protocol, from first to last; 0 to 0 are all.
type ports struct {
	protocol    core.Protocol
	first, last int32
}

// walls decides from the policies who is behind a wall, and what passes it.
// Pods are in the order of their addresses, rules in that of the policies.
func (s state) walls(direction networking.PolicyType) []wall {
	ordered := slices.SortedFunc(slices.Values(s.policies), func(a, b *networking.NetworkPolicy) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	pods := s.reachable()
	var walls []wall
	for _, pod := range pods {
		w, behind := wall{pod: address(pod)}, false
		for _, policy := range ordered {
			if policy.Namespace != pod.Namespace || !applies(policy, direction) || !selects(&policy.Spec.PodSelector, pod.Labels) {
				continue
			}
			behind = true
			w.allowed = append(w.allowed, s.rules(policy, direction, pod, pods)...)
		}
		if behind {
			walls = append(walls, w)
		}
	}
	return walls
}

// reachable are the pods that have an address of their own, by address. Of two
// with the same the younger one has it.
func (s state) reachable() []*core.Pod {
	owners := map[netip.Addr]*core.Pod{}
	for _, pod := range s.pods {
		ended := pod.Status.Phase == core.PodSucceeded || pod.Status.Phase == core.PodFailed
		at := address(pod)
		if pod.Spec.HostNetwork || ended || !at.Is4() {
			continue
		}
		if owner := owners[at]; owner == nil || owner.CreationTimestamp.Before(&pod.CreationTimestamp) {
			owners[at] = pod
		}
	}
	var pods []*core.Pod
	for _, pod := range owners {
		pods = append(pods, pod)
	}
	slices.SortFunc(pods, func(a, b *core.Pod) int { return address(a).Compare(address(b)) })
	return pods
}

func address(pod *core.Pod) netip.Addr {
	at, _ := netip.ParseAddr(pod.Status.PodIP) // the zero one when there is none yet
	return at
}

// applies tells whether a policy is about a direction. One without types is
// about ingress, and about egress when it has rules for it.
func applies(policy *networking.NetworkPolicy, direction networking.PolicyType) bool {
	if len(policy.Spec.PolicyTypes) > 0 {
		return slices.Contains(policy.Spec.PolicyTypes, direction)
	}
	return direction == networking.PolicyTypeIngress || len(policy.Spec.Egress) > 0
}

// rules are what a policy allows to a pod that it selects.
func (s state) rules(policy *networking.NetworkPolicy, direction networking.PolicyType, pod *core.Pod, pods []*core.Pod) []rule {
	var allowed []rule
	if direction == networking.PolicyTypeIngress {
		for _, in := range policy.Spec.Ingress {
			open, ok := resolve(in.Ports, pod)
			if !ok {
				continue
			}
			for _, other := range s.others(policy.Namespace, in.From, pods) {
				allowed = append(allowed, rule{pods: addresses(other.pods), block: other.block, ports: open})
			}
		}
		return allowed
	}
	for _, out := range policy.Spec.Egress {
		for _, other := range s.others(policy.Namespace, out.To, pods) {
			if !named(out.Ports) {
				open, _ := resolve(out.Ports, nil)
				allowed = append(allowed, rule{pods: addresses(other.pods), block: other.block, ports: open})
				continue
			}
			// A name is a port of the destination: another one on each.
			if other.block != nil {
				continue
			}
			to := other.pods
			if other.everybody() {
				to = pods
			}
			for _, each := range to {
				if open, ok := resolve(out.Ports, each); ok {
					allowed = append(allowed, rule{pods: []netip.Addr{address(each)}, ports: open})
				}
			}
		}
	}
	return allowed
}

// An other side of traffic, as a policy's peer says it.
type other struct {
	pods  []*core.Pod
	block *networking.IPBlock
}

func (o other) everybody() bool { return o.pods == nil && o.block == nil }

// others resolves peers; no peers are everybody. A peer that selects nobody is
// left out.
func (s state) others(namespace string, peers []networking.NetworkPolicyPeer, pods []*core.Pod) []other {
	if len(peers) == 0 {
		return []other{{}}
	}
	var all []other
	for _, peer := range peers {
		if peer.IPBlock != nil {
			all = append(all, other{block: peer.IPBlock})
			continue
		}
		in := map[string]bool{namespace: peer.NamespaceSelector == nil}
		for _, n := range s.namespaces {
			if peer.NamespaceSelector != nil {
				in[n.Name] = selects(peer.NamespaceSelector, n.Labels)
			}
		}
		var selected []*core.Pod
		for _, pod := range pods {
			if in[pod.Namespace] && (peer.PodSelector == nil || selects(peer.PodSelector, pod.Labels)) {
				selected = append(selected, pod)
			}
		}
		if len(selected) > 0 {
			all = append(all, other{pods: selected})
		}
	}
	return all
}

func addresses(pods []*core.Pod) []netip.Addr {
	var all []netip.Addr
	for _, pod := range pods {
		all = append(all, address(pod))
	}
	return all
}

// selects: a selector that the API server let through can be read; one that
// cannot selects nobody.
func selects(selector *meta.LabelSelector, of map[string]string) bool {
	s, err := meta.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(of))
}

func named(wanted []networking.NetworkPolicyPort) bool {
	return slices.ContainsFunc(wanted, func(p networking.NetworkPolicyPort) bool { return p.Port != nil && p.Port.Type == intstr.String })
}

// resolve turns what a rule says of ports into numbers; names are looked up in
// the destination. It is not ok when the rule names ports and none is there.
func resolve(wanted []networking.NetworkPolicyPort, destination *core.Pod) (open []ports, ok bool) {
	for _, w := range wanted {
		protocol := core.ProtocolTCP
		if w.Protocol != nil {
			protocol = *w.Protocol
		}
		switch {
		case w.Port == nil:
			open = append(open, ports{protocol: protocol})
		case w.Port.Type == intstr.Int:
			last := w.Port.IntVal
			if w.EndPort != nil {
				last = *w.EndPort
			}
			open = append(open, ports{protocol, w.Port.IntVal, last})
		default:
			for _, number := range portsNamed(destination, w.Port.StrVal, protocol) {
				open = append(open, ports{protocol, number, number})
			}
		}
	}
	return open, len(wanted) == 0 || len(open) > 0
}

func portsNamed(pod *core.Pod, name string, protocol core.Protocol) []int32 {
	var numbers []int32
	for _, container := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		for _, port := range container.Ports {
			if port.Name == name && cmp.Or(port.Protocol, core.ProtocolTCP) == protocol {
				numbers = append(numbers, port.ContainerPort)
			}
		}
	}
	return numbers
}
