package fetch

import (
	"errors"
	"io/fs"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Address is where a file stands outside of the app folder: at an http(s)
// address, or in a git repository.
type Address struct {
	URL  string // of the file; of the repository for git
	Git  bool
	Path string // git: the file in the repository
	Ref  string // git: a branch, a tag or a commit; "" is the default branch
}

// ParseAddress reads the value of a key that IsAddress holds for. Addresses
// with credentials are refused, since they are stored with the app; so is what
// a program that fetches could take for an option or for another place. The
// error does not repeat the address.
func ParseAddress(written string) (Address, error) {
	if strings.Contains(written, "{{") {
		return Address{}, badAddress("is a template, and contents are fetched before there is an install", "write the address without {{ }}")
	}
	if strings.ContainsFunc(written, func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' || r == '\\' }) {
		return Address{}, badAddress("has a space, a backslash or a control character", "write it as %20, or leave it out")
	}
	rest, isGit := strings.CutPrefix(written, "git::")
	if isGit {
		return parseGitAddress(rest)
	}
	u, err := url.Parse(rest)
	if err != nil {
		return Address{}, badAddress("is no address", "")
	}
	if err := checkHost(u, "http", "https"); err != nil {
		return Address{}, err
	}
	return Address{URL: rest}, nil
}

// IsAddress tells values of keys that are fetched when the app is synced, and
// names of files that were.
func IsAddress(value string) bool {
	return strings.HasPrefix(value, "http://") || strings.HasPrefix(value, "https://") || strings.HasPrefix(value, "git::")
}

// shortSSH is git's own spelling of an address: git@host:owner/name.
var shortSSH = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_.-]*)@([A-Za-z0-9][A-Za-z0-9.-]*):([^/:].*)$`)

// parseGitAddress reads "https://host/repo.git//path/in/it?ref=v1".
func parseGitAddress(rest string) (Address, error) {
	rest, query, _ := strings.Cut(rest, "?")
	if m := shortSSH.FindStringSubmatch(rest); m != nil && !strings.Contains(rest, "://") {
		rest = "ssh://" + m[1] + "@" + m[2] + "/" + m[3]
	}
	scheme, after, ok := strings.Cut(rest, "://")
	if !ok {
		return Address{}, badAddress("names no repository", "write git::https://HOST/REPO.git//PATH?ref=REF")
	}
	repo, file, _ := strings.Cut(after, "//")
	out := Address{Git: true, URL: scheme + "://" + repo, Path: file}
	u, err := url.Parse(out.URL)
	if err != nil {
		return Address{}, badAddress("is no address", "")
	}
	if err := checkHost(u, "https", "http", "ssh", "file"); err != nil {
		return Address{}, err
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return Address{}, badAddress("has a query that cannot be read", "write ?ref=REF")
	}
	if err := checkQuery(values); err != nil {
		return Address{}, err
	}
	for name := range values {
		if name != "ref" && name != "depth" { // depth is known elsewhere; the history is never fetched here
			return Address{}, badAddress("has a part of the query other than ref", "write ?ref=REF")
		}
	}
	out.Ref = values.Get("ref")
	switch {
	case strings.Trim(u.Path, "/") == "":
		return Address{}, badAddress("names no repository", "write git::https://HOST/REPO.git//PATH?ref=REF")
	case file == "":
		return Address{}, badAddress("names no file of the repository", "write the file's path behind two slashes: REPO.git//PATH")
	case !fs.ValidPath(file) || file == ".":
		return Address{}, badAddress("has a path that is no plain path in the repository", `write it without "." and ".."`)
	case out.Ref != "" && !isRef(out.Ref):
		return Address{}, badAddress("has a ref that cannot be the name of a branch, a tag or a commit", "")
	}
	return out, nil
}

// refFormat leaves out what git would take for an option, a range or another
// name on this side.
var refFormat = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./@+#-]*$`)

func isRef(ref string) bool { return refFormat.MatchString(ref) && !strings.Contains(ref, "..") }

var (
	hostFormat = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9.])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)
	userFormat = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
)

