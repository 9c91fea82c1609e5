package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/berth-dev/berth/services/internal/fault"
)

// Guard decides to which addresses anything is sent. Tenants write the addresses,
// and the control plane stands where much can be reached that nobody else should:
// other services, the database, the metadata of the cloud. So nothing goes to an
// address that is not on the public internet, unless the operator allows it.
//
// What counts is the address that the connection is made to, after the name was
// resolved (Dial): a name that resolves to something else the second time gains
// nothing.
type Guard struct {
	hosts []string
	nets  []netip.Prefix
}

// errBlocked is what a delivery shows to the vendor. It does not say what is there.
var errBlocked = errors.New("the address is not on the public internet, and the operator of this Berth does not allow it (BERTH_WEBHOOK_ALLOW)")

// blocked are networks of which no address is a receiver on the public internet.
var blocked = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"168.63.129.16/32", // a public address at which a cloud answers its machines
)

// public6 is what of IPv6 is routed on the internet; hidden6 is in it and leads
// elsewhere: documentation, and forms with an IPv4 address inside.
var (
	public6 = netip.MustParsePrefix("2000::/3")
	hidden6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)

func prefixes(all ...string) []netip.Prefix {
	out := make([]netip.Prefix, 0, len(all))
	for _, p := range all {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

// NewGuard reads what the operator allows besides: networks such as 10.1.0.0/16,
// single addresses, and names of hosts, which are then reached wherever they
// resolve to, also without TLS.
func NewGuard(allowed string) (*Guard, error) {
	g := &Guard{}
	for _, one := range strings.FieldsFunc(allowed, func(r rune) bool { return r == ',' || r == ' ' }) {
		if p, err := netip.ParsePrefix(one); err == nil {
			g.nets = append(g.nets, p.Masked())
		} else if a, err := netip.ParseAddr(one); err == nil {
			g.nets = append(g.nets, netip.PrefixFrom(a, a.BitLen()))
		} else if strings.ContainsAny(one, "/:@*") {
			return nil, fmt.Errorf("%q is neither a network, nor an address, nor the name of a host", one)
		} else {
			g.hosts = append(g.hosts, strings.ToLower(one))
		}
	}
	return g, nil
}

// Public says whether an address is on the public internet.
func Public(a netip.Addr) bool {
	a = a.Unmap() // ::ffff:127.0.0.1 is 127.0.0.1
	in := func(all []netip.Prefix) bool {
		return slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	if a.Is4() {
		return !in(blocked)
	}
	return a.IsValid() && a.Zone() == "" && public6.Contains(a) && !in(hidden6)
}

// CheckURL refuses what can never be sent to, when a webhook is made. The address
// behind a name is checked when it is dialled, each time.
func (g *Guard) CheckURL(text string) error {
	bad := func(format string, args ...any) error {
		return fault.With(fault.Newf(fault.ErrInvalid, "the address of a webhook %s", fmt.Sprintf(format, args...)), fault.Code("webhook_url"))
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.Opaque != "":
		return bad("must be a URL such as https://hooks.example.com/berth")
	case u.User != nil:
		return bad("must not have a user or password in it: deliveries are signed")
	case u.Fragment != "":
		return bad("must not have a fragment (#)")
	}
	host := strings.ToLower(u.Hostname())
	a, numeric := addrOf(host)
	switch {
	case numeric && !g.allows(host, a):
		return bad("is not allowed: %s", errBlocked)
	case u.Scheme == "http" && !slices.Contains(g.hosts, host) && !(numeric && g.inNets(a)):
		return bad("must begin with https://, unless the operator allows the host")
	case u.Scheme != "http" && u.Scheme != "https":
		return bad("must begin with https://")
	}
	return nil
}

func addrOf(host string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(host)
	return a, err == nil
}

func (g *Guard) inNets(a netip.Addr) bool {
	return slices.ContainsFunc(g.nets, func(p netip.Prefix) bool { return p.Contains(a.Unmap()) || p.Contains(a) })
}

// allows says whether a host may be reached at an address.
func (g *Guard) allows(host string, a netip.Addr) bool {
	return Public(a) || g.inNets(a) || slices.Contains(g.hosts, strings.ToLower(host))
}

// dialTimeout is for one connection, with all addresses of a name.
const dialTimeout = 5 * time.Second

// Dial connects to a host if it may be reached at the address that it resolves to.
// The check is made on the socket, between the look-up and the connection, for each
// address that is tried.
func (g *Guard) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return g.dialWith(ctx, nil, network, address)
}

func (g *Guard) dialWith(ctx context.Context, resolver *net.Resolver, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: dialTimeout, Resolver: resolver, ControlContext: func(_ context.Context, _, to string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(to)
		if err != nil || !g.allows(host, at.Addr()) {
			return errBlocked
		}
		return nil
	}}
	return d.DialContext(ctx, network, address)
}
