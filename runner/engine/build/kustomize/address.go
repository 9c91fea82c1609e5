package kustomize

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// Repository is a git repository that a base is in.
type Repository struct {
	URL string // https, without credentials
	Ref string // a branch, a tag or a commit; "" is the default branch
}

// address is what a kustomization says of something that is elsewhere: a file, or
// a directory of a repository.
type address struct {
	file string

	repository Repository
	directory  string
}

// user begins git's other way to write an SSH address: git@host:path.
var user = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*@`)

// file is what kustomize reads as the address of a file; a generator may give it
// a key.
var file = regexp.MustCompile(`^(?:[^=]*=)?\s*(?i:https?):`)

// remote tells what kustomize would fetch from what it would read. It does so by
// the name alone, also where a directory has such a name.
func remote(entry string) bool {
	lower := strings.TrimPrefix(strings.ToLower(entry), "git::")
	return lower != strings.ToLower(entry) || strings.Contains(lower, "://") || file.MatchString(lower) ||
		strings.HasPrefix(lower, "github.com/") || strings.HasPrefix(lower, "github.com:") || user.MatchString(lower)
}

// credentials stand before the host of an address.
var credentials = regexp.MustCompile(`://[^/]*@`)

func withoutUser(entry string) string { return credentials.ReplaceAllString(entry, "://") }

// parseAddress reads an address as kustomize does. Only https is fetched.
func parseAddress(entry string) (address, error) {
	text := strings.TrimPrefix(entry, "git::")
	lower := strings.ToLower(text)
	switch {
	case strings.HasPrefix(lower, "github.com/"):
		text = "https://" + text
	case strings.HasPrefix(lower, "github.com:"), user.MatchString(text), strings.HasPrefix(lower, "ssh://"):
		return address{}, errors.New("is an SSH address, which needs a key: write https://…, or put a copy of it into the source")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return address{}, errors.New("is no address")
	case u.Scheme != "https":
		return address{}, fmt.Errorf("is read by %s://: only https is possible, or a copy of it in the source", u.Scheme)
	case u.User != nil:
		return address{}, errors.New("has a user name or a password in it: remove it")
	case u.Hostname() == "":
		return address{}, errors.New("names no host")
	}
	query := u.Query()
	ref := query.Get("ref")
	if ref == "" {
		ref = query.Get("version")
	}
	if strings.HasPrefix(ref, "-") || strings.Contains(ref, "..") || strings.ContainsAny(ref, " ~^:?*[\\\n") {
		return address{}, fmt.Errorf("%q cannot be a branch, a tag or a commit", ref)
	}
	repo, directory, divided := divide(u.Path)
	isFile := strings.HasSuffix(u.Path, ".yaml") || strings.HasSuffix(u.Path, ".yml") || strings.HasSuffix(u.Path, ".json")
	if isFile && !divided && ref == "" {
		return address{file: u.String()}, nil
	}
	if repo == "" {
		return address{}, errors.New("names no repository")
	}
	directory = path.Clean(directory)
	if directory == ".." || strings.HasPrefix(directory, "../") || path.IsAbs(directory) {
		return address{}, errors.New("leads out of its repository")
	}
	return address{
		repository: Repository{URL: (&url.URL{Scheme: "https", Host: u.Host, Path: repo}).String(), Ref: ref}, directory: directory,
	}, nil
}

// divide separates a repository from a directory of it, as kustomize does: by a
// double slash, by .git, else the repository is the first two elements.
func divide(whole string) (repo, directory string, divided bool) {
	whole = strings.TrimPrefix(whole, "/")
	if before, after, ok := strings.Cut(whole, "_git/"); ok {
		name, rest, _ := strings.Cut(after, "/")
		return "/" + before + "_git/" + name, rest, true
	}
	if before, after, ok := strings.Cut(whole, "//"); ok {
		return "/" + before, after, true
	}
	if before, after, ok := strings.Cut(whole, ".git"); ok {
		return "/" + before + ".git", strings.TrimPrefix(after, "/"), true
	}
	parts := strings.SplitN(whole, "/", 3)
	if len(parts) < 2 {
		return "", "", false
	}
	if len(parts) == 3 {
		directory = parts[2]
	}
	return "/" + parts[0] + "/" + parts[1], directory, false
}
