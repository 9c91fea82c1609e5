package keyring

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxFile bounds the file, in bytes.
const maxFile = 1 << 20

// Ring is all keys of a builder. The nil Ring has none. It is safe for concurrent
// use.
type Ring struct {
	entries map[string]entry
	clouds  clouds

	mu   sync.Mutex
	made map[string]*made // by what was asked for
}

// entry is one of the file.
type entry struct {
	Username string `json:"username"`
	Password string `json:"password"`
	// Token is an access token, IdentityToken one that buys access tokens.
	Token         string `json:"token"`
	IdentityToken string `json:"identity_token"`
	// Helper names the cloud that makes the key: aws_ecr, google or azure.
	Helper string `json:"helper"`
	// Orgs may use it; none means all of them.
	Orgs []string `json:"orgs"`

	// Region and IAMRoleARN are for aws_ecr.
	Region     string `json:"region"`
	IAMRoleARN string `json:"iam_role_arn"`
	// KeyFile is the key of a service account, for google.
	KeyFile string `json:"key_file"`
	// TenantID, ClientID and ClientSecret are an application's, for azure.
	TenantID     string `json:"tenant_id"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
}

// The helpers.
const (
	helperECR    = "aws_ecr"
	helperGoogle = "google"
	helperAzure  = "azure"
)

// Options of a Ring; the zero value works.
type Options struct {
	// Client asks the clouds; nil means one that gives up after 20 s.
	Client *http.Client
	// AzureAuthority is where Azure's directory is; its public cloud when empty.
	AzureAuthority string
	// AzureIdentity is the address that gives machines of Azure their tokens.
	AzureIdentity string
	// Now is the time; time.Now when nil.
	Now func() time.Time
}

// cloudTimeout is for one question to a cloud.
const cloudTimeout = 20 * time.Second

// Read reads the JSON file of the operator, an object whose keys are addresses of
// chart repositories and registries (https:// or oci://) or beginnings of them that
// end before or at a "/". In a host "*" stands for one name between dots. Only its
// owner may read the file, or a group (0640). Errors show nothing of it but its keys.
func Read(file string, o Options) (*Ring, error) {
	raw, err := readPrivate(file)
	if err != nil {
		return nil, fmt.Errorf("source credentials: %w", err)
	}
	r := &Ring{made: map[string]*made{}, clouds: newClouds(o)}
	in := json.NewDecoder(bytes.NewReader(raw))
	in.DisallowUnknownFields()
	if in.Decode(&r.entries) != nil || in.More() { // its error may quote the file
		return nil, fmt.Errorf("source credentials: %s must be an object of objects, with the keys of docs/reference/builder.md only", file)
	}
	for address, e := range r.entries {
		if err := errors.Join(checkAddress(address, e), e.check()); err != nil {
			return nil, fmt.Errorf("source credentials: %s: %q %w", file, address, err)
		}
	}
	return r, nil
}

func readPrivate(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o007 != 0 || info.Size() > maxFile {
		return nil, fmt.Errorf("%s may be read by everybody, or is larger than %d bytes: chmod 600 it", file, maxFile)
	}
	return os.ReadFile(file)
}

func checkAddress(address string, e entry) error {
	// url.Parse takes no "*" in a port, and names of hosts need none elsewhere.
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !slices.Contains([]string{"https", "http", "oci"}, u.Scheme):
		return errors.New("is no https:// or oci:// address")
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return errors.New("would send credentials in clear: write https://")
	case strings.Contains(u.Path, "*"):
		return errors.New(`has a "*" that is not in its host`)
	case u.Scheme != "oci" && e.Username == "":
		return errors.New("is a chart repository, which is opened by username and password only")
	}
	labels := strings.Split(u.Hostname(), ".")
	for i, label := range labels {
		// The last two say whose name it is.
		if strings.Contains(label, "*") && (label != "*" || i >= len(labels)-2) {
			return errors.New(`has a "*" that is not a whole name between dots, or in the last two names of its host`)
		}
	}
	return nil
}

// check finds entries that say nothing, or two things.
func (e entry) check() error {
	ways := 0
	for _, given := range []bool{e.Username != "" || e.Password != "", e.Token != "", e.IdentityToken != "", e.Helper != ""} {
		if given {
			ways++
		}
	}
	switch {
	case ways != 1:
		return errors.New("needs one of: username with password, token, identity_token, helper")
	case (e.Username == "") != (e.Password == ""):
		return errors.New("needs username and password")
	case !slices.Contains([]string{"", helperECR, helperGoogle, helperAzure}, e.Helper):
		return errors.New("has a helper other than aws_ecr, google and azure")
	case e.Helper != helperECR && (e.Region != "" || e.IAMRoleARN != ""):
		return errors.New("has region or iam_role_arn, which are for the helper aws_ecr")
	case e.Helper != helperGoogle && e.KeyFile != "":
		return errors.New("has key_file, which is for the helper google")
	case e.Helper != helperAzure && (e.TenantID != "" || e.ClientID != "" || e.ClientSecret != ""):
		return errors.New("has keys that are for the helper azure")
	case e.ClientSecret != "" && (e.TenantID == "" || e.ClientID == ""):
		return errors.New("needs tenant_id and client_id with client_secret")
	}
	return nil
}

// Find looks up what opens an address to an org: the entry of the longest key that
// fits wins, whether or not the org may use it.
func (r *Ring) Find(address, org string) (Key, bool) {
	if r == nil {
		return Key{}, false
	}
	best := ""
	for prefix := range r.entries {
		if covers(prefix, address) && (len(prefix) > len(best) || len(prefix) == len(best) && prefix < best) {
			best = prefix
		}
	}
	e := r.entries[best]
	if best == "" || len(e.Orgs) > 0 && !slices.Contains(e.Orgs, org) {
		return Key{}, false
	}
	return Key{ring: r, entry: e, name: best, org: org, address: address}, true
}

// covers tells whether an address is that of a key, or below it. A "/" at the end of
// either makes no other address.
func covers(key, address string) bool {
	keyScheme, key, _ := strings.Cut(key, "://")
	scheme, address, _ := strings.Cut(address, "://")
	keyHost, keyPath, _ := strings.Cut(key, "/")
	host, path, _ := strings.Cut(address, "/")
	if keyScheme != scheme || !sameHost(keyHost, host) {
		return false
	}
	keyPath = strings.TrimRight(keyPath, "/")
	rest, ok := strings.CutPrefix(path, keyPath)
	return ok && (rest == "" || keyPath == "" || strings.HasPrefix(rest, "/"))
}

// sameHost compares hosts name by name, with "*" for any one.
func sameHost(key, host string) bool {
	if !strings.Contains(key, "*") {
		return strings.EqualFold(key, host)
	}
	want, got := strings.Split(key, "."), strings.Split(host, ".")
	return slices.EqualFunc(want, got, func(w, g string) bool { return w == "*" && g != "" || strings.EqualFold(w, g) })
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
