package preflight

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/berth-dev/berth/runner/agent/control"
)

const (
	reachTimeout = 20 * time.Second
	// A signature is good for a minute; half of it is a warning.
	skewFails, skewWarns = 60 * time.Second, 30 * time.Second
	maxAnswer            = 64 << 10
)

// door is one of the parts of the control plane behind the one address.
type door struct {
	name, path string
	// is tells by an answer to nobody in particular that it is this part.
	is func(*http.Response) bool
}

var doors = []door{
	{"runner-api", "/chain/head", refusesAsBerth},
	{"log-ingest", "/streams/preflight", refusesAsBerth},
	{"registry", "/v2/", func(r *http.Response) bool {
		return r.StatusCode == http.StatusUnauthorized && r.Header.Get("WWW-Authenticate") == `Basic realm="berth"`
	}},
}

// refusesAsBerth: a 401 with a problem of ours. A route that leads elsewhere
// gives a 404, or a page of somebody in between.
func refusesAsBerth(r *http.Response) bool {
	var problem struct {
		Code string `json:"code"`
	}
	err := json.NewDecoder(io.LimitReader(r.Body, maxAnswer)).Decode(&problem)
	return r.StatusCode == http.StatusUnauthorized && err == nil && problem.Code != ""
}

func checkReach(ctx context.Context, cfg Config) []Finding {
	client, err := control.NewHTTP(cfg.CAFile)
	if err != nil {
		return []Finding{{Check: "certificates", Status: Fail, Detail: err.Error(), Fix: "give --ca a file of certificates in PEM"}}
	}
	target, err := url.Parse(cfg.Code.URL)
	if err != nil {
		return []Finding{{Check: "address", Status: Fail, Detail: err.Error(), Fix: "ask the vendor for a new code"}}
	}
	proxy, finding := findProxy(client, cfg.Proxy, target)
	findings := []Finding{finding}
	if finding.Status == Fail {
		return findings
	}
	first := checkDial(ctx, proxy, target)
	findings = append(findings, first)
	if first.Status == Fail {
		return findings
	}
	for i, d := range doors {
		finding, header := d.check(ctx, client, target, proxy)
		findings = append(findings, finding)
		if i == 0 {
			if header == nil {
				return findings // the others would say the same
			}
			findings = append(findings, checkClock(header, cfg.Now()))
		}
	}
	return findings
}

// findProxy says which way requests to the target take, nil for the direct one.
func findProxy(client *http.Client, given string, target *url.URL) (*url.URL, Finding) {
	f := Finding{Check: "proxy", Status: OK}
	transport, _ := client.Transport.(*http.Transport)
	if given != "" {
		u, err := url.Parse(given)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			f.Status, f.Detail, f.Fix = Fail, "--proxy is not an address", "write it like http://proxy.example.com:3128"
			return nil, f
		}
		transport.Proxy = http.ProxyURL(u)
	}
	proxy, err := transport.Proxy(&http.Request{URL: target})
	switch {
	case err != nil:
		f.Status, f.Detail, f.Fix = Fail, "the proxy of the environment is not an address", "set HTTPS_PROXY like http://proxy.example.com:3128"
	case proxy == nil:
		f.Detail = "none"
	default:
		f.Detail = proxy.Host
	}
	return proxy, f
}

// checkDial looks up and calls the first machine on the way.
func checkDial(ctx context.Context, proxy, target *url.URL) Finding {
	next, what, fix := target, "the control plane", "open the firewall for %s, or give --proxy"
	if proxy != nil {
		next, what, fix = proxy, "the proxy", "see to it that %s is the proxy and that this network may call it"
	}
	f := Finding{Check: "network", Status: OK, Detail: what + " answers at " + hostPort(next)}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", hostPort(next))
	if err == nil {
		_ = conn.Close()
		return f
	}
	f.Status, f.Detail, f.Fix = Fail, err.Error(), fmt.Sprintf(fix, hostPort(next))
	var dns *net.DNSError
	if errors.As(err, &dns) {
		f.Check, f.Fix = "name", "see to it that "+next.Hostname()+" can be looked up here"
		if proxy == nil {
			f.Fix += "; behind a proxy that does so itself, give --proxy"
		}
	}
	return f
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// check asks for one part. header is nil when nothing was answered at all.
func (d door) check(ctx context.Context, client *http.Client, target, proxy *url.URL) (f Finding, header http.Header) {
	f = Finding{Check: d.name, Status: OK, Detail: "answers at " + target.String()}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.JoinPath(d.path).String(), nil)
	if err != nil {
		f.Status, f.Detail = Fail, err.Error()
		return f, nil
	}
	resp, err := client.Do(req)
	if err != nil {
		f.Status, f.Detail, f.Fix = Fail, err.Error(), remedy(err, target, proxy)
		return f, nil
	}
	defer resp.Body.Close()
	if !d.is(resp) {
		f.Status, f.Detail = Fail, fmt.Sprintf("%s answers %s, which is not %s", req.URL, resp.Status, d.name)
		f.Fix = "the vendor's address must lead this path to " + d.name + "; if a proxy answered, let it pass " + hostPort(target)
	}
	return f, resp.Header
}

// remedy says what to do about a request that did not come through.
func remedy(err error, target, proxy *url.URL) string {
	var (
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
		timeout net.Error
	)
	switch {
	case errors.As(err, &unknown):
		return "give the authority that signed the certificate of " + target.Hostname() + " with --ca; a proxy that opens TLS has one of its own"
	case errors.As(err, &name):
		return "the certificate is for another name: the vendor's address and its certificate must agree"
	case errors.As(err, &invalid):
		return "look at this machine's clock; if it is right, the certificate has to be renewed"
	case errors.As(err, &record):
		return "what answers at " + hostPort(target) + " does not speak TLS"
	case proxy != nil:
		return "let the proxy " + proxy.Host + " pass CONNECT to " + hostPort(target) + ", with the user and password that it wants"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "something in between swallows the connection to " + hostPort(target) + ": open the firewall, or give --proxy"
	}
	return "open the way to " + hostPort(target) + ", or give --proxy"
}

// checkClock compares this machine's clock with the control plane's.
func checkClock(header http.Header, now time.Time) Finding {
	f := Finding{Check: "clock", Status: OK}
	there, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		f.Status, f.Detail = Skip, "the answer has no date"
		return f
	}
	skew := now.Sub(there).Round(time.Second)
	f.Detail = fmt.Sprintf("%s off", skew.Abs())
	if skew.Abs() >= skewWarns {
		f.Status, f.Fix = Warn, "let the clock follow a time server (NTP): requests of a runner are good for 60s only"
	}
	if skew.Abs() >= skewFails {
		f.Status = Fail
	}
	return f
}
