// Package contexts owns which Berth a command talks to, and as whom: the file
// ~/.config/berth/config.json with named contexts, and the variables BERTH_URL,
// BERTH_TOKEN, BERTH_CONTEXT and BERTH_ORG that override it.
//
// The file names the files of tokens and holds none itself.
package contexts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/durable"
)

// Context is one Berth and one credential.
type Context struct {
	URL string `json:"url"`
	// TokenFile holds the token; only its owner may read it.
	TokenFile string `json:"token_file"`
	// Org is sent along, for people in several orgs.
	Org string `json:"org,omitempty"`
}

// File is the file of contexts.
type File struct {
	Current  string             `json:"current,omitempty"`
	Contexts map[string]Context `json:"contexts,omitempty"`

	path string
}

// Path is where the file is: in XDG_CONFIG_HOME, else in ~/.config.
func Path(getenv func(string) string) (string, error) {
	dir := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		home := getenv("HOME")
		if home == "" {
			return "", errors.New("berth keeps contexts in your home directory, but HOME is not set: set it, or set BERTH_URL and BERTH_TOKEN")
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "berth", "config.json"), nil
}

// Load reads the file; one that does not exist is empty.
func Load(path string) (*File, error) {
	f := &File{path: path, Contexts: map[string]Context{}}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, f); err != nil {
		return nil, &Problem{fmt.Sprintf("%s is not a valid contexts file: %v", path, err), "fix it, or delete it and add your contexts again"}
	}
	if f.Contexts == nil {
		f.Contexts = map[string]Context{}
	}
	return f, nil
}

// Save replaces the file in one step, mode 0600.
func (f *File) Save() error {
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return writePrivate(f.path, append(data, '\n'))
}

// Names are the names of all contexts, sorted.
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.Contexts)) }

// Use makes a context the current one.
func (f *File) Use(name string) error {
	if _, ok := f.Contexts[name]; !ok {
		return f.unknown(name)
	}
	f.Current = name
	return nil
}

// Remove takes a context out; when it was the current one, there is none.
func (f *File) Remove(name string) error {
	if _, ok := f.Contexts[name]; !ok {
		return f.unknown(name)
	}
	delete(f.Contexts, name)
	if f.Current == name {
		f.Current = ""
	}
	return nil
}

func (f *File) unknown(name string) error {
	if len(f.Contexts) == 0 {
		return &Problem{fmt.Sprintf("there is no context %q, and no other context either", name), NotSet{}.Remedy()}
	}
	return &Problem{fmt.Sprintf("there is no context %q", name), "berth context list (there are: " + strings.Join(f.Names(), ", ") + ")"}
}

// StoreToken writes a token to its own file next to the contexts file and
// returns the path.
func (f *File) StoreToken(name, token string) (string, error) {
	path := filepath.Join(filepath.Dir(f.path), "tokens", name)
	return path, writePrivate(path, []byte(strings.TrimSpace(token)+"\n"))
}

// Target is where to go and what to show there.
type Target struct {
	Name  string // of the context; "" when all comes from variables
	URL   string
	Token string
	Org   string
}

// Problem is an error with a remedy.
type Problem struct{ What, Advice string }

// Error implements error.
func (p *Problem) Error() string { return p.What }

// Remedy says what to do.
func (p *Problem) Remedy() string { return p.Advice }

// NotSet is returned by Resolve when nothing says where to go.
type NotSet struct {
	Known []string // contexts that could be chosen
}

// Error implements error.
func (NotSet) Error() string { return "no control plane is configured" }

// Remedy says what to do.
func (n NotSet) Remedy() string {
	if len(n.Known) > 0 {
		return "choose a context with berth context use; there are: " + strings.Join(n.Known, ", ")
	}
	return "start one here with berth up, or set BERTH_URL and BERTH_TOKEN, or add a context with berth context add"
}

// Resolve finds the target. choice is what was asked for by flag, "" for none.
func Resolve(f *File, choice string, getenv func(string) string) (Target, error) {
	name := firstOf(choice, getenv("BERTH_CONTEXT"))
	t := Target{URL: getenv("BERTH_URL"), Token: getenv("BERTH_TOKEN"), Org: getenv("BERTH_ORG")}
	if name == "" && t.URL == "" {
		name = f.Current
	}
	if name != "" {
		c, ok := f.Contexts[name]
		if !ok {
			return t, f.unknown(name)
		}
		t.Name, t.URL, t.Org = name, firstOf(t.URL, c.URL), firstOf(t.Org, c.Org)
		if t.Token == "" {
			token, err := readToken(c.TokenFile)
			if err != nil {
				return t, err
			}
			t.Token = token
		}
	}
	if t.URL == "" {
		return t, NotSet{Known: f.Names()}
	}
	if err := CheckURL(t.URL); err != nil {
		return t, err
	}
	if t.Token == "" {
		return t, &Problem{"there is no token for " + t.URL, "set BERTH_TOKEN, or choose a context with berth context use"}
	}
	if strings.ContainsFunc(t.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return t, &Problem{"the token contains invalid characters", "copy it again: it is one word that begins with brt_"}
	}
	return t, nil
}

// CheckURL tells whether an address can be that of a Berth.
func CheckURL(address string) error {
	if u, err := url.Parse(address); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return &Problem{fmt.Sprintf("%q is not the URL of a Berth", address), "write it like https://berth.example.com"}
	}
	return nil
}

func readToken(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", &Problem{"cannot read the context's token: " + err.Error(), "create the context again with berth context add, or start berth up for the context local"}
	}
	return strings.TrimSpace(string(data)), nil
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

func writePrivate(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return durable.WriteFile(path, data, 0o600)
}
