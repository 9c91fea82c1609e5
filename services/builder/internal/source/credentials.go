package source

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
)

// Credentials opens private sources. The file that ReadCredentials reads is the
// operator's: nothing of it is stored, logged, or handed to an engine.
type Credentials struct{ entries map[string]credential }

// credential is one entry of the file.
type credential struct {
	Username string `json:"username"`
	Password string `json:"password"`
	// Orgs may use it; none means all of them.
	Orgs []string `json:"orgs"`
}

// maxCredentials bounds the file, in bytes.
const maxCredentials = 1 << 20

// ReadCredentials reads a JSON file, an object whose keys are addresses of chart
// repositories (https:// or oci://) or beginnings of them that end before or at a
// "/". Only its owner may read it, or a group (0640). Errors show nothing of it but
// its keys.
func ReadCredentials(file string) (Credentials, error) {
	info, err := os.Stat(file)
	if err != nil {
		return Credentials{}, fmt.Errorf("source credentials: %w", err)
	}
	if info.Mode().Perm()&0o007 != 0 || info.Size() > maxCredentials {
		return Credentials{}, fmt.Errorf("source credentials: %s may be read by everybody, or is larger than %d bytes: chmod 600 it", file, maxCredentials)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return Credentials{}, fmt.Errorf("source credentials: %w", err)
	}
	var c Credentials
	if json.Unmarshal(raw, &c.entries) != nil { // its error may quote the file
		return Credentials{}, fmt.Errorf("source credentials: %s must be an object of objects with username and password", file)
	}
	for address, entry := range c.entries {
		u, err := url.Parse(address)
		switch {
		case err != nil || u.Host == "" || u.User != nil || !slices.Contains([]string{"https", "http", "oci"}, u.Scheme):
			return Credentials{}, fmt.Errorf("source credentials: %s has a key that is no https:// or oci:// address", file)
		case u.Scheme == "http" && !isLoopback(u):
			return Credentials{}, fmt.Errorf("source credentials: %s: those of %q would travel in clear", file, address)
		case entry.Username == "" || entry.Password == "":
			return Credentials{}, fmt.Errorf("source credentials: %s: %q needs username and password", file, address)
		}
	}
	return c, nil
}

// find looks up what opens an address to an org: the entry of the longest key that
// fits wins, whether or not the org may use it.
func (c Credentials) find(address, org string) (credential, bool) {
	best := ""
	for prefix := range c.entries {
		if _, ok := cutWhole(address, prefix); ok && len(prefix) > len(best) {
			best = prefix
		}
	}
	found := c.entries[best]
	allowed := len(found.Orgs) == 0 || slices.Contains(found.Orgs, org)
	if best == "" || !allowed {
		return credential{}, false
	}
	return found, true
}