// checkHost refuses credentials, and hosts that are none. The name of a user
// of SSH is no secret; in other addresses it is often a token.
func checkHost(u *url.URL, schemes ...string) error {
	if u.User != nil {
		_, password := u.User.Password()
		if u.Scheme != "ssh" || password || !userFormat.MatchString(u.User.Username()) {
			return errCredentials
		}
	}
	if err := checkQuery(u.Query()); err != nil {
		return err
	}
	switch {
	case !slices.Contains(schemes, u.Scheme):
		return badAddress("is of a kind that is not fetched", "use one of "+strings.Join(schemes, ", "))
	case u.Scheme == "file" && u.Host != "":
		return badAddress("names a host, and file:// is of this machine", "write git::file:///PATH/REPO//FILE")
	case u.Scheme != "file" && !hostFormat.MatchString(u.Host):
		return badAddress("names no host", "")
	}
	return nil
}

// secretParameters are the names of query parameters that hold credentials.
var secretParameters = []string{
	"token", "access_token", "private_token", "auth", "authorization", "password", "secret", "sig", "signature", "sshkey", "apikey", "api_key",
	"x-amz-signature", "x-amz-security-token", "x-goog-signature",
}

// NamesAddress tells the keys whose values are addresses: of repositories,
// images, charts, templates, scripts, pages.
func NamesAddress(key string) bool { return key == "repo" || strings.HasSuffix(key, "_url") }

var (
	authority = regexp.MustCompile(`^(?:git::)?(?:([A-Za-z][A-Za-z0-9+.-]*)://)?([^/?#]*)@`)
	parameter = regexp.MustCompile(`[?&]([^=&#]+)=[^&#]`)
)

// HasCredentials reports whether an address has a password, a token or a
// parameter that is one in it. The name of a user of SSH is none, and neither is
// what stands before the digest of an image. It looks at the text alone, so it
// holds for templates, images and git's own forms too.
func HasCredentials(address string) bool {
	if m := authority.FindStringSubmatch(address); m != nil {
		scheme, user := strings.ToLower(m[1]), m[2]
		switch {
		case strings.HasPrefix(address[len(m[0]):], "sha256:") && scheme == "":
		case strings.Contains(user, ":"):
			return true
		case scheme != "" && scheme != "ssh" && scheme != "git+ssh":
			return true
		}
	}
	for _, m := range parameter.FindAllStringSubmatch(address, -1) {
		name, err := url.QueryUnescape(m[1])
		if err != nil || slices.Contains(secretParameters, strings.ToLower(name)) {
			return true
		}
	}
	return false
}

func checkQuery(values url.Values) error {
	for name := range values {
		if slices.Contains(secretParameters, strings.ToLower(name)) {
			return errCredentials
		}
	}
	return nil
}

var errCredentials = badAddress("has credentials in it, which would be stored with the app",
	"take it from a git repository (git::), which is read with the credentials of your git, or put the file into the folder")

// addressError says what is wrong with an address, and not the address.
type addressError struct{ message, remedy string }

func (e *addressError) Error() string { return e.message }

func badAddress(message, remedy string) error { return &addressError{message, remedy} }

// RemedyOf says what to do about an error of ParseAddress, "" when nothing is known.
func RemedyOf(err error) string {
	if e, ok := errors.AsType[*addressError](err); ok {
		return e.remedy
	}
	return ""
}

// WithoutCredentials shows an address that may have any, or be none: without
// all that stands before its last "@", and without its query.
func WithoutCredentials(address string) string {
	prefix := ""
	if rest, ok := strings.CutPrefix(address, "git::"); ok {
		prefix, address = "git::", rest
	}
	if scheme, rest, ok := strings.Cut(address, "://"); ok && !strings.Contains(scheme, "@") {
		prefix, address = prefix+scheme+"://", rest
	}
	if i := strings.LastIndex(address, "@"); i >= 0 {
		address = "…" + address[i:]
	}
	if before, _, ok := strings.Cut(address, "?"); ok {
		address = before + "?…"
	}
	return prefix + address
}
