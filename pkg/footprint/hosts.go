package footprint

import (
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

var (
	// secretName is of variables whose values are not looked at.
	secretName = regexp.MustCompile(`(?i)passw|secret|token|credential|private|api_?key|access_?key|auth`)
	hasScheme  = regexp.MustCompile(`^(jdbc:)?[a-zA-Z][a-zA-Z0-9+.-]*://`)
	hostName   = regexp.MustCompile(`^[A-Za-z0-9*_]([A-Za-z0-9._*-]{0,251}[A-Za-z0-9])?$`)
)

// maxURL bounds the values that are read as URLs, in bytes.
const maxURL = 4096

// variable looks whether the value of an environment variable is a URL. Of it only the host
// is taken: what stands before an @, the path and the query may be secret.
func (f *facts) variable(name, value, by string) {
	if !secretName.MatchString(name) {
		f.url(value, by+", "+name)
	}
}

func (f *facts) url(value, by string) {
	if len(value) > maxURL || !hasScheme.MatchString(value) {
		return
	}
	u, err := url.Parse(strings.TrimPrefix(value, "jdbc:"))
	if err != nil {
		return
	}
	host := u.Hostname()
	if port := u.Port(); port != "" && host != "" {
		f.hostAt(host, ":"+port, by)
		return
	}
	f.hostAt(host, "", by)
}

func (f *facts) host(host, by string) { f.hostAt(host, "", by) }

func (f *facts) hostAt(host, port, by string) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.IsLoopback() {
			return
		}
		if addr.Is6() {
			host = "[" + host + "]"
		}
	} else if !hostName.MatchString(host) || inCluster(host) {
		return
	}
	put(f.hosts, host+port, Host{Host: host + port, By: by})
}

// inCluster tells names that only mean something in the cluster.
func inCluster(host string) bool {
	return !strings.Contains(host, ".") || strings.HasSuffix(host, ".svc") || strings.HasSuffix(host, ".cluster.local") || strings.HasSuffix(host, ".localhost")
}
