package modulefetch

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// Address is where a module is, as read from its source. One of Git, Archive, Ask and
// Host is set.
type Address struct {
	Git string // the repository's address
	Ref string // of Git: branch, tag or commit; "" for the default branch
	// Archive is the address of a packed directory, and Form its kind: "zip" or "tar.gz".
	Archive, Form string
	Ask           string // an address that says in a header where the module is
	// Host, Path ("NAMESPACE/NAME/PROVIDER") are of a registry.
	Host, Path string

	Sub string // the directory in it, "" for all of it
}

// publicRegistry is whose modules have no host in their source.
const publicRegistry = "registry.terraform.io"

var (
	registryPart = regexp.MustCompile(`^[0-9A-Za-z](?:[0-9A-Za-z_-]{0,62}[0-9A-Za-z])?$`)
	forced       = regexp.MustCompile(`^[a-z0-9]+::`) // "s3::https://…"
	scpForm      = regexp.MustCompile(`^(?:[\w.-]+@)([\w.-]+):([^/].*)$`)
)

// Parse reads the source of a module call that is no path. It asks nobody.
func Parse(source string) (Address, error) {
	rest, sub, err := splitSub(source)
	if err != nil {
		return Address{}, err
	}
	a, err := parse(rest)
	a.Sub = sub
	return a, err
}

func parse(source string) (Address, error) {
	if text, ok := strings.CutPrefix(source, "git::"); ok {
		return parseGit(text)
	}
	switch lower := strings.ToLower(source); {
	case strings.HasPrefix(lower, "github.com/"), strings.HasPrefix(lower, "bitbucket.org/"):
		return parseGit(shortHost(source))
	case scpForm.MatchString(source):
		return parseGit(source)
	case forced.MatchString(source):
		kind, _, _ := strings.Cut(source, "::")
		return Address{}, fmt.Errorf("addresses with %s:: are not fetched: use git, a registry or an archive by https", kind)
	case strings.Contains(source, "://"):
		return parseHTTP(source)
	}
	return parseRegistry(source)
}

// shortHost completes github.com/OWNER/NAME.
func shortHost(source string) string {
	where, query, found := strings.Cut(source, "?")
	where = "https://" + strings.TrimSuffix(where, ".git") + ".git"
	if found {
		where += "?" + query
	}
	return where
}

func parseGit(text string) (Address, error) {
	where, query, _ := strings.Cut(text, "?")
	if m := scpForm.FindStringSubmatch(where); m != nil && !strings.Contains(where, "://") {
		where = "https://" + m[1] + "/" + m[2]
	}
	u, err := checkURL(where)
	if err != nil {
		return Address{}, err
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return Address{}, errors.New("its query cannot be read")
	}
	ref := values.Get("ref")
	values.Del("ref")
	values.Del("depth") // one commit is fetched in any case
	switch {
	case len(values) > 0:
		return Address{}, errors.New("its query has more than ref and depth")
	case len(ref) > 256 || strings.HasPrefix(ref, "-") || strings.ContainsAny(ref, " ~^:*[\\\x00\n") || strings.Contains(ref, ".."):
		return Address{}, fmt.Errorf("%q cannot be a branch, a tag or a commit", ref)
	}
	return Address{Git: u.String(), Ref: ref}, nil
}

func parseHTTP(source string) (Address, error) {
	u, err := checkURL(source)
	if err != nil {
		return Address{}, err
	}
	query := u.Query()
	form := query.Get("archive")
	query.Del("archive")
	query.Del("checksum")
	u.RawQuery = query.Encode()
	if form == "" {
		form = path.Base(u.Path)
	}
	switch {
	case strings.HasSuffix(form, "zip"):
		return Address{Archive: u.String(), Form: "zip"}, nil
	case strings.HasSuffix(form, "tar.gz"), strings.HasSuffix(form, "tgz"):
		return Address{Archive: u.String(), Form: "tar.gz"}, nil
	case strings.HasSuffix(u.Path, ".git"):
		return parseGit(source)
	}
	return Address{Ask: u.String()}, nil
}

func parseRegistry(source string) (Address, error) {
	parts := strings.Split(source, "/")
	host := publicRegistry
	if len(parts) == 4 {
		host, parts = strings.ToLower(parts[0]), parts[1:]
		if u, err := url.Parse("https://" + host); err != nil || u.Host != host || !strings.ContainsAny(host, ".:") {
			return Address{}, errNoAddress
		}
	}
	if len(parts) != 3 {
		return Address{}, errNoAddress
	}
	for _, part := range parts {
		if !registryPart.MatchString(part) {
			return Address{}, errNoAddress
		}
	}
	return Address{Host: host, Path: strings.Join(parts, "/")}, nil
}

var errNoAddress = errors.New("it is neither a path (./…), nor git, an https address, or a module of a registry (HOST/NAMESPACE/NAME/PROVIDER)")

// checkURL takes an address that may be asked. One of ssh is asked over https: the
// same servers have the same repositories there, and there are no host keys to know.
func checkURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("its address is no URL") // the error would quote credentials
	}
	if u.Scheme == "ssh" && u.Hostname() != "" {
		u.Scheme, u.User, u.Host = "https", nil, u.Hostname()
	}
	switch {
	case u.User != nil:
		return nil, errors.New("its address has credentials in it: take them out, and have the operator of the builder write them down")
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return nil, fmt.Errorf("addresses with %s:// are not fetched: use https", u.Scheme)
	case u.Fragment != "" || climbs(u.Path):
		return nil, errors.New(`its path has a ".." or a fragment`)
	}
	return u, nil
}

func climbs(p string) bool {
	for part := range strings.SplitSeq(p, "/") {
		if part == ".." || part == "." {
			return true
		}
	}
	return strings.ContainsAny(p, "\\\x00")
}

// splitSub takes "//SUB" out of a source, as Terraform does: after the host.
func splitSub(source string) (rest, sub string, err error) {
	from := 0
	if i := strings.Index(source, "://"); i >= 0 {
		from = i + len("://")
	}
	i := strings.Index(source[from:], "//")
	if i < 0 {
		return source, "", nil
	}
	rest, sub = source[:from+i], source[from+i+2:]
	if where, query, found := strings.Cut(sub, "?"); found {
		rest, sub = rest+"?"+query, where
	}
	sub = strings.Trim(sub, "/")
	if climbs(sub) {
		return "", "", fmt.Errorf("its directory %q leads out of it", sub)
	}
	return rest, sub, nil
}
