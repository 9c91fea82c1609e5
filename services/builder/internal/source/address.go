package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig/fetch"
)

// shorthand is how app folders name repositories: "owner/name".
var shorthand = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9_.-]+$`)

const shorthandHost = "https://github.com/"

// scpForm is git's other way to write an SSH address: "git@host:path".
var scpForm = regexp.MustCompile(`^[^/:]+@?[^/:]*:[^/]`)

// Address turns a repository as written into the URL that is cloned: where the
// Map sends it, else itself. Its errors are for people, and say nothing of
// credentials in the address.
func (r *Resolver) Address(repo string) (string, error) {
	full := repo
	if shorthand.MatchString(repo) {
		full = shorthandHost + strings.TrimSuffix(repo, ".git") + ".git"
	}
	if mapped, ok := r.config.Map.find(repo, full); ok {
		return mapped, nil // the operator wrote it
	}
	u, err := url.Parse(full)
	if err != nil || (u.Scheme == "" && scpForm.MatchString(full)) {
		return "", fmt.Errorf("this is not an address of a repository that Berth can use: write \"owner/name\" or an https URL")
	}
	switch {
	case u.User != nil:
		return "", errors.New("the repository's address has a user name or a password in it: remove it from the app folder")
	case u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("the repository's address %q has a query or a fragment", u.Redacted())
	case u.Scheme == "https" && u.Host != "":
		return u.String(), nil
	case u.Scheme == "file" && !r.config.AllowFile:
		return "", errors.New("file:// sources are not allowed here: set BERTH_ALLOW_FILE_SOURCES=true at the builder if every vendor may read its disk")
	case u.Scheme == "file" && (u.Host != "" || !filepath.IsAbs(u.Path)):
		return "", errors.New("a file:// source needs an absolute path: file:///…")
	case u.Scheme == "file":
		return u.String(), nil
	case u.Scheme == "":
		return "", fmt.Errorf("%q is not an address of a repository: write \"owner/name\" or an https URL", repo)
	case u.Scheme == "https":
		return "", fmt.Errorf("%q names no host", repo)
	}
	return "", fmt.Errorf("repositories are not read by %q: use https", u.Scheme)
}

// Map sends repositories elsewhere: to a mirror, or to a directory on this
// machine. A key is "owner/name", a URL, or the beginning of one that ends at a
// "/"; the longest key that fits wins, and what follows it is appended. A value
// is an https URL, a file URL or an absolute path.
type Map map[string]string

// ReadMap reads a Map from a JSON file.
func ReadMap(file string) (Map, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("source map: %w", err)
	}
	var m Map
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("source map %s: must be an object of strings: %w", file, err)
	}
	for from, to := range m {
		target, err := url.Parse(to)
		switch {
		case err != nil:
			return nil, fmt.Errorf("source map %s: %q leads to something that is not an address", file, from)
		case filepath.IsAbs(to):
			m[from] = (&url.URL{Scheme: "file", Path: filepath.Clean(to)}).String()
		case target.Scheme != "https" && target.Scheme != "file":
			return nil, fmt.Errorf("source map %s: %q must lead to an https URL, a file URL or an absolute path", file, from)
		case fetch.HasCredentials(to):
			return nil, fmt.Errorf("source map %s: %q leads to an address with credentials in it, which would be stored with each build", file, from)
		}
	}
	return m, nil
}

// find looks for a repository by any of its spellings.
func (m Map) find(spellings ...string) (string, bool) {
	best, target := "", ""
	for from, to := range m {
		for _, spelling := range spellings {
			rest, ok := cutWhole(spelling, from)
			if ok && len(from) > len(best) {
				best, target = from, to
				if rest = strings.TrimPrefix(rest, "/"); rest != "" {
					target = strings.TrimSuffix(to, "/") + "/" + rest
				}
			}
		}
	}
	return target, best != ""
}

// cutWhole is strings.CutPrefix for whole path elements; ".git" at the end
// makes no difference.
func cutWhole(s, prefix string) (rest string, ok bool) {
	if strings.TrimSuffix(s, ".git") == strings.TrimSuffix(prefix, ".git") {
		return "", true
	}
	rest, ok = strings.CutPrefix(s, prefix)
	if strings.Contains(rest, "..") {
		return "", false
	}
	return rest, ok && (strings.HasSuffix(prefix, "/") || strings.HasPrefix(rest, "/"))
}
