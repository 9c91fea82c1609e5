// Package modulekeys reads what opens private git servers, module registries and
// archives to builds of Terraform modules: a file of the builder's operator, one for
// each org.
//
//	{"https://git.example.com/team": {"username": "reader", "password": "…"},
//	 "https://registry.example.com": {"token": "…"}}
//
// A Build Runner's agent hands the file to the engine of a build of that org, and keeps
// its values out of the log. Nobody else gets it.
package modulekeys

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// File is its name: in the org's directory of BERTH_BUILD_SECRETS, and in in/build of a
// job.
const File = "modules.json"

// Keys are credentials by the address that they open, and all below it.
type Keys map[string]Key

// Key is a user name with a password, or a token that is sent as bearer.
type Key struct {
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	Token    string `json:"token,omitempty"`
}

// Parse reads the file. Its errors show nothing of it but its addresses.
func Parse(raw []byte) (Keys, error) {
	keys := Keys{}
	in := json.NewDecoder(bytes.NewReader(raw))
	in.DisallowUnknownFields()
	if in.Decode(&keys) != nil || in.More() { // its error may quote the file
		return nil, errors.New("it is no JSON object of addresses with username and password, or token")
	}
	for _, address := range keys.addresses() {
		if err := check(address, keys[address]); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

func check(address string, k Key) error {
	u, err := url.Parse(address)
	if err == nil && u.User != nil {
		return errors.New("one of its addresses has credentials in it: write them as username and password")
	}
	switch {
	case err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http" || climbs(u.Path):
		return fmt.Errorf("%q is no https:// address", address)
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return fmt.Errorf("%q would send credentials in clear: write https://", address)
	case (k.Username == "") != (k.Password == "") || (k.Username == "") == (k.Token == ""):
		return fmt.Errorf("%q needs username and password, or token", address)
	case strings.ContainsFunc(k.Username+k.Password+k.Token, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("%q has a credential with a line break or another control character", address)
	}
	return nil
}

func (k Keys) addresses() []string {
	var all []string
	for address := range k {
		all = append(all, address)
	}
	slices.Sort(all)
	return all
}

// Find looks up the entry for an address: the longest one that is it or above it.
func (k Keys) Find(u *url.URL) (name string, key Key, ok bool) {
	if climbs(u.Path) {
		return "", Key{}, false
	}
	for _, address := range k.addresses() {
		if covers(address, u) && len(address) > len(name) {
			name = address
		}
	}
	return name, k[name], name != ""
}

// Names tells whether an entry is for that host and port.
func (k Keys) Names(scheme, host string) bool {
	for address := range k {
		if u, err := url.Parse(address); err == nil && u.Scheme == scheme && sameHost(u, &url.URL{Scheme: scheme, Host: host}) {
			return true
		}
	}
	return false
}

func covers(address string, u *url.URL) bool {
	above, err := url.Parse(address)
	if err != nil || above.Scheme != u.Scheme || !sameHost(above, u) {
		return false
	}
	path := strings.TrimRight(above.Path, "/")
	rest, ok := strings.CutPrefix(u.Path, path)
	return ok && (rest == "" || rest[0] == '/')
}

func sameHost(a, b *url.URL) bool {
	return strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"https": "443", "http": "80"}[u.Scheme]
}

// climbs tells a path with which a server may mean another place than it seems.
func climbs(path string) bool {
	return strings.Contains(path, `\`) || slices.Contains(strings.Split(path, "/"), "..") || slices.Contains(strings.Split(path, "/"), ".")
}

// Sign adds the credentials to a request.
func (k Key) Sign(req *http.Request) {
	if k.Token != "" {
		req.Header.Set("Authorization", "Bearer "+k.Token)
		return
	}
	req.SetBasicAuth(k.Username, k.Password)
}

// Secrets are all values that no log may show, in each form in which they travel.
func (k Keys) Secrets() (values []string) {
	for _, address := range k.addresses() {
		key := k[address]
		if key.Token != "" {
			values = append(values, key.Token)
			continue
		}
		values = append(values, key.Password, base64.StdEncoding.EncodeToString([]byte(key.Username+":"+key.Password)))
	}
	return values
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
