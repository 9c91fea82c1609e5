package policies

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// neighbours are two namespaces with three pods: what the cases are about.
func neighbours() state {
	namespace := func(name, team string) *core.Namespace {
		return &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{"team": team}}}
	}
	return state{
		namespaces: []*core.Namespace{namespace("shop", "blue"), namespace("tools", "red")},
		pods: []*core.Pod{
			pod("shop", "web", "10.0.0.1", core.ContainerPort{Name: "http", ContainerPort: 8080}),
			pod("shop", "db", "10.0.0.2", core.ContainerPort{Name: "sql", ContainerPort: 5432}, core.ContainerPort{Name: "http", ContainerPort: 9090}),
			pod("tools", "web", "10.0.0.3"),
		},
	}
}

func pod(namespace, app, ip string, ports ...core.ContainerPort) *core.Pod {
	return &core.Pod{
		ObjectMeta: meta.ObjectMeta{Namespace: namespace, Name: app, Labels: map[string]string{"app": app}},
		Spec:       core.PodSpec{Containers: []core.Container{{Ports: ports}}},
		Status:     core.PodStatus{Phase: core.PodRunning, PodIP: ip},
	}
}

func policy(t *testing.T, namespace, spec string) *networking.NetworkPolicy {
	t.Helper()
	p := &networking.NetworkPolicy{ObjectMeta: meta.ObjectMeta{Namespace: namespace, Name: "p"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWalls(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		policies []string       // in the namespace shop
		change   func(s *state) // of neighbours
		egress   bool           // which direction is looked at
		want     []string       // walls and rules, as said by tell
	}{
		{name: "no policy, no wall"},
		{
			name: "an empty selector is every pod of the policy's namespace, and no rules are nothing", policies: []string{`{podSelector: {}}`},
			want: []string{"10.0.0.1", "10.0.0.2"},
		},
		{
			name: "without types and egress rules it is about ingress alone", policies: []string{`{podSelector: {}}`}, egress: true,
		},
		{
			name: "egress rules without types are about egress", policies: []string{`{podSelector: {matchLabels: {app: web}}, egress: [{}]}`}, egress: true,
			want: []string{"10.0.0.1: all"},
		},
		{
			name: "types decide", policies: []string{`{podSelector: {}, policyTypes: [Egress]}`},
		},
		{
			name:     "an empty rule is everybody on every port",
			policies: []string{`{podSelector: {matchLabels: {app: web}}, ingress: [{}]}`},
			want:     []string{"10.0.0.1: all"},
		},
		{
			name:     "pods of a peer are of the policy's namespace",
			policies: []string{`{podSelector: {matchLabels: {app: db}}, ingress: [{from: [{podSelector: {matchLabels: {app: web}}}]}]}`},
			want:     []string{"10.0.0.2: 10.0.0.1"},
		},
		{
			name:     "a peer's namespaces are all of their pods",
			policies: []string{`{podSelector: {matchLabels: {app: db}}, ingress: [{from: [{namespaceSelector: {}}]}]}`},
			want:     []string{"10.0.0.2: 10.0.0.1,10.0.0.2,10.0.0.3"},
		},
		{
			name:     "namespaces and pods of one peer must both fit",
			policies: []string{`{podSelector: {matchLabels: {app: db}}, ingress: [{from: [{namespaceSelector: {matchLabels: {team: red}}, podSelector: {matchLabels: {app: web}}}]}]}`},
			want:     []string{"10.0.0.2: 10.0.0.3"},
		},
		{
			name:     "of two peers one is enough",
			policies: []string{`{podSelector: {matchLabels: {app: db}}, ingress: [{from: [{namespaceSelector: {matchLabels: {team: red}}}, {podSelector: {matchLabels: {app: web}}}]}]}`},
			want:     []string{"10.0.0.2: 10.0.0.3", "10.0.0.2: 10.0.0.1"},
		},
		{
			name:     "a peer that nobody fits allows nobody, not everybody",
			policies: []string{`{podSelector: {matchLabels: {app: db}}, ingress: [{from: [{podSelector: {matchLabels: {app: gone}}}]}]}`},
			want:     []string{"10.0.0.2"},
		},
		{
			name:     "a block with exceptions",
			policies: []string{`{podSelector: {matchLabels: {app: db}}, ingress: [{from: [{ipBlock: {cidr: 10.1.0.0/16, except: [10.1.2.0/24]}}]}]}`},
			want:     []string{"10.0.0.2: 10.1.0.0/16 but 10.1.2.0/24"},
		},
		{
			name: "ports: TCP unless said, a range, all of a protocol",
			policies: []string{`{podSelector: {matchLabels: {app: db}}, ingress: [{ports: [
				{port: 80}, {protocol: UDP, port: 53}, {port: 1000, endPort: 1010}, {protocol: SCTP}]}]}`},
			want: []string{"10.0.0.2: all TCP/80-80 UDP/53-53 TCP/1000-1010 SCTP/0-0"},
		},
		{
			name:     "a named port is the pod's own at ingress",
			policies: []string{`{podSelector: {}, ingress: [{ports: [{port: sql}]}]}`},
			want:     []string{"10.0.0.1", "10.0.0.2: all TCP/5432-5432"},
		},
		{
			name:     "a named port of another protocol is none",
			policies: []string{`{podSelector: {matchLabels: {app: db}}, ingress: [{ports: [{port: sql, protocol: UDP}]}]}`},
			want:     []string{"10.0.0.2"},
		},
		{
			name: "a named port is the other pod's at egress", egress: true,
			policies: []string{`{podSelector: {matchLabels: {app: web}}, policyTypes: [Egress], egress: [{to: [{podSelector: {}}], ports: [{port: http}]}]}`},
			want:     []string{"10.0.0.1: 10.0.0.1 TCP/8080-8080", "10.0.0.1: 10.0.0.2 TCP/9090-9090"},
		},
		{
			name: "a named port to everybody is that of every pod which has it", egress: true,
			policies: []string{`{podSelector: {matchLabels: {app: web}}, policyTypes: [Egress], egress: [{ports: [{port: sql}]}]}`},
			want:     []string{"10.0.0.1: 10.0.0.2 TCP/5432-5432"},
		},
		{
			name: "policies add up",
			policies: []string{
				`{podSelector: {}}`,
				`{podSelector: {matchLabels: {app: web}}, ingress: [{ports: [{port: 80}]}]}`,
				`{podSelector: {matchLabels: {app: web}}, ingress: [{ports: [{port: 81}]}]}`,
			},
			want: []string{"10.0.0.1: all TCP/80-80", "10.0.0.1: all TCP/81-81", "10.0.0.2"},
		},
		{
			name: "pods without an address of their own are nobody", policies: []string{`{podSelector: {}, ingress: [{from: [{podSelector: {}}]}]}`},
			change: func(s *state) {
				s.pods[0].Spec.HostNetwork = true
				ended, waiting := pod("shop", "job", "10.0.0.9"), pod("shop", "new", "")
				ended.Status.Phase = core.PodSucceeded
				s.pods = append(s.pods, ended, waiting)
			},
			want: []string{"10.0.0.2: 10.0.0.2"},
		},
		{
			name: "an address that a younger pod has got is that pod's", policies: []string{`{podSelector: {matchLabels: {app: new}}}`},
			change: func(s *state) {
				young := pod("shop", "new", "10.0.0.1")
				young.CreationTimestamp = meta.NewTime(time.Unix(1, 0))
				s.pods = append(s.pods, young)
			},
			want: []string{"10.0.0.1"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := neighbours()
			for _, spec := range tt.policies {
				s.policies = append(s.policies, policy(t, "shop", spec))
			}
			if tt.change != nil {
				tt.change(&s)
			}
			direction := networking.PolicyTypeIngress
			if tt.egress {
				direction = networking.PolicyTypeEgress
			}
			if diff := cmp.Diff(tt.want, tell(s.walls(direction))); diff != "" {
				t.Errorf("walls (-want +got):\n%s", diff)
			}
		})
	}
}

// tell says walls in a line per rule; a wall without rules is the pod alone.
func tell(walls []wall) []string {
	var lines []string
	for _, w := range walls {
		if len(w.allowed) == 0 {
			lines = append(lines, w.pod.String())
		}
		for _, r := range w.allowed {
			words := []string{w.pod.String() + ":"}
			switch {
			case r.block != nil && len(r.block.Except) > 0:
				words = append(words, r.block.CIDR, "but", strings.Join(r.block.Except, ","))
			case r.block != nil:
				words = append(words, r.block.CIDR)
			case len(r.pods) == 0:
				words = append(words, "all")
			default:
				words = append(words, strings.ReplaceAll(join(r.pods), " ", ""))
			}
			for _, p := range r.ports {
				words = append(words, fmt.Sprintf("%s/%d-%d", p.protocol, p.first, p.last))
			}
			lines = append(lines, strings.Join(words, " "))
		}
	}
	return lines
}

// The order in which an informer lists must not change the rules: they would be
// applied again and again.
func TestRulesetIsTheSameInAnyOrder(t *testing.T) {
	t.Parallel()
	s := neighbours()
	s.policies = []*networking.NetworkPolicy{
		policy(t, "shop", `{podSelector: {}, ingress: [{from: [{namespaceSelector: {}}]}]}`),
		policy(t, "tools", `{podSelector: {}, policyTypes: [Egress]}`),
	}
	first := s.ruleset()
	slices.Reverse(s.policies)
	slices.Reverse(s.pods)
	slices.Reverse(s.namespaces)
	if diff := cmp.Diff(first, s.ruleset()); diff != "" {
		t.Errorf("it differs (-first +second):\n%s", diff)
	}
}

func TestRuleset(t *testing.T) {
	t.Parallel()
	s := neighbours()
	s.policies = []*networking.NetworkPolicy{policy(t, "shop", `{
		podSelector: {matchLabels: {app: db}},
		ingress: [{from: [{podSelector: {matchLabels: {app: web}}}], ports: [{port: 5432}, {port: 6000, endPort: 6001}]}],
		egress: [{to: [{ipBlock: {cidr: 10.9.0.0/16, except: [10.9.1.0/24]}}], ports: [{protocol: UDP}]}]}`)}
	const want = `table ip berth-policies
delete table ip berth-policies
table ip berth-policies {
chain egress-10.0.0.2 {
ip daddr 10.0.0.2 return
ip daddr 10.9.0.0/16 ip daddr != { 10.9.1.0/24 } ip protocol udp return
drop
}
chain ingress-10.0.0.2 {
ip saddr 10.0.0.2 return
ip saddr { 10.0.0.1 } tcp dport 5432 return
ip saddr { 10.0.0.1 } tcp dport 6000-6001 return
drop
}
chain forward {
type filter hook forward priority 0
ct state established,related accept
ip saddr vmap { 10.0.0.2 : jump egress-10.0.0.2 }
ip daddr vmap { 10.0.0.2 : jump ingress-10.0.0.2 }
}
chain input {
type filter hook input priority 0
ct state established,related accept
ip saddr vmap { 10.0.0.2 : jump egress-10.0.0.2 }
}
}
`
	if diff := cmp.Diff(want, s.ruleset()); diff != "" {
		t.Errorf("ruleset (-want +got):\n%s", diff)
	}
	if got := (state{}).walls(networking.PolicyTypeIngress); got != nil {
		t.Errorf("an empty cluster has walls: %v", got)
	}
	if at := address(&core.Pod{}); at != (netip.Addr{}) {
		t.Errorf("a pod without an address is at %s", at)
	}
}
