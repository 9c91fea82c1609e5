package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/berth-dev/berth/services/builder/internal/keyring"
)

// Kind says how a source is fetched.
type Kind string

// The kinds.
const (
	KindLocal Kind = "local" // an uploaded archive
	KindGit   Kind = "git"   // a directory of a git repository
	KindImage Kind = "image" // an image of a registry
	KindChart Kind = "chart" // a chart of a chart repository or a registry
	KindOCI   Kind = "oci"   // a plugin's directory that was packed as an artifact of a registry
)

// Source is what a build is made from, as stored in builds.source.
type Source struct {
	Kind   Kind   `json:"kind"`
	Digest string `json:"digest,omitempty"` // local: the uploaded archive, "sha256:…"

	Repo      string `json:"repo,omitempty"`      // git: "owner/name" or a URL, as written; image, oci: "host/path"; chart: the repository's address
	Ref       string `json:"ref,omitempty"`       // git: a branch, a tag or a commit, "" is the default branch; image: a tag; oci: a tag or a digest; chart: a version, a range or a Pin
	Range     bool   `json:"range,omitempty"`     // image: Ref is a range of versions, and the newest tag within it is meant
	Connected bool   `json:"connected,omitempty"` // git: through the org's own connection
	Directory string `json:"directory,omitempty"` // git: inside the repository; "" and "." are its root; chart: the chart's name

	// ECR of an image says that it is in a registry of AWS, and how to open it.
	ECR *keyring.ECR `json:"aws_ecr,omitempty"`

	// Org whose build it is: some credentials are for some orgs only.
	Org string `json:"-"`
}

var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// maxRefLength is more than any file system lets git store.
const maxRefLength = 1024

// Parse reads a stored source and checks it. Its errors are for people.
func Parse(raw json.RawMessage) (Source, error) {
	var s Source
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, fmt.Errorf("the source of this build cannot be read: %w", err)
	}
	switch s.Kind {
	case KindLocal:
		if !digestForm.MatchString(s.Digest) {
			return s, fmt.Errorf("the source archive has no valid digest: %q", s.Digest)
		}
	case KindGit:
		s.Directory = path.Clean(s.Directory)
		return s, s.checkGit()
	case KindImage:
		return s, s.checkImage()
	case KindOCI:
		return s, s.checkOCI()
	case KindChart:
		return s, s.checkChart()
	default:
		return s, fmt.Errorf("a source of kind %q is not known", s.Kind)
	}
	return s, nil
}

func (s Source) checkGit() error {
	switch {
	case s.Repo == "":
		return errors.New("the source names no repository")
	case path.IsAbs(s.Directory) || s.Directory == ".." || strings.HasPrefix(s.Directory, "../"):
		return fmt.Errorf("directory %q is not inside the repository", s.Directory)
	case len(s.Ref) > maxRefLength || strings.ContainsFunc(s.Ref, notInRef) || strings.HasPrefix(s.Ref, "-") || strings.Contains(s.Ref, ".."):
		return fmt.Errorf("%q cannot be a branch, a tag or a commit", s.Ref)
	}
	return nil
}

// notInRef tells the characters that git allows in no ref.
func notInRef(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`~^:?*[\`, r) }

var commitForm = regexp.MustCompile(`^[0-9a-f]{40}$`)

// Moves tells whether the content may be another one tomorrow, so that it has to
// be resolved.
func (s Source) Moves() bool { return s.Kind != KindLocal }

// Content identifies the exact content behind the source: equal contents have
// equal strings. commit is what the Resolver found; local sources need none.
func (s Source) Content(commit string) string {
	switch s.Kind {
	case KindLocal:
		return s.Digest
	case KindImage, KindChart, KindOCI:
		if pin, ok := ReadPin(commit); ok {
			return pin.Digest
		}
		return commit // of a tag
	}
	return commit + ":" + s.Directory
}
