package dns

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
)

// index fills the memory that listers read.
func index(t *testing.T, objects ...any) cache.Indexer {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, object := range objects {
		if err := indexer.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	return indexer
}

// zone has a service shop/web, and a headless one shop/db with two endpoints of
// which only db-0 is ready.
func zone(t *testing.T) Zone {
	t.Helper()
	service := func(name, ip string) *core.Service {
		return &core.Service{
			ObjectMeta: meta.ObjectMeta{Namespace: "shop", Name: name},
			Spec:       core.ServiceSpec{ClusterIP: ip},
		}
	}
	endpoint := func(host, ip string, ready bool) discovery.Endpoint {
		return discovery.Endpoint{
			Hostname: &host, Addresses: []string{ip}, Conditions: discovery.EndpointConditions{Ready: &ready},
		}
	}
	return Zone{
		Domain:   "cluster.local",
		Services: corelisters.NewServiceLister(index(t, service("web", "10.96.0.7"), service("db", core.ClusterIPNone))),
		Endpoints: discoverylisters.NewEndpointSliceLister(index(t, &discovery.EndpointSlice{
			ObjectMeta: meta.ObjectMeta{
				Namespace: "shop", Name: "db-x", Labels: map[string]string{discovery.LabelServiceName: "db"},
			},
			Endpoints: []discovery.Endpoint{endpoint("db-0", "10.244.0.3", true), endpoint("db-1", "10.244.0.4", false)},
		})),
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ask  string
		want []string
		none bool // no such name
	}{
		"a service":                        {ask: "web.shop.svc.cluster.local.", want: []string{"10.96.0.7"}},
		"case does not matter":             {ask: "WEB.shop.SVC.cluster.local.", want: []string{"10.96.0.7"}},
		"a headless service: who is ready": {ask: "db.shop.svc.cluster.local.", want: []string{"10.244.0.3"}},
		"an endpoint by its host name":     {ask: "db-0.db.shop.svc.cluster.local.", want: []string{"10.244.0.3"}},
		"an endpoint that is not ready":    {ask: "db-1.db.shop.svc.cluster.local.", none: true},
		"hosts are of headless services":   {ask: "a.web.shop.svc.cluster.local.", none: true},
		"another namespace":                {ask: "web.other.svc.cluster.local.", none: true},
		"another domain":                   {ask: "web.shop.svc.example.org.", none: true},
		"a name outside":                   {ask: "example.org.", none: true},
		"too many labels":                  {ask: "a.b.web.shop.svc.cluster.local.", none: true},
		"the domain alone":                 {ask: "cluster.local.", none: true},
		"no service before the namespace":  {ask: "shop.svc.cluster.local.", none: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addresses, found := zone(t).Lookup(test.ask)
			if found == test.none {
				t.Errorf("%s: found is %t", test.ask, found)
			}
			var got []string
			for _, address := range addresses {
				got = append(got, address.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.ask, diff)
			}
		})
	}
}

func TestReply(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ask  string
		kind dnsmessage.Type
		want []netip.Addr
		code dnsmessage.RCode
	}{
		"an address":         {ask: "web.shop.svc.cluster.local.", kind: dnsmessage.TypeA, want: []netip.Addr{netip.MustParseAddr("10.96.0.7")}},
		"no IPv6, but known": {ask: "web.shop.svc.cluster.local.", kind: dnsmessage.TypeAAAA},
		"unknown":            {ask: "example.org.", kind: dnsmessage.TypeA, code: dnsmessage.RCodeNameError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			query := dnsmessage.Message{
				Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
				Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(test.ask), Type: test.kind, Class: dnsmessage.ClassINET}},
			}
			packed, err := query.Pack()
			if err != nil {
				t.Fatal(err)
			}
			packed, err = reply(zone(t), packed)
			if err != nil {
				t.Fatal(err)
			}
			var answer dnsmessage.Message
			if err := answer.Unpack(packed); err != nil {
				t.Fatal(err)
			}
			if answer.ID != 7 || !answer.Response || answer.RCode != test.code {
				t.Errorf("header is %v, want ID 7 and %v", answer.GoString(), test.code)
			}
			var got []netip.Addr
			for _, each := range answer.Answers {
				got = append(got, netip.AddrFrom4(each.Body.(*dnsmessage.AResource).A))
			}
			if diff := cmp.Diff(test.want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
				t.Errorf("addresses (-want +got):\n%s", diff)
			}
		})
	}
}
