// Package grant reads what a plugin may be given one by one: hosts that it may reach,
// paths of the machine that it sees, and roles of the customer's that it runs with. Its manifest asks for them, the app grants them, the customer accepts the
// grant, and a runner holds the plugin to it. The package says what a text means and
// what covers what; it gives nothing.
package grant

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// DefaultPort is that of a host without one.
const DefaultPort = 443

// MaxHosts is how many hosts a plugin may be given. A plugin with more wants the network.
const MaxHosts = 100

// Host is where a plugin may connect to: one port of a name, of all names below one, or
// of an address.
type Host struct {
	// Name is a DNS name in lower case, "" for an address.
	Name string
	// Below: all names that end in "."+Name, at any depth, and not Name itself.
	Below bool
	// Addr is the address of an entry that names one.
	Addr netip.Addr
	Port uint16
}

var dnsName = regexp.MustCompile(`^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)

// ParseHost reads "api.example.com", "api.example.com:8443", "*.example.com", "10.1.2.3:80"
// or "[2001:db8::1]:443".
func ParseHost(text string) (Host, error) {
	name, port, err := splitPort(text)
	if err != nil {
		return Host{}, fmt.Errorf("host %q: %w", text, err)
	}
	h := Host{Port: port}
	if addr, err := netip.ParseAddr(name); err == nil {
		if addr.Zone() != "" {
			return Host{}, fmt.Errorf("host %q: an address with a zone names an interface, not a host", text)
		}
		h.Addr = addr.Unmap()
		return h, nil
	}
	name = strings.ToLower(name)
	h.Name, h.Below = strings.CutPrefix(name, "*.")
	switch {
	case name == "*":
		err = errors.New("every host is network = true")
	case len(h.Name) > 253 || !dnsName.MatchString(h.Name):
		err = errors.New("it is no name of a host: write NAME, NAME:PORT, *.NAME or ADDRESS:PORT; names beyond ASCII in their xn-- form")
	case isNumber(h.Name[strings.LastIndexByte(h.Name, '.')+1:]):
		err = errors.New("it ends like an address, and is none")
	case h.Below && !strings.Contains(h.Name, "."):
		err = fmt.Errorf("*.%s is too much: name a domain", h.Name)
	}
	if err != nil {
		return Host{}, fmt.Errorf("host %q: %w", text, err)
	}
	return h, nil
}

// ParseTarget reads where a connection is to go, "NAME:PORT" or "ADDRESS:PORT".
func ParseTarget(text string) (Host, error) {
	h, err := ParseHost(text)
	if err == nil && h.Below {
		err = fmt.Errorf("host %q: it is no single host", text)
	}
	return h, err
}

func splitPort(text string) (name string, port uint16, err error) {
	name, rest := text, ""
	switch {
	case strings.HasPrefix(text, "["):
		end := strings.IndexByte(text, ']')
		if end < 0 {
			return "", 0, errors.New("the address has no end")
		}
		name, rest = text[1:end], text[end+1:]
		if addr, err := netip.ParseAddr(name); err != nil || !addr.Is6() {
			return "", 0, errors.New("there is no IPv6 address in the brackets")
		}
	case strings.Count(text, ":") == 1:
		i := strings.IndexByte(text, ':')
		name, rest = text[:i], text[i:]
	}
	if rest == "" {
		return name, DefaultPort, nil
	}
	digits, is := strings.CutPrefix(rest, ":")
	n, err := strconv.ParseUint(digits, 10, 16)
	if !is || err != nil || n == 0 || digits != strconv.FormatUint(n, 10) {
		return "", 0, fmt.Errorf("%q is no port", strings.TrimPrefix(rest, ":"))
	}
	return name, uint16(n), nil
}

// isNumber says whether a resolver may read the last part of a name as a part of an
// address: 127.1 and 0x7f.1 are 127.0.0.1 to some.
func isNumber(label string) bool {
	if hex, is := strings.CutPrefix(label, "0x"); is {
		_, err := strconv.ParseUint(hex, 16, 64)
		return hex == "" || err == nil
	}
	return strings.Trim(label, "0123456789") == ""
}

// String is the one text that every way to write the host means: "NAME:PORT".
func (h Host) String() string {
	port := strconv.Itoa(int(h.Port))
	switch {
	case h.Addr.IsValid():
		return netip.AddrPortFrom(h.Addr, h.Port).String()
	case h.Below:
		return "*." + h.Name + ":" + port
	}
	return h.Name + ":" + port
}

// Covers says whether who may reach h may reach other too.
func (h Host) Covers(other Host) bool {
	switch {
	case h.Port != other.Port || h.Addr.IsValid() != other.Addr.IsValid():
		return false
	case h.Addr.IsValid():
		return h.Addr == other.Addr
	case h.Below:
		return strings.HasSuffix(other.Name, "."+h.Name) || other.Below && other.Name == h.Name
	}
	return !other.Below && h.Name == other.Name
}

// Hosts are what a plugin may reach.
type Hosts []Host

// ParseHosts reads a list, and names each entry that is none.
func ParseHosts(texts []string) (Hosts, error) {
	var hosts Hosts
	var errs []error
	if len(texts) > MaxHosts {
		errs = append(errs, fmt.Errorf("there are %d hosts, %d is the most: who needs so many needs the network", len(texts), MaxHosts))
	}
	for _, text := range texts {
		h, err := ParseHost(text)
		if err == nil && slices.Contains(hosts, h) {
			err = fmt.Errorf("host %q is said twice", text)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		hosts = append(hosts, h)
	}
	return hosts, errors.Join(errs...)
}

// Cover says whether one of them covers other.
func (hosts Hosts) Cover(other Host) bool {
	return slices.ContainsFunc(hosts, func(h Host) bool { return h.Covers(other) })
}
