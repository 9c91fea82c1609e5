package dns

import (
	"net/netip"
	"strings"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
)

// A Zone knows the names of a cluster.
type Zone struct {
	Domain    string // as in cluster.local
	Services  corelisters.ServiceLister
	Endpoints discoverylisters.EndpointSliceLister
}

// Lookup returns the IPv4 addresses of SERVICE.NAMESPACE.svc.DOMAIN. or of
// HOST.SERVICE.NAMESPACE.svc.DOMAIN., and whether there is such a name.
func (z Zone) Lookup(name string) ([]netip.Addr, bool) {
	name, ours := strings.CutSuffix(strings.ToLower(name), ".svc."+z.Domain+".")
	labels := strings.Split(name, ".")
	if !ours || len(labels) < 2 || len(labels) > 3 {
		return nil, false
	}
	host := ""
	if len(labels) == 3 {
		host, labels = labels[0], labels[1:]
	}
	service, err := z.Services.Services(labels[1]).Get(labels[0])
	if err != nil {
		return nil, false
	}
	if service.Spec.ClusterIP == core.ClusterIPNone {
		return z.headless(service, host)
	}
	if host != "" {
		return nil, false
	}
	return ipv4(nil, service.Spec.ClusterIP), true
}

// headless returns the addresses of the endpoints behind a service, or of the
// one that has a host's name.
func (z Zone) headless(service *core.Service, host string) ([]netip.Addr, bool) {
	selector := labels.SelectorFromSet(labels.Set{discovery.LabelServiceName: service.Name})
	slices, err := z.Endpoints.EndpointSlices(service.Namespace).List(selector)
	if err != nil {
		return nil, false
	}
	var found []netip.Addr
	for _, slice := range slices {
		for _, endpoint := range slice.Endpoints {
			ready := endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready
			named := host == "" || (endpoint.Hostname != nil && *endpoint.Hostname == host)
			if named && (ready || service.Spec.PublishNotReadyAddresses) {
				found = ipv4(found, endpoint.Addresses...)
			}
		}
	}
	return found, host == "" || len(found) > 0
}

// ipv4 appends the addresses that are of IPv4.
func ipv4(to []netip.Addr, addresses ...string) []netip.Addr {
	for _, text := range addresses {
		if address, err := netip.ParseAddr(text); err == nil && address.Is4() {
			to = append(to, address)
		}
	}
	return to
}
