package hostproxy

import (
	"net"
	"net/netip"
	"slices"
)

// metadata are addresses at which clouds tell a machine its secrets, of those that are
// not link-local.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),   // AWS
	netip.MustParseAddr("168.63.129.16"),   // Azure
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("192.0.0.192"),     // Oracle
}

var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	broadcast   = netip.MustParseAddr("255.255.255.255")
)

// carriers are IPv6 addresses that lead to an IPv4 address in them: where its four bytes
// begin.
var carriers = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},
	{netip.MustParsePrefix("2002::/16"), 2},
	{netip.MustParsePrefix("::/96"), 12},
}

// closed says why no name may lead to an address, "" when one may: who runs a granted
// name's DNS must not open this machine with it.
func closed(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	switch {
	case a.IsLoopback():
		return "this machine"
	case a.IsUnspecified(), thisNetwork.Contains(a), a == broadcast, a.IsMulticast():
		return "no single host"
	case a.IsLinkLocalUnicast():
		return "link-local, where clouds tell a machine its secrets"
	case slices.Contains(metadata, a):
		return "where a cloud tells a machine its secrets"
	}
	for _, carrier := range carriers {
		if carrier.prefix.Contains(a) {
			raw := a.As16()
			return closed(netip.AddrFrom4([4]byte(raw[carrier.at : carrier.at+4])))
		}
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return "possibly this machine, which does not tell its addresses"
	}
	for _, one := range all {
		if prefix, err := netip.ParsePrefix(one.String()); err == nil && prefix.Addr().Unmap().WithZone("") == a {
			return "this machine"
		}
	}
	return ""
}
